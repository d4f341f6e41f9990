"""What a merged automaton holds, and that batches don't matter to it."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cepheid.engine.merged.group import RuleGroup, matches
from cepheid.engine.merged.machine import FIRST, Machine
from cepheid.options import Options
from cepheid.rules import RuleSet
from cepheid.rules.compile.compiled_rules import compile_rules

EVENTS = 6_000


@pytest.fixture(scope="module")
def events() -> pa.Table:
    random = np.random.default_rng(3)
    return pa.table(
        {
            "ts": np.cumsum(random.integers(0, 3, EVENTS)) - 2_000,
            "k": random.integers(0, 5, EVENTS),
            "x": random.integers(0, 20, EVENTS),
            "s": pa.array([f"text {n}" for n in random.integers(0, 900, EVENTS)]),
        }
    )


def group(query: str, rows: dict[str, list[Any]], events: pa.Table) -> RuleGroup:
    rules = RuleSet.from_template("r", query, rows)
    (found,) = compile_rules(rules.templates, events.schema, Options("ts")).groups
    return found


def held(own: RuleGroup, events: pa.Table, size: int) -> tuple[int, int]:
    """The most events and instances that are held after a batch."""
    machine = Machine(own.merged, events.schema, jit=False)
    rows = instances = 0
    for batch in events.to_batches(max_chunksize=size):
        for _ in machine.push(batch):
            pass
        rows, instances = max(rows, machine.rows), max(instances, machine.instances)
    return rows, instances


def test_rules_of_one_event_hold_the_batch_alone(events: pa.Table) -> None:
    own = group("PATTERN a WHERE a.x > :low RETURN a.ts", {"low": [3, 9]}, events)
    rows, instances = held(own, events, 100)
    assert 0 < rows <= 100
    assert instances == 0


def test_what_is_held_follows_the_window(events: pa.Table) -> None:
    query = "PATTERN a ; b ; c WHERE [k] AND a.x < :low AND c.x > 18 WITHIN 60 RETURN a.ts"
    rows, instances = held(group(query, {"low": [1, 2]}, events), events, 200)
    # About a window of 60 events and a batch; instances of two steps for each pair of events.
    assert 0 < rows < 400
    assert 0 < instances < 4_000


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_batches_do_not_matter(events: pa.Table, size: int) -> None:
    query = (
        "PATTERN a ; !n ; b WHERE a.s = b.s AND a.x < :low AND n.x = :low "
        "WITHIN 50 RETURN a.ts AS t, b.ts AS u"
    )
    own = group(query, {"low": [5, 12]}, events)
    schema = pa.schema(
        {
            "rule": pa.string(),
            "match_start": pa.int64(),
            "match_end": pa.int64(),
            "match": pa.string(),
        }
    )
    rules = pa.table({"rule": ["one", "other"]})
    part = events.slice(0, 2_000)

    def found(chunk: int) -> Counter[str]:
        batches = iter(part.to_batches(max_chunksize=chunk))
        tables = list(matches(own, rules, schema, batches, jit=False))
        return Counter(str(row) for table in tables for row in table.to_pylist())

    whole = found(1 << 20)
    assert len(whole) > 10
    assert found(size) == whole


@pytest.mark.parametrize("jit", [False, True])
def test_one_batch_may_bring_more_than_there_is_room_for(jit: bool) -> None:
    random = np.random.default_rng(4)
    keys, values = random.integers(0, 3, (2, 1_500)).tolist()
    events = pa.table({"ts": range(1_500), "k": keys, "x": values})
    query = (
        "PATTERN a ; b ; c WHERE [k] AND a.x = :x AND c.x = 2 "
        "WITHIN 30 RETURN a.ts AS a, b.ts AS b, c.ts AS c"
    )
    own = group(query, {"x": [0, 1]}, events)
    alike = [
        [j for j in range(i + 1, min(i + 30, 1_500)) if keys[j] == keys[i]] for i in range(1_500)
    ]
    expected = Counter(
        (values[a], a, b, c)
        for a in range(1_500)
        if values[a] < 2
        for b, c in combinations(alike[a], 2)
        if values[c] == 2
    )
    (batch,) = events.to_batches()
    found = list(Machine(own.merged, events.schema, jit=jit).push(batch))
    rows = [
        (int(rule), row["a"], row["b"], row["c"])
        for own_found in found
        for rule, row in zip(own_found.rules, own_found.matches.to_pylist(), strict=True)
    ]
    assert len(expected) > 10 * FIRST
    assert Counter(rows) == expected
