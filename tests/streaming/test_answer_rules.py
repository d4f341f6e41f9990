"""Rules that return answers over a stream that is cut, shuffled and interrupted: each answer once,
as the oracle has it, beside rules that return matches."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from cepheid.options import Options
from cepheid.rules import RuleSet
from cepheid.rules.run.passes import passes
from cepheid.rules.run.portable import encoded
from cepheid.streaming.buckets.rule_bucket import RulesVersion
from tests.corpus.reader import table
from tests.sessions.test_rules import ANSWERING, PLAIN, answers_of, stream
from tests.streaming.simulation import Weather
from tests.streaming.test_rules import RulesCluster, released

FAR = 1000


@pytest.mark.parametrize("seed", range(6))
def test_each_answer_once(seed: int) -> None:
    weather = Weather(
        seed=seed,
        most=(3, 8)[seed % 2],
        delay=(None, 6)[seed // 2 % 2],
        buckets=2,
        workers=2,
        failing=0.2,
    )
    options = Options("ts", type="type", jit=False)
    rules = RuleSet.of({**PLAIN, **ANSWERING})
    events = stream(seed)
    columns = RulesCluster((None,), options, Weather(seed=0)).columns
    keys = passes(rules.templates, columns, options)
    assert set(keys) == {"id", None}  # `all` and `left` aren't grouped by the key
    cluster = RulesCluster(keys, options, weather)
    version = RulesVersion("1", encoded(rules.templates))
    found: dict[str, Counter[str]] = {name: Counter() for name in rules}
    waiting = []
    matched = []
    for begin in (*range(0, len(events), weather.most), None, None):
        batch = [] if begin is None else events[begin : begin + weather.most]
        if begin is None:
            cluster.highest = (cluster.highest or 0) + FAR
        for row in cluster.batch(table(cluster.schema, batch), version):
            found[row["rule"]][json.dumps(json.loads(row["match"]), sort_keys=True)] += 1
        waiting += batch
        matched += released(waiting, cluster.watermark, weather.delay)
    assert matched == events
    for name in ANSWERING:
        expected = Counter(json.dumps(row, sort_keys=True) for row in answers_of(name, events))
        assert expected and found[name] == expected, name
    assert all(found[name] for name in PLAIN)
