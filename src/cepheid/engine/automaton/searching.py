"""Loops over the events of a class, and patterns that are not sequences or closures.

The kernel is written in continuation-passing style: to bind a part is to write the loops that do
it, and inside them whatever comes then.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import assert_never

from cepheid.algebra.patterns import (
    Closure,
    Conjunction,
    Delay,
    Disjunction,
    Leaf,
    Negation,
    Pattern,
    Sequence,
    Unless,
    positive,
    walk,
)
from cepheid.engine.automaton.code import Env, Limits, Path, Span, around, event_span
from cepheid.engine.automaton.conditions import Conditions
from cepheid.engine.lowering import Event, GroupPlace, Inputs
from cepheid.kernels.templates.automaton import Run
from cepheid.plan.nodes import STREAM, Automaton

Then = Callable[[Env], None]


class Searching(Conditions):
    """`windowed`: the match has a window. `intervals`: events may last."""

    def __init__(
        self, node: Automaton, inputs: Inputs, *, windowed: bool, intervals: bool, in_time: bool
    ) -> None:
        super().__init__(node, inputs)
        self.windowed = windowed
        self.intervals = intervals
        self.in_time = in_time  # the window's clock is time
        self.classes = {leaf.variable: n for n, leaf in enumerate(node.leaves)}
        self.delayed = any(isinstance(p, Delay) for p in walk(node.pattern))
        self.scratches: list[str] = []
        self.sums: list[str] = []
        self.entries: list[int] = []  # the class of each loop that matches start with
        self.looks_back = False  # events before a start may matter
        self.starting = True  # the next loop that is written is such a one

    def scratch(self, prefix: str) -> str:
        """An array for as many events as there are."""
        self.scratches.append(self.code.name(prefix))
        return self.scratches[-1]

    def sum_scratch(self) -> str:
        """The same for numbers with a fraction."""
        self.sums.append(self.code.name("f"))
        return self.sums[-1]

    def following(self, position: str) -> str:
        """The next position at which the stream has an event; -FAR if none is known."""
        n = self.classes[STREAM]
        return f"following(at{n}, lo{n}, hi{n}, {position})"

    # ── loops ──

    @contextmanager
    def candidates(self, n: int, env: Env, limits: Limits) -> Iterator[tuple[str, str]]:
        """A loop over the events of class n in the limits, and inside the window as far as it is
        known: their number in the list, and their row."""
        code = self.code
        i, row = code.name("i"), code.name("r")
        begin = f"lo{n}"
        if limits.lower is not None:
            begin = f"first_after(at{n}, lo{n}, hi{n}, {limits.lower})"
        elif limits.earliest is not None:
            begin = f"first_later(clock, rows{n}, lo{n}, hi{n}, {limits.earliest})"
        far = env.high if env.control.unordered and self.windowed else None
        if far is not None:
            begin = f"max({begin}, first_later(clock, rows{n}, lo{n}, hi{n}, {far} - window))"
        with code.block(f"for {i} in range({begin}, hi{n}):"):
            code.line(f"{row} = rows{n}[u({i})]")
            self._within(n, i, row, env, limits)
            yield i, row

    def _within(self, n: int, i: str, row: str, env: Env, limits: Limits) -> None:
        line = self.code.line
        for upper in dict.fromkeys((limits.upper, env.control.upper)):
            if upper is not None:
                line(f"if at{n}[u({i})] >= {upper}: break")
        if limits.latest is not None:
            line(f"if clock[u({row})] >= {limits.latest}: break")
        if self.windowed and env.low is not None and env.control.negation is None:
            line(f"if clock[u({row})] - {env.low} >= window: break")
        if limits.earliest is not None and (limits.lower is not None or self.intervals):
            line(f"if clock0[u({row})] <= {limits.earliest}: continue")
        if self.intervals and limits.lower is not None:
            line(f"if begin[u({row})] <= {limits.lower}: continue")

    def horizon(self, env: Env, limits: Limits, test: str | None = None) -> None:
        """After a loop that was not left before its end: events to come may matter."""
        tests = [] if test is None else [test]
        if self.windowed and env.low is not None:
            tests.append(f"frontier - {env.low} < window")
        if self.watching(env) and not limits.ends and env.control.upper is None:
            with self.code.block("else:"):
                self.code.line(f"if {' and '.join(tests) or 'True'}: more = 1")

    def watching(self, env: Env) -> bool:
        return not env.control.quiet and env.control.negation is None

    def stopping(self, env: Env) -> None:
        """The end of a loop's body: leave if what was looked for has been found."""
        if env.control.stop is not None:
            self.code.line(f"if {env.control.stop}: break")

    @contextmanager
    def starts(self, n: int) -> Iterator[str]:
        """The loop over the events of class n that a match can start with."""
        code, entry = self.code, len(self.entries)
        self.entries.append(n)
        self.starting = False
        i, row = code.name("i"), code.name("r")
        later = f"(hi{n} if entry > {entry} else lo{n})"
        begin = code.let("b", f"at_start if entry == {entry} else {later}")
        with code.block(f"for {i} in range({begin}, hi{n}):"):
            code.line(f"{row} = rows{n}[u({i})]")
            with code.block(f"if alive[{entry}, u({row})]:"):
                code.line("more = 0")
                code.line(f"state[{Run.ENTRY}] = {entry}")
                code.line(f"state[{Run.AT}] = {i}")
                self.checkpoint()
                yield row
                code.line(f"alive[{entry}, u({row})] = more")

    @abstractmethod
    def checkpoint(self) -> None:
        """Remember how much was written before the start at hand."""

    # ── parts ──

    def parts(self, pattern: Pattern, path: Path, env: Env, after: str | None, then: Then) -> None:
        """Write all ways to bind the pattern with its start after the given position."""
        match pattern:
            case Leaf():
                self.leaf(pattern, path, env, after, then)
            case Sequence() | Closure():
                self.sequence_of(pattern, path, env, after, then)
            case Conjunction():
                self.conjunction(pattern, path, env, after, then)
            case Disjunction():
                self.disjunction(pattern, path, env, after, then)
            case Unless():
                self.unless(pattern, path, env, after, then)
            case Delay():
                self.parts(pattern.item, (*path, 0), env, after, then)
            case Negation():
                then(env)
            case _:
                assert_never(pattern)

    @abstractmethod
    def sequence_of(
        self, pattern: Sequence | Closure, path: Path, env: Env, after: str | None, then: Then
    ) -> None: ...

    @abstractmethod
    def unless(
        self, pattern: Unless, path: Path, env: Env, after: str | None, then: Then
    ) -> None: ...

    def leaf(self, pattern: Leaf, path: Path, env: Env, after: str | None, then: Then) -> None:
        n = self.classes[pattern.variable]
        if self.starting:
            with self.starts(n) as row, self.holding(self.bound(env, pattern, row, path)) as held:
                then(held)
            return
        limits = Limits(lower=after)
        with self.candidates(n, env, limits) as (_, row):
            with self.holding(self.bound(env, pattern, row, path)) as held:
                then(held)
            self.stopping(env)
        self.horizon(env, limits)

    def bound(self, env: Env, leaf: Leaf, row: str, path: Path) -> Env:
        env = env.bind(leaf.variable, row, path)
        if env.control.negation is not None:
            return env
        low, high = f"clock0[u({row})]", f"clock[u({row})]"
        if env.low is not None:
            low = self.code.let("w", f"min({env.low}, {low})") if env.control.unordered else env.low
        if env.high is not None and env.control.unordered:
            high = self.code.let("w", f"max({env.high}, {high})")
        return replace(env, low=low, high=high)

    def conjunction(
        self, pattern: Conjunction, path: Path, env: Env, after: str | None, then: Then
    ) -> None:
        """Members in any order, of distinct events."""
        control = env.control
        self.looks_back = True

        def bind(n: int, env: Env) -> None:
            if n == len(pattern.items):
                then(env.under(control))
                return
            item = pattern.items[n]

            def distinct(bound: Env) -> None:
                others = [v for p in pattern.items[:n] for v in positive(p)]
                shared = self.shared(others, positive(item), bound)
                if shared is None:
                    bind(n + 1, bound.under(replace(control, unordered=True)))
                    return
                with self.code.block(f"if not {shared}:"):
                    bind(n + 1, bound.under(replace(control, unordered=True)))

            self.parts(item, (*path, n), env, after, distinct)

        bind(0, env if env.low is None else env.under(replace(control, unordered=True)))

    def shared(self, some: list[str], others: tuple[str, ...], env: Env) -> str | None:
        """Source of whether variables of both sides bind the same event."""
        tests: list[str] = []
        for one in some:
            for other in others:
                match env.scope.get(one), env.scope.get(other):
                    case Event(row=a), Event(row=b):
                        tests.append(f"{a} == {b}")
                    case (Event(row=a), GroupPlace() as g) | (GroupPlace() as g, Event(row=a)):
                        end = f"{g.start} + {g.count}"
                        tests.append(f"holds_row({g.array}, {g.start}, {end}, {a})")
                    case GroupPlace() as g, GroupPlace() as h:
                        ends = f"{g.start} + {g.count}", f"{h.start} + {h.count}"
                        tests.append(
                            f"share({g.array}, {g.start}, {ends[0]}, "
                            f"{h.array}, {h.start}, {ends[1]})"
                        )
                    case _:
                        pass
        return f"({' or '.join(tests)})" if tests else None

    def disjunction(
        self, pattern: Disjunction, path: Path, env: Env, after: str | None, then: Then
    ) -> None:
        """Each branch in turn; variables of the others are absent."""
        starting = self.starting
        for n, branch in enumerate(pattern.items):
            self.starting = starting
            others = [v for m, o in enumerate(pattern.items) if m != n for v in positive(o)]
            chosen = replace(
                env,
                choices={**env.choices, path: n},
                decided=env.decided.union(others),
                absent=env.absent.union(others),
            )
            with self.holding(chosen) as held:
                self.parts(branch, (*path, n), held, after, then)

    # ── where parts lie ──

    def span(self, pattern: Pattern, path: Path, env: Env) -> Span | None:
        """Where the part lies; None if it binds nothing (a negation, an empty group)."""
        match pattern:
            case Leaf() | Closure():
                return env.spans.get(path)
            case Negation():
                return None
            case Sequence() | Conjunction():
                found = (self.span(i, (*path, n), env) for n, i in enumerate(pattern.items))
                ordered = isinstance(pattern, Sequence) and not self.delayed
                return around([s for s in found if s is not None], ordered)
            case Disjunction():
                branch = env.choices[path]
                return self.span(pattern.items[branch], (*path, branch), env)
            case Unless():
                return self.span(pattern.item, (*path, 0), env)
            case Delay():
                inner = self.span(pattern.item, (*path, 0), env)
                if inner is None:
                    return None
                later = pattern.duration
                return replace(
                    inner,
                    end=f"({inner.end} + {later} * scale)",
                    clock_end=f"({inner.clock_end} + {later})" if self.in_time else inner.clock_end,
                    time_end=f"({inner.time_end} + {later})",
                )
            case _:
                assert_never(pattern)

    def history(self, pattern: Pattern, path: Path, env: Env, into: str) -> str:
        """Write the complete history of a composite to an array: its end, then the positions of
        its members from the last backwards. The number of entries."""
        code = self.code
        span = self.span(pattern, path, env)
        assert span is not None
        code.line(f"{into}[0] = {span.end}")
        n = code.let("n", "1")
        for variable in positive(pattern):
            match env.scope.get(variable):
                case Event(row=row):
                    code.line(f"{n} = put({into}, {n}, pos[u({row})])")
                case GroupPlace() as group:
                    e = code.name("e")
                    with code.block(f"for {e} in range({group.count}):"):
                        row = f"{group.array}[u({group.start} + {e})]"
                        code.line(f"{n} = put({into}, {n}, pos[u({row})])")
                case None:
                    pass
        return n

    def group_span(self, place: GroupPlace, some: str | None) -> Span:
        first = f"{place.array}[u({place.start})]"
        last = f"{place.array}[u({place.start} + {place.count} - 1)]"
        span = event_span(first, last, some)
        if not self.intervals:
            return span
        # Elements may overlap: one that ends later may start earlier.
        least = [
            f"least({array}, {place.array}, {place.start}, {place.count}, 0)"
            for array in ("begin", "clock0", "time0")
        ]
        return replace(span, start=least[0], clock_start=least[1], time_start=least[2])
