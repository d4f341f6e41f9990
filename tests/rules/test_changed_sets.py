"""A set that is made from a compiled one by adding rules, or leaving some out, pays for the change;
and every rule finds what it finds alone, by the oracle."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from cepheid.errors import UnsupportedError
from cepheid.options import Options
from cepheid.rules import RuleSet
from cepheid.rules.compile import compilations
from tests.corpus.reader import table
from tests.examples import examples
from tests.rules.strategies import Set, sets
from tests.rules.templates import templates
from tests.rules.test_batch import expected, found, rule_set


@settings(
    max_examples=examples("changed sets"), suppress_health_check=list(HealthCheck), deadline=None
)
@given(st.one_of(sets(), templates()), st.data())
def test_every_rule_finds_what_it_finds_alone(drawn: Set, data: Any) -> None:
    every = rule_set(drawn)
    names = list(every)
    some = st.lists(st.sampled_from(names), unique=True, max_size=len(names) - 1)
    events = table(drawn.schema, drawn.events)
    options = Options("ts", type="type", tie=drawn.tie, jit=False)

    def check(rules: RuleSet) -> RuleSet:
        try:
            result = found(rules, events, options)
        except UnsupportedError:
            reject()
        for name, rule in rules.items():
            assert result[name] == expected(rule, drawn.schema, drawn.events), (name, rule.params)
        return rules

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilations, "LITTLE", 0)  # every change is little
        away, later = data.draw(some), data.draw(some)
        rules = check(every.without(away))
        rules = check(rules | every.select(away)) if away else rules
        check(rules.without(later) | every.select(later) if later else rules.without(names[:1]))


# ── what is compiled ──

COLUMNS = pa.schema({"ts": pa.int64(), "type": pa.string(), "id": pa.int64(), "x": pa.int64()})
NAMED: dict[str, Any] = {"time": "ts", "type": "type"}
EVENTS = pa.table({"ts": [1, 2], "type": ["A", "B"], "id": [1, 1], "x": [5, 500]}, schema=COLUMNS)
PAIR = "PATTERN A a ; B b WHERE [id] AND b.x > :low WITHIN 5"
LARGE = RuleSet.from_template("pair", PAIR, {"low": list(range(1000))})
GROUP = RuleSet.of({"group": "PATTERN A a ; B+ b WHERE [id] WITHIN 5"})


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rules were compiled each time."""
    counts: list[int] = []
    compile_rules = compilations.compile_rules

    def count(templates: Any, *args: Any) -> Any:
        counts.append(sum(map(len, templates)))
        return compile_rules(templates, *args)

    monkeypatch.setattr(compilations, "compile_rules", count)
    return counts


def fired(rules: RuleSet) -> list[str]:
    return sorted(rules.match(EVENTS, **NAMED)["rule"].to_pylist())


def test_only_rules_that_come_are_compiled(compiled: list[int]) -> None:
    rules = RuleSet(LARGE.templates).compile(COLUMNS, **NAMED)
    assert len(fired(rules | GROUP)) == 501 and compiled == [1000, 1]
    less = (rules | GROUP).without(["pair-1", "pair-2"])
    assert len(fired(less)) == 499 and compiled == [1000, 1, 1]
    assert "pair-2" not in fired(less) and "group" in fired(less)
    other = RuleSet.from_template("pair", PAIR, {"rule": ["pair-2"], "low": [700]})
    assert fired(less | other) == fired(less) and compiled == [1000, 1, 1, 2]


def test_rules_that_only_go_compile_nothing(compiled: list[int]) -> None:
    rules = RuleSet((GROUP | LARGE).templates).compile(COLUMNS, **NAMED)
    less = rules.without(["group", "pair-7"])
    assert fired(less) == [name for name in fired(rules) if name not in ("group", "pair-7")]
    assert compiled == [1001]


def test_a_set_that_changes_much_is_compiled_as_a_whole(compiled: list[int]) -> None:
    rules = RuleSet(LARGE.templates).compile(COLUMNS, **NAMED)
    some = [f"pair-{n}" for n in range(1, 200)]
    assert len(fired(rules.without(some))) == 301
    assert compiled == [1000, 801]


def test_columns_are_those_of_the_rules_that_are_left() -> None:
    other = RuleSet.of(
        {"group": "PATTERN A a ; B+ b WHERE [id] WITHIN 5"}, carried={"group": {"team": "red"}}
    )
    rules = (LARGE | other).compile(COLUMNS, **NAMED)
    assert rules.match(EVENTS, **NAMED).column_names[-1] == "team"
    assert rules.without("group").match(EVENTS, **NAMED).column_names[-1] == "template"


def test_a_changed_set_is_explained_as_a_whole() -> None:
    rules = LARGE.compile(COLUMNS, **NAMED).without("pair-3")
    fired(rules)
    assert str(rules.explain(COLUMNS, **NAMED)).startswith("pass 1: 999 rules")
