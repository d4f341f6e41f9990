"""Function calls: scalar functions, `duration()`, and what `group_calls` has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from cepheid.algebra.aggregates import AGGREGATES
from cepheid.algebra.binding.expressions.coercion import cast, described
from cepheid.algebra.binding.expressions.group_calls import (
    aggregate,
    arity,
    previous,
    quantifier,
    reduce,
)
from cepheid.algebra.binding.expressions.match_calls import (
    APPROXIMATE,
    aggregate_matches,
    over_matches,
)
from cepheid.algebra.binding.expressions.resolution import WRONG
from cepheid.algebra.binding.findings import did_you_mean
from cepheid.algebra.expressions import (
    Call,
    Constant,
    Every,
    Expr,
    MatchDuration,
    Some,
    Varying,
)
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
from cepheid.algebra.text_patterns import regular_expression_problem
from cepheid.algebra.types import Type
from cepheid.language import ast

if TYPE_CHECKING:
    from cepheid.algebra.binding.expressions.expression_binder import ExpressionBinder

Thunk = Callable[[], Expr]
_COUNTS_DISTINCT = ("nunique", "uniq", "unique", "uniqexact", "count_unique", "dcount")
"""What other languages call `count(DISTINCT …)`."""

_NO_CLOCK = "conditions compare times of events, as in `b.ts - a.ts < 10 minutes`"
_SUBTRACTED = "times are subtracted, as in `b.ts - a.ts < 10 minutes`"
_OF_OTHERS = {
    "isnull": "write `a.x IS NULL`",
    "lag": "PREV reads the element before: `PREV(b.x)`",
    **dict.fromkeys(("date_diff", "datediff", "timestampdiff"), _SUBTRACTED),
    **dict.fromkeys(("now", "current_timestamp", "current_date", "getdate"), _NO_CLOCK),
}
"""What to write instead of functions of SQL that aren't here."""

_CALENDAR = (Type.TIMESTAMP, Type.DATE)


def lower_call(low: ExpressionBinder, node: ast.Call) -> Expr:
    name = SYNONYMS.get(node.name, node.name)
    if low.groups is not None and over_matches(node, low.scope):
        return aggregate_matches(low, name, node)
    if name == APPROXIMATE:
        message = f"`{name}` counts matches, and stands in RETURN, or in HAVING after GROUP BY"
        return low.wrong("CEP341", message, node.span)
    if name in AGGREGATES:
        return aggregate(low, AGGREGATES[name], node)
    if node.distinct:
        hint = did_you_mean(node.name, AGGREGATES) or "leave DISTINCT out"
        return low.wrong("CEP209", f"`{node.name}` doesn't take DISTINCT", node.span, hint)
    match name:
        case "prev":
            return previous(low, node)
        case "all" | "some":
            return quantifier(low, Every if name == "all" else Some, node)
        case "reduce":
            return reduce(low, node)
        case "duration":
            if node.arguments:
                return arity(low, node, "no arguments")
            return MatchDuration(low.duration_type)
        case _ if name in LOWERED:
            return _lowered(low, name, node)
        case _ if name in FUNCTIONS:
            return apply(low, name, node.arguments, node.span)
        case _:
            message = f"there is no function `{node.name}`"
            hint = _OF_OTHERS.get(name) or did_you_mean(node.name, NAMES)
            if "distinct" in name or name in _COUNTS_DISTINCT:
                hint = "DISTINCT stands inside: `count(DISTINCT b.x)`"
            return low.wrong("CEP208", message, node.span, hint)


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
        joins = function.name == "concat"
        hint = "write OR between conditions, or CAST(… AS string)" if joins else ""
        low.wrong("CEP210", message + described(expr), node.span, hint)
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
            if given is Type.NULL:
                return cast(expr, Type.TIMESTAMP)
            return expr if given in _CALENDAR else None
        case Accepts.TIMESTAMP:
            fits = given in _CALENDAR or given is Type.NULL
            return cast(expr, Type.TIMESTAMP) if fits else None
        case Accepts.SAME:
            return expr


def strings(
    low: ExpressionBinder, nodes: Sequence[ast.Expression], operator: str
) -> tuple[Expr, ...]:
    """Operands that must be strings, as those of LIKE."""
    operands: list[Expr] = []
    for node in nodes:
        expr = low.lower(node)
        fitted = _fit(expr, Accepts.STRING)
        if fitted is None:
            message = f"{operator} needs a string, but `{low.text(node)}` is {described(expr)}"
            low.wrong("CEP210", message, node.span)
        operands.append(fitted or WRONG)
    return tuple(operands)


def _lowered(low: ExpressionBinder, name: str, node: ast.Call) -> Expr:
    if len(node.arguments) != LOWERED[name]:
        return arity(low, node, f"{LOWERED[name]} arguments")
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
    whole = apply(low, PARTS[name], (moment,), node.span)
    if name != "second" or whole is WRONG:
        return whole
    fraction = apply(low, "subsecond", (moment,), node.span)
    return Call("+", (cast(whole, Type.FLOAT), fraction), Type.FLOAT)


def lower_case(expr: Expr) -> Expr:
    match expr:
        case Constant(value=str() as text) if not isinstance(expr, Varying):
            return Constant(text.lower(), Type.STRING)
        case _:
            return Call("lower", (expr,), Type.STRING)
