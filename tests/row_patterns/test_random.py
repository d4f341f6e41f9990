"""Drawn clauses over drawn rows: the matcher returns what the oracle returns."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from cepheid.errors import DataError, QueryError
from cepheid.language.diagnostics import Source
from cepheid.row_patterns.bound import BoundRecognition, bind
from cepheid.row_patterns.clause import parse_recognition
from cepheid.row_patterns.recognize import recognize
from cepheid.row_patterns.syntax import Recognition, RowsPerMatch
from tests.examples import examples
from tests.row_patterns import oracle
from tests.row_patterns.clauses import draw_clause, draw_rows

_SCHEMA = pa.schema(
    [("k", pa.string()), ("s", pa.string()), *((name, pa.int64()) for name in "txyn")]
)


Rows = list[dict[str, Any]]
(_COUNT,) = parse_recognition(Source("MEASURES count(*) AS n PATTERN (A)")).measures
_ROW_SETS = 4
"""Each clause is tried over so many sets of rows: to parse it takes longer than to match."""


def engine(bound: BoundRecognition, rows: Rows) -> Rows:
    table = pa.Table.from_pylist(rows, _SCHEMA)
    return list(recognize(bound, table, jit=False).to_pylist())


def expected(recognition: Recognition, rows: Rows) -> Rows:
    keys = dict.fromkeys(row["k"] for row in rows)
    partitions = [
        sorted((row for row in rows if row["k"] == key), key=lambda row: row["t"]) for key in keys
    ]
    return [row for part in partitions for row in oracle.recognize(recognition, part)]


def _compare(seed: int) -> None:
    random = Random(seed)
    source = Source(draw_clause(random))
    recognition = parse_recognition(source)
    try:
        bound = bind(recognition, _SCHEMA, source)
    except QueryError as error:
        assert [finding.code for finding in error.diagnostics] == ["CEP626"]
        _never_goes_on(recognition, [draw_rows(random) for _ in range(_ROW_SETS)])
        return
    for _ in range(_ROW_SETS):
        rows = draw_rows(random)
        try:
            wanted = expected(recognition, rows)
        except oracle.NoSkip:
            with pytest.raises(DataError, match="AFTER MATCH SKIP TO"):
                engine(bound, rows)
        else:
            assert engine(bound, rows) == wanted, source.text


def _never_goes_on(recognition: Recognition, row_sets: list[Rows]) -> None:
    """AFTER MATCH SKIP TO goes to the first row of every match but empty ones."""
    counted = replace(recognition, measures=(_COUNT,), rows=RowsPerMatch.ONE)
    for rows in row_sets:
        with suppress(oracle.NoSkip):
            assert all(row["n"] == 0 for row in expected(counted, rows)), recognition


@pytest.mark.parametrize("block", range(10))
def test_matcher_returns_what_the_oracle_returns(block: int) -> None:
    for seed in range(examples("row patterns") // _ROW_SETS // 10):
        _compare(block * 1_000_000 + seed)


def test_compiled_kernels_return_the_same() -> None:
    """One clause whose conditions read rows taken before, compiled."""
    source = Source(
        "PARTITION BY k ORDER BY t MEASURES sum(B.x) AS s, FIRST(B.s) AS f PATTERN (A B+ C?) "
        "DEFINE B AS B.s >= A.s AND sum(B.x) < 6 AND LAST(B.n, 1) IS NULL, C AS C.x > avg(B.x)"
    )
    recognition = parse_recognition(source)
    bound = bind(recognition, _SCHEMA, source)
    random = Random(5)
    rows = [row for _ in range(8) for row in draw_rows(random)]
    for number, row in enumerate(rows):
        row["t"] = number
    wanted = expected(recognition, rows)
    assert wanted
    table = pa.Table.from_pylist(rows, _SCHEMA)
    assert recognize(bound, table, jit=True).to_pylist() == wanted
