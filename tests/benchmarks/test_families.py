"""The families of rules: each finds what its rules find alone, however they are written."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from benchmarks.measure import WrongAnswer
from benchmarks.rules import family_runs
from benchmarks.rules.families import FAMILIES, WAYS, Family, all_families, rules_of
from benchmarks.rules.family_runs import (
    ChangePoint,
    CurvePoint,
    FamilyPoint,
    Measured,
    Scale,
    check,
    measure,
    record,
    verdicts,
)


def test_there_are_33_families_and_each_way_has_the_same_rules() -> None:
    assert len(FAMILIES) == 33
    for family in FAMILIES.values():
        sets = [set(rules_of(family, way, 5, seed=3)) for way in WAYS]
        assert sets[0] == sets[1] == sets[2] == {f"{family.name} {n}" for n in range(5)}
    assert len(all_families("mixed", 70, seed=1)) == 70


def test_written_rules_have_the_values_of_the_table() -> None:
    family = FAMILIES["IN, 10 values"]
    (row,) = family.rows(1, seed=1).to_pylist()
    text = family.written(1, seed=1)[row["rule"]].query.text
    assert f"a.merchant IN ({', '.join(repr(shop) for shop in row['l'])}) " in text
    assert f"b.amount > {row['x']} " in text


def test_a_rule_that_finds_something_else_in_its_set_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    family = FAMILIES["one event"]
    assert check(family, 4, 1_000) > 0
    right = family_runs.counted

    def wrong(alerts: pa.Table) -> Counter[str]:
        return right(alerts.slice(1))

    monkeypatch.setattr(family_runs, "counted", wrong)
    with pytest.raises(WrongAnswer, match=r"^one event \d, table: "):
        check(family, 4, 1_000)


def test_a_family_that_finds_nothing_is_noticed() -> None:
    silent = Family(
        "silent", "PATTERN purchase a WHERE a.amount > :x", {"x": lambda _, n: [1e9] * n}
    )
    with pytest.raises(WrongAnswer, match="no rule finds anything"):
        check(silent, 2, 500)


def test_claims_are_about_the_slowest() -> None:
    points = {
        "fast": FamilyPoint(0.01, {"table": 0.2, "written": 0.2, "mixed": 0.1}, 5),
        "slow": FamilyPoint(0.01, {"table": 0.2, "written": 0.4, "mixed": 0.3}, 5),
    }
    curve = [CurvePoint(20_000, 9.0, 4.0, 1), CurvePoint(100_000, 50.0, 30.0, 1)]
    velocity, change = CurvePoint(10_000, 1.0, 10.0, 1), ChangePoint(100_000, 0.3, 0.02, 0.05)
    measured = Measured(Scale(), points, curve, velocity, change)
    found = [(v.holds, v.detail) for v in verdicts(measured)]
    assert found == [
        (False, "40 × (slow)"),
        (False, "2.0 × (slow)"),
        (False, "10 k events/s"),
        (False, "50 ms"),
        (True, "25 k events/s"),
        (True, "9.0 s"),
        (False, "3.33 k events/s"),
    ]


def test_a_record_has_a_row_for_each_family() -> None:
    some = [FAMILIES["pair"], FAMILIES["->, the last step varies"]]
    figures = record(measure(True, lambda _: None, Scale(6, 2_000, (33,), 20, 40), some), True)
    assert [row[0] for row in figures["tables"][0]["rows"]] == [family.name for family in some]
    assert [row[0] for row in figures["tables"][1]["rows"]] == ["33"]
    assert [table["rows"][0][0] for table in figures["tables"][2:]] == ["20", "40"]


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_every_rule_finds_what_it_finds_alone(name: str) -> None:
    check(FAMILIES[name])
