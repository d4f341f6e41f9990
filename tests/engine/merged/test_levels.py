"""Nested limits that share the weakest of them; the limits by hand."""

from __future__ import annotations

import numpy as np
import pytest

from cepheid.engine.arrays.ordered_codes import HIGHEST, LOWEST
from cepheid.engine.merged.intervals import Boxes
from cepheid.engine.merged.levels import SHARING, leveled
from tests.engine.merged.test_intervals import bounds, boxes_of


def limits(found: Boxes, column: str) -> list[tuple[int, int]]:
    """Of each box, in order."""
    return [bounds(found, rule)[0][column] for rule in found.rule.tolist()]


def test_limits_share_the_weakest() -> None:
    below = boxes_of("a.x < :p", p=[3, 9, 5])
    shared, level = leveled(below, 3)
    assert limits(shared, "x") == [(LOWEST, 8)] * 3
    assert level is not None
    values, rules = np.array([2, 4, 4, 4]), np.array([0, 0, 1, 2])
    assert level.holds(values, rules).tolist() == [True, False, True, True]


def test_only_so_many_share_one() -> None:
    above = boxes_of("a.x >= :p", p=[*range(100, 100 - SHARING - 1, -1), 100])
    shared, _ = leveled(above, SHARING + 2)
    lows = [low for low, _ in limits(shared, "x")]
    # Sorted from the weakest, the last one is left over, twice.
    assert lows == [100, *[100 - SHARING] * SHARING, 100]


def test_those_that_ask_for_other_things_stay_apart() -> None:
    both = boxes_of("a.s = :s AND a.x > :p", s=["u", "v", "u"], p=[1, 2, 3])
    shared, _ = leveled(both, 3)
    assert [low for low, _ in limits(shared, "x")] == [2, 3, 2]


def test_each_part_of_a_condition_is_as_wide() -> None:
    two = boxes_of("a.s <> :s AND a.x > :p", s=["u", "u", "u"], p=[1, 2, 3])
    shared, level = leveled(two, 3)
    assert len(shared.rule) == 6
    assert {low for low, _ in limits(shared, "x")} == {2}
    assert level is not None and level.low.tolist() == [2, 3, 4]


@pytest.mark.parametrize(
    "condition",
    [
        "a.x = :p",
        "a.x BETWEEN :p AND 9",
        "a.x > :p OR a.y > 1.5",
        "a.x > 3",
        "a.x > :p AND a.y < :q",
    ],
)
def test_nothing_else_is_nested(condition: str) -> None:
    given = {"p": [1, 2], "q": [0.5, 1.5]}
    read = {name: values for name, values in given.items() if f":{name}" in condition} or {"p": [1]}
    found = boxes_of(condition, **read)
    shared, level = leveled(found, 2)
    assert level is None and shared is found


def test_the_column_with_more_limits_is_taken() -> None:
    found = boxes_of("a.x > :p AND a.y < :q", p=[1, 1, 1, 2], q=[1.0, 2.0, 3.0, 3.0])
    shared, level = leveled(found, 4)
    assert level is not None and str(level.column.expression).find("'y'") >= 0
    assert [low for low, _ in limits(shared, "x")] == [2, 2, 2, 3]


def test_of_others_nothing_is_asked_later() -> None:
    """The first rule has two ranges, the others a limit each: their lower range is empty."""
    found = boxes_of("a.x <> :p AND a.x >= :q", p=[2, 1, 3], q=[1, 2, 3])
    shared, level = leveled(found, 3)
    assert level is not None
    values = np.array([0, 1, 3, 9])
    assert level.holds(values, np.zeros(4, np.int64)).all()
    assert level.holds(values, np.full(4, 1)).tolist() == [False, False, True, True]
    assert level.holds(values, np.full(4, 2)).tolist() == [False, False, False, True]
    assert [bounds(shared, 0), bounds(shared, 2)] == [
        [{"x": (1, 1)}, {"x": (3, HIGHEST)}],
        [{"x": (2, HIGHEST)}],
    ]
