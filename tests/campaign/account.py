"""What a stream has found and kept, held against what must be there."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.campaign.driver import committed
from tests.campaign.events import Event, Fate, Source
from tests.campaign.scenarios import CHANGING, Found, Question, Scenario, answer

_ROW = re.compile(r"(?<!\d)1\d{6}(?!\d)")
_SHOWN = 5


def read_matches(scenario: Scenario, output: Path) -> dict[str, Found]:
    """The matches of every rule; of a query alone, under an empty name."""
    found: dict[str, Found] = {name: Counter() for name in scenario.questions}
    for file in committed(output):
        for row in pq.read_table(file).to_pylist():
            name = row["rule"] if scenario.rules else ""
            values = json.loads(row["match"]) if scenario.rules else row
            asked = scenario.questions.get(name, next(iter(scenario.changing), None))
            assert asked is not None, f"a match of {name!r}, which was never a rule"
            found.setdefault(name, Counter())[tuple(values[c] for c in asked.columns)] += 1
    return found


def wrong_matches(found: Found, expected: Found, name: str) -> Iterator[str]:
    """Matches that are missing, that shouldn't be there, or that are there twice."""
    about = f" of {name}" if name else ""
    for what, rows in (
        ("missing", expected - found),
        ("not in SQL's answer, or there twice", found - expected),
    ):
        if rows:
            few = ", ".join(map(str, sorted(rows)[:_SHOWN]))
            yield f"{rows.total()} matches{about} {what}: {few}"


def wrong_changes(
    found: Found, versions: Iterable[Question], last: tuple[Question, int] | None, source: Source
) -> Iterator[str]:
    """Of a rule that has come and gone: each match is one of some version, once; and of the last
    version, if it stayed, all matches of events that came after it was published."""
    taken = source.fates[Fate.TAKEN]
    possible: Found = Counter()
    for version in versions:
        possible |= version.expected(taken)
    if found - possible:
        few = sorted(found - possible)[:_SHOWN]
        yield f"{(found - possible).total()} matches of {CHANGING} that no version has: {few}"
    if last is not None:
        question, published = last
        sure = question.expected([e for e in taken if e.row > published])
        if sure - found:
            few = sorted(sure - found)[:_SHOWN]
            yield f"{(sure - found).total()} matches of {CHANGING} are missing: {few}"


def wrong_files(source: Source, rejected: Path) -> Iterator[str]:
    """Files that can't be read are listed once, and no others."""
    listed = rejected / "files.jsonl"
    lines = listed.read_text().splitlines() if listed.exists() else []
    named = Counter(Path(json.loads(line)["file"]).name for line in lines)
    expected = Counter(path.name for path in source.unread)
    if expected - named:
        yield f"unreadable files that aren't listed: {sorted(expected - named)}"
    if named - expected:
        yield f"files that are listed, but can be read, or twice: {sorted(named - expected)}"


def wrong_letters(source: Source, rejected: Path) -> Iterator[str]:
    """Every row that takes no part is kept once, and no row that does."""
    kept = Counter(_kept_rows(rejected))
    for fate in (Fate.TIMELESS, Fate.MALFORMED, Fate.FUTURE, Fate.LATE):
        rows = Counter(event.row for event in source.fates[fate])
        if rows - kept:
            yield f"{(rows - kept).total()} rows {fate.value} aren't kept: {_few(rows - kept)}"
        twice = Counter({row: kept[row] - 1 for row in rows if kept[row] > 1})
        if twice:
            yield f"{len(twice)} rows {fate.value} are kept twice: {_few(twice)}"
    taken = {event.row for event in source.fates[Fate.TAKEN]} & kept.keys()
    if taken:
        yield f"{len(taken)} rows are kept as rejected that should take part: {_few(taken)}"


def _kept_rows(rejected: Path) -> Iterator[int]:
    """Of the lines that Spark's sink has written, and of the rows that workers have."""
    for file in (*committed(rejected / "lines"), *(rejected / "rows").glob("[!.]*.jsonl")):
        for line in file.read_text().splitlines():
            yield from {int(number) for number in _ROW.findall(line)}


def _few(rows: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(rows)[:_SHOWN]))


def expected_matches(scenario: Scenario, events: Iterable[Event]) -> dict[str, Found]:
    taken = list(events)
    return {name: answer(q.sql, taken) for name, q in scenario.questions.items()}


def total(found: dict[str, Found]) -> Any:
    return sum(rows.total() for rows in found.values())
