"""Expressions as written become typed ones.

A wrong part is reported and stands as NULL, which fits anywhere, so that the rest of the
condition is still looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import assert_never

from cepheid.algebra.binding.expressions import calls
from cepheid.algebra.binding.expressions.array_conditions import lower_contains
from cepheid.algebra.binding.expressions.casts import lower_cast
from cepheid.algebra.binding.expressions.coercion import arithmetic, described, named, negate, unify
from cepheid.algebra.binding.expressions.resolution import WRONG, Clause, Resolver
from cepheid.algebra.expressions import (
    Accumulator,
    Attribute,
    Call,
    Constant,
    Every,
    Expr,
    MatchDuration,
    Some,
    TimeSpan,
    VaryingList,
)
from cepheid.algebra.query import Kind
from cepheid.algebra.types import Type
from cepheid.algebra.values import constant
from cepheid.language import ast
from cepheid.language.attribute_paths import read_path

_COMPARISONS = {"==": "=", "!=": "<>"}
_MOMENTS = (Type.TIMESTAMP, Type.DATE, Type.DURATION)


@dataclass(frozen=True)
class ExpressionBinder(Resolver):
    """Lowers the expressions of one clause.

    `accumulator` is what `reduce` calls its result so far, and its type. `_open` are the
    comparisons being lowered, each with the ALL and SOME met inside it.
    """

    accumulator: tuple[str, Type] | None = None
    _open: list[list[tuple[type[Every] | type[Some], str]]] = field(default_factory=list)

    def condition(self, node: ast.Expression) -> Expr:
        """An expression that must be true or false."""
        expr = self.lower(node)
        if expr.type not in (Type.BOOLEAN, Type.NULL):
            message = f"a condition is needed here, but `{self.text(node)}` is {described(expr)}"
            return self.wrong("CEP211", message, node.span, "compare it with something")
        return expr

    def lower(self, node: ast.Expression) -> Expr:
        match node:
            case ast.Literal():
                return constant(node.value) or WRONG
            case ast.Parameter():
                return self.parameter(node)
            case ast.Duration():
                return self.duration(node)
            case ast.Name(name) if self.accumulator is not None and name == self.accumulator[0]:
                return Accumulator(self.accumulator[1])
            case ast.Name():
                return self.name(node)
            case ast.Attribute():
                variable = self.variable(node.variable, node.span)
                return WRONG if variable is None else self.attribute(variable, node.name, node.span)
            case ast.Star():
                return self.wrong("CEP213", "`*` has no value here", node.span)
            case ast.Unary():
                return self.unary(node)
            case ast.Logical(operator, operands):
                return logical(operator.lower(), [self.condition(o) for o in operands])
            case ast.Binary():
                return self.binary(node)
            case ast.Comparison():
                return self.comparison(node)
            case ast.InRange():
                return self.quantifying(lambda: self.in_range(node))
            case ast.InList():
                return self.quantifying(lambda: self.in_list(node))
            case ast.Like():
                return self.quantifying(lambda: self.like(node))
            case ast.IsNull():
                return self.quantifying(lambda: self.is_null(node))
            case ast.IsDistinct():
                return self.quantifying(lambda: self.is_distinct(node))
            case ast.Case():
                return self.case(node)
            case ast.Call():
                return calls.lower_call(self, node)
            case ast.Step():
                message = "`->` has no value here"
                hint = "it is the last argument of `reduce(b, 0, acc -> acc + b.x)`"
                return self.wrong("CEP213", message, node.span, hint)
            case ast.Cast():
                return lower_cast(self, node)
            case ast.KeyTest():
                return self.key_test(node)
            case ast.OccursWithin():
                return self.occurs_within(node)
            case _:
                assert_never(node)

    # ── operators ───────────────────────────────────────────────────────────

    def unary(self, node: ast.Unary) -> Expr:
        if node.operator.upper() == "NOT":
            return Call("not", (self.condition(node.operand),), Type.BOOLEAN)
        operand = self.lower(node.operand)
        result = negate(operand) if node.operator == "-" else operand
        if result is None or not (result.type.numeric or result.type in (Type.DURATION, Type.NULL)):
            message = f"`{node.operator}` needs a number, but `{self.text(node.operand)}` is "
            return self.wrong("CEP210", message + described(operand), node.span)
        return result

    def binary(self, node: ast.Binary) -> Expr:
        if node.operator == "||":
            return calls.apply(self, "concat", (node.left, node.right), node.span)
        left, right = self.pair(node.left, node.right)
        result = arithmetic(node.operator, left, right)
        if result is None:
            message = (
                f"`{node.operator}` doesn't go with `{self.text(node.left)}` ({named(left)}) "
                f"and `{self.text(node.right)}` ({named(right)})"
            )
            return self.wrong("CEP210", message, node.span)
        return result

    def pair(self, left: ast.Expression, right: ast.Expression) -> tuple[Expr, Expr]:
        """Two operands; a duration beside a timestamp is in microseconds whatever time is."""
        if _is_duration(left) != _is_duration(right):
            other = self.lower(right if _is_duration(left) else left)
            micros = other.type in _MOMENTS and not isinstance(other, MatchDuration | TimeSpan)
            if _is_duration(left):
                return self._duration_or_parameter(left, micros), other
            return other, self._duration_or_parameter(right, micros)
        return self.lower(left), self.lower(right)

    def _duration_or_parameter(self, node: ast.Expression, micros: bool) -> Expr:
        match node:
            case ast.Duration():
                return self.duration(node, micros=micros)
            case ast.Parameter():
                return self.parameter(node, micros=micros)
            case _:
                return self.lower(node)

    def unified(
        self, nodes: Sequence[ast.Expression], exprs: Sequence[Expr], span: ast.Span, verb: str
    ) -> list[Expr] | None:
        """All in one type, or a finding that names the first two that don't go together."""
        try:
            result = unify(exprs)
        except ValueError:
            for node, expr in zip(nodes, exprs, strict=True):
                if isinstance(expr, Constant) and isinstance(expr.value, str):
                    message = f"`{self.text(node)}` is not a date or timestamp"
                    hint = "write it as '2024-05-01 12:30:00'"
                    self.findings.add("CEP214", message, node.span, hint)
            return None
        if result is None:
            first, other = _clash(exprs)
            message = (
                f"can't {verb} `{self.text(nodes[first])}` ({named(exprs[first])}) "
                f"with `{self.text(nodes[other])}` ({named(exprs[other])})"
            )
            hint = _clash_hint(exprs[first], exprs[other]) if verb == "compare" else ""
            self.findings.add("CEP210", message, span, hint)
        return result

    def compare(self, left: ast.Expression, operator: str, right: ast.Expression) -> Expr:
        return self.quantifying(lambda: self._compare(left, operator, right))

    def _compare(self, left: ast.Expression, operator: str, right: ast.Expression) -> Expr:
        sides = self._sides(left, right)
        if sides is None:
            return WRONG
        return Call(_COMPARISONS.get(operator, operator), sides, Type.BOOLEAN)

    def _sides(self, left: ast.Expression, right: ast.Expression) -> tuple[Expr, ...] | None:
        """What is compared, in one type."""
        operands = self.pair(left, right)
        sides = self.unified((left, right), operands, left.span.to(right.span), "compare")
        return None if sides is None else tuple(sides)

    def quantifying(self, lowered: calls.Thunk) -> Expr:
        """ALL and SOME inside a comparison quantify over that comparison."""
        self._open.append([])
        expr = lowered()
        for quantifier, variable in reversed(self._open.pop()):
            expr = quantifier(variable, expr)
        return expr

    def quantify(self, quantifier: type[Every] | type[Some], variable: str) -> bool:
        """Note a quantifier for the comparison around it; False if there is none."""
        if not self._open:
            return False
        if (quantifier, variable) not in self._open[-1]:
            self._open[-1].append((quantifier, variable))
        return True

    def comparison(self, node: ast.Comparison) -> Expr:
        pairs = zip(node.operands, node.operators, node.operands[1:], strict=False)
        return logical("and", [self.compare(a, operator, b) for a, operator, b in pairs])

    def in_range(self, node: ast.InRange) -> Expr:
        """Two comparisons of one element, so that SOME means the same one in both."""
        low, high = ("<", ">") if node.negated else (">=", "<=")
        sides = (
            self._compare(node.operand, low, node.low),
            self._compare(node.operand, high, node.high),
        )
        return logical("or" if node.negated else "and", sides)

    def in_list(self, node: ast.InList) -> Expr:
        operand = self.lower(node.operand)
        options = [
            (option, expr) for option in node.options for expr in self._options(node, option)
        ]
        nodes = (node.operand, *(option for option, _ in options))
        exprs = (operand, *(expr for _, expr in options))
        arguments = self.unified(nodes, exprs, node.span, "compare")
        if arguments is None:
            return WRONG
        if any(isinstance(expr, VaryingList) for expr in exprs):
            if tuple(arguments) != exprs or len(options) > 1:
                message = "a list that varies is compared alone, with values of its own type"
                return self.wrong("CEP207", message, node.span)
            return _negated(Call("in_list", exprs, Type.BOOLEAN), node.negated)
        if not options:
            return Constant(node.negated, Type.BOOLEAN)
        return _negated(Call("in", tuple(arguments), Type.BOOLEAN), node.negated)

    def _options(self, node: ast.InList, option: ast.Expression) -> list[Expr]:
        """What the operand is compared with: of a parameter that is a list, each of its values."""
        if isinstance(option, ast.Parameter):
            values = self.params.get(option.name)
            if isinstance(values, list | tuple | set | frozenset):
                return self.listed(option, values)
        return [self.pair(node.operand, option)[1]]

    def like(self, node: ast.Like) -> Expr:
        if node.operator == "CONTAINS":
            array = self.lower(node.operand)
            if array.type is Type.OTHER:
                return _negated(lower_contains(self, node, array), node.negated)
        text, pattern = calls.strings(self, (node.operand, node.pattern), node.operator)
        match node.operator:
            case "ILIKE":
                text = Call("lower", (text,), Type.STRING)
                test = Call("like", (text, calls.lower_case(pattern)), Type.BOOLEAN)
            case "RLIKE":
                calls.check_expression(self, pattern, node.pattern)
                test = Call("rlike", (text, pattern), Type.BOOLEAN)
            case operator:
                test = Call(operator.lower(), (text, pattern), Type.BOOLEAN)
        return _negated(test, node.negated)

    def is_null(self, node: ast.IsNull) -> Expr:
        return _negated(Call("is_null", (self.lower(node.operand),), Type.BOOLEAN), node.negated)

    def is_distinct(self, node: ast.IsDistinct) -> Expr:
        """Whether both are equal or both NULL is never unknown."""
        sides = self._sides(node.left, node.right)
        if sides is None:
            return WRONG
        absent = logical("and", [Call("is_null", (side,), Type.BOOLEAN) for side in sides])
        equal = Call("=", sides, Type.BOOLEAN)
        return _negated(Call("coalesce", (equal, absent), Type.BOOLEAN), not node.negated)

    def case(self, node: ast.Case) -> Expr:
        tests = [
            self.condition(test) if node.operand is None else self.compare(node.operand, "=", test)
            for test, _ in node.branches
        ]
        default = node.default or ast.Literal(None, node.span)
        nodes = [*(value for _, value in node.branches), default]
        values = self.unified(nodes, [self.lower(n) for n in nodes], node.span, "mix")
        if values is None:
            return WRONG
        branches = [e for pair in zip(tests, values, strict=False) for e in pair]
        return Call("case", (*branches, values[-1]), values[-1].type)

    # ── the language's own conditions ───────────────────────────────────────

    def _tested(self, node: ast.KeyTest) -> list[Attribute]:
        """The attribute of every variable; outside WHERE negated ones have no part in it."""
        read = self.scope.variables.values() if self.clause is Clause.WHERE else self.scope.positive
        path = read_path(node.attribute)
        if path is not None and path.column in self.scope.variables:
            hint = f"leave out `{path.column}.`"
            message = f"`[{node.attribute}]` is about all variables, and names one of them"
            self.findings.add("CEP204", message, node.span, hint)
            return []
        attributes = [self.attribute(v, node.attribute, node.span) for v in read]
        return [a for a in attributes if isinstance(a, Attribute)]

    def key_test(self, node: ast.KeyTest) -> Expr:
        attributes = self._tested(node)
        if node.value is not None:
            tests = [ast.Attribute(a.variable, a.name, node.span) for a in attributes]
            return logical("and", [self.compare(test, "=", node.value) for test in tests])
        if attributes and attributes[0].type is Type.OTHER:
            message = f"`{node.attribute}` is nested, which can't be compared"
            return self.wrong("CEP210", message, node.span)
        pairs = (unify(pair) for pair in self._key_pairs(attributes))
        return logical("and", [Call("=", tuple(p), Type.BOOLEAN) for p in pairs if p])

    def _key_pairs(self, attributes: Sequence[Attribute]) -> list[tuple[Attribute, Attribute]]:
        """A star around the first event of a match; all pairs where an event may be absent (in
        another branch) or lack the attribute (in another stream)."""
        variables = self.scope.variables
        center = next((a for a in attributes if variables[a.variable].negation is None), None)
        branches = any(self.structure.branches.values())
        if not branches and all(
            self.scope.complete(variables[a.variable], a.name) for a in attributes
        ):
            return [(center, a) for a in attributes if center is not None and a is not center]
        return [
            (left, right)
            for left, right in combinations(attributes, 2)
            if not self.structure.exclusive(left.variable, right.variable)
            and not self._two_negations(left.variable, right.variable)
        ]

    def _two_negations(self, left: str, right: str) -> bool:
        indexes = {self.scope.variables[v].negation for v in (left, right)} - {None}
        return len(indexes) > 1

    def occurs_within(self, node: ast.OccursWithin) -> Expr:
        bound = [self.variable(name, node.span) for name in node.variables]
        limit = self.duration(node.duration)
        names = tuple(dict.fromkeys(v.name for v in bound if v is not None))
        if len(names) == 1 and None not in bound and self._is_single(names[0]):
            message = f"OCCURS WITHIN needs two events, and `{names[0]}` is one"
            hint = f"name another: `({names[0]}, {self._other(names[0])}) OCCURS WITHIN …`"
            return self.wrong("CEP215", message, node.span, hint)
        return Call("<", (TimeSpan(names, self.duration_type), limit), Type.BOOLEAN)

    def _is_single(self, name: str) -> bool:
        return self.scope.variables[name].kind is Kind.SINGLE

    def _other(self, name: str) -> str:
        return next((v.name for v in self.scope.positive if v.name != name), "b")


def logical(operator: str, operands: Sequence[Expr]) -> Expr:
    """n-ary `and` and `or`, flat; of nothing, true."""
    flat: list[Expr] = []
    for operand in operands:
        same = isinstance(operand, Call) and operand.operator == operator
        flat.extend(operand.arguments if same and isinstance(operand, Call) else (operand,))
    if len(flat) == 1:
        return flat[0]
    return Call(operator, tuple(flat), Type.BOOLEAN) if flat else Constant(True, Type.BOOLEAN)


def _negated(expr: Expr, negated: bool) -> Expr:
    return Call("not", (expr,), Type.BOOLEAN) if negated else expr


def _is_duration(node: ast.Expression) -> bool:
    return isinstance(node, ast.Duration | ast.Parameter)


def _clash(exprs: Sequence[Expr]) -> tuple[int, int]:
    for other in range(1, len(exprs)):
        for first in range(other):
            if unify((exprs[first], exprs[other])) is None:
                return first, other
    return 0, len(exprs) - 1


def _clash_hint(left: Expr, right: Expr) -> str:
    for expr, beside in ((left, right), (right, left)):
        if not isinstance(expr, Constant):
            continue
        if isinstance(expr.value, int | float) and beside.type is Type.DURATION:
            return f"give it a unit: `{expr.value} seconds`"
        if isinstance(expr.value, int | float) and beside.type is Type.STRING:
            return f"for the text, write `'{expr.value}'`"
        if isinstance(expr.value, str) and beside.type.numeric:
            return "a string is never a number" + (
                "; leave the quotes out" if _number(expr) else ""
            )
    return ""


def _number(text: Constant) -> bool:
    try:
        float(str(text.value))
    except ValueError:
        return False
    return True
