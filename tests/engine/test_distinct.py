"""DISTINCT over large groups: against numpy, compiled, and in time."""

from __future__ import annotations

import os
import time

import numpy as np
import pyarrow as pa
import pytest

import cepheid as cep
from tests.examples import LONG

GROUPS, SIZE = 60, 1000
PLACES = {
    "HAVING": "WHERE [g] HAVING {n} > 5 WITHIN 2000 RETURN {n} AS n",
    "WHERE": "WHERE [g] AND b.x < 200 + {n} WITHIN 2000 RETURN {n} AS n",
}


def table(groups: int) -> pa.Table:
    rows = groups * (SIZE + 2)
    random = np.random.default_rng(7)
    x = random.integers(0, 100, rows)
    return pa.table(
        {
            "ts": np.arange(rows),
            "type": np.tile(np.array(["A"] + ["B"] * SIZE + ["C"]), groups),
            "g": np.repeat(np.arange(groups), SIZE + 2),
            "x": x,
            "y": random.integers(0, 30, rows) / 4,
            "s": [f"port {n}" for n in x],
        }
    )


def query(place: str, aggregate: str) -> str:
    return f"PATTERN A a ; B+ b ; C c {PLACES[place].format(n=aggregate)}"


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("place", "column", "compiled"),
    [
        ("HAVING", "x", "tree"),
        ("HAVING", "y", "nfa"),
        ("HAVING", "s", "tree"),
        ("WHERE", "x", "nfa"),
        ("WHERE", "y", "tree"),
        ("WHERE", "s", "nfa"),
    ],
)
def test_large_groups_have_as_many_values_as_numpy_finds(
    place: str, column: str, compiled: str
) -> None:
    """The other engine runs as plain Python; in a long run it is compiled, too."""
    events = table(5)
    values = np.array(events[column].to_pylist()).reshape(5, SIZE + 2)[:, 1:-1]
    expected = [len(np.unique(group)) for group in values]
    asked = query(place, f"count(DISTINCT b.{column})")
    for engine in ("tree", "nfa"):
        jit = engine == compiled or LONG in os.environ
        found = cep.match(events, asked, time="ts", type="type", engine=engine, jit=jit)
        assert found["n"].to_pylist() == expected


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["tree", "nfa"])
@pytest.mark.parametrize("place", PLACES)
def test_distinct_takes_at_most_three_times_the_time_of_count(place: str, engine: str) -> None:
    events = table(GROUPS)

    def seconds(aggregate: str) -> float:
        asked, taken = query(place, aggregate), []
        for _ in range(5):
            began = time.process_time()
            cep.match(events, asked, time="ts", type="type", engine=engine)
            taken.append(time.process_time() - began)
        return min(taken)

    for column in "xy":
        plain, distinct = seconds(f"count(b.{column})"), seconds(f"count(DISTINCT b.{column})")
        print(f"{place} {engine} {column}: {distinct / plain:.2f} times count")
        assert distinct < 3 * plain
