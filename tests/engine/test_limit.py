"""LIMIT: what is read, searched and held once matches are enough."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.engine.run import Engine
from cepheid.options import Options
from cepheid.planner import prepare
from cepheid.query import Query

KEYS, TIMES = 1000, 100


def stream(text: bool = False) -> pa.Table:
    """Every key has 100 events, spread over the data."""
    random = np.random.default_rng(5)
    ids = np.concatenate([random.permutation(KEYS) for _ in range(TIMES)])
    return pa.table(
        {
            "ts": np.arange(len(ids)),
            "type": np.array(["A", "B"])[random.integers(0, 2, len(ids))],
            "id": [f"user {i}" for i in ids] if text else ids,
        }
    )


def engine_of(text: str, schema: pa.Schema) -> Engine:
    query = Query(text).bind(schema, Options(time="ts", type="type"))
    return prepare(query, Options(time="ts", type="type")).engine(schema, jit=True)


def batches(table: pa.Table, taken: list[int], size: int = 500) -> Iterator[pa.RecordBatch]:
    """The batches of a table; `taken` are the numbers of those that were asked for."""
    for number, batch in enumerate(table.to_batches(max_chunksize=size)):
        taken.append(number)
        yield batch


@pytest.mark.parametrize("pattern", ["A a ; B b WITHIN 5000", "A a -> B b WITHIN 5000"])
def test_an_iterator_is_read_until_the_matches_are_enough(pattern: str) -> None:
    table, taken = stream(), list[int]()
    found = cep.match(
        pa.RecordBatchReader.from_batches(table.schema, batches(table, taken)),
        f"PATTERN {pattern} RETURN a.ts AS a LIMIT 3",
        time="ts",
        type="type",
    )
    rows = [row for batch in found for row in batch.to_pylist()]
    assert len(rows) == 3
    assert len(taken) < 5 < table.num_rows / 500


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("pattern", ["A a ; B b WITHIN 100000", "A a -> B b"])
def test_events_of_a_key_that_is_done_are_not_held(pattern: str, text: bool) -> None:
    table = stream(text)
    before, _, rest = pattern.partition(" WITHIN")
    window = f" WITHIN{rest}" if rest else ""
    query = f"PATTERN {before} WHERE [id]{window} RETURN a.id AS id LIMIT 1 PER KEY"
    engine = engine_of(query, table.schema)
    found: list[Any] = []
    for batch in table.to_batches(max_chunksize=1000):
        for matches in engine.push(batch):
            found += matches["id"].to_pylist()
    assert len(found) == len(set(found)) == KEYS
    assert engine.store.n < 20 * KEYS  # of 100,000


@pytest.mark.slow
def test_one_match_per_key_is_much_faster_than_all() -> None:
    """Both run twice, the first time to compile."""
    table = stream()
    seconds = {}
    for limit in ("", "LIMIT 1 PER KEY"):
        query = f"PATTERN A a ; B b WHERE [id] WITHIN 100000 RETURN a.ts AS a, b.ts AS b {limit}"
        for _ in range(2):
            begin = perf_counter()
            found = cep.match(table, query, time="ts", type="type")
            seconds[limit] = perf_counter() - begin
    assert found.num_rows == KEYS
    assert seconds[""] > 5 * seconds["LIMIT 1 PER KEY"]


def test_a_type_that_was_not_read_is_not_missed() -> None:
    """The C comes after the end of what is read."""
    table = pa.table({"ts": range(4000), "type": ["A"] * 3999 + ["C"]})
    found = cep.match(table, "PATTERN A a | C c LIMIT 1", time="ts", type="type")
    assert found.num_rows == 1


def test_matches_of_a_rule_are_limited_for_each_rule() -> None:
    table = pa.table({"ts": [1, 2, 3, 4], "type": ["A", "B", "A", "A"]})
    rules = cep.RuleSet.of(
        {"first": "PATTERN A a LIMIT 1", "all": "PATTERN A a", "b": "PATTERN B b"}
    )
    found = rules.match(table, time="ts", type="type")
    assert sorted(found["rule"].to_pylist()) == ["all", "all", "all", "b", "first"]
