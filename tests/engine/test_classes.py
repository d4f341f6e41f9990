"""Classes of long batches: a condition that several have is tested once, and what nothing reads any
more isn't copied."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.algebra.expressions import Attribute, Call, Constant
from cepheid.algebra.types import Type
from cepheid.engine.arrays.vector import ARROW
from cepheid.engine.rows import classes

ROWS = 3 * classes.MANY
QUERY = """
PATTERN s ; t ; b WHERE [id] AND s.x < 20 AND t.x < 20 AND b.x > 90 AND [kind = 'k'] WITHIN 9
RETURN s.x AS one, t.x AS other
"""


def events() -> pa.Table:
    random = np.random.default_rng(5)
    return pa.table(
        {
            "ts": np.arange(ROWS) // 4,
            "id": random.integers(0, 3, ROWS),
            "x": random.uniform(0, 100, ROWS),
            "kind": np.array(["k", "l", None])[random.integers(0, 3, ROWS)],
        }
    )


def test_a_condition_of_several_classes_is_tested_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tested: list[str] = []
    copied: list[list[str]] = []
    holds, of_many, kept = classes._holds, classes._holds_of_many, classes._kept

    def counting(batch: pa.RecordBatch, condition: Any) -> Any:
        tested.append(repr(condition))
        return holds(batch, condition)

    def counting_of_many(batch: pa.RecordBatch, condition: Any) -> Any:
        tested.append(repr(condition))
        return of_many(batch, condition)

    def noting(rows: Any, batch: pa.RecordBatch, masks: Any) -> Any:
        copied.append(sorted(batch.schema.names))
        return kept(rows, batch, masks)

    whole = cep.match(events(), QUERY, time="ts", threads=1)
    monkeypatch.setattr(classes, "_holds_of_many", counting_of_many)
    monkeypatch.setattr(classes, "_kept", noting)
    assert cep.match(events(), QUERY, time="ts", threads=1) == whole
    assert whole.num_rows > 20
    assert len(tested) == 3  # x < 20, x > 90, and the kind
    assert copied == [["id", "x"]]
    tested.clear()
    monkeypatch.setattr(classes, "MANY", 2 * ROWS)
    monkeypatch.setattr(classes, "_holds", counting)
    assert cep.match(events(), QUERY, time="ts", threads=1) == whole
    assert len(tested) == 6


@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">="])
@pytest.mark.parametrize("values", [[1.5, float("nan"), None, -0.0, 2.0], [1, None, 2, 3, 0]])
def test_numbers_compare_with_constants_as_in_arrow(operator: str, values: list[Any]) -> None:
    """NaN is above every number, and NULL makes no condition true."""
    kind = Type.FLOAT if isinstance(values[0], float) else Type.INTEGER
    batch = pa.record_batch({"x": pa.array([9, *values, 9], type=ARROW[kind])}).slice(1, 5)
    for value in (0, 1, 2):
        typed = float(value) if kind is Type.FLOAT else value
        arguments = (Attribute("a", "x", kind), Constant(typed, kind))
        condition = Call(operator, arguments, Type.BOOLEAN)
        few, many = classes._holds(batch, condition), classes._holds_of_many(batch, condition)
        assert few.tolist() == many.tolist()
