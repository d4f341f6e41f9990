"""Calls that read a group: aggregates, `reduce`, `PREV`, `ALL`, `SOME`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cepheid.algebra.aggregates import AggregateFunction, FoldResult, Operand
from cepheid.algebra.binding.expressions.coercion import cast, described
from cepheid.algebra.binding.expressions.resolution import WRONG
from cepheid.algebra.expressions import (
    Aggregate,
    Attribute,
    Constant,
    Every,
    Expr,
    Previous,
    PreviousOr,
    Reduce,
    Some,
    Varying,
    Whole,
    transform,
    variables,
    walk,
)
from cepheid.algebra.query import Kind
from cepheid.algebra.types import Type
from cepheid.language import ast

if TYPE_CHECKING:
    from cepheid.algebra.binding.expressions.expression_binder import ExpressionBinder


def arity(low: ExpressionBinder, node: ast.Call, wanted: str) -> Expr:
    given = len(node.arguments)
    return low.wrong("CEP209", f"`{node.name}` takes {wanted}, not {given}", node.span)


def aggregate(low: ExpressionBinder, function: AggregateFunction, node: ast.Call) -> Expr:
    if len(node.arguments) != 1 and not (function.placed and len(node.arguments) == 2):
        hint = f"did you mean `{function.scalar}`?" if function.scalar else ""
        if not node.arguments and node.distinct:
            hint = f"name an attribute, as in `{node.name}(DISTINCT b.x)`"
        wanted = "1 or 2 arguments" if function.placed else "1 argument"
        message = f"`{node.name}` takes {wanted}, not {len(node.arguments)}"
        return low.wrong("CEP209", message, node.span, hint)
    if node.distinct and function.placed:
        message = f"`{node.name}` doesn't take DISTINCT"
        return low.wrong("CEP209", message, node.span, "it returns one value: leave DISTINCT out")
    offset = 0 if len(node.arguments) == 1 else _offset(low, node.arguments[1], node.name)
    bound = _over_group(low, function, node)
    if offset is None or not isinstance(bound, Aggregate):
        return WRONG
    if not node.distinct or function.extreme:
        return replace(bound, offset=offset)
    if bound.argument is None or bound.argument.type is Type.OTHER:
        message = f"`{node.name}(DISTINCT …)` needs a value that can be compared"
        hint = f"name an attribute, as in `{node.name}(DISTINCT {bound.variable}.x)`"
        return low.wrong("CEP213", message, node.span, hint)
    return replace(bound, distinct=True)


def _offset(low: ExpressionBinder, node: ast.Expression, name: str) -> int | None:
    """How many elements further in: a number that is known before any event."""
    expr = low.lower(node)
    match expr:
        case Constant(value=int() as count, type=Type.INTEGER) if (
            not isinstance(expr, Varying) and count >= 0
        ):
            return count
        case _:
            message = f"`{low.text(node)}` must be a number of elements, 0 or more"
            hint = f"as in `{name.upper()}(b.x, 1)`"
            low.wrong("CEP213", message, node.span, hint)
            return None


def _over_group(low: ExpressionBinder, function: AggregateFunction, node: ast.Call) -> Expr:
    argument = node.arguments[0]
    if isinstance(argument, ast.Star):
        return _aggregate_star(low, function, node, argument)
    if isinstance(argument, ast.Name) and argument.name in low.scope.variables:
        return _aggregate_events(low, function, argument.name, node)
    inner, variable = _group_argument(low, node)
    if variable is None:
        return WRONG
    if any(isinstance(e, Aggregate | Reduce | Previous | Every | Some) for e in walk(inner)):
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
    group = low.variable(variable, node.arguments[0].span)
    if group is None:
        return WRONG
    if group.kind is Kind.SINGLE:
        return _outside(low, name, variable, node)
    if not function.events:
        message = f"`{name}` needs an attribute, but `{variable}` is an event"
        return low.wrong("CEP213", message, node.span, f"write `{name}({variable}.x)`")
    if function.result is FoldResult.COUNT:
        return Aggregate(name, None, variable, Type.INTEGER)
    return Aggregate(name, Whole(variable, group.columns), variable, Type.OTHER)


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
    fitted = fitting(low, function, inner, node)
    if fitted is None:
        return WRONG
    return Aggregate(function.name, fitted, variable, function.type or fitted.type)


def fitting(
    low: ExpressionBinder, function: AggregateFunction, inner: Expr, node: ast.Call
) -> Expr | None:
    """What is aggregated, as the aggregate takes it; None after a finding."""
    if inner.type is Type.NULL and function.operand in (Operand.AMOUNT, Operand.NUMBER):
        inner = cast(inner, Type.INTEGER)
    if not function.operand.accepts(inner.type):
        text = low.text(node.arguments[0])
        message = f"`{function.name}` needs {function.operand.value}, but `{text}` is "
        low.wrong("CEP210", message + described(inner), node.arguments[0].span)
        return None
    computes = inner.type is Type.DECIMAL and function.operand is not Operand.ANY
    if computes or function.operand is Operand.NUMBER:
        return cast(inner, Type.FLOAT)
    return inner


def reduce(low: ExpressionBinder, node: ast.Call) -> Expr:
    """`reduce(b, start, acc -> step)`."""
    match node.arguments:
        case (ast.Name(name), start_node, ast.Step() as step_node) if not node.distinct:
            pass
        case _:
            message = "`reduce` takes a group, a start, and a step with `->`"
            hint = "as in `reduce(b, 0, acc -> acc + b.x)`"
            return low.wrong("CEP209", message, node.span, hint)
    group = low.variable(name, node.arguments[0].span)
    if group is None:
        return WRONG
    if group.kind is Kind.SINGLE:
        return _outside(low, "reduce", name, node)
    if step_node.name in low.scope.variables:
        message = f"`{step_node.name}` is a variable of the pattern"
        return low.wrong("CEP213", message, step_node.span, "give the result so far another name")
    known = len(low.findings)
    start = low.lower(start_node)
    closure = low.structure.closure
    if any(closure.get(v) == closure[name] for v in variables(start)):
        low.wrong("CEP213", "the start of `reduce` can't read the group itself", start_node.span)
    if len(low.findings) > known:
        return WRONG
    both = _in_one_type(low, start, start_node, step_node)
    if both is None or not _of_the_group(low, both[1], name, step_node):
        return WRONG
    return Reduce(name, both[0], both[1], both[0].type)


def _in_one_type(
    low: ExpressionBinder, start: Expr, start_node: ast.Expression, node: ast.Step
) -> tuple[Expr, Expr] | None:
    """Start and step in the type of the start, widened as far as the step asks for."""
    for _ in range(len(Type)):
        known = len(low.findings)
        step = replace(low, accumulator=(node.name, start.type)).lower(node.expression)
        if len(low.findings) > known:
            return None
        nodes, span = (start_node, node.expression), start_node.span.to(node.span)
        same = low.unified(nodes, (start, step), span, "mix")
        if same is None:
            return None
        type_ = Type.FLOAT if same[0].type is Type.DECIMAL else same[0].type
        if type_ is start.type:
            return start, same[1]
        start = cast(same[0], type_)
    raise AssertionError("types widen only so far")


def _of_the_group(low: ExpressionBinder, step: Expr, name: str, node: ast.Step) -> bool:
    """Whether it reads the elements and nothing else, as what is aggregated does."""
    if any(isinstance(e, Aggregate | Reduce | Previous | Every | Some) for e in walk(step)):
        low.wrong("CEP213", "an aggregate can't stand inside another", node.span)
        return False
    closure = low.structure.closure
    other = [v for v in sorted(variables(step)) if closure.get(v) != closure[name]]
    if other:
        message = f"the step of `reduce` can't read `{other[0]}`: it reads one group"
        low.wrong("CEP213", message, node.span, "the start may read other events")
    return not other


def previous(low: ExpressionBinder, node: ast.Call) -> Expr:
    """`PREV(f(b.x))` is f of the element before, so PREV moves to the attributes."""
    if len(node.arguments) not in (1, 2):
        return arity(low, node, "1 or 2 arguments")
    inner, variable = _group_argument(low, node)
    if variable is None:
        return WRONG

    def earlier(expr: Expr) -> Expr | None:
        if isinstance(expr, Attribute):
            return Previous(expr.variable, expr.name, expr.type)
        return None

    value = transform(inner, earlier)
    return value if len(node.arguments) == 1 else _with_default(low, node, value, variable)


def _with_default(low: ExpressionBinder, node: ast.Call, value: Expr, variable: str) -> Expr:
    """`PREV(e, d)`: d is known before the group is."""
    known = len(low.findings)
    default = low.lower(node.arguments[1])
    if len(low.findings) > known:
        return WRONG
    late = _not_before(low, default, variable)
    if late is not None:
        name, why = late
        message = f"the default of PREV can't read `{name}`: {why}"
        hint = f"it may read constants, and events that are bound before `{variable}`"
        return low.wrong("CEP323", message, node.arguments[1].span, hint)
    same = low.unified(node.arguments, (value, default), node.span, "mix")
    return WRONG if same is None else PreviousOr(variable, same[0], same[1], same[0].type)


def _not_before(low: ExpressionBinder, expr: Expr, variable: str) -> tuple[str, str] | None:
    """A variable that isn't one event bound before the closure of this one, and why."""
    order, closure = low.structure.order, low.structure.closure
    first = min(order[v] for v in closure if closure[v] == closure[variable])
    for name in sorted(variables(expr), key=order.__getitem__):
        if closure.get(name) == closure[variable]:
            return name, "it is in the group itself"
        if order[name] > first:
            return name, "it comes later"
        if name in closure:
            return name, "it is a group"
    return None


def quantifier(low: ExpressionBinder, kind: type[Every] | type[Some], node: ast.Call) -> Expr:
    if len(node.arguments) != 1:
        return arity(low, node, "1 argument")
    inner, variable = _group_argument(low, node)
    if variable is None:
        return WRONG
    if not low.quantify(kind, variable):
        message = f"`{node.name.upper()}` must stand in a comparison"
        return low.wrong("CEP213", message, node.span, f"as in `{node.name.upper()}(b.x) > 3`")
    return inner
