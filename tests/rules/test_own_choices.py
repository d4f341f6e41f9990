"""Rules about single events that choose among their matches share a query without a choice, and
find what they find alone, by the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cepheid.options import Options
from cepheid.rules import RuleSet
from cepheid.rules.compile.compiled_rules import compile_rules
from tests.corpus.reader import table
from tests.examples import examples
from tests.oracle.events import Event
from tests.properties.strategies import streams
from tests.rules.test_batch import expected, found
from tests.rules.test_variants import SCHEMA, SOME, drawn_rows

TEMPLATES = (
    "A a WHERE [id] AND a.x > :p AFTER MATCH SKIP FOR 3 units",
    "A a WHERE a.x > :p AFTER MATCH SKIP FOR 3 units",
    "A a WHERE [id] AND a.x > :p LIMIT 2 PER KEY",
    "A a WHERE [id, s] AND a.x >= :p AND a.x < :q AFTER MATCH SKIP FOR 2 units LIMIT 1 PER KEY",
    "A a WHERE [y] AND a.x > :p AFTER MATCH SKIP FOR 5 units RETURN a.row, a.x + :p AS more",
    "A a WHERE [id] HAVING a.s = :s AFTER MATCH SKIP FOR 4 units",
)


@st.composite
def cases(draw: Any) -> tuple[str, Mapping[str, list[Any]], tuple[Event, ...]]:
    query = f"PATTERN {draw(st.sampled_from(TEMPLATES))}"
    return query, drawn_rows(draw, query), draw(streams("AB", 18))


@settings(
    max_examples=examples("own choices"), suppress_health_check=list(HealthCheck), deadline=None
)
@given(cases())
def test_every_rule_finds_what_it_finds_alone(
    case: tuple[str, Mapping[str, list[Any]], tuple[Event, ...]],
) -> None:
    query, columns, events = case
    rules = RuleSet.from_template("rule", query, columns)
    result = found(rules, table(SCHEMA, events), Options("ts", type="type", jit=False))
    for name, rule in rules.items():
        assert result[name] == expected(rule, SCHEMA, events), (query, rule.params)


@pytest.mark.parametrize("query", TEMPLATES)
def test_rules_share_a_query_that_chooses_nothing(query: str) -> None:
    columns = {name: SOME[name][:3] for name in SOME if f":{name}" in query}
    rules = RuleSet.from_template("rule", f"PATTERN {query}", columns)
    options = Options("ts", type="type")
    compiled = compile_rules(
        rules.templates, table(SCHEMA, ()).schema, options, deals=True, ends=True
    )
    (shared,) = compiled.alone
    assert shared.variants is None and shared.prepared.query.selection is None
    assert compiled.choosing.to_pylist() == list(rules)


def test_a_rule_keeps_what_its_own_matches_leave() -> None:
    """Over 10, the event at 2 comes too soon after that at 1. Over 20, it is the first; of card 2
    there is another one then."""
    events = pa.table(
        {
            "ts": [1, 2, 3, 5],
            "type": ["pay"] * 4,
            "card": [1, 1, 2, 1],
            "amount": [15, 25, 30, 25],
        }
    )
    rules = RuleSet.from_template(
        "over",
        "PATTERN pay p WHERE [card] AND p.amount > :x AFTER MATCH SKIP FOR 4 units",
        {"rule": ["10", "20"], "x": [10, 20]},
    )
    alerts = rules.match(events, time="ts", type="type").select(["rule", "match_end"]).to_pylist()
    assert {(row["rule"], row["match_end"]) for row in alerts} == {
        ("10", 1),
        ("10", 3),
        ("10", 5),
        ("20", 2),
        ("20", 3),
    }
    profile = rules.profile(events, time="ts", type="type").to_arrow()
    assert dict(zip(profile["rule"].to_pylist(), profile["matches"].to_pylist(), strict=True)) == {
        "10": 3,
        "20": 2,
    }
