"""Conditions as intervals, for several rules at once; by hand, or by comparing values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cepheid.algebra.expressions import Attribute, Varying
from cepheid.algebra.values import constant
from cepheid.engine.arrays.interner import Interner
from cepheid.engine.arrays.ordered_codes import HIGHEST, LOWEST, disordered, ordered
from cepheid.engine.attribution.parameters import RuleParameters
from cepheid.engine.merged.intervals import Boxes, boxes
from cepheid.engine.merged.paths import NoPath, path_of
from cepheid.options import Options
from cepheid.query import Query

SCHEMA = pa.schema({"ts": pa.int64(), "x": pa.int64(), "y": pa.float64(), "s": pa.string()})
DOUBLES = (-math.inf, -1.5, -0.0, 0.0, 5e-324, 2.5, math.inf, math.nan)


def boxes_of(condition: str, interner: Interner | None = None, **parameters: list[Any]) -> Boxes:
    """Of a condition on event `a`; every parameter has a value for each rule."""
    columns = {name: pa.array(values) for name, values in parameters.items()}
    given = {}
    for name, values in columns.items():
        example = constant(values.drop_null()[0].as_py())
        assert example is not None
        given[name] = Varying(example.value, example.type, name)
    query = Query(f"PATTERN a WHERE {condition}").bind(SCHEMA, Options("ts", params=given))
    length = len(next(iter(columns.values()))) if columns else 1
    conditions = path_of(query).steps[0].conditions
    return boxes(conditions, RuleParameters(length, columns), interner or Interner())


def bounds(found: Boxes, rule: int) -> list[dict[str, tuple[int, int]]]:
    """The boxes of a rule: of every column that is bound, the lowest and the highest value."""
    names = [c.expression.name for c in found.columns if isinstance(c.expression, Attribute)]
    return [
        {
            name: (int(found.low[box, j]), int(found.high[box, j]))
            for j, name in enumerate(names)
            if found.bound[box, j]
        }
        for box in np.flatnonzero(found.rule == rule)
    ]


def test_a_condition_on_a_parameter_that_is_null_is_none() -> None:
    found = boxes_of("(:p IS NULL OR a.x = :p) AND a.x <= 9", p=[3, None])
    assert bounds(found, 0) == [{"x": (3, 3)}]
    assert bounds(found, 1) == [{"x": (LOWEST, 9)}]
    found = boxes_of("(:p IS NULL OR a.x = :p)", p=[3, None])
    assert bounds(found, 1) == [{}]


@pytest.mark.parametrize("condition", ["a.x = :p", "a.x <> :p", "NOT (a.x = :p)", "a.x < :p"])
def test_comparing_with_null_is_never_true(condition: str) -> None:
    found = boxes_of(condition, p=[None, 3])
    assert bounds(found, 0) == []
    assert bounds(found, 1) != []


def test_conjunctions_are_cut_and_contradictions_are_gone() -> None:
    found = boxes_of("a.x >= :low AND a.x < :high AND a.x <> 5", low=[1, 4, 5], high=[4, 7, 6])
    assert bounds(found, 0) == [{"x": (1, 3)}]
    assert bounds(found, 1) == [{"x": (4, 4)}, {"x": (6, 6)}]
    assert bounds(found, 2) == []


def test_disjunctions_are_alternatives() -> None:
    found = boxes_of("(a.x < :p OR a.y = 0.0) AND a.x > 0", p=[3, 1])
    zero = int(ordered(np.array([0.0]))[0])
    assert bounds(found, 0) == [{"x": (1, 2)}, {"x": (1, HIGHEST), "y": (zero, zero)}]
    assert bounds(found, 1) == [{"x": (1, HIGHEST), "y": (zero, zero)}]
    found = boxes_of("NOT (a.x < :p OR a.x IN (7, :q))", p=[6, 8], q=[9, None])
    assert bounds(found, 0) == [
        {"x": (6, 6)},
        {"x": (8, 8)},
        {"x": (10, HIGHEST)},
    ]
    assert bounds(found, 1) == []  # not in (7, NULL) is never true


def test_nothing_is_beyond_the_ends_of_the_integers() -> None:
    ends = [LOWEST, HIGHEST]
    assert [len(bounds(boxes_of("a.x < :p", p=ends), n)) for n in (0, 1)] == [0, 1]
    assert [len(bounds(boxes_of("a.x > :p", p=ends), n)) for n in (0, 1)] == [1, 0]
    found = boxes_of("a.x <> :p", p=ends)
    assert bounds(found, 0) == [{"x": (LOWEST + 1, HIGHEST)}]
    assert bounds(found, 1) == [{"x": (LOWEST, HIGHEST - 1)}]
    found = boxes_of("a.x <= :p", p=ends)
    assert bounds(found, 0) == [{"x": (LOWEST, LOWEST)}]


def rank(value: float) -> tuple[bool, float]:
    """Spark's order: NaN equals itself and is above everything, -0.0 equals 0.0."""
    return (True, 0.0) if math.isnan(value) else (False, value)


COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@pytest.mark.parametrize("operator", COMPARED)
def test_doubles_compare_as_in_spark(operator: str) -> None:
    found = boxes_of(f"a.y {operator} :f", f=list(DOUBLES))
    codes = ordered(np.array(DOUBLES))
    for rule, limit in enumerate(DOUBLES):
        own = bounds(found, rule)
        inside = [any(b["y"][0] <= code <= b["y"][1] for b in own) for code in codes.tolist()]
        expected = [COMPARED[operator](rank(value), rank(limit)) for value in DOUBLES]
        assert inside == expected, (limit, operator)


def test_doubles_keep_their_order_as_integers() -> None:
    codes = ordered(np.array(DOUBLES))
    steps = np.diff(codes)
    assert steps[2] == 0 and (np.delete(steps, 2) > 0).all()
    assert codes[-1] < HIGHEST
    assert codes[0] > LOWEST
    back = disordered(codes)
    assert np.array_equal(back, np.array(DOUBLES), equal_nan=True)


def test_texts_are_equal_by_their_codes() -> None:
    interner = Interner()
    found = boxes_of("a.s = :s OR a.s = 'u'", interner, s=["u", "v"])
    ((code, _),) = (b["s"] for b in bounds(found, 0)[:1])
    own = [b["s"] for b in bounds(found, 1)]
    assert (code, code) in own and len(set(own)) == 2


def test_too_many_alternatives_are_refused() -> None:
    few = " AND ".join(f"(a.x < {n} OR a.y < {n}.5)" for n in range(4))
    assert len(boxes_of(few).rule) == 16
    many = " AND ".join(f"(a.x < {n} OR a.y < {n}.5)" for n in range(5))
    with pytest.raises(NoPath, match="alternatives"):
        boxes_of(many)
