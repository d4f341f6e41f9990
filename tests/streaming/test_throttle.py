"""Throttled alerts of a stream are those of a table, through disorder, failures and changes."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.rules import RuleSet
from cepheid.rules.run.passes import passes
from cepheid.rules.run.portable import encoded
from cepheid.streaming.buckets.rule_bucket import RulesVersion
from cepheid.streaming.rule_figures import FiguresOfRules
from tests.streaming.simulation import Weather
from tests.streaming.test_rules import RulesCluster

RULES = RuleSet.of(
    {
        "any": "PATTERN A a WHERE [id] RETURN a.id",
        "pair": "PATTERN A a ; B b WHERE [id] WITHIN 6 RETURN a.id",
        "late": "PATTERN A a ; !B b WHERE [id] WITHIN 4 RETURN a.id",
        "group": "PATTERN A a ; B+ b WHERE [id] WITHIN 5 RETURN a.id, count(b) AS n",
        "own": "PATTERN A a WHERE [id] AFTER MATCH SKIP FOR 3 units RETURN a.id",
        "every": "PATTERN A a ; C c WITHIN 3 RETURN a.id",
        "counted": "FROM A a GROUP BY a.id, TUMBLE(5) RETURN a.id, count(*) AS n",
    }
)
OPTIONS: dict[str, Any] = {"time": "ts", "type": "type", "jit": False}
PAUSE = 7


def events(seed: int, count: int = 60) -> pa.Table:
    chance, rows, time = random.Random(seed), [], 0
    for row in range(count):
        time += chance.randint(1, 2)
        type_, id_ = chance.choice("ABC"), chance.randint(1, 2)
        rows.append({"row": row, "ts": time, "type": type_, "id": id_, "x": 0})
    return pa.Table.from_pylist(rows)


def late(table: pa.Table, delay: int | None, seed: int) -> pa.Table:
    chance = random.Random(seed)
    times = table["ts"].to_pylist()
    arrival = [time + chance.randrange(delay or 1) for time in times]
    return table.take(sorted(range(len(times)), key=arrival.__getitem__))


def version(rules: RuleSet, name: str = "1") -> RulesVersion:
    return RulesVersion(name, encoded(rules.templates))


def plain(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((r["rule"], r["match_start"], r["match_end"], r["match"]) for r in rows)


def cluster(weather: Weather, table: pa.Table, pause: int | None = PAUSE) -> RulesCluster:
    options = cep.Options("ts", type="type", jit=False)
    keys = passes(RULES.templates, table.schema, options, pause is not None)
    return RulesCluster(keys, options, weather, table.schema, table.schema, pause)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("delay", [None, 5])
def test_alerts_are_those_of_a_table(seed: int, delay: int | None) -> None:
    table, weather = events(seed), Weather(seed, delay=delay, failing=0.1)
    want = RULES.match(table, throttle=PAUSE, **OPTIONS)
    stream = cluster(weather, table)
    come, found = late(table, delay, seed), list[dict[str, Any]]()
    for begin in range(0, come.num_rows, 4):
        found += stream.batch(come.slice(begin, 4), version(RULES) if not begin else None)
    for _ in range(2):
        stream.highest = (stream.highest or 0) + 1000
        found += stream.batch(come.slice(0, 0), None)
    assert plain(found) == plain(want.to_pylist())
    assert len(found) + stream.suppressed == RULES.match(table, **OPTIONS).num_rows


def test_a_changed_rule_begins_anew_and_others_remember() -> None:
    table = events(1).filter(pa.array([row < 12 for row in range(60)]))
    rules = RULES.select(["any", "pair"])
    changed = rules | RuleSet.of({"any": "PATTERN A a WHERE [id] RETURN a.id, a.ts"})
    stream = cluster(Weather(1, buckets=1), table, pause=100)
    first = stream.batch(table.slice(0, 6), version(rules))
    second = stream.batch(table.slice(6), version(changed, "2"))
    assert {r["rule"] for r in first} == {"any", "pair"}
    assert {r["rule"] for r in second} == {"any"}


def test_what_is_remembered_has_an_end() -> None:
    table = events(2)
    stream = cluster(replace(Weather(2), buckets=1, failing=0.0, workers=1), table)
    stream.batch(table, version(RULES))
    stream.highest = (stream.highest or 0) + 1000
    stream.batch(table.slice(0, 0), None)
    stream.batch(table.slice(0, 0), None)
    for worker in stream.workers:
        for bucket in worker.values():
            assert not bucket._throttled._last and not bucket._throttled.waits


def test_figures_of_rules() -> None:
    table = events(2)
    stream = cluster(Weather(2, buckets=1, workers=1), table)
    found = stream.batch(table, version(RULES))
    every = RULES.match(table, **OPTIONS)["rule"].to_pylist()
    figures = FiguresOfRules()
    for worker in stream.workers:
        for bucket in worker.values():
            figures = figures.plus(FiguresOfRules.of_json([bucket.figures().to_json()]))
    given = [row["rule"] for row in found]
    assert {n: f.matches for n, f in figures.rules.items() if f.matches} == Counter(given)
    for name in ("any", "pair", "own"):
        figure = figures.rules[name]
        assert (figure.template, figure.matches + figure.suppressed) == (name, every.count(name))
    assert sum(run.rules for run in figures.runs.values()) == len(RULES)
    assert all(run.seconds > 0 for run in figures.runs.values())
    assert max(run.held or 0 for run in figures.runs.values()) > 0
