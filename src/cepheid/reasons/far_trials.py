"""Trials where the events are, as on Spark: counts come back, and an example of each kind.

What happens to most first events also happens to others: the same variations reach them. So the
variations are run together, first events are counted by the set of variations that have them, and
one of each kind stands for all of it. Matches are compared in the same way.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from cepheid.algebra import patterns
from cepheid.algebra.query import BoundQuery, Clock, Window
from cepheid.engine.rows.event_types import types_in
from cepheid.errors import CepheidError
from cepheid.language import ast
from cepheid.options import Options
from cepheid.reasons.first_groups import Groups, StartWindows, group_text
from cepheid.reasons.trials import (
    COUNT,
    VALUES,
    Binding,
    MatchCount,
    Outcome,
    Starts,
    Steps,
    StepTime,
    Variation,
    check_name,
    counted,
    earliest,
    first_line,
    limited,
    plain,
)
from cepheid.runtime import Alike, Bindable, Example, KeptEvents

MOST = 100_000
"""Matches of a variation that are looked at, where each has to be found."""

_GROUP = 20
"""Events of a group that are read of an example."""


@dataclass(frozen=True)
class FarTrials:
    """Kept events (see `Trials`). First events are told apart by `by`."""

    events: KeptEvents
    by: Groups | None = None
    numbered: bool = False
    known: dict[tuple[ast.Query, bool], tuple[Starts, str | None]] = field(
        default_factory=dict, repr=False
    )
    groups: dict[int, Any] = field(default_factory=dict, repr=False)
    cells: dict[int, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    examples: set[int] = field(default_factory=set, repr=False)

    @property
    def options(self) -> Options:
        return self.events.options

    @property
    def count(self) -> int:
        return self.events.count

    @property
    def total(self) -> int:
        return self.events.total

    @property
    def sample(self) -> str | None:
        return self.events.sample

    @property
    def streams(self) -> bool:
        return isinstance(self.events.columns, Mapping)

    def longest(self, window: Window | None) -> int:
        if window is not None and window.clock is Clock.EVENTS:
            return max(self.count, 1)
        return self.events.last - self.events.first + 1

    def bound(self, query: ast.Query) -> BoundQuery:
        return Variation(query).bind(self.events.columns, self.options)

    # ── first events ────────────────────────────────────────────────────────

    def expect(
        self, steps: Steps, queries: Iterable[ast.Query], shortest: Collection[ast.Query]
    ) -> None:
        short = set(map(plain, shortest))
        wanted = [
            q for q in dict.fromkeys(map(plain, queries)) if (q, q in short) not in self.known
        ]
        runnable: list[tuple[ast.Query, Bindable]] = []
        for query in wanted:
            try:
                runnable.append((query, self._earliest(query, steps)))
            except CepheidError as error:
                self.known[query, query in short] = {}, first_line(error)
        if not runnable:
            return
        order, width = _places(steps)
        places = [n for n, (query, _) in enumerate(runnable) if query in short]
        with _quiet():
            kinds = self.events.alike([q for _, q in runnable], order, width, _far(self.by), places)
        for place, (query, _) in enumerate(runnable):
            self.known[query, query in short] = dict(self._starts(kinds, place, steps)), None

    def _earliest(self, query: ast.Query, steps: Steps) -> Variation:
        wanted, many = earliest(query)
        bound = self.bound(wanted)
        return self._returning(limited(wanted, bound, MOST) if many else wanted, bound, steps)

    def _starts(
        self, kinds: list[Alike], place: int, steps: Steps
    ) -> Iterator[tuple[int, Binding]]:
        for kind in kinds:
            if place in kind.queries:
                self.groups[kind.first] = kind.value
                match = self._binding(kind.examples[place], steps, kind.count)
                yield kind.first, replace(match, spans=kind.spans.get(place))

    def starts(
        self, steps: Steps, query: ast.Query, shortest: bool = False
    ) -> tuple[Starts, str | None]:
        self.expect(steps, [query], [query] if shortest else [])
        return self.known[plain(query), shortest]

    def first(self, match: Binding, steps: Steps) -> int:
        return min((row for v in steps[0] for row in match.rows.get(v, ())), default=-1)

    def step_times(
        self, steps: Steps, queries: Sequence[ast.Query], by: Groups | None
    ) -> list[Mapping[str | None, StepTime]]:
        order, width = _places(steps)
        found: list[dict[str | None, StepTime]] = [{} for _ in queries]
        runnable = [n for n, q in enumerate(queries) if self.starts(steps, q)[1] is None]
        if not runnable:
            return list(found)
        wanted = [self._earliest(queries[n], steps) for n in runnable]
        between = [(order[n], order[n + 1]) for n in runnable]
        with _quiet():
            rows = self.events.step_times(wanted, order, width, between, _far(by))
        for place, value, median, p90 in rows:
            group = None if by is None else group_text(value, by)
            found[runnable[place]][group] = StepTime(median, p90)
        return list(found)

    # ── matches ─────────────────────────────────────────────────────────────

    def number(self, query: ast.Query, most: int | None) -> MatchCount:
        return self.numbers([query], most)[0]

    def numbers(self, queries: Sequence[ast.Query], most: int | None) -> list[MatchCount]:
        """Those that can be counted without a limit, others up to `MOST`."""
        found: dict[ast.Query, MatchCount] = {}
        wanted: list[tuple[ast.Query, Bindable, bool]] = []
        for query in dict.fromkeys(map(plain, queries)):
            try:
                answering = counted(query, self)
                bound = self.bound(query)
            except CepheidError as error:
                found[query] = MatchCount(refused=first_line(error))
                continue
            if answering is not None:
                wanted.append((query, Variation(answering), True))
            else:
                variable = patterns.positive(bound.pattern)[0]
                read = ast.Attribute(variable, self.events.rows.row)
                returns = (ast.ReturnItem(read, COUNT),)
                run = query if most is None else limited(query, bound, MOST)
                wanted.append((query, Variation(replace(run, returns=returns)), False))
        if wanted:
            with _quiet():
                values = self.events.counts([(run, answers) for _, run, answers in wanted])
            for (query, _, answers), value in zip(wanted, values, strict=True):
                complete = answers or most is None or value <= MOST
                found[query] = MatchCount(value if complete else MOST, complete)
        return [found[plain(query)] for query in queries]

    def fresh(self, base: ast.Query, queries: Sequence[ast.Query]) -> list[Outcome]:
        outcomes: dict[int, Outcome] = {}
        steps = (patterns.positive(self.bound(base).pattern),)
        wanted = [(-1, self._limited(base, steps))]
        for place, query in enumerate(queries):
            try:
                wanted.append((place, self._limited(query, steps)))
            except CepheidError as error:
                outcomes[place] = Outcome(refused=first_line(error))
        with _quiet():
            kinds = self.events.alike([run for _, run in wanted], None, len(steps[0]))
        for n, (place, _) in enumerate(wanted):
            have = [kind for kind in kinds if n in kind.queries]
            new = [kind for kind in have if 0 not in kind.queries]
            matches = [self._binding(kind.examples[n], steps, kind.count) for kind in new]
            matches.sort(key=lambda match: (match.end, match.start, match.identity))
            complete = sum(kind.count for kind in have) <= MOST
            outcomes[place] = Outcome(tuple(matches), complete)
        return [outcomes[place] for place in range(len(queries))]

    def _limited(self, query: ast.Query, steps: Steps) -> Variation:
        bound = self.bound(plain(query))
        return self._returning(limited(plain(query), bound, MOST), bound, steps)

    def _returning(self, query: ast.Query, bound: BoundQuery, steps: Steps) -> Variation:
        names = self.events.rows
        present = set(patterns.positive(bound.pattern))
        returns = tuple(
            ast.ReturnItem(ast.Attribute(variable, column), f"{letter}{n}")
            for n, variable in enumerate(v for step in steps for v in step)
            if variable in present
            for letter, column in (("v", names.row), ("m", names.moment))
        )
        variation = Variation(replace(query, returns=returns))
        variation.bind(self.events.columns, self.options)  # raises what is wrong with it
        return variation

    def _binding(self, example: Example, steps: Steps, like: int) -> Binding:
        variables = [v for step in steps for v in step]
        rows = dict(zip(variables, example.rows, strict=True))
        self.examples.update(row for part in example.rows for row in part[:_GROUP])
        return Binding(rows, example.start, example.end, like)

    # ── events and values ───────────────────────────────────────────────────

    def check_column(self, name: str) -> None:
        columns = self.events.columns
        schemas = columns.values() if isinstance(columns, Mapping) else (columns,)
        check_name(name, [column for schema in schemas for column in schema.names])

    def group(self, row: int, by: Groups) -> str:
        return group_text(self.groups[row], by)

    def cell(self, row: int, column: str) -> Any:
        """Events of examples are read together, when the first of them is needed."""
        if row not in self.cells:
            for event in self.events.fetch({row} | self.examples - self.cells.keys()):
                self.cells[event[self.events.rows.row]] = event
        values = self.cells.get(row, {})
        names = [n for n in values if n == column] or [
            n for n in values if n.lower() == column.lower()
        ]
        return values[names[0]] if names else None

    def types(self, column: str) -> set[str] | None:
        values = self.events.values(column, VALUES)
        return None if values is None else types_in(values)

    def texts(self, column: str) -> set[str]:
        values = self.events.values(column, VALUES)
        return set() if values is None else {v for v in values.to_pylist() if isinstance(v, str)}


def _places(steps: Steps) -> tuple[list[list[int]], int]:
    """The places of the variables of each step, and how many variables there are."""
    order: list[list[int]] = []
    width = 0
    for step in steps:
        order.append(list(range(width, width + len(step))))
        width += len(step)
    return order, width


def _far(by: Groups | None) -> str | int | None:
    """A column, or the size of windows."""
    return by.size if isinstance(by, StartWindows) else by


@contextmanager
def _quiet() -> Iterator[None]:
    """The query itself was heard when it was bound."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
