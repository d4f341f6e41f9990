"""The value of an expression over a partial or complete match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never

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
    TimeSpan,
    Whole,
)
from cepheid.algebra.query import Kind, Variable

from . import values
from .events import Binding, Event
from .state import State, events_of


@dataclass(frozen=True)
class Scope:
    """What an expression may look at. `duration` is known for complete matches only."""

    state: State
    events: Mapping[int, Event]
    variables: Mapping[str, Variable]
    duration: int | None = None

    def group(self, variable: str) -> tuple[int, ...] | None:
        """Inside a group being built, the elements taken before; None: the branch isn't taken."""
        if variable in self.state.taken:
            return self.state.taken[variable]
        binding = self.state.env[variable]
        return None if binding is None else events_of(binding)

    def at_hand(self, variable: str, element: Binding) -> Scope:
        env = {**self.state.env, variable: element}
        return replace(self, state=replace(self.state, env=env))


def evaluate(expr: Expr, scope: Scope) -> Any:
    match expr:
        case Constant():
            return expr.value
        case Attribute():
            binding = scope.state.env[expr.variable]
            if binding is None:
                return None
            if not isinstance(binding, int):
                raise TypeError(f"{expr.variable}.{expr.name} reads a whole group")
            return scope.events[binding].values.get(expr.name)
        case Previous():
            group = scope.group(expr.variable)
            return scope.events[group[-1]].values.get(expr.name) if group else None
        case Aggregate():
            return aggregate(expr, scope)
        case Every():
            return values.conjunction(over_elements(expr.variable, expr.condition, scope))
        case Some():
            return values.disjunction(over_elements(expr.variable, expr.condition, scope))
        case TimeSpan():
            times = [
                scope.events[i].time for v in expr.variables for i in events_of(scope.state.env[v])
            ]
            return max(times) - min(times) if times else None
        case MatchDuration():
            return scope.duration
        case Whole():
            return whole(expr, scope)
        case Call():
            arguments = [evaluate(a, scope) for a in expr.arguments]
            return values.apply(expr.operator, arguments, [a.type for a in expr.arguments])
        case _:
            assert_never(expr)


def over_elements(variable: str, condition: Expr, scope: Scope) -> list[Any]:
    """The condition for each element. A group of a branch not taken is seen as one NULL."""
    group = scope.group(variable)
    elements: Sequence[int | None] = (None,) if group is None else group
    return [evaluate(condition, scope.at_hand(variable, e)) for e in elements]


def aggregate(expr: Aggregate, scope: Scope) -> Any:
    """ "`count(b)` counts elements, `collect(b.id)` gives an array"; NULL for a branch not taken."""
    group = scope.group(expr.variable)
    if group is None:
        return None
    if expr.argument is None:
        elements: list[Any] = [dict(scope.events[i].values) for i in group]
    else:
        elements = [evaluate(expr.argument, scope.at_hand(expr.variable, i)) for i in group]
    return values.aggregate(expr.function, elements)


def whole(expr: Whole, scope: Scope) -> Any:
    """ "one struct per variable, an array of structs per closure"; NULL if absent."""
    binding = scope.state.env[expr.variable]
    structs = [{c: scope.events[i].values.get(c) for c in expr.columns} for i in events_of(binding)]
    match scope.variables[expr.variable].kind:
        case Kind.SINGLE | Kind.OPTIONAL:
            return structs[0] if structs else None
        case Kind.GROUP:
            return None if binding is None else structs
