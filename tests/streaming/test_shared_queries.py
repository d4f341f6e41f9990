"""Rules that share a query over a stream."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import HealthCheck, given, reject, settings

from cepheid.algebra.types import Schema
from cepheid.errors import UnsupportedError
from cepheid.options import Options
from cepheid.rules import RuleSet
from cepheid.rules.compile.compiled_rules import compile_rules
from cepheid.rules.run.portable import encoded
from cepheid.streaming.buckets.rule_bucket import RulesVersion
from tests.corpus.reader import table
from tests.examples import examples
from tests.oracle.events import Event
from tests.properties.strategies import COLUMNS
from tests.rules.strategies import Set
from tests.rules.templates import templates
from tests.streaming.simulation import Weather
from tests.streaming.test_rules import WEATHER, RulesCluster, check


@settings(
    max_examples=examples("rules on streams"),
    suppress_health_check=list(HealthCheck),
    deadline=None,
)
@given(templates(), WEATHER)
def test_each_finds_what_it_finds_alone(drawn: Set, weather: Weather) -> None:
    try:
        check(drawn, weather, [frozenset(drawn.templates)])
    except UnsupportedError:
        reject()


def test_one_goes_and_the_others_go_on() -> None:
    """The group is of events from before and after the change."""
    options = Options("ts", type="type", jit=False)
    schema = Schema(COLUMNS, time="ts", type="type")
    rules = RuleSet.from_template(
        "rule",
        "PATTERN A a ; B b+ ; C c HAVING sum(b.x) >= :p WITHIN :w units RETURN sum(b.x) AS x",
        {"p": [3, 3, 9, 3], "w": [20, 20, 20, 3]},
    )
    (one,) = compile_rules(rules.templates, table(schema, ()).schema, options).alone
    assert len(one.rules) == 4

    def events(*given: tuple[int, str]) -> pa.Table:
        blank = dict.fromkeys(COLUMNS)
        rows = [{**blank, "ts": ts, "type": type_, "x": 2} for ts, type_ in given]
        return table(schema, tuple(Event(n, row["ts"], row) for n, row in enumerate(rows)))

    def version(chosen: RuleSet) -> RulesVersion:
        return RulesVersion(chosen.fingerprint, encoded(chosen.templates))

    weather = Weather(seed=1, buckets=1, workers=1, failing=0.0)
    cluster = RulesCluster((None,), options, weather)
    assert cluster.batch(events((1, "A"), (2, "B"), (3, "B")), version(rules)) == []
    without = version(rules.without("rule-2"))
    found = cluster.batch(events((4, "B"), (5, "C")), without)
    found += cluster.batch(events(), None)
    # Of the others, one asks for a larger sum, and one has a shorter window.
    assert [(row["rule"], row["match"]) for row in found] == [("rule-1", '{"x":6}')]
