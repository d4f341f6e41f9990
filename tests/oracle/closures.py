"""Which groups a closure can bind between two limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from cepheid.algebra.patterns import Closure, Leaf
from cepheid.language.ast import Between, Exactly, Mode, Optional

from .conditions import Search, is_running
from .events import Event, Position
from .expressions import evaluate
from .state import Path, Span, State

Clock = Callable[[int], tuple[int, int]]
"""Of the index of an event: its start and its end, as times; or twice its number in the stream."""


@dataclass(frozen=True)
class Limits:
    """Strictly between two positions and, at an edge, two readings of the clock. `counted`: the
    clock counts events; otherwise it reads times, and a delay has moved that of an end."""

    lower: Position | None
    upper: Position | None
    clock: Clock | None = None
    earliest: int | None = None
    latest: int | None = None
    counted: bool = False

    def __contains__(self, at: tuple[Position, Position, tuple[int, ...]]) -> bool:
        start, end, members = at
        if self.lower is not None and not start > self.lower:
            return False
        if self.upper is not None and not end < self.upper:
            return False
        if self.clock is None:
            return True
        readings = [self.clock(i) for i in members]
        last = max(end for _, end in readings) if self.counted else end[0]
        return (self.earliest is None or min(start for start, _ in readings) > self.earliest) and (
            self.latest is None or last < self.latest
        )


@dataclass(frozen=True)
class Group:
    """`positions` are those of its elements; an empty group has none and no span."""

    bindings: Mapping[str, tuple[int, ...]]
    positions: tuple[Position, ...]
    span: Span | None
    rounds: tuple[State, ...] = ()

    @property
    def size(self) -> int:
        return len(self.positions)


def size_range(closure: Closure) -> tuple[int, int | None]:
    match closure.quantifier:
        case Between(low, high):
            return low, high
        case Exactly(count):
            return count, count
        case Optional():
            return 0, 1


def groups(
    search: Search,
    path: Path,
    closure: Closure,
    state: State,
    limits: Limits,
    unbroken: bool = False,
    touch_left: Position | None = None,
    touch_right: Position | None = None,
) -> list[Group]:
    """Every group that the closure can be, in the order of its first elements; maximal ones
    whatever their size."""
    if not isinstance(closure.item, Leaf):
        from .rounds import round_groups

        return round_groups(search, path, closure, state, limits, unbroken, touch_left)
    variable = closure.item.variable
    events = [
        e
        for e in search.candidates[variable]
        if (search.stream.begin(e), search.stream.position(e), (e.index,)) in limits
    ]
    taking = Taking(
        search, closure, variable, state, events, closure.strict or unbroken, touch_left
    )
    return [taking.group(g) for g in taking.groups(touch_right)]


@dataclass(frozen=True)
class Taking:
    """Builds groups from `events`, those of the closure's type between its limits, in order."""

    search: Search
    closure: Closure
    variable: str
    state: State
    events: list[Event]
    strict: bool
    touch_left: Position | None

    def groups(self, touch_right: Position | None) -> Iterator[tuple[Event, ...]]:
        low, high = size_range(self.closure)

        def fits(group: tuple[Event, ...]) -> bool:
            return low <= len(group) and (high is None or len(group) <= high)

        if isinstance(self.closure.quantifier, Optional):
            # "the first qualifying event between the neighbors ..., or nothing"
            yield self.maximal(touch_right)[:1]
        elif isinstance(self.closure.quantifier, Exactly):
            yield from self.runs_of(self.closure.quantifier.count)
        elif self.closure.mode is Mode.MAXIMAL:
            yield self.maximal(touch_right)
        elif self.closure.mode is Mode.PREFIXES:
            yield from filter(fits, prefixes(self.maximal(touch_right)))
        elif self.closure.mode is Mode.SUBSETS:
            yield from filter(fits, self.subsets(0, ()))
        else:
            # "as PREFIXES, but starting at every qualifying event"
            if low == 0:
                yield ()
            for n, event in enumerate(self.events):
                run = self.taken_from(n)
                if run and run[0] is event:
                    yield from filter(fits, list(prefixes(run))[1:])

    def group(self, events: tuple[Event, ...]) -> Group:
        stream = self.search.stream
        positions = tuple(stream.position(e) for e in events)
        span = None
        if events:
            # Elements may overlap: one that ends later may start earlier.
            span = Span(min(stream.begin(e) for e in events), positions[-1], positions[0])
        return Group({self.variable: tuple(e.index for e in events)}, positions, span)

    def at_hand(self, event: Event, taken: tuple[Event, ...]) -> State:
        return replace(
            self.state,
            env={**self.state.env, self.variable: event.index},
            taken={**self.state.taken, self.variable: tuple(e.index for e in taken)},
        )

    def qualifies(self, event: Event, taken: tuple[Event, ...]) -> bool:
        """Filters say "which events qualify"; a running condition "is tested left to right
        against the elements taken before"."""
        return self.search.holds(self.at_hand(event, taken), [self.state])

    def passes_filters(self, event: Event) -> bool:
        """Whether it qualifies, as far as conditions on the elements before leave it open."""
        filters = tuple(c for c in self.search.conjuncts if not is_running(c))
        search = replace(self.search, conjuncts=filters)
        return search.holds(self.at_hand(event, ()), [self.state])

    def ends(self, event: Event, taken: tuple[Event, ...]) -> bool:
        """UNTIL: "the group ends before the first event of its type that satisfies the condition,
        also one that a filter refuses; aggregates in it are over the elements taken before"."""
        if self.closure.until is None:
            return False
        return evaluate(self.closure.until, self.search.scope(self.at_hand(event, taken))) is True

    def connects(self, taken: tuple[Event, ...], event: Event) -> bool:
        """STRICT: "Each element is at the next position of the stream after the one before;
        simultaneous events don't break it"; one with a duration also starts after that. After `=>`,
        the first touches its neighbor."""
        stream = self.search.stream
        at = stream.position(event)
        if taken:
            last = stream.position(taken[-1])
            follows = at == stream.next_position(last) and stream.begin(event) > last
            return not self.strict or at == last or follows
        return self.touch_left is None or at == stream.next_position(self.touch_left)

    def taken_from(self, n: int) -> tuple[Event, ...]:
        """All qualifying events from the n-th on, up to UNTIL and, if STRICT, the first break."""
        taken: tuple[Event, ...] = ()
        for event in self.events[n:]:
            if self.ends(event, taken) or not self.connects(taken, event):
                break
            if self.qualifies(event, taken):
                taken = (*taken, event)
        return taken

    def maximal(self, touch_right: Position | None) -> tuple[Event, ...]:
        """ "all qualifying events between the neighbors"; leading, before `=>`: "the longest run
        of consecutive events of the stream that qualify and touch that neighbor"."""
        if touch_right is None:
            return self.taken_from(0)
        stream = self.search.stream
        for n in range(len(self.events)):
            run = self.taken_from(n)
            if isinstance(self.closure.quantifier, Optional):
                run = run[:1]
            if run and stream.next_position(stream.position(run[-1])) == touch_right:
                return run
        return ()

    def runs_of(self, count: int) -> Iterator[tuple[Event, ...]]:
        """ "every run of n events consecutive among the qualifying ones; running conditions are
        tested inside each run"; UNTIL counts from the run's own start."""
        qualifying = [e for e in self.events if self.passes_filters(e)]
        for n in range(len(qualifying) - count + 1):
            run = tuple(qualifying[n : n + count])
            whole = all(
                self.connects(run[:k], e) and self.qualifies(e, run[:k]) for k, e in enumerate(run)
            )
            seen = self.events[self.events.index(run[0]) : self.events.index(run[-1]) + 1]
            before = {
                e.index: tuple(r for r in run if self.events.index(r) < self.events.index(e))
                for e in seen
            }
            if whole and not any(self.ends(e, before[e.index]) for e in seen):
                yield run

    def subsets(self, n: int, taken: tuple[Event, ...]) -> Iterator[tuple[Event, ...]]:
        """ "every subset in range, in order, running conditions tested inside each"; UNTIL counts
        from the subset's own start."""
        yield taken
        for k in range(n, len(self.events)):
            event = self.events[k]
            if self.ends(event, taken):
                if taken:
                    return
                continue
            if self.connects(taken, event) and self.qualifies(event, taken):
                yield from self.subsets(k + 1, (*taken, event))


def prefixes(group: tuple[Event, ...]) -> Iterator[tuple[Event, ...]]:
    """ "every prefix of the maximal group that is in range is a choice of its own"; the empty one
    first."""
    return (group[:n] for n in range(len(group) + 1))
