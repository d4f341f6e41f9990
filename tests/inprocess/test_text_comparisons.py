"""Texts that look like numbers: comparing them gives a warning, wherever that can be seen."""

from __future__ import annotations

import warnings

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.inprocess.text_comparisons import compared_by_order
from cepheid.language import parse


@pytest.mark.parametrize("condition", ["b.x > a.x", "b.X <= a.x", "a.x < b.y"])
def test_a_comparison_of_texts_that_are_numbers_is_told(condition: str) -> None:
    table = pa.table({"t": [1, 2], "x": ["9", "10"], "y": ["8", "11"]})
    with pytest.warns(UserWarning, match="compares texts that look like numbers.*cast the columns"):
        cep.match(table, f"PATTERN a ; b WHERE {condition} WITHIN 5", time="t")


def test_elements_of_a_group_are_compared_too() -> None:
    query = parse("PATTERN a ; b+ ; c WHERE b.x > PREV(b.x) AND max(b.x) < c.y WITHIN 5")
    assert compared_by_order(query) == {
        "b.x > prev(b.x)": frozenset({"x"}),
        "max(b.x) < c.y": frozenset({"x", "y"}),
    }


@pytest.mark.parametrize(
    ("condition", "texts"),
    [
        ("b.x = a.x", ["9", "10"]),
        ("b.x > '5'", ["9", "10"]),
        ("length(b.x) > length(a.x)", ["9", "10"]),
        ("b.x > a.x", ["nine", "ten"]),
    ],
)
def test_others_are_not(condition: str, texts: list[str]) -> None:
    table = pa.table({"t": [1, 2], "x": texts})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cep.match(table, f"PATTERN a ; b WHERE {condition} WITHIN 5", time="t")
