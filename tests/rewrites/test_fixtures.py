"""Before and after, as texts: one file per rule, and that rule alone is applied."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from cepheid.algebra import bind
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.text import query_text
from cepheid.algebra.types import Schema
from cepheid.language import parse
from cepheid.rewrites import REWRITES, Facts, Rewrite
from cepheid.rewrites.driver import rewrite_by
from cepheid.statistics import Statistics
from tests.corpus.reader import PAIR, blocks
from tests.oracle.events import Event
from tests.properties.strategies import COLUMNS, IDS, SS, XS, YS
from tests.rewrites.harness import by_oracle

FOLDER = Path(__file__).parent / "fixtures"
FIXTURES = {
    f"{rule.name}/{fields['name']}": (rule, fields)
    for rule in REWRITES
    for fields in blocks(FOLDER / f"{rule.name}.txt")
}


def bound(text: str) -> BoundQuery:
    return bind(parse(text), Schema(COLUMNS, time="ts", type="type"))


def facts(fields: dict[str, str]) -> Facts:
    rates = {name: float(rate) for name, rate in PAIR.findall(fields.get("rates", ""))}
    return Facts(Statistics(rates=rates))


@pytest.mark.parametrize("name", FIXTURES)
def test_before_and_after(name: str) -> None:
    rule, fields = FIXTURES[name]
    assert fields.keys() <= {"name", "query", "after", "nothing", "warning", "rates"}
    query = bound(fields["query"])
    rewritten = rewrite_by((rule,), query, facts(fields))
    found = rewritten.query
    assert found.nothing == fields.get("nothing")
    if "after" in fields:
        assert query_text(found) == fields["after"]
        assert rewritten.warnings == tuple(fields.get("warning", "").splitlines())
    assert all(step.rule == rule.name and step.before != step.after for step in rewritten.applied)


@pytest.mark.parametrize("name", FIXTURES)
def test_both_sides_match_the_same(name: str) -> None:
    rule, fields = FIXTURES[name]
    query = bound(fields["query"])
    rewritten = rewrite_by((rule,), query, facts(fields)).query
    for events in (stream(f"{name} {n}") for n in range(4)):
        assert by_oracle(rewritten, events, query) == by_oracle(query, events)


def stream(seed: str, length: int = 14) -> list[Event]:
    """Events of all types, one a tick or so, always the same for a seed."""
    draw = random.Random(seed)
    time = 0
    events: list[Event] = []
    for row in range(length):
        time += draw.choice((0, 1, 1, 1))
        values = {
            "ts": time,
            "type": draw.choice("ABCDE"),
            "row": row,
            "x": draw.choice((*XS, 6, 7)),
            "id": draw.choice((*IDS, 7, 7)),
            "y": draw.choice(YS),
            "s": draw.choice(SS),
            "n": 0,
        }
        events.append(Event(row, time, values))
    return events


@pytest.mark.parametrize("rule", REWRITES, ids=lambda rule: rule.name)
def test_every_rule_has_cases_of_both_kinds(rule: Rewrite) -> None:
    """Where it changes something, and where it must not."""
    own = [fields for r, fields in FIXTURES.values() if r is rule]
    changed = [f["query"] for f in own if rewrite_by((rule,), bound(f["query"]), facts(f)).applied]
    assert 0 < len(changed) < len(own)
