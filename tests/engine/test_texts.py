"""Conditions on the texts of several events: compiled, and as Python compares texts."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.engine.arrays.interner import Interner
from cepheid.engine.rows.text_heap import TextHeap
from cepheid.kernels import load

TEXTS = [
    *("", "a", "ab", "b", "aé", "é", "éa", "Z", "a%", "%", "_", "a_", "\\%", "%a%", "é_", "漢字"),
    *("%字", "\\", "a\\", "\U0001f600b", "_b", "%%", "ab%b"),
]


def like(text: str, pattern: str) -> bool:
    parts = re.findall(r"\\.|\\$|[^\\]", pattern, re.DOTALL)
    forms = {"%": ".*", "_": "."}
    found = "".join(forms.get(p) or re.escape(p[-1]) for p in parts)
    return re.fullmatch(found, text, re.DOTALL) is not None


CONDITIONS: dict[str, Callable[[str, str], bool]] = {
    "a.s < b.s": lambda x, y: x < y,
    "a.s <= b.s": lambda x, y: x <= y,
    "a.s > b.s": lambda x, y: x > y,
    "a.s >= b.s": lambda x, y: x >= y,
    "a.s LIKE b.s": like,
    "a.s CONTAINS b.s": lambda x, y: y in x,
    "starts_with(a.s, b.s)": lambda x, y: x.startswith(y),
    "ends_with(a.s, b.s)": lambda x, y: x.endswith(y),
    "greatest(a.s, b.s) = b.s AND a.s IS NOT NULL": lambda x, y: x <= y,
    "least(a.s, b.s) <> 'a' AND least(a.s, b.s) < 'b' AND a.s = a.s AND b.s = b.s": lambda x, y: (
        "a" != min(x, y) < "b"
    ),
    "coalesce(a.s, b.s) < CASE WHEN a.s = b.s THEN 'é' ELSE b.s END": lambda x, y: (
        x < ("é" if x == y else y)
    ),
}


@pytest.fixture(autouse=True)
def compiled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for few rows."""
    monkeypatch.setattr("cepheid.engine.run.COMPILE_AT", 0)


def pairs(batches: list[pa.RecordBatch], condition: str, jit: bool) -> set[tuple[str, str]]:
    query = f"PATTERN A a ; B b WHERE {condition} WITHIN 1000 RETURN a.s, b.s AS t"
    found = cep.match(iter(batches), query, time="ts", type="type", jit=jit).read_all()
    return {(row["s"], row["t"]) for row in found.to_pylist()}


def events() -> pa.Table:
    texts: list[str | None] = [None, *TEXTS, None, *reversed(TEXTS)]
    kinds = ["A"] * (len(TEXTS) + 1) + ["B"] * (len(TEXTS) + 1)
    return pa.table({"ts": np.arange(len(texts)), "type": kinds, "s": texts})


@pytest.mark.some(6)
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("jit", [False, True])
def test_texts_of_two_events(condition: str, jit: bool) -> None:
    want = {(x, y) for x, y in product(TEXTS, TEXTS) if CONDITIONS[condition](x, y)}
    table = events()
    assert pairs(table.to_batches(), condition, jit) == want
    if not jit:
        assert pairs(table.to_batches(max_chunksize=3), condition, jit) == want


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("max(b.s) > a.s", [["é", "a"], ["b"]]),
        ("min(b.s) = 'a'", [["é", "a"]]),
        ("max(DISTINCT b.s) <> min(b.s)", [["é", "a"]]),
        ("b.s >= max(b.s)", [["é"], ["b"]]),
    ],
)
def test_the_least_and_the_greatest_of_a_group(
    condition: str, expected: list[list[str]], jit: bool
) -> None:
    table = pa.table(
        {
            "ts": range(9),
            "type": ["A", "B", "B", "B", "C", "A", "B", "C", "D"],
            "s": ["b", "é", None, "a", "z", "", "b", "z", "z"],
        }
    )
    query = f"PATTERN A a ; B+ b ; C c WHERE {condition} WITHIN 5 RETURN collect(b.s) AS s"
    found = cep.match(table, query, time="ts", type="type", jit=jit)["s"].to_pylist()
    assert [[text for text in texts if text is not None] for texts in found] == expected


@pytest.mark.parametrize("word", ["LIKE", "ILIKE"])
@pytest.mark.parametrize("pattern", [*TEXTS, r"%\\a", r"a\\%", r"%\%%", r"%\_", r"\\%", r"%\\%"])
def test_patterns_of_one_event(pattern: str, word: str) -> None:
    texts = [*TEXTS, "x\\a", "x\\\\a", "a\\b", "a_", "b\n%"]
    table = pa.table({"ts": range(len(texts)), "s": texts})
    literal = pattern.replace("'", "''")
    query = f"PATTERN a WHERE a.s {word} '{literal}' RETURN a.s"
    wanted = [text for text in texts if like(text, pattern) or (
        word == "ILIKE" and like(text.lower(), pattern.lower()))]  # fmt: skip
    assert cep.match(table, query, time="ts")["s"].to_pylist() == wanted


def test_places_after_texts_are_forgotten() -> None:
    interner = Interner()
    heap = TextHeap(interner)
    codes = np.array([interner.code(text) for text in ("b", "", "ab", "a")])
    first = heap.places(codes)
    assert heap.places(codes[::-1]).tolist() == first[::-1].tolist()
    assert heap.bytes.tobytes().count(b"ab") == 1
    interner.forget([int(codes[2])])
    heap.clear()
    (place,) = heap.places(codes[2:3])
    order = load("\n\nkernel = text_order\n", False)
    assert heap.bytes.tobytes() == b"ab" and order(heap.bytes, place, place) == 0


@pytest.mark.slow
def test_texts_take_less_than_five_times_as_long_as_numbers() -> None:
    numbers = np.random.default_rng(1).integers(0, 10**6, 40_000)
    table = pa.table(
        {
            "ts": np.arange(len(numbers)),
            "type": np.random.default_rng(2).choice(["A", "B"], len(numbers)),
            "x": numbers,
            "s": [f"k{n:07}" for n in numbers],
        }
    )
    ratios = {}
    of_pairs = ("{b}.{c} < {a}.{c}", "greatest({a}.{c}, {b}.{c}) = {a}.{c}")
    of_groups = ("{b}.{c} > PREV({b}.{c})", "max({b}.{c}) > {a}.{c}", "{b}.{c} >= max({b}.{c})")
    for of in (*of_pairs, *of_groups):
        closure = of in of_groups
        pattern = "A a ; B+ b ; A c" if closure else "A a ; B b"
        rest = "a.x < 100000 AND c.x < 20000 WITHIN 100" if closure else "a.x < 50000 WITHIN 900"
        took = {}
        for column in ("x", "s"):
            condition = of.format(a="a", b="b", c=column)
            query = f"PATTERN {pattern} WHERE {condition} AND {rest} RETURN a.ts AS t"
            took[column] = min(_seconds(table, query) for _ in range(4))
        ratios[of] = took["s"] / took["x"]
    assert max(ratios.values()) < 5, ratios


def _seconds(table: pa.Table, query: str) -> float:
    begin = time.perf_counter()
    assert cep.match(table, query, time="ts", type="type").num_rows
    return time.perf_counter() - begin
