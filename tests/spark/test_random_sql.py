"""Drawn clauses of MATCH_RECOGNIZE through Spark itself: the rows that the oracle returns.

A clause runs over many partitions at once, and several clauses are one statement: what a query
costs on Spark is its start.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid as cep
from cepheid.errors import QueryError
from cepheid.language.diagnostics import Source
from cepheid.row_patterns.bound import bind
from cepheid.row_patterns.clause import parse_recognition
from cepheid.row_patterns.syntax import Recognition
from tests.examples import examples
from tests.row_patterns import oracle
from tests.row_patterns.clauses import draw_clause, draw_endless_clause, draw_rows
from tests.spark.streaming_harness import read, write
from tests.streaming.test_row_buckets import SCHEMA, decided

Rows = list[dict[str, Any]]
Partitions = dict[str, Rows]

TOGETHER = 10
"""Clauses of one statement."""

ROW_SETS = 30


@dataclass(frozen=True)
class Drawn:
    """A clause, and what it returns of the partitions over which it can run to its end."""

    text: str
    recognition: Recognition
    returns: dict[str, list[tuple[int, dict[str, Any]]]]

    def query(self, number: int) -> str:
        keys = ", ".join(f"'{key}'" for key in self.returns)
        table = f"(SELECT * FROM events WHERE k IN ({keys}))"
        return (
            f"SELECT {number} AS clause, to_json(struct(m.*), map('ignoreNullFields', 'false')) "
            f"AS found FROM {table} MATCH_RECOGNIZE ({self.text}) m"
        )


def partitions(random: Random) -> Partitions:
    drawn: Partitions = {}
    for number in range(ROW_SETS):
        for row in draw_rows(random):
            key = f"{number}{row['k']}"
            drawn.setdefault(key, []).append({**row, "k": key})
    return drawn


def recognized(text: str, rows: Partitions, endless: bool) -> Drawn | None:
    """None, if the clause is refused, or none of the partitions has a result."""
    source = Source(text)
    recognition = parse_recognition(source)
    try:
        bind(recognition, SCHEMA, source)
    except QueryError:  # which is tested elsewhere
        return None
    returns: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for key, part in rows.items():
        ordered = sorted(part, key=lambda row: row["t"])
        try:
            if endless:
                returns[key] = oracle.single_rows(recognition, ordered)
            else:
                returns[key] = [(0, row) for row in oracle.recognize(recognition, ordered)]
        except oracle.NoSkip:
            continue
    return Drawn(text, recognition, returns) if any(returns.values()) else None


def draw(random: Random, rows: Partitions, endless: bool) -> Iterator[Drawn]:
    while True:
        text = draw_endless_clause(random) if endless else draw_clause(random)
        drawn = recognized(text, rows, endless)
        if drawn is not None:
            yield drawn


def table_of(rows: Rows) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


def plain(rows: Rows) -> list[str]:
    """As they compare: NULL elements of arrays and whole doubles look alike after JSON."""
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


@pytest.mark.essential
def test_random_clauses(spark: Any) -> None:
    for block in range(examples("row patterns on Spark") // TOGETHER):
        random = Random(block)
        rows = partitions(random)
        clauses = list(islice(draw(random, rows, endless=False), TOGETHER))
        frame = spark.createDataFrame(table_of([row for part in rows.values() for row in part]))
        statement = " UNION ALL ".join(c.query(n) for n, c in enumerate(clauses))
        found: list[Rows] = [[] for _ in clauses]
        for number, row in cep.sql(statement, {"events": frame}).collect():
            found[number].append(json.loads(row))
        for clause, returned in zip(clauses, found, strict=True):
            wanted = [row for part in clause.returns.values() for _, row in part]
            assert plain(returned) == plain(wanted), clause.text


@pytest.mark.slow
def test_random_clauses_over_streams(spark: Any, tmp_path: Path) -> None:
    """Rows come in files; in the end, time goes far on: with rows of a key that each clause reads,
    since what a WHERE in front of it drops moves no time."""
    random = Random(18)
    rows = partitions(random)
    arriving = sorted((row for part in rows.values() for row in part), key=lambda row: row["t"])
    cuts = [0, *sorted(random.sample(range(1, len(arriving)), 4)), len(arriving)]
    parts = [arriving[begin:end] for begin, end in pairwise(cuts)]
    late = [{**arriving[0], "k": "last", "t": 10_000 * n} for n in (1, 2)]
    drawn = draw(random, {**rows, "last": late}, endless=True)
    clauses = list(islice((clause for clause in drawn if "last" in clause.returns), 4))
    write([table_of(part) for part in (*parts, *([row] for row in late))], tmp_path / "in")
    statement = " UNION ALL ".join(clause.query(n) for n, clause in enumerate(clauses))
    query = (
        cep.sql(statement, {"events": read(spark, tmp_path / "in", SCHEMA)})
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    cep.wait(query)
    found: list[dict[str, Rows]] = [defaultdict(list) for _ in clauses]
    for row in pq.read_table(tmp_path / "out").to_pylist():
        match = json.loads(row["found"])
        found[row["clause"]][match["k"]].append(match)
    for clause, returned in zip(clauses, found, strict=True):
        for key, part in rows.items():
            expected = clause.returns.get(key, [])
            matches = sorted(returned[key], key=lambda row: row["m5"])
            assert matches == [row for _, row in expected][: len(matches)], clause.text
            starts = [start for start, _ in expected]
            assert len(matches) >= decided(clause.recognition, len(part), starts), clause.text
