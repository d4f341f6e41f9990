"""Every rule of a set returns exactly what it returns alone, by the oracle."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from cepheid.algebra import bind
from cepheid.algebra.types import Schema
from cepheid.engine.merged import machine
from cepheid.language import parse
from cepheid.options import Options
from cepheid.rules import Rule, RuleSet
from cepheid.rules.compile.compiled_rules import compile_rules
from tests.corpus.reader import table
from tests.examples import examples
from tests.oracle.events import Event
from tests.oracle.match import matches, outputs
from tests.rules.strategies import Set, sets


def rule_set(drawn: Set) -> RuleSet:
    rules = RuleSet()
    for name, (query, rows) in drawn.templates.items():
        if rows is None:
            rules = rules | RuleSet.of({name: query})
        else:
            rules = rules | RuleSet.from_template(name, query, rows)
    return rules


def expected(rule: Rule, schema: Schema, events: tuple[Event, ...]) -> Counter[str]:
    """What the rule alone returns, as JSON."""
    query = bind(parse(rule.query.text), schema, rule.params)
    return Counter(
        json.dumps([m.start, m.end, _plain(outputs(query, m, events))], sort_keys=True)
        for m in matches(query, events)
    )


def _plain(value: Any) -> Any:
    match value:
        case float() if value != value:
            return "NaN"
        case dict():
            return {name: _plain(part) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case _:
            return value


def found(rules: RuleSet, events: pa.Table, options: Options) -> dict[str, Counter[str]]:
    result: dict[str, Counter[str]] = {name: Counter() for name in rules}
    for row in rules.match(events, options).to_pylist():
        whole = [row["match_start"], row["match_end"], json.loads(row["match"])]
        result[row["rule"]][json.dumps(whole, sort_keys=True)] += 1
    return result


@settings(
    max_examples=examples("rule sets"), suppress_health_check=list(HealthCheck), deadline=None
)
@given(sets())
def test_every_rule_finds_what_it_finds_alone(drawn: Set) -> None:
    check(drawn)


@pytest.mark.slow
@settings(
    max_examples=examples("rule sets"), suppress_health_check=list(HealthCheck), deadline=None
)
@given(sets())
def test_room_for_instances_does_not_matter(drawn: Set) -> None:
    """The loops stop and go on wherever there might be too little."""
    with patch.object(machine, "FIRST", 1):
        check(drawn)


def check(drawn: Set) -> None:
    schema = drawn.schema
    rules = rule_set(drawn)
    options = Options("ts", type="type", tie=drawn.tie, jit=False)
    result = found(rules, table(schema, drawn.events), options)
    for name, rule in rules.items():
        assert result[name] == expected(rule, schema, drawn.events), (name, rule.params)


@pytest.mark.slow
def test_most_random_templates_are_merged() -> None:
    """Else the test above would not test what it is for."""
    counts: Counter[bool] = Counter()

    @settings(
        max_examples=60, suppress_health_check=list(HealthCheck), deadline=None, database=None
    )
    @given(sets())
    def count(drawn: Set) -> None:
        schema = drawn.schema
        options = Options("ts", type="type", tie=drawn.tie)
        columns = table(schema, ()).schema
        compiled = compile_rules(rule_set(drawn).templates, columns, options)
        counts[True] += sum(len(own) for group in compiled.groups for own in group.numbers)
        counts[False] += sum(len(one.rules) for one in compiled.alone)

    count()
    assert counts[True] > counts[False] > 0, counts
