"""The value of an expression over a partial or complete match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, assert_never

from cepheid.algebra.expressions import (
    Accumulator,
    Aggregate,
    Attribute,
    Call,
    Constant,
    Every,
    Expr,
    MatchDuration,
    Previous,
    PreviousOr,
    Reduce,
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
    accumulator: Any = None

    def group(self, variable: str) -> tuple[int, ...] | None:
        """Inside a group being built, the elements taken before; None: the branch isn't taken."""
        if variable in self.state.taken:
            return self.state.taken[variable]
        binding = self.state.env[variable]
        return None if binding is None else events_of(binding)

    def at_hand(self, bindings: Mapping[str, Binding]) -> Scope:
        env = {**self.state.env, **bindings}
        others = {
            path: rounds
            for path, rounds in self.state.iterations.items()
            if not (rounds and rounds[0].env.keys() & bindings.keys())
        }
        return replace(self, state=replace(self.state, env=env, iterations=others))

    def elements(self, variable: str) -> list[Scope] | None:
        """One scope for each element of a group, with that element at hand. The variables of a
        closure over a pattern go through its rounds together."""
        if variable in self.state.round:
            return [self.at_hand({variable: i}) for i in events_of(self.state.env[variable])]
        group = self.group(variable)
        if group is None:
            return None
        for rounds in self.state.iterations.values():
            if rounds and variable in rounds[0].env:
                return [
                    self.at_hand({**r.env, variable: i})
                    for r in rounds
                    for i in events_of(r.env[variable])
                ]
        return [self.at_hand({variable: i}) for i in group]


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
        case PreviousOr():
            return evaluate(expr.value if scope.group(expr.variable) else expr.default, scope)
        case Aggregate():
            return aggregate(expr, scope)
        case Accumulator():
            return scope.accumulator
        case Reduce():
            return reduced(expr, scope)
        case Every():
            return values.conjunction(over_elements(expr.variable, expr.condition, scope))
        case Some():
            return values.disjunction(over_elements(expr.variable, expr.condition, scope))
        case TimeSpan():
            bound = [scope.events[i] for v in expr.variables for i in events_of(scope.state.env[v])]
            starts = [e.time if e.start is None else e.start for e in bound]
            return max(e.time for e in bound) - min(starts) if bound else None
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
    elements = scope.elements(variable)
    if elements is None:
        elements = [scope.at_hand({variable: None})]
    return [evaluate(condition, e) for e in elements]


def aggregate(expr: Aggregate, scope: Scope) -> Any:
    """ "`count(b)` counts elements, `collect(b.id)` gives an array". A branch not taken: NULL."""
    elements = scope.elements(expr.variable)
    if elements is None:
        return None
    if expr.argument is None or isinstance(expr.argument, Whole):
        columns = expr.argument.columns if expr.argument else ()
        at_hand = [events_of(e.state.env[expr.variable])[0] for e in elements]
        found: list[Any] = [{c: scope.events[i].values.get(c) for c in columns} for i in at_hand]
    else:
        found = [evaluate(expr.argument, e) for e in elements]
    return values.aggregate(expr.function, found, expr.distinct, expr.offset)


def reduced(expr: Reduce, scope: Scope) -> Any:
    """ "folds the elements in order"; a branch not taken: NULL."""
    elements = scope.elements(expr.variable)
    if elements is None:
        return None
    result = evaluate(expr.start, scope)
    for element in elements:
        result = evaluate(expr.step, replace(element, accumulator=result))
    return result


def whole(expr: Whole, scope: Scope) -> Any:
    """ "one struct per variable, an array of structs per closure"; NULL if absent."""
    binding = scope.state.env[expr.variable]
    structs = [{c: scope.events[i].values.get(c) for c in expr.columns} for i in events_of(binding)]
    match scope.variables[expr.variable].kind:
        case Kind.SINGLE | Kind.OPTIONAL:
            return structs[0] if structs else None
        case Kind.GROUP:
            return None if binding is None else structs
