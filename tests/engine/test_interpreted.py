"""Conditions that kernels can't express: derived columns, and operators as plain Python."""

from __future__ import annotations

import pyarrow as pa
import pytest

import cepheid as cep
from tests.examples import in_turn

EVENTS = pa.table(
    {
        "ts": [1, 2, 3, 4, 5, 6],
        "type": ["A", "B", "B", "A", "B", "C"],
        "s": ["ab", "abc", "AB", None, "b", "zz"],
        "x": [3.5, -2.0, 9.0, 1.0, 4.0, 0.25],
    }
)


@pytest.fixture(autouse=True)
def compiled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for few rows."""
    monkeypatch.setattr("cepheid.engine.run.COMPILE_AT", 0)


def pairs(condition: str, pattern: str = "A a ; B b") -> list[tuple[int, int]]:
    query = f"PATTERN {pattern} WHERE {condition} WITHIN 9 RETURN a.ts AS a, b.ts AS b"
    first, *others = (
        cep.match(EVENTS, query, time="ts", type="type", jit=jit).select(["a", "b"])
        for jit in in_turn((False, True), condition)
    )
    assert all(other == first for other in others)
    return sorted(tuple(row.values()) for row in first.to_pylist())


@pytest.mark.some(5)
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("upper(a.s) = b.s", [(1, 3)]),
        ("length(a.s) < length(b.s)", [(1, 2)]),
        ("a.s < b.s", [(1, 2), (1, 5)]),
        ("b.s LIKE concat(a.s, '%')", [(1, 2)]),
        ("b.s CONTAINS a.s OR a.s CONTAINS b.s", [(1, 2), (1, 5)]),
        ("starts_with(b.s, a.s) AND b.x < a.x", [(1, 2)]),
        ("substring(b.s, 1, 2) = a.s", [(1, 2)]),
        ("power(a.x, 2) > b.x AND b.s IS NOT NULL AND b.s <> a.s", [(1, 2), (1, 3), (1, 5)]),
        ("greatest(a.x, b.x) = 9", [(1, 3)]),
        ("coalesce(a.s, 'b') = b.s", [(4, 5)]),
        ("CASE WHEN b.x > 5 THEN a.x ELSE b.x END = 3.5", [(1, 3)]),
        ("round(a.x - b.x) = 6", [(1, 2)]),
        ("sqrt(b.x) = 3", [(1, 3)]),
        ("a.x / (b.x - 4) > 0", [(1, 3)]),
        ("b.x % 5 = 4 AND a.s IS NULL", [(4, 5)]),
    ],
)
def test_pairs(condition: str, expected: list[tuple[int, int]]) -> None:
    assert pairs(condition) == expected


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [
        ("A a ; !B b ; C c WHERE b.s CONTAINS a.s", "a.ts", [4]),
        ("A a ; B+ b ; C c WHERE b.s < c.s AND b.s > a.s", "collect(b.ts)", [[2, 5]]),
        ("A a ; B+ b ; C c WHERE min(b.s) = 'AB'", "a.ts", [1]),
    ],
)
def test_negations_and_closures(pattern: str, value: str, expected: list[object]) -> None:
    query = f"PATTERN {pattern} WITHIN 9 RETURN {value} AS value"
    for jit in in_turn((False, True), f"{value} {pattern}"):
        found = cep.match(EVENTS, query, time="ts", type="type", jit=jit)
        assert found["value"].to_pylist() == expected
