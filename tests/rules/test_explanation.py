"""What a set of rules says of itself."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cepheid.options import Options
from cepheid.rules import RuleSet
from cepheid.rules.compile.compiled_rules import compile_rules
from cepheid.rules.explain.set_explanation import explained
from cepheid.rules.placement.places import READ, SHUFFLED, Ground
from cepheid.rules.placement.split import passes_of
from tests.docs.blocks import ROOT

COLUMNS = pa.table({"ts": [1], "type": ["A"], "card": [1], "x": [5], "y": [0.5], "s": ["u"]}).slice(
    0, 0
)
OPTIONS = {"time": "ts", "type": "type"}

TEMPLATE = (
    "PATTERN A a ; !C c ; B b WHERE [card] AND a.x = :low AND b.y = :high AND c.s = 'u' WITHIN 5"
)


def test_equal_prefixes_are_counted_once() -> None:
    rules = RuleSet.from_template(
        "pair", TEMPLATE, {"low": [3, 3, 3, 4], "high": [0.5, 0.5, 1.5, 1.5]}
    )
    (one,) = rules.explain(COLUMNS, **OPTIONS).passes
    assert (one.rules, one.steps, one.conditions) == (4, 8, 12)
    # Two different beginnings; after the first of them two ends, after the other one.
    assert one.nodes == 5
    assert one.predicates == 2 + 2 + 1
    assert [(s.step, s.rules) for s in one.shared] == [(1, 3), (2, 2)]
    takes = one.shared[0].takes
    assert "x = 3" in takes and "type = 'A'" in takes and "'u'" not in takes


def test_limits_are_followed_as_the_weakest() -> None:
    rules = RuleSet.from_template(
        "rise",
        "PATTERN A a ; B b WHERE a.x < :low AND b.y = :high WITHIN 5",
        {"low": [3, 4, 4], "high": [0.5, 0.5, 1.5]},
    )
    (one,) = rules.explain(COLUMNS, **OPTIONS).passes
    assert (one.nodes, one.limits) == (1 + 2, 3)
    assert "x <= 3" in one.shared[0].takes and one.shared[0].rules == 3
    shown = str(rules.explain(COLUMNS, **OPTIONS)).splitlines()
    assert "  limits      3 checked on complete matches, the loosest before" in shown


@pytest.mark.parametrize(
    ("condition", "takes"),
    [
        ("a.y < 100", "y < 100.0"),
        ("a.y <= 2.5 AND a.y > 0.1", "y > 0.1 AND y <= 2.5"),
        ("a.x > 3", "x >= 4"),
        ("a.s IS NOT NULL", "s IS NOT NULL"),
        ("a.s LIKE 'u%'", "s LIKE 'u%'"),
        ("NOT a.s LIKE 'u%'", "NOT (s LIKE 'u%')"),
    ],
)
def test_conditions_are_told_as_they_are_written(condition: str, takes: str) -> None:
    query = f"PATTERN a ; b WHERE {condition} AND b.x = 1 WITHIN 5"
    (one,) = (
        RuleSet.of({"one": query, "two": f"{query} RETURN a.x"}).explain(COLUMNS, time="ts").passes
    )
    assert one.shared[0].takes == takes


def test_a_rule_that_runs_alone_says_why() -> None:
    rules = RuleSet.of(
        {
            "run": "PATTERN A a ; B b+ ; C c WITHIN 5",
            "the same": "PATTERN A a ; B b+ ; C c WITHIN 5",
            "next": "PATTERN A a -> B b WITHIN 5",
        }
    )
    explanation = rules.explain(COLUMNS, **OPTIONS)
    assert explanation.passes == ()
    assert [(one.query, one.rules) for one in explanation.alone] == [("run", 2), ("next", 1)]
    assert str(explanation).splitlines() == [
        "alone: run (2 rules), since closures bind groups",
        "alone: next (1 rule), since with `->` each query chooses its own events",
    ]


def test_rules_that_return_different_things_are_different() -> None:
    rules = RuleSet.of(
        {
            "one": "PATTERN A a ; B b+ ; C c WITHIN 5 RETURN a.x",
            "other": "PATTERN A a ; B b+ ; C c WITHIN 5 RETURN c.x",
        }
    )
    events = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "C"], "x": [7, 8, 9], "card": [1, 1, 1]})
    found = {row["rule"]: row["match"] for row in rules.match(events, **OPTIONS).to_pylist()}
    assert found == {"one": '{"x":7}', "other": '{"x":9}'}


def test_the_page_shows_what_is_joined() -> None:
    large = (
        "PATTERN Auth a ; Auth b WHERE [card] AND b.amount > :low "
        "AND (:country IS NULL OR b.country = :country) WITHIN :window minutes"
    )
    rows = {"low": [5000, 2000, 2500], "country": [None, "DE", "FR"], "window": [60, 30, 30]}
    crowd = (
        "PATTERN Auth a ; Auth b WHERE a.amount > 5000 AND b.amount > 5000 AND a.card <> b.card "
        "WITHIN 1 minute"
    )
    rules = RuleSet.from_template("large", large, rows) | RuleSet.of({"crowd": crowd})
    columns = pa.schema(
        {
            "ts": pa.timestamp("us"),
            "kind": pa.string(),
            "card": pa.int64(),
            "amount": pa.float64(),
            "country": pa.string(),
        }
    )
    options = Options("ts", type="kind")
    compiled = compile_rules(rules.templates, columns, options, by_key=True)
    month = 30 * 24 * 60 * 60 * 1_000_000
    placed = passes_of(compiled.groups, Ground(cores=2, partitions=2, length=month))
    shown = "\n".join(str(explained(compiled, placed)).splitlines()[:3])
    assert f"```text\n{shown}\n```" in (ROOT / "docs" / "rules.md").read_text()


def test_parts_are_shown_with_their_loads() -> None:
    rules = RuleSet.from_template(
        "pair", "PATTERN A a ; B b WHERE a.x > :low AND b.x > :low WITHIN 5", {"low": [1, 2]}
    )
    options = Options("ts", type="type")
    compiled = compile_rules(rules.templates, COLUMNS.schema, options, by_key=True)
    (one,) = explained(compiled, passes_of(compiled.groups, Ground(2, 2, 5), "split")).passes
    assert one.spread is not None
    # Each rule has two steps, each of which takes a third of the rows of a type, which are half.
    load = READ + SHUFFLED + 1 / 3
    assert [(p.rules, p.load) for p in one.spread.parts] == [
        (1, pytest.approx(load)),
        (1, pytest.approx(load)),
    ]
    shown = str(explained(compiled, passes_of(compiled.groups, Ground(2, 2, 5), "split")))
    assert f"  parts       2: 1 rule with load {load:.1f}, 1 rule with load {load:.1f}" in shown
