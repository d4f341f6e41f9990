"""Machines that have a share of the keys each find what one machine finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cepheid.engine.attribution.json_rows import alert_schema
from cepheid.engine.merged import group as groups
from cepheid.options import Options
from cepheid.rules import RuleSet
from cepheid.rules.compile.compiled_rules import compile_rules

RULES = RuleSet.from_template(
    "rise",
    "PATTERN A a ; !C c ; B b WHERE [key] AND b.x > a.x + :by WITHIN :w units RETURN a.n, b.n AS m",
    {"by": [0, 1, 2, 2], "w": [9, 30, 30, 60]},
)
KEYS = {
    "integers": lambda keys: pa.array(keys, pa.int32()),
    "texts": lambda keys: pa.array([None if k is None else f"key {k}" for k in keys]),
    "floats": lambda keys: pa.array(keys, pa.float64()),
}


def events(count: int, kind: str) -> pa.Table:
    random = np.random.default_rng(3)
    keys = [None if key == 0 else int(key) for key in random.integers(0, 9, count)]
    return pa.table(
        {
            "n": np.arange(count),
            "ts": np.arange(count) // 2,
            "type": pa.array(random.choice(["A", "B", "C"], count)),
            "key": KEYS[kind](keys),
            "x": random.integers(0, 5, count),
        }
    )


def found(table: pa.Table, sizes: int) -> Counter[tuple[Any, ...]]:
    options = Options("ts", type="type", tie="n")
    compiled = compile_rules(RULES.templates, table.schema, options, by_key=True)
    (group,) = compiled.groups
    assert group.key == "key"
    schema = alert_schema(compiled.rules, pa.int64())

    def batches() -> Iterator[pa.RecordBatch]:
        for begin in range(0, table.num_rows, sizes):
            part = table.select(group.required).slice(begin, sizes)
            yield from part.combine_chunks().to_batches()

    rows = (
        row
        for batch in groups.matches(group, compiled.rules, schema, batches(), jit=False)
        for row in batch.to_pylist()
    )
    return Counter(tuple(row.values()) for row in rows)


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("sizes", [150, 1000])
def test_shares_find_the_same(monkeypatch: pytest.MonkeyPatch, kind: str, sizes: int) -> None:
    table = events(600, kind)
    want = found(table, sizes)
    made: list[int] = []

    class Counted(groups.Machine):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            made.append(1)

    monkeypatch.setattr(groups, "SHARE", 50)
    monkeypatch.setattr(groups, "Machine", Counted)
    assert found(table, sizes) == want
    assert sum(want.values()) > 50
    assert len(made) == (1 if kind == "floats" else min(16, min(sizes, 600) // 50))
