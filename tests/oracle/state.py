"""What is bound so far, and where each part of the pattern lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cepheid.algebra.patterns import (
    Absence,
    Closure,
    Conjunction,
    Delay,
    Disjunction,
    Leaf,
    Negation,
    Pattern,
    Sequence,
    Unless,
)
from cepheid.language.ast import SequenceOperator

from .events import Binding, Position

Path = tuple[int, ...]
"""Where a node stands in the pattern: the child's number at each step down."""


@dataclass(frozen=True)
class Span:
    """From the start of the earliest to the end of the latest member; `first` is where the first
    member stands in the stream, which is at that member's end."""

    start: Position
    end: Position
    first: Position


@dataclass(frozen=True)
class Edge:
    """A closure without a neighbor on one side: it waits for the whole match's start or end.
    `upper` is the start of what stands right of it, `touched` where that stands in the stream.
    `beside` are closures before it that wait, too: it comes after those that aren't empty."""

    path: Path
    closure: Closure
    lower: Position | None
    upper: Position | None
    touched: Position | None
    before: SequenceOperator | None
    after: SequenceOperator | None
    beside: tuple[Path, ...] = ()


@dataclass(frozen=True)
class State:
    """A partial match.

    `env` holds the variables that are decided: also those of a branch not taken (None). Inside
    a group a variable is the element at hand, an int, and `taken` the elements before it.
    `spans` are those of leaves and groups (not of empty ones); all others follow from them.
    `choices` says which branch of a disjunction was taken, `iterations` what the rounds of a
    closure over a pattern were, `exceptions` which `\\` still have to be checked.
    """

    env: Mapping[str, Binding] = field(default_factory=dict)
    taken: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    spans: Mapping[Path, Span] = field(default_factory=dict)
    choices: Mapping[Path, int] = field(default_factory=dict)
    iterations: Mapping[Path, tuple[State, ...]] = field(default_factory=dict)
    edges: tuple[Edge, ...] = ()
    exceptions: tuple[Path, ...] = ()
    # Where rounds are checked one by one: the variables of the round at hand.
    round: frozenset[str] = frozenset()

    def join(self, other: State) -> State:
        """Both grew out of the same state, by different variables."""
        return State(
            env={**self.env, **other.env},
            taken={**self.taken, **other.taken},
            spans={**self.spans, **other.spans},
            choices={**self.choices, **other.choices},
            iterations={**self.iterations, **other.iterations},
            edges=self.edges + tuple(e for e in other.edges if e not in self.edges),
            exceptions=self.exceptions
            + tuple(e for e in other.exceptions if e not in self.exceptions),
            round=self.round | other.round,
        )


def around(spans: list[Span]) -> Span | None:
    if not spans:
        return None
    return Span(min(s.start for s in spans), max(s.end for s in spans), min(s.first for s in spans))


def span_of(pattern: Pattern, path: Path, state: State, absences: bool = True) -> Span | None:
    """Where the part lies; None if it binds nothing (a negation, an empty group). `absences`:
    negations with a time of their own have an end, too."""
    match pattern:
        case Leaf() | Closure():
            return state.spans.get(path)
        case Absence():
            return state.spans.get(path) if absences else None
        case Negation():
            return None
        case Sequence() | Conjunction():
            spans = [
                span_of(item, (*path, n), state, absences) for n, item in enumerate(pattern.items)
            ]
            return around([s for s in spans if s is not None])
        case Disjunction():
            branch = state.choices[path]
            return span_of(pattern.items[branch], (*path, branch), state, absences)
        case Unless():
            return span_of(pattern.item, (*path, 0), state, absences)
        case Delay():
            # "P, with its end moved later by the duration (its tie-break stays)"
            inner = span_of(pattern.item, (*path, 0), state, absences)
            if inner is None:
                return None
            time, tie = inner.end
            return Span(inner.start, (time + pattern.duration, tie), inner.first)


def end_before(pattern: Pattern, path: Path, state: State) -> Position | None:
    """ "the end of the nearest bound part before it", in any enclosing sequence."""
    found: Position | None = None
    for depth, n in enumerate(path):
        around_it = node_at(pattern, path[:depth])
        if isinstance(around_it, Sequence):
            for m, item in enumerate(around_it.items[:n]):
                span = span_of(item, (*path[:depth], m), state, absences=False)
                found = found if span is None else span.end
    return found


def node_at(pattern: Pattern, path: Path) -> Pattern:
    for n in path:
        match pattern:
            case Sequence() | Conjunction() | Disjunction():
                pattern = pattern.items[n]
            case Unless():
                pattern = pattern.exception if n else pattern.item
            case Negation() | Absence() | Closure() | Delay():
                pattern = pattern.item
            case Leaf():
                raise ValueError(f"nothing at {path}")
    return pattern


def events_of(binding: Binding) -> tuple[int, ...]:
    if binding is None:
        return ()
    return (binding,) if isinstance(binding, int) else binding
