"""A query as a path: one event after another, each with its conditions.

That is Cayuga's linear expression. Conditions on one event alone are *static*; those between an
event and an earlier one are *links* where they only compare two columns, and else are tested on
complete matches, which is the same for sequences that take every match. A negation between two
steps is Cayuga's filter edge the other way round: it names the events that end an instance.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from cepheid.algebra.expressions import (
    FLIPPED,
    Attribute,
    Call,
    Constant,
    Expr,
    Varying,
    transform,
    variables,
    walk,
)
from cepheid.algebra.patterns import Leaf, Negation, Pattern, Sequence
from cepheid.algebra.query import BoundQuery, Clock, Conjunct, Kind, Role
from cepheid.algebra.types import Type
from cepheid.engine.arrays.columns import Column
from cepheid.language.ast import SequenceOperator


@dataclass(frozen=True, slots=True)
class Link:
    """`column` of the current event, compared with `other` of the event of step `step`."""

    column: Column
    operator: str
    step: int
    other: Column


@dataclass(frozen=True, slots=True)
class ForbiddenEvents:
    """Events that must not come between the step before and this one."""

    conditions: tuple[Expr, ...]
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class PathStep:
    """An event of the path. `strict`: it comes at the next position of the stream."""

    variable: str
    conditions: tuple[Expr, ...]
    links: tuple[Link, ...]
    forbidden: tuple[ForbiddenEvents, ...]
    strict: bool


@dataclass(frozen=True)
class Path:
    """A path. `rest` are the conditions that are checked on complete matches."""

    query: BoundQuery
    steps: tuple[PathStep, ...]
    rest: tuple[Expr, ...]

    @property
    def slots(self) -> dict[str, int]:
        return {step.variable: n for n, step in enumerate(self.steps)}


class NoPath(Exception):
    """Why a query is not a path."""


def path_of(query: BoundQuery) -> Path:
    """The query as a path; `NoPath` if it isn't one."""
    _check(query)
    items, operators = _sequence(query.pattern)
    bound = [item.variable for item in items if isinstance(item, Leaf)]
    if not bound or any(isinstance(items[end], Negation) for end in (0, -1)):
        raise NoPath("a negation at an edge waits for time")
    slots = {variable: n for n, variable in enumerate(bound)}
    if len(bound) > 1 and query.window is None:
        raise NoPath("without a window, instances would never end")
    steps: list[PathStep] = []
    forbidden: list[ForbiddenEvents] = []
    rest: list[Expr] = list(query.having)
    for at, item in enumerate(items):
        operator = operators[at - 1] if at else SequenceOperator.ANY
        match item:
            case Leaf(variable):
                static, links, left = _conditions(query, variable, slots, len(steps))
                rest += left
                strict = operator is SequenceOperator.STRICT
                if operator is SequenceOperator.NEXT:
                    raise NoPath("with `->` each query chooses its own events")
                if strict and query.key:
                    raise NoPath("`=>` depends on the events of one key")
                steps.append(PathStep(variable, static, links, tuple(forbidden), strict))
                forbidden = []
            case Negation(Leaf(variable)) if operator is SequenceOperator.ANY:
                static, links, left = _conditions(query, variable, slots, len(steps))
                if left:
                    raise NoPath("a condition of a negation isn't a comparison of two columns")
                forbidden.append(ForbiddenEvents(static, links))
            case _:
                raise NoPath("the sequence has more than single events")
    return Path(query, tuple(steps), tuple(rest))


def _check(query: BoundQuery) -> None:
    type_ = query.schema.type
    if type_ is not None and query.schema.columns[type_] is not Type.STRING:
        raise NoPath("event types aren't text")
    if query.schema.start is not None:
        raise NoPath("events have a duration")
    if query.window is not None and query.window.clock is not Clock.TIME:
        raise NoPath("the window counts events")
    if query.selection is not None:
        raise NoPath("AFTER MATCH chooses among the matches of one query")
    if query.nothing is not None:
        raise NoPath(f"it matches nothing: {query.nothing}")
    if query.renamed:
        raise NoPath("it was rewritten to another form")
    if any(v.kind is not Kind.SINGLE for v in query.variables.values()):
        raise NoPath("closures bind groups")


def _sequence(pattern: Pattern) -> tuple[tuple[Pattern, ...], tuple[SequenceOperator, ...]]:
    match pattern:
        case Leaf():
            return (pattern,), ()
        case Sequence():
            return pattern.items, pattern.operators
        case _:
            raise NoPath("the pattern isn't a sequence")


def _conditions(
    query: BoundQuery, variable: str, slots: dict[str, int], step: int
) -> tuple[tuple[Expr, ...], tuple[Link, ...], list[Expr]]:
    """The conditions that are checked when this variable's event comes: on it alone, against
    earlier events by columns, and the rest. Negated variables may only look back."""
    bound = query.variables[variable]
    static: list[Expr] = _of_type(query, bound.types)
    links: list[Link] = []
    for part in query.key:
        attribute = Attribute(
            variable, part.columns[variable], _type(query, part.columns[variable])
        )
        static.append(_blank(_not(Call("is_null", (attribute,), Type.BOOLEAN))))
        if step:
            before = next(v for v, n in slots.items() if n == step - 1)
            name = part.columns[before]
            if _type(query, name) is not attribute.type:
                raise NoPath("the key has several types")
            other = Column(Attribute("", name, attribute.type))
            links.append(Link(Column(replace(attribute, variable="")), "=", step - 1, other))
    rest: list[Expr] = []
    for conjunct in query.where:
        if _last(conjunct, slots, bound.negation is not None) != variable:
            continue
        alone = conjunct.role is Role.CLASS and conjunct.variables == (variable,)
        if alone and (_separable(conjunct.expression) or variable not in slots):
            static.append(_blank(conjunct.expression))
        elif (link := _link(conjunct.expression, variable, slots, step)) is not None:
            links.append(link)
        else:
            rest.append(conjunct.expression)
    return tuple(static), tuple(links), rest


def _last(conjunct: Conjunct, slots: dict[str, int], negated: bool) -> str:
    """The variable whose event decides: a negated one, or else the last of the path."""
    for variable in conjunct.variables:
        if variable not in slots:
            return variable
    bound = [v for v in conjunct.variables if v in slots]
    return max(bound or list(slots), key=lambda v: slots[v])


def _of_type(query: BoundQuery, types: tuple[str, ...]) -> list[Expr]:
    if not types or query.schema.type is None:
        return []
    column = Attribute("", query.schema.type, Type.STRING)
    names = tuple(Constant(name, Type.STRING) for name in types)
    return [Call("in", (column, *names), Type.BOOLEAN)]


def _type(query: BoundQuery, column: str) -> Type:
    return query.schema.columns[column]


def _link(expr: Expr, variable: str, slots: dict[str, int], step: int) -> Link | None:
    """The comparison that the conjunct is, if it compares two columns of one type."""
    if not isinstance(expr, Call) or expr.operator not in FLIPPED:
        return None
    left, right = expr.arguments
    operator = expr.operator
    if variables(left) != {variable}:
        left, right, operator = right, left, FLIPPED[operator]
    others = variables(right)
    if variables(left) != {variable} or len(others) != 1 or others == {variable}:
        return None
    (other,) = others
    if slots.get(other, step) >= step or left.type is not right.type or _varies((left, right)):
        return None
    if left.type in (Type.STRING, Type.BINARY) and operator not in ("=", "<>"):
        return None
    if not (_plain(left) and _plain(right)):
        return None
    return Link(Column(_blank(left)), operator, slots[other], Column(_blank(right)))


def _separable(expr: Expr) -> bool:
    """Whether each comparison has the event on one side and the rule's parameters on the other:
    then it can be looked up."""
    match expr:
        case Call("and" | "or" | "not"):
            return all(map(_separable, expr.arguments))
        case Call(operator, sides) if operator in FLIPPED or operator == "in":
            texts = sides[0].type in (Type.STRING, Type.BINARY)
            if texts and operator in ("<", "<=", ">", ">="):
                return not _varies(sides)
            return all(not (variables(side) and _varies((side,))) for side in sides)
        case _:
            return not (variables(expr) and _varies((expr,)))


def _plain(expr: Expr) -> bool:
    return all(isinstance(node, Attribute | Constant | Call) for node in walk(expr))


def _varies(exprs: Iterable[Expr]) -> bool:
    return any(isinstance(node, Varying) for expr in exprs for node in walk(expr))


def _not(expr: Expr) -> Expr:
    return Call("not", (expr,), Type.BOOLEAN)


def _blank(expr: Expr) -> Expr:
    """The expression over one event, without its variable: equal expressions of several steps and
    queries are then equal."""
    return transform(expr, lambda e: replace(e, variable="") if isinstance(e, Attribute) else None)


def common_key(
    forbidden: Iterable[ForbiddenEvents], step: PathStep
) -> tuple[tuple[int, Column], ...]:
    """The index key of instances that wait for this step: bound columns that the step's event, and
    every event that may end them, must equal."""
    sets = [_equalities(step.links), *(_equalities(f.links) for f in forbidden)]
    shared = frozenset.intersection(*sets)
    return tuple(sorted(shared, key=repr))


def _equalities(links: Iterable[Link]) -> frozenset[tuple[int, Column]]:
    return frozenset((link.step, link.other) for link in links if link.operator == "=")
