"""Sets of rules in sessions: cut, shuffled and resumed at random, each rule finds what the oracle
finds; and rules that change when a session is resumed."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import cepheid as cep
from cepheid.algebra import bind
from cepheid.algebra.types import Schema
from cepheid.engine.attribution import variants
from cepheid.language import parse
from cepheid.options import Options
from cepheid.rules import RuleSet
from cepheid.rules.compile.compiled_rules import CompiledRules, compile_rules
from cepheid.rules.run import rule_session, stream_compiler
from cepheid.rules.run.passes import Needs, needs
from cepheid.rules.run.portable import encoded
from cepheid.rules.run.runtimes import Templates
from tests.answers.test_counting import SCHEMA as BOUND
from tests.corpus.reader import table
from tests.examples import examples
from tests.oracle import answers
from tests.oracle.events import Event
from tests.properties.strategies import COLUMNS
from tests.rules.strategies import Set, sets
from tests.rules.test_batch import expected, rule_set
from tests.rules.test_pass_work import cases as mixed_rules
from tests.sessions.test_properties import WAYS, Way, arranged

SCHEMA = pa.schema({"ts": pa.int64(), "type": pa.string(), "id": pa.int64(), "x": pa.int64()})
NAMED: dict[str, Any] = {"time": "ts", "type": "type", "jit": False}


@pytest.fixture(autouse=True)
def compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session compiles its rules anew whenever it is resumed, which takes longer than all else
    here, and gives the same."""
    known: dict[tuple[object, ...], CompiledRules] = {}

    def compiled(
        templates: Templates, columns: pa.Schema, options: Options, deals: bool
    ) -> CompiledRules:
        place = (encoded(templates), str(columns), repr(options), deals)
        if place not in known:
            known[place] = compile_rules(templates, columns, options, deals=deals)
        return known[place]

    for module in (rule_session, stream_compiler):
        monkeypatch.setattr(module, "compile_rules", compiled)


def pushed(rules: RuleSet, data: pa.Table, arrivals: list[int], way: Way, options: Options) -> Any:
    """All alerts, through sessions that are resumed now and then."""
    chance = random.Random(way.seed)
    session = cep.open(rules, data.schema, options)
    found: list[dict[str, Any]] = []

    def take(alerts: pa.Table) -> None:
        ends = [end for end in alerts["match_end"].to_pylist() if end is not None]
        assert ends == sorted(ends)
        found.extend(alerts.to_pylist())

    begin = 0
    while begin < data.num_rows:
        size = chance.randint(0, way.most)
        if chance.random() < way.beats:
            take(session.advance(arrivals[begin]))
        take(session.push(data.slice(begin, size)))
        if chance.random() < way.moves:
            session = cep.resume(rules, data.schema, session.save(), options)
        begin += size
    take(session.close())
    assert session.status.late == 0
    assert session.status.matches == len(found)
    return found


@settings(
    max_examples=examples("rules in sessions"),
    suppress_health_check=list(HealthCheck),
    deadline=None,
)
@given(sets(), WAYS)
def test_any_rules(drawn: Set, way: Way) -> None:
    options = Options("ts", type="type", tie=drawn.tie, jit=False, delay=way.delay)
    schema = drawn.schema
    events = table(schema, drawn.events)
    whole = rule_set(drawn)
    needed = needs(whole.templates, events.schema, options)
    rules = RuleSet(
        tuple(t for t, own in zip(whole.templates, needed, strict=True) if isinstance(own, Needs))
    )
    if not rules:
        return
    example = bind(parse("PATTERN A a"), schema)
    data, arrivals = arranged(example, events, way)
    found: dict[str, Counter[str]] = {name: Counter() for name in rules}
    for row in pushed(rules, data, arrivals, way, options):
        text = [row["match_start"], row["match_end"], json.loads(row["match"])]
        found[row["rule"]][json.dumps(text, sort_keys=True)] += 1
    for name, rule in rules.items():
        assert found[name] == expected(rule, schema, drawn.events), rule


@settings(
    max_examples=examples("dealt rules in sessions"),
    suppress_health_check=list(HealthCheck),
    deadline=None,
)
@given(mixed_rules(), WAYS)
def test_rules_over_dealt_events(case: tuple[RuleSet, tuple[Event, ...], int], way: Way) -> None:
    drawn, events, _ = case
    options = Options("ts", type="type", tie="n", jit=False, delay=way.delay)
    schema = Schema(COLUMNS, time="ts", type="type", tie="n")
    whole = table(schema, events)
    needed = needs(drawn.templates, whole.schema, options)
    rules = RuleSet(
        tuple(t for t, own in zip(drawn.templates, needed, strict=True) if isinstance(own, Needs))
    )
    if not rules:
        return
    data, arrivals = arranged(bind(parse("PATTERN A a"), schema), whole, way)
    found: dict[str, Counter[str]] = {name: Counter() for name in rules}
    with patch.object(variants, "MOST_ROWS", way.most):
        for row in pushed(rules, data, arrivals, way, options):
            text = [row["match_start"], row["match_end"], json.loads(row["match"])]
            found[row["rule"]][json.dumps(text, sort_keys=True)] += 1
    for name, rule in rules.items():
        assert found[name] == expected(rule, schema, events), (rule.query.text, rule.params)


def test_rules_of_a_template_are_one_query_in_a_session() -> None:
    """Whose events are dealt to them; one that goes and one that comes leave the others be."""
    template = "PATTERN A{2} a WHERE [id] AND a.x > :p WITHIN 50 RETURN LAST(a.x) AS x"
    rules = RuleSet.from_template("two", template, {"p": [1, 2, 3]})
    options = Options("ts", type="type", jit=False)
    session = cep.open(rules, SCHEMA, options)
    rows = [{"ts": n, "type": "A", "id": 1, "x": x} for n, x in enumerate((2, 3, 4, 5))]
    assert session.push(pa.Table.from_pylist(rows[:2], SCHEMA))["rule"].to_pylist() == ["two-1"]
    changed = rules.without("two-1") | RuleSet.from_template("new", template, {"p": [0, 0, 9]})
    session = cep.resume(changed, SCHEMA, session.save(), options)
    third = session.push(pa.Table.from_pylist(rows[2:3], SCHEMA))
    assert sorted(third["rule"].to_pylist()) == ["two-2"]
    fourth = session.push(pa.Table.from_pylist(rows[3:], SCHEMA))
    assert sorted(fourth["rule"].to_pylist()) == ["new-1", "new-2", "two-2", "two-3"]


ANSWERING = {
    "pairs": "PATTERN A a ; B b WHERE [id] WITHIN 6 GROUP BY a.id, TUMBLE(8) RETURN a.id AS k, "
    "count(*) AS n, max(b.x) AS m",
    "all": "FROM A a GROUP BY HOP(3, 7) RETURN window_start, count(*) AS n",
    "left": "PATTERN A a ; !B b WHERE [id] WITHIN 5 GROUP BY SESSION(6) HAVING count(*) > 1 "
    "RETURN window_start, count(*) AS n",
}
PLAIN = {
    "pair": "PATTERN A a ; B b WHERE [id] WITHIN 6 RETURN a.x AS x",
    "group": "PATTERN A a ; B+ b WHERE [id] WITHIN 6 RETURN a.x AS x, count(b) AS n",
}


def stream(seed: int, count: int = 40) -> list[Event]:
    chance, events, now = random.Random(seed), list[Event](), 0
    for n in range(count):
        now += chance.choice((0, 1, 1, 2, 5))
        values = {
            "ts": now,
            "type": chance.choice("AABC"),
            "id": chance.randrange(2),
            "x": chance.randrange(5),
        }
        events.append(Event(n, now, values))
    return events


def data_of(events: list[Event]) -> pa.Table:
    return pa.Table.from_pylist([dict(e.values) for e in events], SCHEMA)


def answers_of(name: str, events: list[Event]) -> list[Any]:
    return list(answers(bind(parse(ANSWERING[name]), BOUND), events))


def by_rule(alerts: list[dict[str, Any]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in alerts:
        found.setdefault(row["rule"], []).append(json.loads(row["match"]))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_rules_that_return_answers(seed: int) -> None:
    events = stream(seed)
    rules = RuleSet.of({**PLAIN, **ANSWERING})
    way = Way(seed, most=seed + 1, delay=[None, 5][seed % 2], beats=0.3, moves=0.4)
    options = Options("ts", type="type", jit=False, delay=way.delay)
    query = bind(parse("PATTERN A a"), Schema(COLUMNS, time="ts", type="type"))
    data, arrivals = arranged(query, data_of(events), way)
    found = by_rule(pushed(rules, data, arrivals, way, options))
    for name in ANSWERING:
        expected_answers = answers_of(name, events)
        assert len(expected_answers) > 1
        assert found[name] == expected_answers, name


def test_iterators() -> None:
    """Data that can be read once: alerts come as they are known."""
    events = stream(1)
    rules = RuleSet.of({**PLAIN, **ANSWERING})
    data = data_of(events)
    read: list[int] = []

    def batches() -> Any:
        for number, batch in enumerate(data.to_batches(max_chunksize=5)):
            read.append(number)
            yield batch

    reader = cep.match(batches(), rules, **NAMED)
    first = reader.read_next_batch()
    assert first.num_rows > 0 and len(read) < 8
    found = by_rule([*first.to_pylist(), *reader.read_all().to_pylist()])
    for name in ANSWERING:
        assert found[name] == answers_of(name, events), name
    whole = by_rule(rules.match(data, **NAMED).to_pylist())
    for name in PLAIN:
        assert sorted(map(str, found[name])) == sorted(map(str, whole[name])), name


def test_streams_in_a_dict_and_nested_values() -> None:
    schemas = {
        "A": pa.schema({"ts": pa.int64(), "user": pa.struct({"id": pa.int64()})}),
        "B": pa.schema({"ts": pa.int64(), "user": pa.struct({"id": pa.int64()})}),
    }
    rules = RuleSet.of({"pair": "PATTERN A a ; B b WHERE a.user.id = b.user.id WITHIN 5"})
    session = cep.open(rules, schemas, time="ts", jit=False)
    assert session.push({"A": {"ts": 1, "user": {"id": 7}}}).num_rows == 0
    found = session.push({"B": [{"ts": 2, "user": {"id": 8}}, {"ts": 3, "user": {"id": 7}}]})
    assert found.select(["rule", "match_start", "match_end"]).to_pylist() == [
        {"rule": "pair", "match_start": 1, "match_end": 3}
    ]


class TestResuming:
    """As when a stream of rules goes on."""

    AB = "PATTERN A a ; B b WITHIN 9 RETURN a.x"
    BC = "PATTERN B a ; C b WITHIN 9 RETURN a.x"
    LEFT = "PATTERN A a ; !C c FOR 8 RETURN a.x"

    def saved(self, **rules: str) -> bytes:
        session = cep.open(RuleSet.of(rules), SCHEMA, **NAMED)
        session.push([{"ts": 1, "type": "A", "x": 1}, {"ts": 2, "type": "B", "x": 2}])
        return session.save()

    def test_rules_that_stay_go_on_and_others_begin(self) -> None:
        saved = self.saved(ab=self.AB, left=self.LEFT)
        session = cep.resume(RuleSet.of({"ab": self.AB, "bc": self.BC}), SCHEMA, saved, **NAMED)
        found = session.push(
            [{"ts": 3, "type": "B", "x": 3}, {"ts": 4, "type": "C", "x": 4}]
        ).to_pylist()
        found += session.close().to_pylist()
        # The B of 2 was before `bc`; `left` is gone.
        pairs = [(row["rule"], row["match_start"], row["match_end"]) for row in found]
        assert pairs == [("ab", 1, 3), ("bc", 3, 4)]
        assert session.status.matches == 3  # ab at 2, too, before it was saved

    def test_a_rule_that_reads_another_column(self) -> None:
        schema = SCHEMA.append(pa.field("y", pa.int64()))
        session = cep.open(RuleSet.of({"ab": self.AB}), schema, **NAMED)
        session.push({"ts": 1, "type": "A"})
        more = RuleSet.of(
            {"ab": self.AB, "y": "PATTERN A a ; B b WHERE a.y > b.x WITHIN 9 RETURN a.x"}
        )
        with pytest.raises(cep.StateError, match="the query now reads `y`"):
            cep.resume(more, schema, session.save(), **NAMED)

    def test_other_kinds_of_sessions(self) -> None:
        saved = self.saved(ab=self.AB)
        with pytest.raises(cep.StateError, match="was saved without a query"):
            cep.resume(self.AB, SCHEMA, saved, **NAMED)
        plain = cep.open(self.AB, SCHEMA, **NAMED).save()
        with pytest.raises(cep.StateError, match="was saved without rules"):
            cep.resume(RuleSet.of({"ab": self.AB}), SCHEMA, plain, **NAMED)


class TestRefusals:
    def test_no_rules(self) -> None:
        with pytest.raises(cep.DataError, match=r"^there are no rules: open a session with some$"):
            cep.open(RuleSet(), SCHEMA, **NAMED)

    def test_a_rule_without_a_window(self) -> None:
        rules = RuleSet.of({"ab": "PATTERN A a -> B b"})
        with pytest.raises(cep.QueryError, match="CEP407"):
            cep.open(rules, SCHEMA, **NAMED)

    def test_an_answer_without_a_window(self) -> None:
        rules = RuleSet.of({"n": "FROM A a GROUP BY a.x"})
        with pytest.raises(cep.QueryError, match="CEP346"):
            cep.open(rules, SCHEMA, **NAMED)

    def test_events_counted_by_key(self) -> None:
        rules = RuleSet.of({"n": "PATTERN A a ; B b WHERE [x] WITHIN 5 EVENTS"})
        with pytest.raises(cep.UnsupportedError, match="`n` counts the events of each key"):
            cep.open(rules, SCHEMA, **NAMED)


def test_until_and_figures() -> None:
    rules = RuleSet.of({"left": "PATTERN A a ; !C c FOR 8 RETURN a.x"})
    session = cep.open(rules, SCHEMA, until="last event", **NAMED)
    session.push([{"ts": 1, "type": "A"}, {"ts": 9, "type": "A"}])
    assert session.close().num_rows == 0
    assert (session.status.matches, session.status.undecided) == (1, 1)
