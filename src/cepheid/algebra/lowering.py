"""Expressions as written become typed ones.

A wrong part is reported and stands as NULL, which fits anywhere, so that the rest of the
condition is still looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from fractions import Fraction
from typing import assert_never

from cepheid.algebra import calls
from cepheid.algebra.coercion import arithmetic, described, named, negate, unify
from cepheid.algebra.expressions import (
    Attribute,
    Call,
    Constant,
    Every,
    Expr,
    MatchDuration,
    Some,
    TimeSpan,
)
from cepheid.algebra.findings import Findings, did_you_mean
from cepheid.algebra.query import Variable
from cepheid.algebra.scope import Scope, listed
from cepheid.algebra.structure import Structure
from cepheid.algebra.types import Schema, Type
from cepheid.algebra.values import (
    NoTick,
    NoUnit,
    constant,
    duration_constant,
    integer_time,
    ticks,
)
from cepheid.language import ast

WRONG = Constant(None, Type.NULL)
_COMPARISONS = {"==": "=", "!=": "<>"}
_FLIPPED = (Type.TIMESTAMP, Type.DATE, Type.DURATION)


class Clause(Enum):
    WHERE = "WHERE"
    HAVING = "HAVING"
    RETURN = "RETURN"
    UNTIL = "UNTIL"


@dataclass(frozen=True)
class Lowering:
    """Lowers the expressions of one clause.

    `quantified` are the ALL and SOME met inside the comparison at hand; None outside of one.
    """

    scope: Scope
    structure: Structure
    params: Mapping[str, object]
    findings: Findings
    clause: Clause
    _open: list[list[tuple[type[Every] | type[Some], str]]] = field(default_factory=list)

    @property
    def schema(self) -> Schema:
        return self.scope.schema

    def wrong(self, code: str, message: str, span: ast.Span, hint: str = "") -> Constant:
        self.findings.add(code, message, span, hint)
        return WRONG

    def condition(self, node: ast.Expression) -> Expr:
        """An expression that must be true or false."""
        expr = self.lower(node)
        if expr.type not in (Type.BOOLEAN, Type.NULL):
            message = f"a condition is needed here, but `{self.text(node)}` is {described(expr)}"
            return self.wrong("CEP211", message, node.span, "compare it with something")
        return expr

    def text(self, node: ast.Expression) -> str:
        return self.findings.text(node.span)

    def lower(self, node: ast.Expression) -> Expr:
        match node:
            case ast.Literal():
                return constant(node.value) or WRONG
            case ast.Parameter():
                return self.parameter(node)
            case ast.Duration():
                return self.duration(node)
            case ast.Name():
                return self.name(node)
            case ast.Attribute():
                variable = self.variable(node.variable, node.span)
                return WRONG if variable is None else self.attribute(variable, node.name, node.span)
            case ast.Star():
                return self.wrong("CEP213", "`*` has no value here", node.span)
            case ast.Unary():
                return self.unary(node)
            case ast.Binary():
                return self.binary(node)
            case ast.Comparison():
                return self.comparison(node)
            case ast.InRange():
                return self.in_range(node)
            case ast.InList():
                return self.in_list(node)
            case ast.Like():
                return self.like(node)
            case ast.IsNull():
                return self.quantifying(lambda: self.is_null(node))
            case ast.Case():
                return self.case(node)
            case ast.Call():
                return calls.lower_call(self, node)
            case ast.KeyTest():
                return self.key_test(node)
            case ast.OccursWithin():
                return self.occurs_within(node)
            case _:
                assert_never(node)

    # ── names and values ────────────────────────────────────────────────────

    def variable(self, name: str, span: ast.Span) -> Variable | None:
        found = self.scope.lookup(name, span, self.findings)
        if found is None or found.negation is None:
            return found
        if self.clause is Clause.HAVING:
            message = f"HAVING can't read `{name}`: it is negated, so a match doesn't have it"
            self.findings.add("CEP331", message, span, "say in WHERE which events are forbidden")
            return None
        if self.clause is Clause.RETURN:
            message = f"RETURN can't read `{name}`: it is negated, so a match doesn't have it"
            self.findings.add("CEP330", message, span, "return a variable that is not negated")
            return None
        return found

    def attribute(self, variable: Variable, name: str, span: ast.Span) -> Expr:
        column = self.scope.column(variable, name)
        if column is None:
            owner = " or ".join(variable.types) or f"`{variable.name}`"
            hint = did_you_mean(name, variable.columns, f"it has {listed(variable.columns)}")
            return self.wrong("CEP204", f"{owner} has no attribute `{name}`", span, hint)
        return Attribute(variable.name, column, self.schema.columns[column])

    def name(self, node: ast.Name) -> Expr:
        """An attribute without its variable, which only one variable leaves clear."""
        if node.name in self.scope.variables or node.name in self.scope.ambiguous:
            message = f"`{node.name}` is an event, not a value"
            return self.wrong("CEP205", message, node.span, f"name an attribute: `{node.name}.x`")
        positive = self.scope.positive
        if len(positive) == 1:
            return self.attribute(positive[0], node.name, node.span)
        owners = [v.name for v in positive if self.scope.column(v, node.name)]
        if not owners:
            known = {*self.scope.variables, *(c for v in positive for c in v.columns)}
            hint = did_you_mean(node.name, known, f"variables are {listed(self.scope.variables)}")
            return self.wrong("CEP203", f"nothing is called `{node.name}`", node.span, hint)
        hint = f"say whose it is: `{owners[0]}.{node.name}`"
        message = f"`{node.name}` could belong to several events"
        return self.wrong("CEP205", message, node.span, hint)

    def parameter_value(self, node: ast.Parameter) -> object:
        """KeyError, after a finding, if it has no value."""
        if node.name not in self.params:
            hint = did_you_mean(node.name, self.params, f'give it one: params={{"{node.name}": …}}')
            self.findings.add(
                "CEP206", f"the parameter `:{node.name}` has no value", node.span, hint
            )
            raise KeyError(node.name)
        return self.params[node.name]

    def parameter(self, node: ast.Parameter, *, micros: bool = False) -> Expr:
        try:
            value = self.parameter_value(node)
        except KeyError:
            return WRONG
        if isinstance(value, timedelta):
            amount = Fraction(value // timedelta(microseconds=1))
            return self._ticks(amount, ast.Unit.MICROSECONDS, node.span, micros)
        found = constant(value)
        if found is None:
            message = f"`:{node.name}` is a {type(value).__name__}, which no predicate can read"
            return self.wrong("CEP207", message, node.span)
        return found

    def amount(self, node: ast.Duration | ast.EventCount) -> Fraction | timedelta | None:
        """The number of a duration; a timedelta only as the value of a bare `:name`."""
        written = node.amount if isinstance(node, ast.Duration) else node.count
        if not isinstance(written, ast.Parameter):
            return Fraction(written)
        try:
            value = self.parameter_value(written)
        except KeyError:
            return None
        bare = isinstance(node, ast.Duration) and node.unit is ast.Unit.UNITS
        if isinstance(value, timedelta) and bare:
            return value
        number = constant(value)
        if number is None or isinstance(value, bool) or not number.type.numeric:
            message = f"`:{written.name}` must be a number, not {value!r}"
            self.findings.add("CEP207", message, written.span)
            return None
        return Fraction(str(value))

    def duration(self, node: ast.Duration, *, micros: bool = False) -> Expr:
        amount = self.amount(node)
        if amount is None:
            return WRONG
        if isinstance(amount, timedelta):
            micro = Fraction(amount // timedelta(microseconds=1))
            return self._ticks(micro, ast.Unit.MICROSECONDS, node.span, micros)
        return self._ticks(amount, node.unit, node.span, micros)

    def _ticks(self, amount: Fraction, unit: ast.Unit, span: ast.Span, micros: bool) -> Expr:
        """`micros`: it meets timestamps, so that an integer time column has no say in it."""
        size = self.clock_ticks(amount, unit, span, micros=micros)
        if size is None:
            return WRONG
        return duration_constant(size, integer=integer_time(self.schema) and not micros)

    def clock_ticks(
        self, amount: Fraction, unit: ast.Unit, span: ast.Span, *, micros: bool = False
    ) -> Fraction | None:
        try:
            if micros and unit is not ast.Unit.UNITS:
                return ticks(amount, unit, Schema({"t": Type.TIMESTAMP}, "t"))
            return ticks(amount, unit, self.schema)
        except NoTick:
            time = self.schema.time
            message = f"the time column `{time}` is an integer, and nothing says how long one is"
            shown = f"{_plain(amount)} units"
            hint = f'write `{shown}`, or say what one tick is: unit="ms"'
            self.findings.add("CEP403", message, span, hint)
        except NoUnit:
            message = f"the time column `{self.schema.time}` is a timestamp, so this needs a unit"
            self.findings.add("CEP404", message, span, f"write `{_plain(amount)} seconds`")
        return None

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
        operator = node.operator.upper()
        if operator in ("AND", "OR"):
            left, right = self.condition(node.left), self.condition(node.right)
            return logical(operator.lower(), (left, right))
        if operator == "||":
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
            micros = other.type in _FLIPPED and not isinstance(other, MatchDuration | TimeSpan)
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
            self.findings.add("CEP210", message, span, _clash_hint(exprs[first], exprs[other]))
        return result

    def compare(self, left: ast.Expression, operator: str, right: ast.Expression) -> Expr:
        def lowered() -> Expr:
            operands = self.pair(left, right)
            span = left.span.to(right.span)
            sides = self.unified((left, right), operands, span, "compare")
            if sides is None:
                return WRONG
            return Call(_COMPARISONS.get(operator, operator), tuple(sides), Type.BOOLEAN)

        return self.quantifying(lowered)

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
        low, high = ("<", ">") if node.negated else (">=", "<=")

        def lowered() -> Expr:
            sides = (
                self.compare(node.operand, low, node.low),
                self.compare(node.operand, high, node.high),
            )
            return logical("or" if node.negated else "and", sides)

        return lowered()

    def in_list(self, node: ast.InList) -> Expr:
        def lowered() -> Expr:
            nodes = (node.operand, *node.options)
            operand = self.lower(node.operand)
            options = [self.pair(node.operand, o)[1] for o in node.options]
            arguments = self.unified(nodes, (operand, *options), node.span, "compare")
            if arguments is None:
                return WRONG
            return _negated(Call("in", tuple(arguments), Type.BOOLEAN), node.negated)

        return self.quantifying(lowered)

    def like(self, node: ast.Like) -> Expr:
        def lowered() -> Expr:
            found = calls.strings(self, (node.operand, node.pattern), node.operator.upper())
            call = Call(node.operator.lower(), found, Type.BOOLEAN)
            return _negated(call, node.negated)

        return self.quantifying(lowered)

    def is_null(self, node: ast.IsNull) -> Expr:
        return _negated(Call("is_null", (self.lower(node.operand),), Type.BOOLEAN), node.negated)

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

    def key_pairs(self, node: ast.KeyTest) -> list[tuple[Expr, Expr]]:
        """The equalities of `[id]`: a star, or, where branches exclude each other, all pairs."""
        found = [
            self.attribute(v, node.attribute, node.span)
            for v in self.scope.variables.values()
            if self.clause is Clause.WHERE or v.negation is None
        ]
        attributes = [a for a in found if isinstance(a, Attribute)]
        if not any(self.structure.branches.values()):
            positive = {v.name for v in self.scope.positive}
            center = next((a for a in attributes if a.variable in positive), None)
            return [] if center is None else [(center, a) for a in attributes if a is not center]
        return [
            (one, other)
            for i, one in enumerate(attributes)
            for other in attributes[i + 1 :]
            if not self.structure.exclusive(one.variable, other.variable)
            and not self._two_negations(one.variable, other.variable)
        ]

    def _two_negations(self, one: str, other: str) -> bool:
        indexes = {self.scope.variables[v].negation for v in (one, other)} - {None}
        return len(indexes) > 1

    def key_test(self, node: ast.KeyTest) -> Expr:
        if node.value is not None:
            names = [
                v.name
                for v in self.scope.variables.values()
                if self.clause is Clause.WHERE or v.negation is None
            ]
            tests = [
                self.compare(ast.Attribute(n, node.attribute, node.span), "=", node.value)
                for n in names
            ]
            return logical("and", tests)
        equalities: list[Expr] = []
        for one, other in self.key_pairs(node):
            sides = unify((one, other))
            if sides is None:
                message = f"`{node.attribute}` is {described(one)}, which can't be compared"
                return self.wrong("CEP210", message, node.span)
            equalities.append(Call("=", tuple(sides), Type.BOOLEAN))
        return logical("and", equalities)

    def occurs_within(self, node: ast.OccursWithin) -> Expr:
        found = [self.variable(name, node.span) for name in node.variables]
        limit = self.duration(node.duration)
        names = tuple(v.name for v in found if v is not None)
        return Call("<", (TimeSpan(names, self.duration_type), limit), Type.BOOLEAN)

    @property
    def duration_type(self) -> Type:
        """Over an integer time column durations are numbers like any other."""
        return Type.INTEGER if integer_time(self.schema) else Type.DURATION


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


def _clash_hint(one: Expr, other: Expr) -> str:
    for expr, beside in ((one, other), (other, one)):
        if not isinstance(expr, Constant):
            continue
        if isinstance(expr.value, int | float) and beside.type is Type.DURATION:
            return f"give it a unit: `{expr.value} seconds`"
        if isinstance(expr.value, str) and beside.type.numeric:
            return "a string here is never a number; write it without quotes"
    return ""


def _plain(amount: Fraction) -> str:
    return str(int(amount)) if amount.denominator == 1 else str(float(amount))
