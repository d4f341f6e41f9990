"""Nested columns of every kind of data in this process, of several streams, and of rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import cepheid as cep
from cepheid.algebra.nested_columns import extract
from cepheid.language.attribute_paths import Element, Field
from tests.cli.running import run

ROWS: list[dict[str, Any]] = [
    {"ts": 1, "type": "A", "request": {"ip": "u", "port": 80}, "tags": ["x", "y"], "n": 1},
    {"ts": 2, "type": "B", "request": {"ip": "v", "port": 80}, "tags": [], "n": 2},
    {"ts": 3, "type": "B", "request": {"ip": "u", "port": 22}, "tags": ["x"], "n": 3},
    {"ts": 4, "type": "B", "request": None, "tags": None, "n": 4},
]
EVENTS = pa.Table.from_pylist(ROWS)
QUERY = """
    PATTERN A a ; B b WHERE [request.ip] AND a.tags CONTAINS 'y' AND b.request.port < 80 WITHIN 10
    RETURN b.request.ip, b.tags[0] AS tag, b.tags[1] AS other, b.n
"""
FOUND = [{"ip": "u", "tag": "x", "other": None, "n": 3, "match_start": 1, "match_end": 3}]


@pytest.mark.parametrize(
    "data",
    [
        EVENTS,
        pd.DataFrame(ROWS),
        pl.DataFrame(ROWS),
        pl.DataFrame(ROWS).lazy(),
        ds.dataset(EVENTS),
        EVENTS.to_batches(max_chunksize=2),
        EVENTS.slice(0, 1).to_batches() + EVENTS.slice(1).to_batches(),
    ],
    ids=["table", "pandas", "polars", "lazy", "dataset", "batches", "slices"],
)
def test_every_frame(data: Any) -> None:
    found = cep.match(data, QUERY, time="ts", type="type")
    if isinstance(found, pl.LazyFrame):
        found = found.collect()
    if isinstance(found, pd.DataFrame):
        found = pa.Table.from_pandas(found)
    if isinstance(found, pa.RecordBatchReader):
        found = found.read_all()
    assert (found.to_dicts() if isinstance(found, pl.DataFrame) else found.to_pylist()) == FOUND


STREAMS = {
    "A": pa.table({"ts": [1], "r": [{"ip": "u", "n": 1}]}),
    "B": pa.table({"ts": [2, 3], "r": [{"ip": "u", "port": 22}, {"ip": "v", "port": 23}]}),
}


@pytest.mark.parametrize("iterators", [False, True])
def test_streams_whose_structs_differ(iterators: bool) -> None:
    query = (
        "PATTERN A a ; B b WHERE [r.ip] AND a.r.n < b.r.port WITHIN 10 RETURN b.r.port, a.r.port q"
    )
    data: Any = {n: iter(t.to_batches()) if iterators else t for n, t in STREAMS.items()}
    found = cep.match(data, query, time="ts")
    rows = found.read_all() if iterators else found
    assert rows.select(["port", "q"]).to_pylist() == [{"port": 22, "q": None}]


def test_a_column_of_the_paths_name_is_taken_first() -> None:
    events = pa.table({"ts": [1, 2], "r.ip": ["u", "v"], "r": [{"ip": "v"}, {"ip": "u"}]})
    for attribute in ("a.r.ip", "a.`r.ip`"):
        found = cep.match(events, f"PATTERN a WHERE {attribute} = 'u'", time="ts")
        assert found["match_end"].to_pylist() == [1]
        assert found["a"].to_pylist() == [events.to_pylist()[0]]


def test_whole_events_have_no_columns_for_paths() -> None:
    found = cep.match(EVENTS, "PATTERN A a WHERE a.request.ip = 'u'", time="ts", type="type")
    assert found["a"].to_pylist() == ROWS[:1]
    star = cep.match(
        EVENTS, "PATTERN A a WHERE a.request.ip = 'u' RETURN a.*", time="ts", type="type"
    )
    assert star.column_names[:-2] == EVENTS.column_names


def test_paths_in_matches_that_other_queries_read() -> None:
    queries = [
        "INTO Pair PATTERN A a ; B b WHERE [request.ip] WITHIN 10 RETURN a.request, b.n",
        "INTO Late PATTERN Pair p ; B c WHERE c.n > p.n AND p.request.port = 80 WITHIN 10 "
        "RETURN c.n",
    ]
    found = cep.match(EVENTS, queries, time="ts", type="type")
    assert found["Late"]["n"].to_pylist() == [4]


def test_rules() -> None:
    rest = "WITHIN 10 RETURN b.n"
    rules = {
        "keyed": f"PATTERN A a ; B b WHERE [request.ip] {rest}",
        "u": f"PATTERN A a ; B b WHERE a.request.ip = 'u' AND b.request.ip = 'v' {rest}",
        "v": f"PATTERN A a ; B b WHERE a.request.ip = 'v' AND b.request.ip = 'u' {rest}",
        "tags": "PATTERN B b WHERE b.tags CONTAINS 'x' RETURN b.tags",
    }
    found = cep.RuleSet.of(rules).match(EVENTS, time="ts", type="type")
    rows = {(row["rule"], row["match_end"], row["match"]) for row in found.to_pylist()}
    assert rows == {("keyed", 3, '{"n":3}'), ("u", 2, '{"n":2}'), ("tags", 3, '{"tags":["x"]}')}


def test_statistics_and_explanations() -> None:
    statistics = cep.analyze(EVENTS, QUERY, time="ts", type="type")
    assert statistics.distinct["a.request.ip"] == 1
    text = str(cep.Query(QUERY).explain(EVENTS, time="ts", type="type"))
    assert "WHERE [request.ip] AND a.tags CONTAINS 'y' AND b.request.port < 80" in text
    assert "key: request.ip" in text


def test_lines_of_json_from_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "events.json"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    query = tmp_path / "q.cep"
    query.write_text(QUERY)
    arguments = ["run", str(query), "--input", str(file), "--time", "ts", "--type", "type"]
    output = tmp_path / "found.json"
    assert run(*arguments, "--output", str(output)) == 0
    assert [json.loads(line) for line in output.read_text().splitlines()] == FOUND


NESTED = pa.array([[{"p": 1}, None], None, [], [{"p": 2}, {"p": None}]])


@pytest.mark.parametrize(
    ("array", "steps", "expected"),
    [
        (NESTED, [Element(0), Field("p")], [1, None, None, 2]),
        (NESTED.slice(3), [Element(1), Field("p")], [None]),
        (NESTED.slice(1), [Field("p")], [None, [], [2, None]]),
        (NESTED, [Field("p"), Element(0)], [1, None, None, 2]),
        (NESTED, [Element(9)], [None] * 4),
        (pa.array([[1, 2], None], pa.list_(pa.int32(), 2)), [Element(1)], [2, None]),
        (pa.array([[1, 2], None], pa.large_list(pa.int8())), [Element(1)], [2, None]),
        (pa.array([[(7, "a")], []], pa.map_(pa.int32(), pa.string())), [Element(7)], ["a", None]),
        (pa.array([[("k", None)]], pa.map_(pa.string(), pa.int64())), [Element("k")], [None]),
        (pa.array([{"a": {"b": 3}}, {"a": None}, None]), [Field("a"), Field("b")], [3, None, None]),
        (NESTED.slice(0, 0), [Element(0), Field("p")], []),
    ],
)  # fmt: skip
def test_extraction(array: pa.Array, steps: list[Any], expected: list[Any]) -> None:
    assert extract(array, steps).to_pylist() == expected
    chunks = pa.chunked_array([array.slice(0, 1), array.slice(1)], array.type)
    assert extract(chunks, steps).to_pylist() == expected
