"""What an interactive session shows of explanations and plans is a line."""

from __future__ import annotations

import pyarrow as pa

import cepheid as cep
from cepheid.planner.adapt import moved
from cepheid.statistics import Statistics

LONG = "PATTERN A a ; B b ; C c WHERE a.id = b.id AND " + " AND ".join(
    f"b.x <> {n}" for n in range(50)
)


def test_representations_are_short() -> None:
    explained = cep.Query(f"{LONG} WITHIN 1 hour").explain()
    rules = cep.RuleSet.of({f"r{n}": f"PATTERN A a WHERE a.x > {n}" for n in range(200)})
    columns = pa.schema({"ts": pa.int64(), "type": pa.string(), "x": pa.int64()})
    together = rules.explain(columns, time="ts", type="type")
    for thing in (explained, explained.planned, explained.planned.plan, together):
        assert len(repr(thing)) < 120 and "\n" not in repr(thing)
    assert repr(explained).startswith("Explanation('PATTERN A a ; B b ; C c WHERE a.id = b.id")
    assert repr(explained.planned.plan).endswith("over a, b, c)")


def test_one_hour_is_an_hour() -> None:
    lines = str(cep.Query("PATTERN A a ; B b WITHIN 1 hours").explain()).splitlines()
    assert "WITHIN 1 hour" in lines
    assert str(cep.Query("PATTERN A a ; B b WITHIN 2 hour").explain()).count("2 hours") == 2


def test_no_number_has_an_exponent() -> None:
    before, after = Statistics(rates={"a": 1.0}), Statistics(rates={"a": 4032.5})
    assert moved(before, after, 0.5) == "rate of a 1 → 4.0 k"
