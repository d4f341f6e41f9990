"""Drawn combinations have the share of all combinations, which brute force knows."""

from __future__ import annotations

from hashlib import blake2b
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.algebra.types import Type
from cepheid.engine.sampling import observe, targets
from cepheid.engine.sampling.sketches import value_hashes
from cepheid.engine.sampling.targets import Targets

WINDOW = 20


def bursts(rows: int = 300, seed: int = 3) -> pa.Table:
    """Quiet times and bursts, with different values: a draw that takes every last event as often
    as another gets the share of combinations wrong."""
    random = np.random.default_rng(seed)
    busy = random.random(rows) < 0.5
    ts = np.cumsum(np.where(np.repeat(busy[: rows // 30], 30), 1, 15))
    x = np.where(np.repeat(busy[: rows // 30], 30), random.random(rows), random.random(rows) / 4)
    return pa.table({"ts": ts, "name": random.choice(["A", "B", "C"], rows), "x": x})


def share(table: pa.Table, query: str, text: str) -> float:
    bound = cep.Query(query).bind(table.schema, time="ts", type="name")
    batch = table.combine_chunks().to_batches()[0]
    random = np.random.default_rng(1)
    sample = observe(targets(bound), batch, (0, 1), random)
    for _ in range(8):
        sample = sample.merge(observe(targets(bound), batch, (0, 1), random))
    return sample.shares[text].share


def rows(table: pa.Table, name: str) -> list[tuple[int, int, float]]:
    """Place, time and x of the events of a type."""
    return [
        (n, row["ts"], row["x"]) for n, row in enumerate(table.to_pylist()) if row["name"] == name
    ]


def fits(*times: int) -> bool:
    return max(times) - min(times) < WINDOW


def test_sequence() -> None:
    table = bursts()
    pairs = [
        (a, b)
        for a, b in product(rows(table, "A"), rows(table, "B"))
        if a[1] < b[1] and fits(a[1], b[1])
    ]
    want = sum(a[2] + b[2] > 0.8 for a, b in pairs) / len(pairs)
    query = f"PATTERN A a ; B b WHERE a.x + b.x > 0.8 WITHIN {WINDOW}"
    assert 0.1 < want < 0.9
    assert share(table, query, "(a.x + b.x) > 0.8") == pytest.approx(want, abs=0.015)


def test_conjunction_in_any_order_of_different_events() -> None:
    table = bursts()
    pairs = [
        (a, b)
        for a, b in product(rows(table, "A"), rows(table, "A"))
        if a[0] != b[0] and fits(a[1], b[1])
    ]
    want = sum(abs(a[2] - b[2]) < 0.02 for a, b in pairs) / len(pairs)
    query = f"PATTERN A a & A b WHERE abs(a.x - b.x) < 0.02 WITHIN {WINDOW}"
    assert 0.02 < want < 0.3
    assert share(table, query, "abs(a.x - b.x) < 0.02") == pytest.approx(want, abs=0.01)


def test_three_variables() -> None:
    table = bursts()
    triples = [
        (a, b, c)
        for a, b, c in product(*(rows(table, n) for n in "ABC"))
        if a[1] < b[1] < c[1] and fits(a[1], c[1])
    ]
    want = sum(a[2] + b[2] > c[2] for a, b, c in triples) / len(triples)
    query = f"PATTERN A a ; B b ; C c WHERE a.x + b.x > c.x WITHIN {WINDOW}"
    assert share(table, query, "(a.x + b.x) > c.x") == pytest.approx(want, abs=0.015)


def test_first_and_last_of_three() -> None:
    """Only what a conjunct reads is drawn."""
    table = bursts()
    query = f"PATTERN A a ; B b ; C c WHERE a.x < c.x WITHIN {WINDOW}"
    pairs = [
        (a, c)
        for a, c in product(rows(table, "A"), rows(table, "C"))
        if a[1] < c[1] and fits(a[1], c[1])
    ]
    want = sum(a[2] < c[2] for a, c in pairs) / len(pairs)
    assert share(table, query, "a.x < c.x") == pytest.approx(want, abs=0.015)


def test_time_spans() -> None:
    """Half of the window is about half of the pairs, if events come evenly."""
    table = pa.table({"ts": range(400), "name": ["A", "B"] * 200})
    query = "PATTERN A a ; B b WHERE (a, b) OCCURS WITHIN 20 WITHIN 40"
    (text,) = (c.text for j in wanted(table, query).joints for c in j.conditions)
    assert share(table, query, text) == pytest.approx(0.5, abs=0.03)


def wanted(table: pa.Table, query: str) -> Targets:
    return targets(cep.Query(query).bind(table.schema, time="ts", type="name"))


def test_what_is_tried() -> None:
    """Conjuncts about complete groups, and between branches that exclude each other, are not."""
    table = bursts()
    query = """
        PATTERN A a ; B+ b ; C c WHERE a.x > 0.5 AND b.x > a.x AND sum(b.x) < c.x
            AND b.x > PREV(b.x) WITHIN 9"""
    found = wanted(table, query)
    assert [c.text for c in found.classes["a"]] == ["a.x > 0.5"]
    assert [c.text for j in found.joints for c in j.conditions] == ["b.x > a.x"]
    query = "PATTERN (A a | B b) ; C c WHERE a.x = c.x AND a.x = b.x WITHIN 9"
    found = wanted(table, query)
    assert [c.text for j in found.joints for c in j.conditions] == ["a.x = c.x"]
    assert [f"{a.variable}.{a.name}" for a in found.columns] == ["a.x", "c.x"]
    query = "PATTERN A a ; !B b ; C c WHERE b.x < c.x WITHIN 9"
    found = wanted(table, query)
    assert [(j.variables, sorted(j.before)) for j in found.joints] == [(("b", "c"), [("b", "c")])]


def test_hashes_are_the_same_everywhere() -> None:
    """Also as dictionaries, and for numbers that are equal but not written alike."""
    strings = pa.array(["x", "y", "x"])
    hashes = value_hashes(strings, Type.STRING)
    assert hashes.tolist() == value_hashes(strings.dictionary_encode(), Type.STRING).tolist()
    assert hashes[0] == hashes[2] != hashes[1]
    floats = value_hashes(pa.array([0.0, -0.0, float("nan"), -float("nan")]), Type.FLOAT)
    assert floats[0] == floats[1] != floats[2] == floats[3]
    # Not by Python's hash, which changes from process to process.
    assert hashes[0] == int.from_bytes(blake2b(b"x", digest_size=8).digest()) >> 2
