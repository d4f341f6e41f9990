"""Measuring: all ways of a setting on the same events, in turns, each with the right answer.

Processor time counts, and of several runs the least, since whatever else the machine does can only
add to it. The ways take turns, so that a busy spell meets all of them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise
from typing import Any, assert_never
from unittest.mock import patch

import pyarrow as pa

import cepheid as cep
from benchmarks.experiments.experiment import (
    Experiment,
    Figure,
    Found,
    Need,
    Point,
    Setting,
    Spot,
    Way,
)
from benchmarks.experiments.planning import (
    counted,
    nanoseconds_per_event,
    options_of,
    planned,
)
from benchmarks.measure import BATCH, PREFIX, WrongAnswer
from cepheid.engine.needs import ROUND
from cepheid.planner import adapt

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Effort:
    """How much is done: of the rows only a `part`-th; each way at least so many times, and again
    until it has had its seconds, so that short runs are repeated more often."""

    part: int = 1
    repeats: int = 3
    seconds: float = 1.5


FULL = Effort()
QUICK = Effort(part=10, repeats=1, seconds=0.0)


class Laboratory:
    """Runs experiments. Figures that look at the same runs share them."""

    def __init__(self, effort: Effort = FULL, progress: Progress = lambda _: None) -> None:
        self._effort = effort
        self._progress = progress
        self._known: dict[tuple[str, str, Need], dict[str, Point]] = {}

    def run(self, experiment: Experiment) -> Figure:
        """Every setting under every way."""
        points: dict[Spot, dict[str, Point]] = {}
        for setting in experiment.settings:
            self._progress(f"{experiment.name}: {setting.workload.name}")
            found = self._setting(setting, experiment)
            for label in setting.labels():
                points[Spot(setting.panel, label)] = {
                    w.name: found[w.name][label] for w in experiment.ways
                }
        return Figure(points)

    def _setting(self, setting: Setting, experiment: Experiment) -> dict[str, dict[str, Point]]:
        """By way and label; what an earlier figure has measured isn't measured again."""
        name, needs = setting.workload.name, sorted(experiment.needs())
        keys = [(name, way.name, need) for way in experiment.ways for need in needs]
        missing = {key for key in keys if key not in self._known}
        if missing:
            table = setting.workload.events(setting.workload.rows // self._effort.part)
            trial = Trial(setting, table, setting.workload.loop(table))
            for need in {need for _, _, need in missing}:
                ways = [way for way in experiment.ways if (name, way.name, need) in missing]
                for way, points in self._find(trial, ways, need).items():
                    self._known[name, way, need] = points
        return {way.name: self._merged(name, way.name, needs) for way in experiment.ways}

    def _find(self, trial: Trial, ways: list[Way], need: Need) -> dict[str, dict[str, Point]]:
        match need:
            case "time":
                return self._timed(trial, ways)
            case "estimate":
                return {way.name: {trial.setting.label: trial.estimated(way)} for way in ways}
            case "profile":
                return {way.name: {trial.setting.label: trial.counted(way)} for way in ways}
            case _:
                assert_never(need)

    def _merged(self, workload: str, way: str, needs: Sequence[Need]) -> dict[str, Point]:
        """What was found out for different needs, in one point for each label."""
        merged: dict[str, Point] = {}
        for need in needs:
            for label, point in self._known[workload, way, need].items():
                merged[label] = combined(merged[label], point) if label in merged else point
        return merged

    def _timed(self, trial: Trial, ways: list[Way]) -> dict[str, dict[str, Point]]:
        """The best of several runs, the ways taking turns."""
        runs = {way.name: (way, trial.options(way)) for way in ways}
        for way, options in runs.values():
            trial.warm_up(way, options)
        best: dict[str, dict[str, Point]] = {name: {} for name in runs}
        chosen = {way.name: trial.chosen(way) for way in ways}
        spent = dict.fromkeys(runs, 0.0)
        for turn in count(1):
            pending = [
                name
                for name in runs
                if turn <= self._effort.repeats or spent[name] < self._effort.seconds
            ]
            if not pending:
                break
            for name in pending:
                self._progress(f"{trial.name}: {name}, turn {turn}")
                found = trial.timed(*runs[name])
                spent[name] += found[trial.setting.label].cpu
                for label, point in found.items():
                    kept = best[name].get(label, point)
                    fastest = min(kept, point, key=lambda p: p.cpu)
                    inside = min(kept.inside, point.inside)
                    best[name][label] = replace(fastest, chosen=chosen[name], inside=inside)
        return best


@dataclass(frozen=True)
class Lap:
    """Seconds that a segment took."""

    cpu: float
    wall: float


@dataclass(frozen=True)
class Trial:
    """A setting with its events and the number of matches that there are."""

    setting: Setting
    table: pa.Table
    matches: int

    @property
    def name(self) -> str:
        return self.setting.workload.name

    def options(self, way: Way) -> dict[str, Any]:
        return options_of(way, self.setting.workload, self.table)

    def chosen(self, way: Way) -> str:
        """The plan, if it is the planner's choice and is made before the run."""
        if not way.analyzed:
            return ""
        return planned(self.setting.workload, self.options(way), self.table).winner.name

    def estimated(self, way: Way) -> Point:
        found = planned(self.setting.workload, self.options(way), self.table)
        return Point(self.table.num_rows, self.matches, cost=nanoseconds_per_event(found))

    def counted(self, way: Way) -> Point:
        found = counted(self.setting.workload, self.options(way), self.table)
        self.check(found.matches, way.name)
        return Point(
            self.table.num_rows,
            self.matches,
            records=found.records,
            held=found.held,
            peak=found.peak,
        )

    def warm_up(self, way: Way, options: dict[str, Any]) -> None:
        """Let kernels be compiled: also those of the plans that an adaptive run comes to, which
        otherwise would first let a new machine waste as much time as compiling takes."""
        fixed = way.program is not None or options.get("plan", "auto") != "auto"
        with patch.object(adapt, "COMPILING", 0.0):
            self.lap_times(way, options, self.table.slice(0, PREFIX) if fixed else self.table)

    def timed(self, way: Way, options: dict[str, Any]) -> dict[str, Point]:
        """One run: a point for every segment and one for the whole."""
        laps, found, given = self.lap_times(way, options, self.table)
        if given < self.table.num_rows:
            (lap,) = laps
            point = Point(given, self.matches, lap.cpu, lap.wall, stopped=True, inside=found.inside)
            return {self.setting.label: point}
        self.check(found.matches, way.name)
        rows = self.rows(self.table)
        whole = Lap(sum(lap.cpu for lap in laps), sum(lap.wall for lap in laps))
        parts = [*zip(rows, laps, strict=True)] if self.setting.segments else []
        parts.append((self.table.num_rows, whole))
        return {
            label: Point(events, self.matches, lap.cpu, lap.wall, inside=found.inside)
            for label, (events, lap) in zip(self.setting.labels(), parts, strict=True)
        }

    def rows(self, table: pa.Table) -> list[int]:
        """The length of each segment."""
        shares = [share for _, share in self.setting.segments] or [1.0]
        ends = [0, *(round(sum(shares[: n + 1]) * table.num_rows) for n in range(len(shares)))]
        return [end - begin for begin, end in pairwise(ends)]

    def lap_times(
        self, way: Way, options: dict[str, Any], table: pa.Table
    ) -> tuple[list[Lap], Found, int]:
        """The time of each segment, what was found, and how many events there was time for.

        The engine asks for the next batch when it is done with the one before, so a segment lasts
        from the question for its first batch to that for the next segment's.
        """
        marks = [(time.process_time(), time.perf_counter())]
        size = BATCH if way.limit == math.inf else ROUND
        given = 0

        def batches() -> Iterator[pa.RecordBatch]:
            nonlocal given
            first = 0
            for length in self.rows(table):
                if first:
                    marks.append((time.process_time(), time.perf_counter()))
                for batch in table.slice(first, length).to_batches(max_chunksize=size):
                    if time.process_time() - marks[0][0] > way.limit:
                        return
                    given += batch.num_rows
                    yield batch
                first += length

        workload = self.setting.workload
        if way.program is not None:
            found = way.program(workload, options, table.schema, batches())
        else:
            query = cep.Query(workload.query)
            matches = query.match(batches(), **options)
            found = Found(sum(batch.num_rows for batch in matches))
        marks.append((time.process_time(), time.perf_counter()))
        laps = [Lap(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(marks)]
        return laps, found, given

    def check(self, found: int, way: str) -> None:
        if found != self.matches:
            raise WrongAnswer(
                f"{way} of {self.name} finds {found:,} matches where there are {self.matches:,}"
            )


def combined(first: Point, second: Point) -> Point:
    """Each figure from the point that has it."""
    return Point(
        first.events,
        first.matches,
        first.cpu or second.cpu,
        first.wall or second.wall,
        first.cost or second.cost,
        first.records or second.records,
        first.held or second.held,
        first.peak or second.peak,
        first.chosen or second.chosen,
        first.stopped or second.stopped,
        first.inside or second.inside,
    )
