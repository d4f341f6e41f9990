"""Typed expressions over the events of a match.

Binding lowers the written forms to few nodes, so that each backend (vectors, kernels, Spark,
the oracle) stays small: BETWEEN becomes two comparisons, a chain becomes a conjunction, a bare
closure variable in a check becomes `Every`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import assert_never

from cepheid.algebra.types import Type

Value = int | float | str | bytes | bool | None

FLIPPED = {"<": ">", "<=": ">=", "=": "=", "<>": "<>", ">=": "<=", ">": "<"}
"""The comparison with its sides exchanged."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A value as predicates see it (see `Type`); None is NULL."""

    value: Value
    type: Type


@dataclass(frozen=True, slots=True)
class Varying(Constant):
    """A parameter of a template that is bound once for all its rules: every rule has a value of
    its own, of this type; `value` is that of one of them. Nothing may be concluded from it."""

    name: str


@dataclass(frozen=True, slots=True)
class VaryingList(Varying):
    """A parameter that is a list, in which `in_list` looks; `type` is that of its values."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """`a.x`. Of a closure variable: of the element at hand (filters, `Every`, aggregates)."""

    variable: str
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Previous:
    """`PREV(b.x)`: of the element taken before the one at hand."""

    variable: str
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class PreviousOr:
    """`PREV(e, d)`: the value, which reads the element taken before the one at hand; for the first
    element, the default. A running condition with it is tested on the first element too."""

    variable: str
    value: Expr
    default: Expr
    type: Type


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`sum avg min max count stddev first last collect` over a group.

    The argument reads the element at hand: a value of it, or in `collect(b)`, `first(b)` and
    `last(b)` all of it; only `count(b)` has none. Inside a running condition it is over the
    elements taken before. `distinct`: of equal values only the first counts. `offset`: `first` and
    `last` are so many elements further in.
    """

    function: str
    argument: Expr | None
    variable: str
    type: Type
    distinct: bool = False
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Accumulator:
    """Inside the step of `Reduce`: what the elements before have come to."""

    type: Type


@dataclass(frozen=True, slots=True)
class Reduce:
    """`reduce(b, start, acc -> step)`: the step, for one element after the other (Cayuga's α). Of
    an empty group it is the start, which reads nothing of the group. Inside a running condition it
    is over the elements taken before."""

    variable: str
    start: Expr
    step: Expr
    type: Type


@dataclass(frozen=True, slots=True)
class Every:
    """The condition holds for each element of the group; true for an empty one.

    Three-valued as SQL's ALL: false if one is false, else unknown if one is unknown. The
    variables of a group closure `(A a ; B b)+` go through its iterations together, so one
    `Every` (and one aggregate) over the first of them is over all.
    """

    variable: str
    condition: Expr
    type: Type = Type.BOOLEAN


@dataclass(frozen=True, slots=True)
class Some:
    """The condition holds for at least one element of the group (SQL's SOME)."""

    variable: str
    condition: Expr
    type: Type = Type.BOOLEAN


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """Latest minus earliest time of the events bound by these variables."""

    variables: tuple[str, ...]
    type: Type = Type.DURATION


@dataclass(frozen=True, slots=True)
class MatchDuration:
    """`duration()`: end minus start of the complete match."""

    type: Type = Type.DURATION


@dataclass(frozen=True, slots=True)
class Whole:
    """A variable as a value in RETURN: a struct, for a closure an array of structs.

    Absent (other branch) or an empty optional: NULL.
    """

    variable: str
    columns: tuple[str, ...]
    type: Type = Type.OTHER


@dataclass(frozen=True, slots=True)
class Call:
    """Everything else: an operator or function of `cepheid.algebra.functions`, applied."""

    operator: str
    arguments: tuple[Expr, ...]
    type: Type


Expr = (
    Constant
    | Attribute
    | Previous
    | PreviousOr
    | Aggregate
    | Accumulator
    | Reduce
    | Every
    | Some
    | TimeSpan
    | MatchDuration
    | Whole
    | Call
)

TRUE = Constant(True, Type.BOOLEAN)


def children(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Call():
            return expr.arguments
        case PreviousOr():
            return (expr.value, expr.default)
        case Aggregate():
            return () if expr.argument is None else (expr.argument,)
        case Reduce():
            return (expr.start, expr.step)
        case Every() | Some():
            return (expr.condition,)
        case (
            Constant()
            | Attribute()
            | Previous()
            | Accumulator()
            | TimeSpan()
            | MatchDuration()
            | Whole()
        ):
            return ()
        case _:
            assert_never(expr)


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and all below it, outermost first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def transform(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """Replace, from the leaves up, every node for which `change` returns another."""
    match expr:
        case Call():
            arguments = tuple(transform(a, change) for a in expr.arguments)
            expr = expr if arguments == expr.arguments else replace(expr, arguments=arguments)
        case PreviousOr():
            value, default = (transform(e, change) for e in (expr.value, expr.default))
            expr = replace(expr, value=value, default=default)
        case Aggregate() if expr.argument is not None:
            expr = replace(expr, argument=transform(expr.argument, change))
        case Reduce():
            start, step = (transform(e, change) for e in (expr.start, expr.step))
            expr = replace(expr, start=start, step=step)
        case Every() | Some():
            expr = replace(expr, condition=transform(expr.condition, change))
        case _:
            pass
    changed = change(expr)
    return expr if changed is None else changed


def variables(expr: Expr) -> frozenset[str]:
    """Every variable that the expression reads, in whatever way."""
    names: set[str] = set()
    for node in walk(expr):
        match node:
            case (
                Attribute()
                | Previous()
                | PreviousOr()
                | Aggregate()
                | Reduce()
                | Every()
                | Some()
                | Whole()
            ):
                names.add(node.variable)
            case TimeSpan():
                names.update(node.variables)
            case Constant() | Accumulator() | MatchDuration() | Call():
                pass
            case _:
                assert_never(node)
    return frozenset(names)


def reads_before(expr: Expr) -> bool:
    """Whether it reads elements of a group beside the one at hand."""
    return any(isinstance(e, Previous | Aggregate | Reduce) for e in walk(expr))


def holds_first(expr: Expr) -> bool:
    """Whether it is a running condition that holds for the first element, whatever that is."""
    return reads_before(expr) and not any(isinstance(e, PreviousOr) for e in walk(expr))


def bare_variables(expr: Expr) -> frozenset[str]:
    """Variables read by `Attribute` outside any aggregate or quantifier over them."""
    match expr:
        case Attribute():
            return frozenset((expr.variable,))
        case Aggregate() | Reduce() | Every() | Some():
            inner = frozenset().union(*(bare_variables(c) for c in children(expr)))
            return inner - {expr.variable}
        case _:
            return frozenset().union(*(bare_variables(c) for c in children(expr)))


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """The operands of the top-level ANDs, in order."""
    if isinstance(expr, Call) and expr.operator == "and":
        return tuple(c for argument in expr.arguments for c in conjuncts(argument))
    return (expr,)
