"""What a set of rules says of itself."""

from __future__ import annotations

import pyarrow as pa

from cepheid.rules import RuleSet

COLUMNS = pa.table({"ts": [1], "type": ["A"], "card": [1], "x": [5], "y": [0.5], "s": ["u"]}).slice(
    0, 0
)
OPTIONS = {"time": "ts", "type": "type"}

TEMPLATE = (
    "PATTERN A a ; !C c ; B b WHERE [card] AND a.x < :low AND b.y >= :high AND c.s = 'u' WITHIN 5"
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
    assert "x <= 2" in takes and "type = 'A'" in takes and "'u'" not in takes


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
        "alone: next (1 rule), since `->` takes an event away from each query alone",
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
