"""One alert for a rule and key in a time, as AFTER MATCH SKIP FOR has it in a rule of its own."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cepheid as cep
from cepheid.engine.attribution.throttled import throttled, throttled_by_rule

EVENTS = pa.table(
    {
        "ts": [1, 2, 4, 6, 7, 11, 11, 12],
        "type": ["A"] * 8,
        "id": [1, 1, 2, 1, 1, 2, 1, None],
        "x": [1, 2, 3, 4, 5, 6, 7, 8],
    }
)


def test_what_comes_too_soon_is_counted_and_left_out() -> None:
    rules = cep.RuleSet.of({"any": "PATTERN A a WHERE [id]", "high": "PATTERN A a WHERE a.x > 4"})
    found = rules.match(EVENTS, time="ts", type="type", throttle=5)
    rows = found.select(["rule", "key", "match_end", "suppressed"]).to_pylist()
    assert sorted(tuple(map(str, row.values())) for row in rows) == [
        ("any", "1", "1", "1"),  # 2
        ("any", "1", "11", "0"),
        ("any", "1", "6", "1"),  # 7
        ("any", "2", "11", "0"),
        ("any", "2", "4", "0"),
        ("high", "None", "12", "0"),
        ("high", "None", "7", "2"),  # 11, 11
    ]


def test_a_rule_with_a_skip_of_its_own_keeps_to_it() -> None:
    rules = cep.RuleSet.of(
        {
            "own": "PATTERN A a WHERE [id] AFTER MATCH SKIP FOR 2 units",
            "all": "PATTERN A a WHERE [id] AFTER MATCH NO SKIP",
        }
    )
    found = rules.match(EVENTS, time="ts", type="type", throttle=100)
    ends = [row["match_end"] for row in found.to_pylist() if row["rule"] == "own"]
    assert sorted(ends) == [1, 4, 6, 11, 11]
    assert len([row for row in found.to_pylist() if row["rule"] == "all"]) == 2


@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from((1, 2))), max_size=14),
    st.integers(1, 6),
)
def test_keeps_what_skip_for_keeps(steps: list[tuple[int, int]], pause: int) -> None:
    """Of single events no two of a key end together in this stream, so nothing is up to order."""
    times, time = [], 0
    for step, _ in steps:
        time += step + 1
        times.append(time)
    events = pa.table(
        {
            "ts": pa.array(times, pa.int64()),
            "type": pa.array(["A"] * len(steps), pa.string()),
            "id": pa.array([id_ for _, id_ in steps], pa.int64()),
        }
    )
    text = "PATTERN A a WHERE [id]"
    skipping = cep.match(
        events, f"{text} AFTER MATCH SKIP FOR {pause} units", time="ts", type="type"
    )
    found = cep.RuleSet.of({"rule": text}).match(events, time="ts", type="type", throttle=pause)
    assert found["match_end"].to_pylist() == skipping["match_end"].to_pylist()
    assert sum(found["suppressed"].to_pylist()) + found.num_rows == len(steps)


SEVERAL = cep.RuleSet.of(
    {
        "any": "INTO Any PATTERN A a WHERE [id] RETURN a.id",
        "group": "PATTERN A a ; B+ b WHERE [id] WITHIN 5 RETURN a.id, count(b) AS n",
        "reader": "PATTERN Any n ; !A a ; B b WHERE [id] WITHIN 6 RETURN b.id",
        "open": "PATTERN Any n ; !B b WHERE [id] WITHIN 3 RETURN n.id",
        "own": "PATTERN Any n WHERE [id] AFTER MATCH SKIP FOR 2 units",
    }
)


@pytest.mark.parametrize(("size", "delay"), [(1, None), (7, None), (4, 5)])
def test_sessions_and_iterators_leave_out_what_tables_do(size: int, delay: int | None) -> None:
    """Rules that read others read what is left out, too; a session remembers when it is saved."""
    options: dict[str, Any] = {"time": "ts", "type": "type", "jit": False}
    chance, rows, time = random.Random(size), [], 0
    for _ in range(40):
        time += chance.randint(1, 2)
        rows.append({"ts": time, "type": chance.choice("ABB"), "id": chance.randint(1, 2)})
    events = pa.Table.from_pylist(rows)
    want = SEVERAL.match(events, throttle=7, **options).drop_columns("suppressed").to_pylist()
    every = SEVERAL.match(events, **options)
    assert {row["rule"] for row in want} == set(SEVERAL)
    if delay is not None:
        arrival = [row["ts"] + chance.randrange(delay) for row in rows]
        events, options["delay"] = events.take(np.argsort(arrival, kind="stable")), delay
    session = SEVERAL.open(events.schema, throttle=7, **options)
    found = []
    for begin in range(0, events.num_rows, size):
        found += session.push(events.slice(begin, size)).to_pylist()
        if chance.random() < 0.2:
            session = SEVERAL.resume(events.schema, session.save(), throttle=7, **options)
    found += session.close().to_pylist()
    assert sorted(map(repr, found)) == sorted(map(repr, want))
    assert session.status.matches == len(found)
    assert session.status.suppressed == every.num_rows - len(found)
    batches = iter(events.to_batches(max_chunksize=size))
    read = SEVERAL.match(batches, throttle=7, **options).read_all().to_pylist()
    assert sorted(map(repr, read)) == sorted(map(repr, want))


def test_answers_have_no_key_and_are_all_given() -> None:
    rules = cep.RuleSet.of({"n": "FROM A a GROUP BY a.id, TUMBLE(5) RETURN a.id, count(*) AS n"})
    every = rules.match(EVENTS, time="ts", type="type")
    kept = rules.match(EVENTS, time="ts", type="type", throttle=100)
    assert kept.num_rows == every.num_rows > 2


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_alerts_may_come_in_parts(size: int) -> None:
    """As on Spark, where they are sorted by rule and key."""
    rules = cep.RuleSet.of({"any": "PATTERN A a WHERE [id]", "free": "PATTERN A a WHERE a.x > 2"})
    alerts = rules.match(EVENTS, time="ts", type="type").sort_by("rule")
    alerts = alerts.take(pc.sort_indices(alerts, [("rule", "ascending"), ("key", "ascending")]))
    exempt = pa.array(["free"])
    parts = list(throttled_by_rule(alerts.to_batches(max_chunksize=size), 5, exempt))
    whole = throttled(alerts, 5, exempt)
    assert pa.Table.from_batches(parts, whole.schema).to_pylist() == whole.to_pylist()


def test_durations_on_timestamps_and_frames() -> None:
    events = pd.DataFrame({"ts": pd.to_datetime([0, 30, 90], unit="m"), "type": ["A"] * 3})
    found = cep.RuleSet.of({"r": "PATTERN A a"}).match(
        events, time="ts", type="type", throttle="1 hour"
    )
    assert found["suppressed"].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("throttle", "message"),
    [
        ("1 hour", "say what a tick of it is, as in unit='ms'"),
        ("soon", "a duration is like '10 seconds'"),
        (0, "must be longer than 0"),
    ],
)
def test_wrong_times(throttle: str | int, message: str) -> None:
    rules = cep.RuleSet.of({"r": "PATTERN A a"})
    with pytest.raises(cep.OptionError, match=message):
        rules.match(EVENTS, time="ts", type="type", throttle=throttle)


def test_timestamps_need_a_unit() -> None:
    events = pa.table({"ts": pa.array([1], pa.timestamp("us")), "type": ["A"]})
    with pytest.raises(cep.OptionError, match="give a duration, as in throttle='1 hour'"):
        cep.RuleSet.of({"r": "PATTERN A a"}).match(events, time="ts", type="type", throttle=5)


def test_a_carried_column_of_that_name() -> None:
    rules = cep.RuleSet.of({"r": "PATTERN A a"}, carried={"r": {"suppressed": 1}})
    with pytest.raises(cep.DataError, match="rename it"):
        rules.match(EVENTS, time="ts", type="type", throttle=5)
