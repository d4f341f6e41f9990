"""States of buckets, kept as files, of every version of the format: they must open, or be refused.

`python -m tests.streaming.keep_state` writes the states of today's format. It refuses to write
those of a version again: what a version has written is what it is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid.algebra.query import BoundQuery
from cepheid.options import EngineChoice, Options
from cepheid.planner import prepare
from cepheid.streaming.buckets.bucket import Bucket, Job, open_bucket
from cepheid.streaming.cells import FORMAT
from cepheid.streaming.signature import signature
from tests.corpus.reader import Case, bound, case_of
from tests.engine.harness import indexed, with_index
from tests.streaming.simulation import MemoryCells

STATES = Path(__file__).parent / "states"
BEGINNING = -(1 << 61)


@dataclass(frozen=True)
class Scenario:
    """Events batch by batch, each with its watermark, and how many batches go before the state is
    saved. `holds` says what there is in that state."""

    name: str
    holds: str
    query: str
    batches: tuple[tuple[str, int], ...]
    saved: int
    delayed: bool = False
    engine: EngineChoice = "auto"

    @cached_property
    def case(self) -> Case:
        events = " ".join(events for events, _ in self.batches)
        fields = {"name": self.name, "query": self.query, "events": events, "oracle": "none"}
        return case_of(fields, "states")

    @cached_property
    def bound(self) -> BoundQuery:
        return bound(self.case)

    def job(self) -> Job:
        options = Options(self.bound.schema.time, engine=self.engine)
        prepared = prepare(indexed(self.bound), options)
        schema = with_index(self.bound, self.case.events).schema
        return Job(prepared, schema, signature(prepared), delayed=self.delayed, jit=False)

    def tables(self) -> list[pa.Table]:
        whole = with_index(self.bound, self.case.events)
        sizes = [events.count("@") for events, _ in self.batches]
        return [whole.slice(sum(sizes[:n]), size) for n, size in enumerate(sizes)]

    def run(self, cells: MemoryCells, begin: int, end: int) -> tuple[Bucket, list[dict[str, Any]]]:
        """Some of the batches, each with a bucket that knows nothing but what was saved."""
        found: list[dict[str, Any]] = []
        bucket = open_bucket(self.job(), cells)
        for table, (_, watermark) in list(zip(self.tables(), self.batches, strict=True))[begin:end]:
            bucket = open_bucket(self.job(), cells)
            for matches in bucket.step(table.to_batches(), watermark):
                found += matches.to_pylist()
            bucket.save(cells)
        return bucket, found


SCENARIOS = (
    Scenario(
        "keyed join",
        "rows that wait for the watermark",
        "PATTERN A a ; B b WHERE [id] AND a.x < b.x WITHIN 10",
        (
            ("A@1(id=1, x=1) B@4(id=2, x=9) A@3(id=2, x=2) A@2(id=1, x=5)", BEGINNING),
            ("B@6(id=1, x=3) A@5(id=1, x=0) B@9(id=2, x=1)", 2),
            ("B@8(id=1, x=7) B@7(id=2, x=3) A@9(id=2, x=0)", 5),
            ("B@11(id=1, x=9) B@12(id=2, x=4)", 8),
            ("", 100),
        ),
        saved=2,
        delayed=True,
    ),
    Scenario(
        "automaton with a choice",
        "matches that AFTER MATCH holds back, and keys that are text",
        "PATTERN A a -> (B b | (C c ; !D d)) WHERE [s] WITHIN 10 "
        "AFTER MATCH SKIP PAST LAST EVENT",
        (
            ("A@1(s='left') B@2(s='left') A@3(s='left') A@3(s='right')", BEGINNING),
            ("C@4(s='left') A@5(s='left') B@6(s='left') C@6(s='right') A@7(s='right')", 2),
            ("B@8(s='right') D@9(s='left') A@10(s='new') B@10(s='right')", 6),
            ("B@12(s='new') A@13(s='left') B@14(s='left')", 9),
            ("", 100),
        ),
        saved=2,
        engine="nfa",
    ),
    Scenario(
        "window of events",
        "a count of events that go on",
        "PATTERN A a ; !C c ; B b WITHIN 4 EVENTS",
        (
            ("A@1 X@2 A@2", BEGINNING),
            ("X@4 B@5 C@6 A@7 X@7", 1),
            ("B@8 X@9 A@10", 6),
            ("X@11 X@11 B@12 B@13", 9),
            ("", 100),
        ),
        saved=2,
    ),
)  # fmt: skip


def folder(scenario: Scenario, version: int) -> Path:
    return STATES / f"v{version}" / scenario.name.replace(" ", "_")


def versions() -> Sequence[int]:
    return sorted(int(path.name.removeprefix("v")) for path in STATES.glob("v*"))


def kept(scenario: Scenario, version: int) -> MemoryCells:
    """The state as that version wrote it."""
    files = {path.name: path.read_bytes() for path in folder(scenario, version).iterdir()}
    header = files.pop("header")
    return MemoryCells(header, {int(number): data for number, data in files.items()})


def keep(scenario: Scenario) -> None:
    cells = MemoryCells()
    scenario.run(cells, 0, scenario.saved)
    path = folder(scenario, FORMAT)
    path.mkdir(parents=True)
    assert cells.value is not None
    (path / "header").write_bytes(cells.value)
    for number, data in cells.segments.items():
        (path / str(number)).write_bytes(data)


if __name__ == "__main__":
    if FORMAT in versions():
        sys.exit(f"the states of version {FORMAT} are kept already, and stay as they are")
    for scenario in SCENARIOS:
        keep(scenario)
