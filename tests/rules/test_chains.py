"""Rules that read rules find what the same queries find in one run of several."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings

import cepheid as cep
from cepheid.algebra.types import Schema
from tests.corpus.reader import table
from tests.examples import examples
from tests.oracle.events import Event
from tests.properties.strategies import COLUMNS, streams

EVENTS = pa.table(
    {
        "ts": [1, 2, 3, 4, 5, 6, 7],
        "type": ["A", "B", "A", "B", "C", "C", "D"],
        "id": [1, 1, 2, 2, 1, 2, 1],
        "x": [1, 5, 2, 9, 3, 4, 6],
    }
)
RISE = "PATTERN A a ; B b WHERE [id] WITHIN 5 RETURN a.id, b.x - a.x AS up"


def found(rules: cep.RuleSet, events: pa.Table = EVENTS) -> list[tuple[str, int, int, Any]]:
    rows = rules.match(events, time="ts", type="type").to_pylist()
    return [(r["rule"], r["match_start"], r["match_end"], json.loads(r["match"])) for r in rows]


@pytest.mark.parametrize("name", ["Rise", "rise"])
def test_a_label_and_a_name_stand_for_the_matches(name: str) -> None:
    label = "INTO Rise " if name == "Rise" else ""
    after = f"PATTERN {name} r ; C c WHERE [id] AND r.up > 4 WITHIN 9 RETURN r.up, r.rule, c.x"
    rules = cep.RuleSet.of({"after": after, "rise": label + RISE})
    assert found(rules) == [
        ("rise", 1, 2, {"id": 1, "up": 4}),
        ("rise", 3, 4, {"id": 2, "up": 7}),
        ("after", 3, 6, {"up": 7, "rule": "rise", "x": 4}),
    ]


def test_a_template_stands_for_its_rules_and_a_rule_for_itself() -> None:
    rises = cep.RuleSet.from_template(
        "rises", f"{RISE.replace('WITHIN', 'AND b.x > :low WITHIN')}", {"low": [4, 8]}
    )
    readers = cep.RuleSet.of(
        {
            "any": "PATTERN rises r ; C c WHERE [id] WITHIN 9 RETURN r.rule",
            "one": "PATTERN `rises-2` r ; C c WHERE [id] WITHIN 9 RETURN r.rule",
        }
    )
    matches = found(rises | readers)
    assert sorted(row[0] + row[3]["rule"] for row in matches if "rule" in row[3]) == [
        "anyrises-1",
        "anyrises-1",
        "anyrises-2",
        "onerises-2",
    ]


def test_readers_with_a_table_severities_and_keys() -> None:
    readers = cep.RuleSet.from_template(
        "after",
        "PATTERN rise r ; C c WHERE [id] AND r.up > :least WITHIN 9 RETURN c.x",
        {"rule": ["low", "high"], "least": [0, 5], "severity": ["info", "bad"]},
    )
    rules = cep.RuleSet.of({"rise": RISE}) | readers
    rows = rules.match(EVENTS, time="ts", type="type").to_pylist()
    after = [(r["rule"], r["key"], r["template"], r["severity"]) for r in rows if r["severity"]]
    assert sorted(after) == [
        ("high", "2", "after", "bad"),
        ("low", "1", "after", "info"),
        ("low", "2", "after", "info"),
    ]


def test_chains_of_three_in_any_order() -> None:
    rules = cep.RuleSet.of(
        {
            "last": "PATTERN second s ; D d WITHIN 20 RETURN s.match_start AS began",
            "second": "PATTERN rise r ; C c WHERE [id] WITHIN 9 RETURN r.id",
            "rise": RISE,
        }
    )
    assert [row for row in found(rules) if row[0] == "last"] == [
        ("last", 1, 7, {"began": 1}),
        ("last", 3, 7, {"began": 3}),
    ]


def test_a_type_of_events_stays_one() -> None:
    rules = cep.RuleSet.of({"A": "PATTERN B b", "pair": "PATTERN A a ; C c WITHIN 9"})
    assert len([row for row in found(rules) if row[0] == "pair"]) == 4


def test_a_label_that_is_a_type_of_events() -> None:
    rules = cep.RuleSet.of({"x": "INTO A PATTERN B b", "pair": "PATTERN A a ; C c WITHIN 9"})
    with pytest.raises(cep.QueryError, match="`A` is both a rule of the set and a type of events"):
        found(rules)


def test_circles() -> None:
    labels = {"a": "INTO X PATTERN Y y ; A a WITHIN 5", "b": "INTO Y PATTERN X x ; A a WITHIN 5"}
    with pytest.raises(cep.RuleSetError, match="a circle: `a` reads `b`, which reads `a`"):
        cep.RuleSet.of(labels)
    names = {"x": "PATTERN y v ; A a WITHIN 5", "y": "PATTERN x v ; A a WITHIN 5"}
    with pytest.raises(cep.QueryError, match="a circle: `x` reads `y`, which reads `x`"):
        found(cep.RuleSet.of(names))


def test_a_label_that_several_queries_have() -> None:
    queries = {
        "one": f"INTO Up {RISE}",
        "two": f"INTO Up {RISE}",
        "reader": "PATTERN Up u ; C c WITHIN 5",
    }
    with pytest.raises(cep.RuleSetError, match="several queries are called `Up`"):
        cep.RuleSet.of(queries)
    queries.pop("reader")
    assert len(cep.RuleSet.of(queries)) == 2


def test_an_attribute_that_no_match_has() -> None:
    rules = cep.RuleSet.of({"rise": RISE, "after": "PATTERN rise r ; C c WHERE r.z > 1 WITHIN 9"})
    with pytest.raises(cep.QueryError, match="`z`"):
        found(rules)


def test_explain_and_check() -> None:
    rules = cep.RuleSet.of(
        {"rise": f"INTO Up {RISE}", "after": "PATTERN Up r ; C c WHERE r.up > 1 WITHIN 9"}
    )
    assert rules.check(EVENTS, time="ts", type="type") == ()
    text = str(rules.explain(EVENTS, time="ts", type="type"))
    assert "alone: after (1 rule), since it reads the matches of other rules" in text


def test_several_streams() -> None:
    sides = {"a": EVENTS.filter(pc.equal(EVENTS["type"], "A")), "b": EVENTS.slice(4)}
    rules = cep.RuleSet.of(
        {
            "both": "PATTERN a x ; b y WHERE [id] WITHIN 9 RETURN x.id",
            "more": "PATTERN both v ; b w WHERE [id] WITHIN 9 RETURN w.ts",
        }
    )
    rows = rules.match({k: v.drop_columns(["type"]) for k, v in sides.items()}, time="ts")
    assert [r["match"] for r in rows.to_pylist() if r["rule"] == "more"] == ['{"ts":7}']


KILL_CHAIN = cep.RuleSet.of(
    {
        "rise": f"INTO Up {RISE}",
        "none": "INTO Quiet PATTERN C c ; !A a WHERE [id] WITHIN 2 RETURN c.id, c.x",
        "last": "PATTERN Second s ; D d WITHIN 20 RETURN s.match_start AS began, s.rule",
    }
) | cep.RuleSet.from_template(
    "second",
    "INTO Second PATTERN ANY(Up, Quiet) r ; C c WHERE r.id + :by > 0 WITHIN 9 RETURN r.id, r.rule",
    {"rule": ["near", "far"], "by": [0, -1], "severity": ["low", "high"]},
)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_sessions_and_iterators_find_what_tables_have(size: int) -> None:
    whole = KILL_CHAIN.match(EVENTS, time="ts", type="type")
    assert {"near", "far", "last"} <= set(whole["rule"].to_pylist())
    session = KILL_CHAIN.open(EVENTS.schema, time="ts", type="type")
    found = []
    for begin in range(0, EVENTS.num_rows, size):
        found += session.push(EVENTS.slice(begin, size)).to_pylist()
        saved = session.save()
        session = KILL_CHAIN.resume(EVENTS.schema, saved, time="ts", type="type")
    found += session.close().to_pylist()
    assert session.status.matches == len(found)
    batches = iter(EVENTS.to_batches(max_chunksize=size))
    several = KILL_CHAIN.match(batches, time="ts", type="type").read_all()
    for alerts in (found, several.to_pylist()):
        assert sorted(map(repr, alerts)) == sorted(map(repr, whole.to_pylist()))


def test_a_session_is_resumed_without_its_readers() -> None:
    events = pa.table({"ts": [1, 2, 3, 4], "type": ["A", "B", "C", "B"], "id": [1, 1, 1, 1]})
    options = {"time": "ts", "type": "type"}
    up = cep.RuleSet.of({"up": "INTO Up PATTERN A a ; B b WHERE [id] WITHIN 9 RETURN a.id"})
    both = up | cep.RuleSet.of({"reader": "PATTERN Up u ; C c WITHIN 9"})
    session = both.open(events.schema, **options)
    assert session.push(events.slice(0, 2))["rule"].to_pylist() == ["up"]
    for left in (up, both.without("reader")):
        resumed = left.resume(events.schema, session.save(), **options)
        assert resumed.push(events.slice(2))["match_end"].to_pylist() == [4]
        assert resumed.close().num_rows == 0


def test_a_reader_that_changes_is_a_new_rule() -> None:
    rise = cep.RuleSet.of({"rise": f"INTO Up {RISE}"})
    first, second = (
        cep.RuleSet.of({"next": f"PATTERN Up u ; C c WHERE c.x > {low} WITHIN 9 RETURN c.x"})
        for low in (0, 1)
    )
    session = (rise | first).open(EVENTS.schema, time="ts", type="type")
    assert session.push(EVENTS.slice(0, 4)).num_rows == 2
    saved = session.save()
    same = (rise | first).resume(EVENTS.schema, saved, time="ts", type="type")
    assert same.push(EVENTS.slice(4)).num_rows == 4
    other = (rise | second).resume(EVENTS.schema, saved, time="ts", type="type")
    assert other.push(EVENTS.slice(4)).num_rows == 0


READERS = (
    "PATTERN P p ; C c WHERE [id] WITHIN 9 RETURN p.x, c.row",
    "PATTERN P p -> A a WHERE a.x >= p.x WITHIN 9 RETURN p.row, a.row AS other",
    "PATTERN A a ; !P p ; C c WITHIN 7 RETURN a.row, c.row AS other",
    "PATTERN P+ p ; C c WHERE [id] WITHIN 8 RETURN count(p) AS n, c.row",
)


@pytest.mark.filterwarnings("ignore:no event is of type")
@settings(
    max_examples=examples("variants", 3), suppress_health_check=list(HealthCheck), deadline=None
)
@given(streams("ABC", 16))
def test_the_matches_are_those_of_several_queries(events: tuple[Event, ...]) -> None:
    frame = table(Schema(COLUMNS, time="ts", type="type"), events)
    first = "INTO P PATTERN A a ; B b WHERE [id] AND b.x >= a.x WITHIN 6 RETURN a.id, b.x, b.row"
    options = cep.Options("ts", type="type", jit=False)
    for text in READERS:
        rules = cep.RuleSet.of({"first": first, "second": text})
        rows = rules.match(frame, options).to_pylist()
        own = [
            (r["match_start"], r["match_end"], *json.loads(r["match"]).values())
            for r in rows
            if r["rule"] == "second"
        ]
        several = cep.match(frame, [first, text], options)["query 2"]
        names = several.column_names[:-2]
        expected = [
            (r["match_start"], r["match_end"], *(r[name] for name in names))
            for r in several.to_pylist()
        ]
        assert sorted(own) == sorted(expected)
        reader = pa.RecordBatchReader.from_batches(frame.schema, frame.to_batches(max_chunksize=3))
        endless = rules.match(reader, options).read_all()
        assert sorted(map(repr, endless.to_pylist())) == sorted(map(repr, rows))


@pytest.mark.parametrize("choice", ["AFTER MATCH SKIP PAST LAST EVENT", "LIMIT 100"])
def test_throttle_leaves_rules_alone_that_choose_among_their_matches(choice: str) -> None:
    n = 12
    events = pa.table({"ts": range(n), "type": ["A", "B", "C"] * 4, "id": [1] * n, "x": range(n)})
    up = "INTO Up PATTERN A a ; B b WHERE [id] WITHIN 3 RETURN a.id AS id"
    for read in ("B", "Up"):
        follower = f"PATTERN {read} u ; C c WHERE [id] WITHIN 3 {choice} RETURN c.x"
        rules = cep.RuleSet.of({"up": up, "follower": follower})
        alerts = rules.match(events, time="ts", type="type", throttle=100)
        assert sorted(alerts["rule"].to_pylist()) == ["follower"] * 4 + ["up"]
