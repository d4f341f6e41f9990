"""Answers on streams of Spark: those of the whole data, each once, also after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import cepheid as cep
from tests.spark.streaming_harness import Course, run_twice

ROWS = 48
EVENTS = pa.table(
    {
        "ts": [*range(ROWS), 1000],
        "name": [*(["A", "B", "C", "B"] * (ROWS // 4)), "filler"],
        "k": [n // 4 % 3 for n in range(ROWS + 1)],
        "g": [[0.0, -0.0, 1.5, None][n % 4] for n in range(ROWS + 1)],
    }
)
OPTIONS = {"time": "ts", "type": "name"}
CROSSING = """
    PATTERN A a ; B b WHERE [k] WITHIN 20 GROUP BY b.g, HOP(10, 15)
    RETURN b.g, window_end, count(*) AS n, last(a.k) AS k, count(DISTINCT a.k) AS keys
"""
OTHERS = {
    "events": "FROM C c GROUP BY TUMBLE(3) RETURN window_end, count(*) AS n, sum(c.k) AS total",
    "open at its end": """PATTERN C c ; B b ; !A a WHERE [k] WITHIN 3 GROUP BY b.k, SESSION(6)
        RETURN b.k, window_start, window_end, count(*) AS n""",
    "range": "FROM A a GROUP BY a.k, RANGE(30) HAVING count(*) > 1 RETURN a.k, count(*) AS n",
}


def parts(table: pa.Table) -> list[pa.Table]:
    """Files; the last one moves time on."""
    return [table.slice(0, 20), table.slice(20, ROWS - 20), table.slice(ROWS)]


def written(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(str(sorted(row.items())) for row in rows)


def test_groups_of_many_keys(spark: SparkSession, tmp_path: Path) -> None:
    """With a restart after the first file, and a row that comes too late."""
    first, second, last = parts(EVENTS)
    late = EVENTS.slice(1, 1)
    options = {**OPTIONS, "dead_letters": True, "buckets": 2}
    files = [first, pa.concat_tables([late, second]), last]
    rows = run_twice(spark, tmp_path, [Course("", CROSSING, files, options)]).matches[""]
    letters = [letter for row in rows if (letter := row.pop("dead_letter")) is not None]
    assert [(letter["reason"], letter["row"]["ts"]) for letter in letters] == [("late", 1)]
    expected = cep.match(EVENTS, CROSSING, **OPTIONS).to_pylist()
    assert len(expected) > 10
    answers = [row for row in rows if row["match_end"] is not None]
    assert written(answers) == written(expected)


@pytest.mark.slow
def test_other_windows(spark: SparkSession, tmp_path: Path) -> None:
    courses = [Course(name, text, parts(EVENTS), OPTIONS) for name, text in OTHERS.items()]
    outcome = run_twice(spark, tmp_path, courses)
    for name, text in OTHERS.items():
        expected = cep.match(EVENTS, text, **OPTIONS).to_pylist()
        assert len(expected) > 3, name
        assert written(outcome.matches[name]) == written(expected), name


def stream(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").load().withColumn("x", F.lit(1))


REFUSED = [
    (
        "FROM a GROUP BY a.x RETURN count(*) AS n",
        {},
        r"add a window to GROUP BY, as in `TUMBLE\(1 hour\)`",
    ),
    (
        "PATTERN a => !b WHERE b.x > 1 WITHIN 1 hour GROUP BY TUMBLE(1 hour)",
        {},
        "no time bounds when a match of this query is known",
    ),
    ("FROM a GROUP BY TUMBLE(1 hour)", {"heartbeat": "1 second"}, "answers wait for the watermark"),
]


@pytest.mark.parametrize(("query", "options", "message"), REFUSED)
def test_refused(spark: SparkSession, query: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(cep.CepheidError, match=message):
        cep.match(stream(spark), query, time="timestamp", **options)
