"""Rules that read rules find on a stream what they find in a table, through disorder, failures and
changes of the rules."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.rules import RuleSet
from cepheid.rules.run.passes import Needs, needs, passes
from tests.streaming.simulation import Weather
from tests.streaming.test_rules import RulesCluster
from tests.streaming.test_throttle import events, late, plain, version

OPTIONS: dict[str, Any] = {"time": "ts", "type": "type", "jit": False}
UP = "INTO Up PATTERN A a ; B b WHERE [id] WITHIN 5 RETURN a.id, b.row"
KEYED = RuleSet.of(
    {
        "up": UP,
        "quiet": "INTO Quiet PATTERN C c ; !A a WHERE [id] WITHIN 4 RETURN c.id AS who",
        "single": "INTO Single PATTERN C c RETURN c.id",
        "after": "INTO Later PATTERN Up u ; C c WHERE [id] WITHIN 9 RETURN c.id, u.row",
        "none": "PATTERN A a ; !Up u ; C c WHERE [id] WITHIN 7 RETURN a.row",
        "group": "PATTERN Up+ u ; C c WHERE [id] WITHIN 12 RETURN count(u) AS n, c.row",
        "calm": "PATTERN Quiet q ; B b WHERE q.who = b.id WITHIN 9 RETURN b.row",
        "third": "PATTERN Later f -> Single s WHERE [id] WITHIN 30 RETURN f.row, s.rule",
        "counted": "FROM Up u GROUP BY u.id, TUMBLE(10) RETURN u.id, count(*) AS n",
        "big": "PATTERN Up u WHERE u.row > 20 RETURN u.row",
    }
) | RuleSet.from_template(
    "some",
    "PATTERN ANY(Up, Later) r ; A a WHERE [id] AND a.row > :low WITHIN 9 RETURN a.row, r.rule",
    {"rule": ["low", "high"], "low": [0, 10]},
)
APART = RuleSet.of(
    {
        "up": UP,
        "any": "PATTERN Up u ; C c WITHIN 6 RETURN u.row, c.row AS other",
        "own": "PATTERN B b ; C c WHERE [id] WITHIN 4 RETURN c.row",
    }
)


def cluster(rules: RuleSet, weather: Weather, table: pa.Table, pause: int | None) -> RulesCluster:
    options = cep.Options("ts", type="type", jit=False)
    keys = passes(rules.templates, table.schema, options, pause is not None)
    return RulesCluster(keys, options, weather, table.schema, table.schema, pause)


@pytest.mark.parametrize(("rules", "keys"), [(KEYED, ("id",)), (APART, ("id", None))])
def test_the_passes_of_chains(rules: RuleSet, keys: tuple[str | None, ...]) -> None:
    options = cep.Options("ts", type="type")
    assert set(passes(rules.templates, events(0).schema, options)) == set(keys)


def test_a_wrong_reader_is_wrong_alone() -> None:
    rules = KEYED.select(["up", "after"]) | RuleSet.of({"wrong": "PATTERN Up u WHERE u.y > 1"})
    found = needs(rules.templates, events(0).schema, cep.Options("ts", type="type"))
    assert [isinstance(need, Needs) for need in found] == [True, True, False]


@pytest.mark.parametrize("rules", [KEYED, APART], ids=["keyed", "apart"])
@pytest.mark.parametrize(
    ("delay", "failing", "pause"), [(None, 0.0, None), (5, 0.1, None), (5, 0.1, 6)]
)
def test_chains_find_what_tables_have(
    rules: RuleSet, delay: int | None, failing: float, pause: int | None
) -> None:
    table, weather = events(3), Weather(3, delay=delay, failing=failing)
    want = rules.match(table, throttle=pause, **OPTIONS)
    assert set(want["rule"].to_pylist()) == set(rules)
    stream = cluster(rules, weather, table, pause)
    come, found = late(table, delay, 3), list[dict[str, Any]]()
    for begin in range(0, come.num_rows, 6):
        found += stream.batch(come.slice(begin, 6), version(rules) if not begin else None)
    for _ in range(3):
        stream.highest = (stream.highest or 0) + 1000
        found += stream.batch(come.slice(0, 0), None)
    assert plain(found) == plain(want.to_pylist())


MORE = RuleSet.of({"more": "PATTERN Quiet q ; C c WHERE q.who = c.id WITHIN 9 RETURN c.row"})


def test_readers_come_and_the_others_go_on() -> None:
    """A reader begins with what is matched from then on."""
    table, first = events(3), KEYED.select(["quiet", "calm"])
    stream = cluster(KEYED, Weather(3, failing=0.1), table, None)
    found = stream.batch(table.slice(0, 30), version(first, "1"))
    found += stream.batch(table.slice(30), version(first | MORE, "2"))
    stream.highest = (stream.highest or 0) + 1000
    found += stream.batch(table.slice(0, 0), None)
    own = {name: [r for r in found if r["rule"] == name] for name in (*first, "more")}
    assert plain([*own["quiet"], *own["calm"]]) == plain(first.match(table, **OPTIONS).to_pylist())
    every = [r for r in (first | MORE).match(table, **OPTIONS).to_pylist() if r["rule"] == "more"]
    begin = table["ts"][30].as_py()
    known = [r for r in every if r["match_start"] >= begin]
    assert known and set(plain(known)) <= set(plain(own["more"])) < set(plain(every))


def test_a_label_goes_and_comes_again() -> None:
    """What read it finds nothing meanwhile, and begins anew with it."""
    table, both = events(3), KEYED.select(["quiet", "calm"])
    stream = cluster(KEYED, Weather(3, failing=0.1), table, None)
    parts = [table.slice(begin, 20) for begin in (0, 20, 40)]
    for number, rules in enumerate((both, both.without("quiet"), both)):
        found = stream.batch(parts[number], version(rules, str(number)))
        if number == 1:
            assert found == []
    stream.highest = (stream.highest or 0) + 1000
    found += stream.batch(table.slice(0, 0), None)
    begin = parts[2]["ts"][0].as_py()
    want = both.match(parts[2], **OPTIONS).to_pylist()
    assert plain([r for r in found if r["match_start"] >= begin]) == plain(want)
    assert {r["rule"] for r in want} == {"quiet", "calm"}


def test_a_rule_that_is_refused_is_told_by_one_pass() -> None:
    """What fits no pass by the first one, what can't run by its own."""
    table = events(0)
    rules = APART.select(["own"]) | RuleSet.of(
        {
            "column": "PATTERN A a ; B b WHERE [id] AND a.y > 1 WITHIN 5",
            "other key": "PATTERN A a ; B b WHERE [row] WITHIN 5",
        }
    )
    for keys, refused in ((("id", "x"), {"id": 2, "x": 0}), (("x", "id"), {"x": 2, "id": 0})):
        options = cep.Options("ts", type="type", jit=False)
        stream = RulesCluster(
            keys, options, Weather(0, workers=1, buckets=1), table.schema, table.schema
        )
        stream.batch(table.slice(0, 5), version(rules))
        told = {key: bucket.report().refused for (key, _), bucket in stream.workers[0].items()}
        assert told == refused
