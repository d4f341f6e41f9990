"""Dead letters of streams: rows that are late, ahead of the clock or without a time come out once,
with their values. Late ones that no variable takes are counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import cepheid as cep
from cepheid.errors import OptionError
from tests.spark.streaming_harness import Course, Outcome, run, run_twice

pytestmark = pytest.mark.classic

SECOND = pa.timestamp("us", "UTC")
YEAR_9999 = 253_370_764_800
Row = tuple[int | None, str, int, str]


def part(*rows: Row) -> pa.Table:
    times = [None if row[0] is None else row[0] * 10**6 for row in rows]
    return pa.table(
        {
            "ts": pa.array(times, pa.int64()).cast(SECOND),
            "name": [row[1] for row in rows],
            "id": [row[2] for row in rows],
            "note": [row[3] for row in rows],
        }
    )


PARTS = [
    part((10, "A", 1, "a"), (20, "Z", 9, "b")),
    # Now the watermark is 15.
    part(
        (12, "B", 1, "late"), (11, "Z", 9, "late, and no variable takes it"), (14, "C", 7, "late")
    ),
    part((None, "B", 1, "no time"), (YEAR_9999, "A", 1, "9999"), (21, "A", 1, "c")),
    part((22, "C", 7, "d"), (23, "B", 1, "e")),
    part((100, "Z", 9, "f")),
]
KEYED = "PATTERN A a ; B b WHERE [id] WITHIN 10 seconds RETURN a.note AS a, b.note AS b"
COPIED = (
    "PATTERN A a ; C c ; B b WHERE a.id = b.id WITHIN 10 seconds RETURN a.note AS a, b.note AS b"
)
SINGLE = "PATTERN B b RETURN b.note AS b"
RULES = cep.RuleSet.of(
    {
        "by id": KEYED,
        "by note": "PATTERN A a ; B b WHERE [note] WITHIN 10 seconds",
    }
)


def course(name: str, query: Any, **options: Any) -> Course:
    given = {"time": "ts", "type": "name", "dead_letters": True, **options}
    return Course(name, query, PARTS, given, 5)


def letters(outcome: Outcome, name: str) -> list[tuple[str, str]]:
    """The reasons, and the notes of the rows."""
    found = (row["dead_letter"] for row in outcome.matches[name])
    return sorted((letter["reason"], letter["row"]["note"]) for letter in found if letter)


def matches(outcome: Outcome, name: str) -> list[tuple[str, str]]:
    rows = [row for row in outcome.matches[name] if not row["dead_letter"]]
    return [(row["a"], row["b"]) for row in rows]


def test_of_a_query(spark: SparkSession, tmp_path: Path) -> None:
    """Also where rows are copied to several buckets, and where a match is one event."""
    courses = [
        course("keyed", KEYED),
        course("copied", COPIED, partitioning="partial"),
        course("single", SINGLE, dead_letters=["id"]),
    ]
    outcome = run(spark, tmp_path, courses)
    rejected = [("future", "9999"), ("no time", "no time")]
    assert letters(outcome, "keyed") == [*rejected[:1], ("late", "late"), *rejected[1:]]
    assert matches(outcome, "keyed") == [("c", "e")]
    assert letters(outcome, "copied") == [*rejected[:1], *[("late", "late")] * 2, *rejected[1:]]
    assert matches(outcome, "copied") == [("c", "e")]
    assert letters(outcome, "single") == rejected
    (future,) = (
        row["dead_letter"]["row"]
        for row in outcome.matches["keyed"]
        if row["dead_letter"] and row["dead_letter"]["reason"] == "future"
    )
    assert future == {"ts": "9999-01-01T00:00:00.000Z", "name": "A", "id": 1, "note": "9999"}
    # Three rows are late, for both of the queries that have a watermark.
    assert outcome.total("late") == 6
    assert (outcome.total("rejected"), outcome.total("future")) == (3, 3)


PAIR = (
    "INTO Pair PATTERN A a ; B b WHERE [id] WITHIN 10 seconds "
    "RETURN a.id AS id, a.note AS a, b.note AS b"
)
CHAINS = {
    "one operator": "PATTERN Pair p ; C c WHERE [id] WITHIN 9 seconds",
    "two operators": "PATTERN Pair p ; C c WHERE p.a < c.note WITHIN 9 seconds",
    "answers": "FROM Pair p GROUP BY TUMBLE(30 seconds) HAVING count(*) > 0",
}


@pytest.mark.parametrize("again", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_of_queries_that_read_matches(spark: SparkSession, tmp_path: Path, again: bool) -> None:
    """Each comes once for every result, whichever of its queries could take the row."""
    parts = [*PARTS[:3], part((22, "C", 7, "d"), (23, "B", 1, "e"), (24, "C", 1, "g")), PARTS[-1]]
    returned = {"answers": "RETURN first(p.a) AS a, last(p.b) AS b"}
    courses = [
        Course(
            name,
            [PAIR, f"INTO `{name}` {text} {returned.get(name, 'RETURN p.a AS a, c.note AS b')}"],
            parts,
            {"time": "ts", "type": "name", "dead_letters": ["note"]},
            5,
        )
        for name, text in CHAINS.items()
    ]
    outcome = (run_twice if again else run)(spark, tmp_path, courses)
    pair_alone = [("future", "9999"), ("late", "late"), ("no time", "no time")]
    with_c = [("future", "9999"), ("late", "late"), ("late", "late"), ("no time", "no time")]
    for name in CHAINS:
        assert letters(outcome, name) == (pair_alone if name == "answers" else with_c), name
    assert matches(outcome, "one operator") == [("c", "g")]
    assert matches(outcome, "two operators") == [("c", "g")]
    assert matches(outcome, "answers") == [("c", "e")]
    late = [
        row["dead_letter"]["row"]
        for row in outcome.matches["two operators"]
        if row["dead_letter"] and row["dead_letter"]["reason"] == "late"
    ]
    assert sorted(row["name"] for row in late) == ["B", "C"]
    assert all(row["ts"].startswith("1970-01-01T00:00:1") for row in late)


@pytest.mark.slow
def test_of_rules(spark: SparkSession, tmp_path: Path) -> None:
    """There is a pass for each key, and each letter comes once."""
    outcome = run(spark, tmp_path, [course("rules", RULES)])
    assert letters(outcome, "rules") == [
        ("future", "9999"),
        *[("late", "late"), ("late", "late"), ("late", "late, and no variable takes it")],
        ("no time", "no time"),
    ]
    found = [row["rule"] for row in outcome.matches["rules"] if not row["dead_letter"]]
    assert found == ["by id"]


def test_what_cannot_be_kept(spark: SparkSession, tmp_path: Path) -> None:
    stream = spark.readStream.schema("ts timestamp, id long").parquet(str(tmp_path))
    query = "PATTERN a ; b WHERE [id] WITHIN 5 seconds RETURN a.id AS dead_letter"
    with pytest.raises(OptionError, match=r"there is no column `note` \(dead_letters=\)"):
        cep.match(stream, query, time="ts", dead_letters=["note"])
    with pytest.raises(OptionError, match="RETURN has a column called `dead_letter`"):
        cep.match(stream, query, time="ts", dead_letters=True)
    table = spark.createDataFrame([], "ts long, id long")
    for data in (table, pa.table({"ts": [1], "id": [2]})):
        with pytest.raises(OptionError, match="dead_letters= is for streams"):
            cep.match(data, "PATTERN a ; b WITHIN 5", time="ts", dead_letters=True)
