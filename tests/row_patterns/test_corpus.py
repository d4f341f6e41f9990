"""The corpus of MATCH_RECOGNIZE, by feature: the oracle and the matcher return what it says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cepheid.errors import DataError
from cepheid.language.diagnostics import Source
from cepheid.row_patterns.bound import bind
from cepheid.row_patterns.clause import parse_recognition
from cepheid.row_patterns.recognize import recognize
from cepheid.row_patterns.syntax import Recognition, SortKey
from tests.row_patterns import oracle

FOLDER = Path(__file__).parent / "corpus"
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """`error` is what is said where nothing can be returned."""

    name: str
    clause: str
    rows: Rows
    columns: tuple[str, ...]
    returns: Rows
    error: str | None


def cases() -> list[Case]:
    blocks = [
        (path.stem, block)
        for path in sorted(FOLDER.glob("*.txt"))
        for block in path.read_text().split("\n\n")
        if block.startswith("name")
    ]
    return [_case(feature, block) for feature, block in blocks]


def _case(feature: str, block: str) -> Case:
    parts = dict(re.findall(r"^(\w+) *(.*(?:\n +.*)*)", block, re.MULTILINE))
    columns = tuple(parts["columns"].split())
    head, *lines = parts["returns"].splitlines()
    error = head.removeprefix("error").strip() if head.startswith("error") else None
    given = [row.split() for row in parts["rows"].split("|") if row.strip()]
    return Case(
        f"{feature}/{parts['name']}",
        parts["clause"],
        [dict(zip(columns, map(_value, row), strict=True)) for row in given],
        columns,
        [dict(zip(head.split(), map(_value, line.split()), strict=True)) for line in lines],
        error,
    )


def _value(text: str) -> Any:
    if text == "-":
        return None
    if text.startswith("["):
        return [_value(item) for item in text[1:-1].split(",")]
    try:
        return int(text)
    except ValueError:
        return float(text) if re.fullmatch(r"\d+\.\d+", text) else text


CASES = cases()


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    chosen: Case = request.param
    return chosen


def _type(case: Case, name: str) -> pa.DataType:
    return pa.string() if any(isinstance(r[name], str) for r in case.rows) else pa.int64()


def test_the_matcher(case: Case) -> None:
    schema = pa.schema([(name, _type(case, name)) for name in case.columns])
    source = Source(case.clause)
    bound = bind(parse_recognition(source), schema, source)
    table = pa.Table.from_pylist(case.rows, schema)
    if case.error is not None:
        with pytest.raises(DataError, match=case.error):
            recognize(bound, table, jit=False)
        return
    result = recognize(bound, table, jit=False)
    if case.returns:
        assert result.column_names == list(case.returns[0])
    assert result.to_pylist() == case.returns


def test_the_oracle(case: Case) -> None:
    recognition = parse_recognition(Source(case.clause))
    keys = [name for name, _ in recognition.partition]
    partitions: dict[tuple[Any, ...], Rows] = {}
    for row in case.rows:
        partitions.setdefault(tuple(row[k] for k in keys), []).append(row)
    if case.error is not None:
        with pytest.raises(oracle.NoSkip):
            _oracle(recognition, partitions)
        return
    assert _oracle(recognition, partitions) == case.returns


def _oracle(recognition: Recognition, partitions: dict[tuple[Any, ...], Rows]) -> Rows:
    return [
        row
        for rows in partitions.values()
        for row in oracle.recognize(recognition, _ordered(rows, recognition.order))
    ]


def _ordered(rows: Rows, order: tuple[SortKey, ...]) -> Rows:
    for key in reversed(order):
        first = not key.descending if key.nulls_first is None else key.nulls_first
        known = [row for row in rows if row[key.column] is not None]
        nulls = [row for row in rows if row[key.column] is None]
        known.sort(key=lambda row: row[key.column], reverse=key.descending)
        rows = [*nulls, *known] if first else [*known, *nulls]
    return rows
