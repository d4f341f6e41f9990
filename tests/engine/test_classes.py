"""Classes of long batches: a condition that several have is tested once, and what nothing reads any
more isn't copied."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid as cep
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
    holds, kept = classes._holds, classes._kept

    def counting(batch: pa.RecordBatch, condition: Any) -> Any:
        tested.append(repr(condition))
        return holds(batch, condition)

    def noting(rows: Any, batch: pa.RecordBatch, masks: Any) -> Any:
        copied.append(sorted(batch.schema.names))
        return kept(rows, batch, masks)

    whole = cep.match(events(), QUERY, time="ts", threads=1)
    monkeypatch.setattr(classes, "_holds", counting)
    monkeypatch.setattr(classes, "_kept", noting)
    assert cep.match(events(), QUERY, time="ts", threads=1) == whole
    assert whole.num_rows > 20
    assert len(tested) == 3  # x < 20, x > 90, and the kind
    assert copied == [["id", "x"]]
    tested.clear()
    monkeypatch.setattr(classes, "MANY", 2 * ROWS)
    assert cep.match(events(), QUERY, time="ts", threads=1) == whole
    assert len(tested) == 6
