from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cepheid.errors import DataError
from cepheid.options import Options
from cepheid.rules import RuleSet
from cepheid.rules.compile.compiled_rules import compile_rules
from cepheid.workloads import cayuga
from cepheid.workloads.cayuga import Parameters
from cepheid.workloads.chunks import CHUNK_ROWS

COUNT = 20_000


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return cayuga.rules(COUNT, seed=1).to_pylist()


def named(row: dict[str, Any], prefix: str) -> dict[int, Any]:
    """The attributes that a rule names, and their values."""
    return {n: row[f"{prefix}{n}"] for n in range(4) if row[f"{prefix}{n}"] is not None}


# ── events ──


def test_events_are_uniform() -> None:
    table = cayuga.generate(50_000, seed=1)
    assert table.schema == cayuga.SCHEMA
    assert table["ts"].to_pylist() == list(range(50_000))
    for name in cayuga.DISCRETE:
        counts = np.bincount(table[name].to_numpy(), minlength=100)
        assert len(counts) == 100 and counts.min() > 400 and counts.max() < 600
    for name in cayuga.CONTINUOUS:
        values = table[name].to_numpy()
        assert values.min() >= 0 and values.max() < 1
        assert np.mean(values < 0.3) == pytest.approx(0.3, abs=0.01)


def test_batches_are_the_table_and_the_seed_decides() -> None:
    size = CHUNK_ROWS + 3
    batches = list(cayuga.batches(size, seed=2))
    assert [batch.num_rows for batch in batches] == [CHUNK_ROWS, 3]
    assert pa.Table.from_batches(batches) == cayuga.generate(size, seed=2)
    assert cayuga.generate(9, seed=2) != cayuga.generate(9, seed=3)
    assert cayuga.rules(9, seed=2) == cayuga.rules(9, seed=2)
    assert cayuga.rules(9, seed=2) != cayuga.rules(9, seed=3)


# ── rules ──


def test_a_rule_names_two_discrete_and_two_continuous_attributes_a_step(
    rows: list[dict[str, Any]],
) -> None:
    starts = {round(k * 0.3 / 24, 9) for k in range(25)}
    for row in rows[:2_000]:
        ((primary, _),) = named(row, "p").items()
        for event in "abc":
            ((second, value),) = named(row, f"{event}_d").items()
            assert second != primary and 0 <= value < 100
            lows, highs = named(row, f"{event}_low"), named(row, f"{event}_high")
            assert len(lows) == 2 and lows.keys() == highs.keys()
            assert {round(low, 9) for low in lows.values()} <= starts
            for n, low in lows.items():
                assert highs[n] - low == pytest.approx(0.7) and highs[n] <= 1 + 1e-9


def test_attributes_and_values_follow_zipfs_law(rows: list[dict[str, Any]]) -> None:
    """With exponent 1, the second is half as frequent as the first, and so on."""
    primaries = Counter(next(iter(named(row, "p").items())) for row in rows)
    attributes, values = Counter[int](), Counter[int]()
    for (attribute, value), count in primaries.items():
        attributes[attribute] += count
        values[value] += count
    harmonic = 1 + 1 / 2 + 1 / 3 + 1 / 4
    for n in range(4):
        assert attributes[n] / COUNT == pytest.approx(1 / (n + 1) / harmonic, abs=0.015)
    hundred = sum(1 / k for k in range(1, 101))
    for n in (0, 1, 9):
        assert values[n] / COUNT == pytest.approx(1 / (n + 1) / hundred, abs=0.01)
    # The third step's exponent is 0.8.
    third = Counter(next(iter(named(row, "c_d").values())) for row in rows)
    flatter = sum(k**-0.8 for k in range(1, 101))
    assert third[0] / COUNT == pytest.approx(1 / flatter, abs=0.01)


def test_the_second_attribute_is_drawn_among_those_left(rows: list[dict[str, Any]]) -> None:
    """After 0, the others have the weights 1/2, 1/3 and 1/4: 6, 4 and 3 of 13."""
    seconds = Counter(next(iter(named(row, "a_d"))) for row in rows if row["p0"] is not None)
    for n, weight in ((1, 6), (2, 4), (3, 3)):
        assert seconds[n] / seconds.total() == pytest.approx(weight / 13, abs=0.02)


def test_a_first_step_may_name_the_primary_attribute_alone() -> None:
    for row in cayuga.rules(200, 1, Parameters(first_equalities=1)).to_pylist():
        assert named(row, "a_d") == {}
        assert len(named(row, "b_d")) == len(named(row, "c_d")) == 1


def test_selectivity_is_the_width_of_ranges() -> None:
    for row in cayuga.rules(50, 1, Parameters(selectivity=0.5)).to_pylist():
        lows, highs = named(row, "b_low"), named(row, "b_high")
        assert all(highs[n] - lows[n] == pytest.approx(0.5) for n in lows)


@pytest.mark.parametrize("bad", [{"selectivity": 1.1}, {"first_equalities": 3}])
def test_bad_parameters(bad: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        Parameters(**bad)


def test_negative_numbers_are_refused() -> None:
    with pytest.raises(DataError, match="must not be negative"):
        cayuga.rules(-1)


# ── templates ──


@pytest.mark.parametrize("name", cayuga.TEMPLATES)
@pytest.mark.parametrize("count", [1, 50])
def test_rules_of_every_template_are_merged(name: str, count: int) -> None:
    rules = RuleSet.from_template(name, cayuga.TEMPLATES[name], cayuga.rules(count))
    compiled = compile_rules(rules.templates, cayuga.SCHEMA, Options("ts"))
    assert len(compiled.groups) == 1 and not compiled.alone


ONE = {
    **{column: None for column in cayuga.rules(0).column_names},
    **{"p1": 7, "a_d0": 1, "b_d0": 2, "c_d0": 3, "a_low0": 0.2, "a_high0": 0.5},
}


def found(template: str, *events: tuple[int, int, int, float]) -> list[Any]:
    """What a rule that asks for 1, 2 and 3 in `d0`, and 7 in `d1`, finds among (ts, d0, d1, c0)."""
    table = pa.table(
        {
            name: pa.array(
                [dict(zip(("ts", "d0", "d1", "c0"), e, strict=True)).get(name, 0) for e in events],
                type_,
            )
            for name, type_ in zip(cayuga.SCHEMA.names, cayuga.SCHEMA.types, strict=True)
        }
    )
    rule = pa.table(
        {n: pa.array([v], cayuga.rules(0).schema.field(n).type) for n, v in ONE.items()}
    )
    rules = RuleSet.from_template("r", cayuga.TEMPLATES[template], rule)
    return rules["r-1"].match(table, time="ts").to_pylist()


def test_linear_rules_take_neighbors() -> None:
    events = [(0, 1, 7, 0.3), (1, 2, 7, 0.31), (2, 3, 7, 0.313)]
    assert len(found("LinearStat", *events)) == 1
    assert (
        found("LinearStat", events[0], (1, 9, 9, 0.0), *((t + 1, *e) for t, *e in events[1:])) == []
    )
    # 0.313 is less than 1 % above 0.31.
    assert found("LinearDyn", *events) == []
    assert len(found("LinearDyn", *events[:2], (2, 3, 7, 0.32))) == 1


def test_filter_takes_the_next_event_with_the_primary_value() -> None:
    one, two, three = (0, 1, 7, 0.3), (20, 2, 7, 0.0), (40, 3, 7, 0.0)
    assert len(found("Filter", one, (5, 9, 6, 0.0), two, three)) == 1
    assert found("Filter", one, (5, 9, 7, 0.0), two, three) == []
    assert found("Filter", one, (21, 2, 7, 0.0), three) == []  # later than 20
    assert found("Filter", (0, 1, 7, 0.6), two, three) == []  # out of range
    assert found("Filter", one, two, (40, 3, 6, 0.0)) == []  # another primary value


def test_nondeterministic_rules_take_any_events() -> None:
    one, two, three = (0, 1, 7, 0.3), (20, 2, 7, 0.25), (40, 3, 7, 0.125)
    events = [one, (5, 9, 7, 0.0), two, (39, 3, 7, 0.0), three]
    assert [(m["a"], m["b"], m["c"]) for m in found("NonDeterministic", *events)] == [
        (0, 20, 39),
        (0, 20, 40),
    ]
    assert found("NonDeterministic", one, two, (41, 3, 7, 0.0)) == []
    sums = found("NonDeterministicAgg", one, two, three)
    assert [m["c0"] for m in sums] == [pytest.approx(0.675)]
