"""Which predicates a row satisfies, against testing all of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from cepheid.algebra.expressions import Attribute
from cepheid.algebra.types import Type
from cepheid.engine.arrays.columns import Column
from cepheid.engine.arrays.ordered_codes import HIGHEST, LOWEST
from cepheid.engine.merged.dag import Predicates
from cepheid.engine.merged.index import Index, index_of
from cepheid.engine.merged.intervals import Boxes
from cepheid.kernels import load
from cepheid.kernels.templates.merged import MIXED

Ints = NDArray[np.int64]


def columns(*names: str) -> tuple[Column, ...]:
    return tuple(Column(Attribute("", name, Type.INTEGER)) for name in names)


def random_boxes(
    random: np.random.Generator, count: int, names: str, equal: float, open_: tuple[float, float]
) -> Boxes:
    """Of values from 0 to 9; some of the columns have to equal one, some have no lower or no upper
    bound, with these shares."""
    shape = (count, len(names))
    low = random.integers(0, 10, shape)
    high = low + np.where(random.random(shape) < equal, 0, random.integers(1, 6, shape))
    ranged = low < high
    low = np.where((random.random(shape) < open_[0]) & ranged, LOWEST, low)
    high = np.where((random.random(shape) < open_[1]) & ranged, HIGHEST, high)
    bound = random.random(shape) < 0.6
    rules = np.arange(count)
    return Boxes(columns(*names), rules, low, high, bound)


def inside(boxes: Boxes, box: int, row: dict[str, int | None]) -> bool:
    for j, column in enumerate(boxes.columns):
        assert isinstance(column.expression, Attribute)
        value = row[column.expression.name]
        if boxes.bound[box, j] and (
            value is None or not boxes.low[box, j] <= value <= boxes.high[box, j]
        ):
            return False
    return True


def satisfied(
    index: Index, predicates: Predicates, rows: list[dict[str, int | None]], jit: bool
) -> list[list[int]]:
    names = [c.expression.name for c in predicates.columns if isinstance(c.expression, Attribute)]
    cells = np.array([[row[name] or 0 for name in names] for row in rows])
    known = np.array([[row[name] is not None for name in names] for row in rows])
    begins, found = index.satisfied(cells, known, jit)
    return [sorted(found[begins[n] : begins[n + 1]].tolist()) for n in range(len(rows))]


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize(
    ("equal", "open_", "sides"),
    [
        (0.0, (1.0, 0.1), {1}),
        (0.3, (1.0, 0.1), {1}),
        (0.3, (0.1, 1.0), {0}),
        (0.9, (0.1, 0.1), set()),
    ],
)
def test_a_row_satisfies_what_it_is_inside_of(
    equal: float, open_: tuple[float, float], sides: set[int], jit: bool
) -> None:
    """`sides`: by which of their bounds the predicates of large buckets are sorted; upper is 1."""
    random = np.random.default_rng(5)
    predicates = Predicates()
    parts = [random_boxes(random, 150, names, equal, open_) for names in ("xy", "zyx", "wxyz")]
    given = [predicates.of(part) for part in parts]
    numbers = [predicates.settled[own] for own in given]
    index = index_of(predicates)
    sorted_ = index.places[:, 2] >= 0
    assert sides <= set(index.places[sorted_, 3].tolist())
    rows: list[dict[str, int | None]] = [
        {n: None if random.random() < 0.1 else int(random.integers(0, 10)) for n in "wxyz"}
        for _ in range(60)
    ]
    expected = [
        sorted(
            {
                int(own[box])
                for part, own in zip(parts, numbers, strict=True)
                for box in range(len(own))
                if inside(part, box, row)
            }
        )
        for row in rows
    ]
    assert any(expected)
    assert satisfied(index, predicates, rows, jit) == expected


def test_kinds_with_equal_hashes_are_kept_apart() -> None:
    """A row satisfies each of its predicates once."""
    mixed: Callable[..., int] = load(MIXED, False)
    first, second = mixed(0, 0), mixed(1, 1)
    one, other = max(0, second - first), max(0, first - second)
    assert mixed(first, one) == mixed(second, other)
    for x, y in ((one, other), (other, one)):  # whichever kind is the first
        equal = np.array([[x, 0], [0, y]])
        boxes = Boxes(columns("x", "y"), np.arange(2), equal, equal, np.eye(2, dtype=np.bool_))
        predicates = Predicates()
        predicates.of(boxes)
        index = index_of(predicates)
        assert satisfied(index, predicates, [{"x": x, "y": y}], False) == [[0, 1]]


def test_equal_predicates_are_one() -> None:
    """Whatever else their boxes have columns for, and in whatever order."""
    one = Boxes(
        columns("x", "y"),
        np.arange(3),
        np.array([[1, 5], [1, 0], [1, 5]]),
        np.array([[1, 9], [1, 0], [1, 9]]),
        np.array([[True, True], [True, False], [True, True]]),
    )
    other = Boxes(
        columns("z", "y", "x"),
        np.arange(2),
        np.array([[3, 5, 1], [3, 5, 1]]),
        np.array([[3, 9, 1], [3, 9, 1]]),
        np.array([[False, True, True], [True, True, True]]),
    )
    predicates = Predicates()
    both, x_alone, again = predicates.of(one).tolist()
    assert both == again != x_alone
    same, more = predicates.of(other).tolist()
    assert same == both
    assert more not in (both, x_alone)
    assert len(predicates) == 3


def test_a_predicate_without_intervals_is_always_satisfied() -> None:
    none = np.zeros((2, 1), np.int64)
    predicates = Predicates()
    boxes = Boxes(columns("x"), np.arange(2), none, none, np.array([[False], [True]]))
    given = predicates.of(boxes)
    always, zero = predicates.settled[given].tolist()
    index = index_of(predicates)
    rows: list[dict[str, int | None]] = [{"x": 0}, {"x": 1}, {"x": None}]
    assert satisfied(index, predicates, rows, False) == [sorted((always, zero)), [always], [always]]
