"""Function calls: scalar functions, aggregates, `PREV`, `ALL`, `SOME`, `duration()`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from cepheid.algebra.aggregates import AGGREGATES, AggregateFunction, FoldResult, Operand
from cepheid.algebra.coercion import cast, described
from cepheid.algebra.expressions import (
    Aggregate,
    Attribute,
    Call,
    Constant,
    Every,
    Expr,
    MatchDuration,
    Previous,
    Some,
    Varying,
    Whole,
    transform,
    variables,
    walk,
)
from cepheid.algebra.findings import did_you_mean
from cepheid.algebra.functions import (
    FUNCTIONS,
    LOWERED,
    NAMES,
    PARTS,
    SYNONYMS,
    UNITS,
    Accepts,
    Function,
)
from cepheid.algebra.query import Kind
from cepheid.algebra.resolution import WRONG
from cepheid.algebra.text_patterns import regular_expression_problem
from cepheid.algebra.types import Type
from cepheid.language import ast

if TYPE_CHECKING:
    from cepheid.algebra.expression_binder import ExpressionBinder

Thunk = Callable[[], Expr]
_CALENDAR = (Type.TIMESTAMP, Type.DATE)


def lower_call(low: ExpressionBinder, node: ast.Call) -> Expr:
    name = SYNONYMS.get(node.name, node.name)
    if node.distinct:
        return low.wrong("CEP209", f"`{node.name}` doesn't take DISTINCT", node.span)
    if name in AGGREGATES:
        return _aggregate(low, AGGREGATES[name], node)
    match name:
        case "prev":
            return _previous(low, node)
        case "all" | "some":
            return _quantifier(low, Every if name == "all" else Some, node)
        case "duration":
            if node.arguments:
                return _arity(low, node, "no arguments")
            return MatchDuration(low.duration_type)
        case _ if name in LOWERED:
            return _lowered(low, name, node)
        case _ if name in FUNCTIONS:
            return apply(low, name, node.arguments, node.span)
        case _:
            message = f"there is no function `{node.name}`"
            return low.wrong("CEP208", message, node.span, did_you_mean(node.name, NAMES))


def _arity(low: ExpressionBinder, node: ast.Call, wanted: str) -> Expr:
    given = len(node.arguments)
    return low.wrong("CEP209", f"`{node.name}` takes {wanted}, not {given}", node.span)


def apply(
    low: ExpressionBinder, name: str, nodes: Sequence[ast.Expression], span: ast.Span
) -> Expr:
    """A function of the table, its arguments checked and converted."""
    function = FUNCTIONS[name]
    if len(nodes) < function.required or (function.most is not None and len(nodes) > function.most):
        message = f"`{name}` takes {function.arity}, not {len(nodes)}"
        return low.wrong("CEP209", message, span)
    if Accepts.SAME in function.parameters:
        same = low.unified(nodes, [low.lower(n) for n in nodes], span, "mix")
        return WRONG if same is None else _call(function, same)
    arguments = [a for i, n in enumerate(nodes) if (a := _argument(low, function, i, n))]
    if len(arguments) < len(nodes):
        return WRONG
    if name == "rlike":
        check_expression(low, arguments[1], nodes[1])
    if name == "date_trunc":
        _check_word(low, arguments[0], nodes[0], UNITS, "unit of time")
    return _call(function, arguments)


def check_expression(low: ExpressionBinder, pattern: Expr, node: ast.Expression) -> None:
    """A regular expression that is known must be one."""
    match pattern:
        case Varying():
            return
        case Constant(value=str() as expression):
            problem = regular_expression_problem(expression)
            if problem is not None:
                message = f"this is no regular expression: {problem}"
                hint = "expressions are RE2's: without look-around and back references"
                low.wrong("CEP219", message, node.span, hint)


def _check_word(
    low: ExpressionBinder, expr: Expr, node: ast.Expression, known: Iterable[str], what: str
) -> None:
    if isinstance(expr, Constant) and isinstance(expr.value, str):
        word = expr.value.lower()
        if word not in known:
            hint = did_you_mean(word, known, f"known are {', '.join(known)}")
            low.wrong("CEP219", f"there is no {what} `{expr.value}`", node.span, hint)


def _call(function: Function, arguments: Sequence[Expr]) -> Expr:
    result = arguments[0].type if function.result is None else function.result
    return Call(function.name, tuple(arguments), result)


def _argument(
    low: ExpressionBinder, function: Function, index: int, node: ast.Expression
) -> Expr | None:
    wanted = function.parameter(index)
    expr = low.lower(node)
    fitted = _fit(expr, wanted)
    if fitted is None:
        message = f"`{function.name}` needs {wanted.words}, but `{low.text(node)}` is "
        low.wrong("CEP210", message + described(expr), node.span)
    return fitted


def _fit(expr: Expr, wanted: Accepts) -> Expr | None:
    given = expr.type
    match wanted:
        case Accepts.AMOUNT if given is Type.DURATION:
            return expr
        case Accepts.NUMBER | Accepts.AMOUNT:
            if given is Type.NULL:
                return cast(expr, Type.INTEGER)
            number = cast(expr, Type.FLOAT) if given is Type.DECIMAL else expr
            return number if given.numeric else None
        case Accepts.FLOAT:
            return cast(expr, Type.FLOAT) if given.numeric or given is Type.NULL else None
        case Accepts.INTEGER:
            return cast(expr, Type.INTEGER) if given in (Type.INTEGER, Type.NULL) else None
        case Accepts.STRING:
            return cast(expr, Type.STRING) if given in (Type.STRING, Type.NULL) else None
        case Accepts.CALENDAR:
            return expr if given in _CALENDAR or given is Type.NULL else None
        case Accepts.TIMESTAMP:
            fits = given in _CALENDAR or given is Type.NULL
            return cast(expr, Type.TIMESTAMP) if fits else None
        case Accepts.SAME:
            return expr


def strings(
    low: ExpressionBinder, nodes: Sequence[ast.Expression], operator: str
) -> tuple[Expr, ...]:
    """Operands that must be strings, as those of LIKE."""
    found: list[Expr] = []
    for node in nodes:
        expr = low.lower(node)
        fitted = _fit(expr, Accepts.STRING)
        if fitted is None:
            message = f"{operator} needs a string, but `{low.text(node)}` is {described(expr)}"
            low.wrong("CEP210", message, node.span)
        found.append(fitted or WRONG)
    return tuple(found)


def _lowered(low: ExpressionBinder, name: str, node: ast.Call) -> Expr:
    if len(node.arguments) != LOWERED[name]:
        return _arity(low, node, f"{LOWERED[name]} arguments")
    first, second = node.arguments[:2]
    match name:
        case "nullif":
            value = low.lower(first)
            branch = (low.compare(first, "=", second), Constant(None, value.type), value)
            return Call("case", branch, value.type)
        case "if" | "iif":
            branches = ((first, second),)
            return low.case(ast.Case(None, branches, node.arguments[2], node.span))
        case "date_part":
            return _date_part(low, node)
        case "mod":
            return low.binary(ast.Binary("%", first, second, node.span))
        case _:
            return apply(low, "coalesce", node.arguments, node.span)


def _date_part(low: ExpressionBinder, node: ast.Call) -> Expr:
    """The second has its fraction, as in Spark."""
    part, moment = node.arguments
    if not isinstance(part, ast.Literal) or not isinstance(part.value, str):
        message = f"`{low.text(part)}` must be the name of a part, as in `'hour'`"
        return low.wrong("CEP219", message, part.span)
    name = part.value.lower()
    if name not in PARTS:
        hint = did_you_mean(name, PARTS, f"parts are {', '.join(PARTS)}")
        return low.wrong("CEP219", f"a date has no part `{part.value}`", part.span, hint)
    found = apply(low, PARTS[name], (moment,), node.span)
    if name != "second" or found is WRONG:
        return found
    fraction = apply(low, "subsecond", (moment,), node.span)
    return Call("+", (cast(found, Type.FLOAT), fraction), Type.FLOAT)


def lower_case(expr: Expr) -> Expr:
    match expr:
        case Constant(value=str() as text) if not isinstance(expr, Varying):
            return Constant(text.lower(), Type.STRING)
        case _:
            return Call("lower", (expr,), Type.STRING)


# ── groups ───────────────────────────────────────────────────────────────────


def _aggregate(low: ExpressionBinder, function: AggregateFunction, node: ast.Call) -> Expr:
    if len(node.arguments) != 1:
        hint = f"did you mean `{function.scalar}`?" if function.scalar else ""
        message = f"`{node.name}` takes 1 argument, not {len(node.arguments)}"
        return low.wrong("CEP209", message, node.span, hint)
    argument = node.arguments[0]
    if isinstance(argument, ast.Star):
        return _aggregate_star(low, function, node, argument)
    if isinstance(argument, ast.Name) and argument.name in low.scope.variables:
        return _aggregate_events(low, function, argument.name, node)
    inner, variable = _group_argument(low, node)
    if variable is None:
        return WRONG
    if any(isinstance(e, Aggregate | Previous | Every | Some) for e in walk(inner)):
        return low.wrong("CEP213", "an aggregate can't stand inside another", node.span)
    return _typed_aggregate(low, function, inner, variable, node)


def _aggregate_star(
    low: ExpressionBinder, function: AggregateFunction, node: ast.Call, star: ast.Star
) -> Expr:
    groups = [v.name for v in low.scope.positive if v.kind is not Kind.SINGLE]
    if star.variable is not None:
        return _aggregate_events(low, function, star.variable, node)
    if len(groups) == 1:
        return _aggregate_events(low, function, groups[0], node)
    message = f"`{node.name}(*)` doesn't say which group it is over"
    return low.wrong("CEP213", message, node.span, "name the variable, as in `count(b)`")


def _aggregate_events(
    low: ExpressionBinder, function: AggregateFunction, variable: str, node: ast.Call
) -> Expr:
    """`count(b)`, `collect(b)`, `first(b)`, `last(b)`: of the events themselves."""
    name = function.name
    found = low.variable(variable, node.arguments[0].span)
    if found is None:
        return WRONG
    if found.kind is Kind.SINGLE:
        return _outside(low, name, variable, node)
    if not function.events:
        message = f"`{name}` needs an attribute, but `{variable}` is an event"
        return low.wrong("CEP213", message, node.span, f"write `{name}({variable}.x)`")
    if function.result is FoldResult.COUNT:
        return Aggregate(name, None, variable, Type.INTEGER)
    return Aggregate(name, Whole(variable, found.columns), variable, Type.OTHER)


def _group_argument(low: ExpressionBinder, node: ast.Call) -> tuple[Expr, str | None]:
    """The argument and the closure variable that it reads; None after a finding.

    Several variables of one group closure are read together, iteration by iteration; the first
    of them stands for the closure.
    """
    known = len(low.findings)
    inner = low.lower(node.arguments[0])
    if len(low.findings) > known:
        return inner, None
    read = sorted(variables(inner), key=low.structure.order.__getitem__)
    closures = {low.structure.closure.get(v) for v in read}
    if closures <= {None}:
        _outside(low, node.name, read[0] if read else None, node)
        return inner, None
    if len(closures) > 1:
        shown = " and ".join(f"`{v}`" for v in read)
        message = f"`{node.name}` reads one closure, not {shown}"
        low.wrong("CEP213", message, node.span)
        return inner, None
    return inner, read[0]


def _outside(low: ExpressionBinder, name: str, variable: str | None, node: ast.Call) -> Expr:
    name = name.upper() if name in ("prev", "all", "some") else name
    message = f"`{name}` is outside a closure"
    if variable is None:
        hint = "it needs an attribute of a variable such as `B+ b`"
    else:
        message += f": `{variable}` binds one event"
        hint = f"make `{variable}` a closure (`+`), or read it without `{name}`"
    return low.wrong("CEP212", message, node.span, hint)


def _typed_aggregate(
    low: ExpressionBinder, function: AggregateFunction, inner: Expr, variable: str, node: ast.Call
) -> Expr:
    if not function.operand.accepts(inner.type):
        text = low.text(node.arguments[0])
        message = f"`{function.name}` needs {function.operand.value}, but `{text}` is "
        return low.wrong("CEP210", message + described(inner), node.arguments[0].span)
    computes = inner.type is Type.DECIMAL and function.operand is not Operand.ANY
    if computes or function.operand is Operand.NUMBER:
        inner = cast(inner, Type.FLOAT)
    return Aggregate(function.name, inner, variable, function.type or inner.type)


def _previous(low: ExpressionBinder, node: ast.Call) -> Expr:
    """`PREV(f(b.x))` is f of the element before, so PREV moves to the attributes."""
    if len(node.arguments) != 1:
        return _arity(low, node, "1 argument")
    inner, variable = _group_argument(low, node)
    if variable is None:
        return WRONG

    def earlier(expr: Expr) -> Expr | None:
        if isinstance(expr, Attribute):
            return Previous(expr.variable, expr.name, expr.type)
        return None

    return transform(inner, earlier)


def _quantifier(
    low: ExpressionBinder, quantifier: type[Every] | type[Some], node: ast.Call
) -> Expr:
    if len(node.arguments) != 1:
        return _arity(low, node, "1 argument")
    inner, variable = _group_argument(low, node)
    if variable is None:
        return WRONG
    if not low.quantify(quantifier, variable):
        message = f"`{node.name.upper()}` must stand in a comparison"
        return low.wrong("CEP213", message, node.span, f"as in `{node.name.upper()}(b.x) > 3`")
    return inner
