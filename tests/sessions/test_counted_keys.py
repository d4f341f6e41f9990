"""`WITHIN n EVENTS` with a key in sessions: cut and resumed at random, as over the whole table."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import cepheid as cep

SCHEMA = pa.schema({"ts": pa.int64(), "type": pa.string(), "id": pa.float64()})
NAMED: dict[str, Any] = {"time": "ts", "type": "type", "jit": False}
PAIR = "WHERE [id] WITHIN 4 EVENTS"
QUERIES = (
    f"PATTERN A a ; B b {PAIR} RETURN a.ts AS a, b.ts AS b",
    f"PATTERN A a -> B b {PAIR} RETURN a.ts AS a, b.ts AS b",
    f"PATTERN A a ; B+ b {PAIR} RETURN a.ts AS a, count(b) AS b",
    f"PATTERN A a ; B b {PAIR} AFTER MATCH SKIP PAST LAST EVENT RETURN a.ts AS a, b.ts AS b",
    f"PATTERN A a ; !C c {PAIR} RETURN a.ts AS a",
    f"PATTERN A a ; B b {PAIR} GROUP BY TUMBLE(10) RETURN window_end, count(*) AS n",
    f"PATTERN A a ; B b {PAIR} GROUP BY a.id, SESSION(4) RETURN a.id, count(*) AS n",
)


def in_some_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(str, rows))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("query", QUERIES)
def test_as_over_the_whole_table(query: str, seed: int) -> None:
    draw = random.Random(seed)
    rows = [
        {
            "ts": n // (1 + seed % 2),
            "type": draw.choice("ABC"),
            "id": draw.choice([0.0, -0.0, 1.5, float("nan"), None]),
        }
        for n in range(60)
    ]
    events = pa.Table.from_pylist(rows, SCHEMA)
    expected = cep.match(events, query, **NAMED).to_pylist()
    session, found, begin = cep.open(query, SCHEMA, **NAMED), [], 0
    while begin < events.num_rows:
        size = draw.randint(1, 5)
        pushed = session.push(events.slice(begin, size))
        ends = pushed["match_end"].to_pylist()
        assert ends == sorted(ends)
        found += pushed.to_pylist()
        begin += size
        if draw.random() < 0.3:
            session = cep.resume(query, SCHEMA, session.save(), **NAMED)
    found += session.close().to_pylist()
    assert expected
    assert in_some_order(found) == in_some_order(expected)
    assert session.status.matches == len(expected)


def test_an_answer_comes_with_a_heartbeat() -> None:
    session = cep.open(QUERIES[5], SCHEMA, **NAMED)
    session.push([{"ts": 1, "type": "A", "id": 1.0}, {"ts": 2, "type": "B", "id": 1.0}])
    assert session.advance(9).num_rows == 0
    assert session.advance(10)["n"].to_pylist() == [1]
