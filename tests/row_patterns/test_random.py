"""Drawn clauses over drawn rows: the matcher returns what the oracle returns."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from cepheid.errors import DataError
from cepheid.language.diagnostics import Source
from cepheid.row_patterns.bound import bind
from cepheid.row_patterns.clause import parse_recognition
from cepheid.row_patterns.recognize import column_types, recognize
from tests.examples import examples
from tests.row_patterns import oracle
from tests.row_patterns.clauses import draw_clause, draw_rows

_SCHEMA = pa.schema([("k", pa.string()), *((name, pa.int64()) for name in "txyn")])


def engine(clause: str, rows: list[dict[str, Any]], jit: bool = False) -> list[dict[str, Any]]:
    table = pa.Table.from_pylist(rows, _SCHEMA)
    source = Source(clause)
    bound = bind(parse_recognition(source), column_types(table.schema), source)
    return list(recognize(bound, table, jit).to_pylist())


def expected(clause: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    recognition = parse_recognition(Source(clause))
    keys = dict.fromkeys(row["k"] for row in rows)
    partitions = [
        sorted((row for row in rows if row["k"] == key), key=lambda row: row["t"]) for key in keys
    ]
    return [row for part in partitions for row in oracle.recognize(recognition, part)]


def _compare(seed: int) -> None:
    random = Random(seed)
    clause, rows = draw_clause(random), draw_rows(random)
    try:
        wanted = expected(clause, rows)
    except oracle.NoSkip:
        with pytest.raises(DataError, match="AFTER MATCH SKIP TO"):
            engine(clause, rows)
        return
    assert engine(clause, rows) == wanted, clause


@pytest.mark.parametrize("block", range(20))
def test_matcher_returns_what_the_oracle_returns(block: int) -> None:
    for seed in range(examples("row patterns") // 20):
        _compare(block * 1_000_000 + seed)
