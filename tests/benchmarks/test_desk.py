"""The fraud desk's rules: the engine and SQL find the same, and ratios are of the dearest rule."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks.measure import Timing, WrongAnswer
from benchmarks.rules import desk
from benchmarks.rules.spark import ALL, OPTIONS, check, expect, record, rule_set, verdicts
from cepheid.workloads import fraud


@pytest.mark.parametrize("name", desk.TEMPLATES)
def test_a_template_finds_what_sql_finds(name: str, tmp_path: Path) -> None:
    events = fraud.generate(4_000, seed=3, days=2.0, cards=400, fraud=0.02)
    pq.write_table(events, tmp_path / "events.parquet")
    found = Counter(desk.rule_set(name).match(events, OPTIONS)["rule"].to_pylist())
    assert found
    assert dict(found) == desk.answers(name, tmp_path / "events.parquet")


def test_there_are_a_thousand_rules_and_the_widest_is_one_of_its_template() -> None:
    rules = rule_set()
    assert len(rules) == 1_000
    params = rules[desk.widest("tested")].params
    assert (params["minutes"], params["small"], params["large"]) == (24 * 60, 100, 250)


def test_both_ratios_are_to_the_most_expensive_rule() -> None:
    best = {ALL: Timing(12.0, 9.0), "a": Timing(3.0, 2.0), "b": Timing(2.0, 2.5)}
    ratio, _ = verdicts(best, 1_000)
    assert ratio.holds and ratio.must and ratio.detail == "CPU 4.00 ×, wall 3.60 ×"
    ratio, _ = verdicts({**best, ALL: Timing(12.0, 10.1)}, 1_000)
    assert not ratio.holds


class Frame:
    """As much of a DataFrame as is asked for its matches by rule."""

    def __init__(self, **counts: int) -> None:
        self.counts = counts

    def groupBy(self, *_: str) -> Frame:
        return self

    def count(self) -> Frame:
        return self

    def collect(self) -> list[dict[str, object]]:
        return [{"rule": rule, "count": count} for rule, count in self.counts.items()]


def test_wrong_answers_are_told() -> None:
    answers = {"x": {"x-1": 3}, "y": {"y-1": 2}}
    check(Frame(**{"x-1": 3, "y-1": 2}), answers)
    expect(ALL, 5, answers)
    expect("x-2", 0, answers)
    with pytest.raises(WrongAnswer, match="x-1"):
        check(Frame(**{"x-1": 4, "y-1": 2}), answers)
    with pytest.raises(WrongAnswer, match="x-1: 2 matches where there are 3"):
        expect("x-1", 2, answers)


def test_a_record_has_a_row_for_each_run() -> None:
    name = desk.widest("tested")
    best = {ALL: Timing(12.0, 9.0), name: Timing(3.0, 2.0)}
    found = record(best, {"tested": {name: 3}}, 5_000_000, "pass 1", quick=True)
    assert found["tables"][0]["rows"] == [
        ["1,000 rules", "3", "12.0 (9.0)", "417 k", "1.00 (1.00)"],
        [f"{name}, alone", "3", "3.0 (2.0)", "1.67 M", "4.00 (4.50)"],
    ]
