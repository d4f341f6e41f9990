"""What all parts of the kernel are written with: lines, arrays, conditions, positions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import assert_never

from cepheid.algebra.aggregates import AGGREGATES
from cepheid.algebra.expressions import Aggregate, Expr, MatchDuration
from cepheid.algebra.patterns import (
    Absence,
    Closure,
    Conjunction,
    Delay,
    Disjunction,
    Leaf,
    Negation,
    Pattern,
    Unless,
    items,
    leaves,
    positive,
)
from cepheid.algebra.patterns import Sequence as SequencePattern
from cepheid.engine.automaton.elements import Criterion
from cepheid.engine.automaton.points import Begin, End, Opening, Origin, Path, Point, part_at
from cepheid.engine.automaton.program import Program
from cepheid.engine.automaton.source.event_fields import EventFields
from cepheid.engine.automaton.source.places import Env, Extent, Fold, Rounds, around
from cepheid.engine.lowering import (
    Event,
    FoldPart,
    GroupPlace,
    Inputs,
    KernelLowering,
    NotLowered,
    Place,
    Term,
    finalized,
)
from cepheid.engine.lowering.operators import TEXTS
from cepheid.kernels.code import Code
from cepheid.plan.nodes import STREAM

Then = Callable[[Env], None]
"""Write what comes behind."""

Within = Callable[[Env, Then], None]
"""Write a search, and what comes at its end."""

Folds = dict[tuple[str, Aggregate], Fold]
"""By the array that holds the group."""


class SourceWriter:
    """The kernel of a program as it is being written."""

    def __init__(
        self, program: Program, inputs: Inputs, whole: bool = False, chooses: bool = False
    ) -> None:
        self.program = program
        self.inputs = inputs
        self.events = EventFields(whole, program.reads_times)
        self.chooses = chooses  # among the matches, for SKIP PAST LAST EVENT
        self.code = Code()
        self.classes = {variable: n for n, variable in enumerate(program.classes)}
        self.companions = _companions(program.pattern)
        self.folds: Folds = {}
        self.scratches: list[str] = []
        self.sums: list[str] = []
        self.tables: list[str] = []
        # Of the start at hand: its number in the key's list, and how long that is; and its row.
        self.start = ("0", "-1")
        self.start_row = "0"
        # How many rows behind the start each search for a time last ended.
        self.gaps: list[str] = []

    @property
    def pools(self) -> tuple[str, ...]:
        """The variables that bind groups, in the order of the pattern."""
        return tuple(v for v in positive(self.program.pattern) if v in self.program.groups)

    def scratch(self, prefix: str) -> str:
        """An array for as many events as there are."""
        self.scratches.append(self.code.name(prefix))
        return self.scratches[-1]

    def sum_scratch(self) -> str:
        """The same for numbers with a fraction."""
        self.sums.append(self.code.name("f"))
        return self.sums[-1]

    def table_scratch(self) -> str:
        """An array of whole numbers for three times as many."""
        name = self.scratch("s")
        self.scratches += [f"{name}_{n}" for n in (1, 2)]
        self.tables.append(name)
        return name

    # ── positions ──

    def following(self, position: str) -> str:
        """The next position at which the stream has an event; -FAR if none is known."""
        return f"following({self._search(self.classes[STREAM], position)})"

    def first_after(self, n: int, position: str) -> str:
        """The number, in the list of a class, of the first event after this position."""
        return f"first_after({self._search(n, position)})"

    def _search(self, n: int, position: str) -> str:
        return ", ".join((f"at{n}, lo{n}, hi{n}", position, *self.start))

    def instant(self, time: str) -> str:
        """The position just before the events of this time."""
        if self.program.delayed:
            return f"({time} - origin) * scale"
        if self.program.lasting:
            return f"{time} - 1"
        gap, row = self.code.name("g"), self.start_row
        self.gaps.append(gap)
        count = self.code.let("n", f"rows_before(time, {time}, {row} + {gap})")
        self.code.line(f"{gap} = {count} - {row}")
        last = self.events.position(f"{count} - 1")
        return f"({last} if {count} > 0 else -FAR)"

    def extent(self, path: Path, env: Env, absences: bool = True) -> Extent | None:
        """Where a part lies; None if it binds nothing (a negation, an empty group). `absences`:
        the time of a negation that has one is a part, too."""
        return self._extent(part_at(self.program.pattern, path), path, env, absences)

    def certain_extent(self, path: Path, env: Env, absences: bool = True) -> Extent:
        extent = self.extent(path, env, absences)
        assert extent is not None, "the part binds something"
        return extent

    def _extent(
        self, pattern: Pattern, path: Path, env: Env, absences: bool = True
    ) -> Extent | None:
        match pattern:
            case Leaf() | Closure():
                return env.extents.get(path)
            case Absence():
                return env.extents.get(path) if absences else None
            case Negation():
                return None
            case SequencePattern() | Conjunction():
                extents = (
                    self._extent(i, (*path, n), env, absences) for n, i in enumerate(pattern.items)
                )
                ordered = isinstance(pattern, SequencePattern) and not (
                    self.program.delayed or any(isinstance(i, Absence) for i in pattern.items)
                )
                return around([e for e in extents if e is not None], ordered)
            case Disjunction():
                branch = env.choices[path]
                return self._extent(pattern.items[branch], (*path, branch), env, absences)
            case Unless():
                return self._extent(pattern.item, (*path, 0), env, absences)
            case Delay():
                inner = self._extent(pattern.item, (*path, 0), env, absences)
                return None if inner is None else self._delayed(inner, pattern.duration)
            case _:
                assert_never(pattern)

    def _delayed(self, extent: Extent, later: int) -> Extent:
        moved = f"({extent.clock_end} + {later})" if self.program.in_time else extent.clock_end
        return replace(
            extent,
            end=f"({extent.end} + {later} * scale)",
            clock_end=moved,
            time_end=f"({extent.time_end} + {later})",
        )

    def point(self, point: Point | None, env: Env) -> str | None:
        match point:
            case None | Opening():
                return None
            case Origin():
                return env.origin
            case Begin(part=part):
                return self.certain_extent(part, env).start
            case End():
                return self.end(point, env)
            case _:
                assert_never(point)

    def end(self, end: End, env: Env) -> str:
        text = "-FAR" if end.part is None else self.certain_extent(end.part, env).end
        for path in end.groups:
            group = self.certain_extent(path, env)
            text = group.end if group.some is None else f"({group.end} if {group.some} else {text})"
        return text

    # ── conditions ──

    def lowering(self, env: Env, duration: str | None = None) -> Reading:
        prefix = self.code.name("t") + "_"
        # Where rounds are gone through, a group is that of the round at hand.
        at_hand = {v for path in env.turns for v in env.rounds[path].rows}
        rounds = {v: r for r in env.rounds.values() for v in r.rows if v not in at_hand}
        companions = {v: t for v, t in self.companions.items() if v not in at_hand}
        scope = dict(env.scope)
        return Reading(self.inputs, scope, prefix, duration, companions, self.folds, rounds)

    @contextmanager
    def holding(self, env: Env, criteria: Sequence[Criterion]) -> Iterator[None]:
        """Inside, the criteria hold."""
        low = self.lowering(env)
        for criterion in criteria:
            if criterion.running is None or criterion.initial:
                low.require([criterion.condition])
                continue
            group = env.scope[f"{criterion.running}…"]
            assert isinstance(group, GroupPlace)
            holds = low.let("True")
            with low.block(f"if {group.count} > 0:"):
                low.line(f"{holds} = {low.true(criterion.condition)}")
            low.require_source(holds)
        with self._inside(low):
            yield

    @contextmanager
    def satisfying(self, env: Env, conditions: Sequence[Expr]) -> Iterator[None]:
        """Inside, these conditions on the match hold. Before it is complete, none reads how long it
        lasts."""
        whole = env.whole
        duration = None if whole is None else f"({whole.time_end} - {whole.time_start})"
        low = self.lowering(env, duration)
        low.require(conditions)
        with self._inside(low):
            yield

    def truth(self, condition: Expr, env: Env) -> str:
        """Source of whether a condition holds."""
        low = self.lowering(env)
        source = low.true(condition)
        for text in low.inner:
            self.code.line(text)
        return source

    @contextmanager
    def _inside(self, low: KernelLowering) -> Iterator[None]:
        for text in low.inner:
            self.code.line(text)
        with self.code.deeper(low.depth):
            yield


class Reading(KernelLowering):
    """Lowers expressions over what an automaton has bound. `companions` are the variables of a
    closure over a pattern, which go through its rounds together. `folds` are aggregates that need
    no loop. `rounds` are those of each variable."""

    def __init__(
        self,
        inputs: Inputs,
        scope: dict[str, Place],
        prefix: str,
        duration: str | None,
        companions: Mapping[str, frozenset[str]],
        folds: Folds,
        rounds: Mapping[str, Rounds],
    ) -> None:
        super().__init__(inputs, scope, prefix)
        self.rounds = rounds
        self.duration = duration
        self.companions = companions
        self.folds = folds

    def term(self, expr: Expr) -> Term:
        if isinstance(expr, MatchDuration) and self.duration is not None:
            return Term(self.duration)
        return super().term(expr)

    def _fold(self, expr: Aggregate, argument: Expr) -> Term:
        group = self._group(expr.variable)
        fold = self.folds.get((group.array, expr))
        text = argument.type in TEXTS and not self.inputs.objects
        if text and AGGREGATES[expr.function].chooses:
            raise NotLowered(expr)  # arrays hold numbers
        if fold is None or group.start != "0":
            return super()._fold(expr, argument)
        count = self.let(f"{fold.counts}[u({group.count})]")
        total = self.let(f"{fold.totals}[u({group.count})]")
        return finalized(AGGREGATES[expr.function], FoldPart(total, count))

    @contextmanager
    def _elements(self, variable: str) -> Iterator[None]:
        others = self.companions.get(variable, frozenset()) - {variable}
        places = {v: p for v in others if isinstance(p := self.scope.get(v), GroupPlace)}
        rounds = self.rounds.get(variable)
        if rounds is not None and rounds.branches and places:
            with self._elements_by_round(variable, rounds, tuple(places)):
                yield
            return
        group = self._group(variable)
        at = self.name()
        with self.block(f"for {at} in range({group.count}):"):
            row = self.let(f"{group.array}[{group.start} + {at}]")
            bound = {variable: Event(row, False)} | {
                v: Event(f"{p.array}[u({p.start} + {at})]", False) for v, p in places.items()
            }
            with self._at_hand(bound):
                yield

    @contextmanager
    def _elements_by_round(
        self, variable: str, rounds: Rounds, others: Sequence[str]
    ) -> Iterator[None]:
        """The elements of a closure over branches. The groups of its variables have different
        lengths: a variable of a branch that a round didn't take is absent in that round."""
        turn, at = self.name(), self.name()
        first, last = rounds.first, f"{rounds.first} + {rounds.count}"
        offsets = rounds.offsets[variable]
        with (
            self.block(f"for {turn} in range({first}, {last}):"),
            self.block(f"for {at} in range({offsets}[u({turn})], {offsets}[u({turn} + 1)]):"),
        ):
            bound = {variable: Event(self.let(f"{rounds.rows[variable]}[u({at})]"), False)}
            for v in others:
                begin = self.let(f"{rounds.offsets[v]}[u({turn})]")
                present = self.let(f"{rounds.offsets[v]}[u({turn} + 1)] > {begin}")
                bound[v] = Event(f"{rounds.rows[v]}[u({begin})]", False, present)
            with self._at_hand(bound):
                yield

    @contextmanager
    def _at_hand(self, bound: Mapping[str, Place]) -> Iterator[None]:
        """Bare attributes of these variables read these events."""
        kept, kept_cache = self.scope, self._cache
        groups = {f"{v}…": kept[v] for v in bound if isinstance(kept.get(v), GroupPlace)}
        self._cache = {k: t for k, t in kept_cache.items() if k[0] not in bound}
        self.scope = {**kept, **groups, **bound}
        yield
        self.scope, self._cache = kept, kept_cache


def _companions(pattern: Pattern) -> dict[str, frozenset[str]]:
    """For the variables of closures over patterns, all of the same closure."""
    match pattern:
        case Closure(item=item) if not isinstance(item, Leaf):
            together = frozenset(leaves(item))
            return dict.fromkeys(together, together)
        case _:
            return {v: t for item in items(pattern) for v, t in _companions(item).items()}
