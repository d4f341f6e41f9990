"""Rules that differ in which events are taken run as one query over events dealt to each of them,
and find what they find alone, by the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cepheid.algebra.types import Schema
from cepheid.engine.attribution import variants
from cepheid.options import Limit, Options
from cepheid.rules import RuleSet
from cepheid.rules.compile.compiled_rules import compile_rules
from tests.corpus.reader import table
from tests.examples import examples
from tests.oracle.events import Event
from tests.properties.strategies import COLUMNS, streams
from tests.rules.test_batch import expected, found

SCHEMA = Schema(COLUMNS, time="ts", type="type")
SOME: Mapping[str, tuple[Any, ...]] = {
    "p": (0, 1, 2, 3, None),
    "q": (1, 2, 3),
    "s": ("u", "v", "w"),
    "l": ([1, 2], [2, 3, 3], [0], [7]),
    "t": (["u"], ["v", "w", "u"], ["w"]),
    "k": ("u%", "_", "%v%", None),
    "w": (3, 5, 9, 2),
}
"""What rules have as parameters whose names begin so."""

TEMPLATES = (
    "A{2} a WHERE [id] AND a.x > :p WITHIN 9",
    "A{2} a WHERE a.x > :p AND a.s = :s WITHIN 9 AFTER MATCH SKIP FOR 4 units",
    "A a ; B b WHERE [id] AND b.x > :p WITHIN 9 AFTER MATCH SKIP PAST LAST EVENT",
    "A a ; B b WHERE [id] AND a.x > :p WITHIN 9 LIMIT 1 PER KEY",
    "A a -> B b WHERE [id] AND b.x > :p WITHIN 9",
    "A a -> B b -> C c WHERE a.x > :p AND c.x < :q WITHIN 9",
    "A a -> B b WHERE b.x > a.x + :p",
    "A a ; B+ b ; C c WHERE [id] AND b.x > :p WITHIN 9",
    "A a ; B+ b ; C c WHERE b.x > PREV(b.x) + :p AND c.x < :q WITHIN 9",
    "A a ; B+ b UNTIL (b.x > :p) ; C c WHERE b.x < 3 AND a.x > :q WITHIN 9",
    "A a ; B* b WHERE a.x > :p AND b.x > :q WITHIN 5",
    "B+ b ; C c WHERE b.x > :p HAVING sum(b.x) > :q WITHIN 5",
    "A a ; !B b ; C+ c WHERE [id] AND b.x > :p AND c.x > :q WITHIN 9",
    "A a ; !B b WHERE a.x > :p AND b.x > a.x - :q WITHIN 5",
    "A a ; (B b | C c) WHERE a.x > :p AND b.x > :q AND c.x < :q WITHIN 9",
    "A a & (B b -> C c) WHERE c.x > :p AND a.x > :q WITHIN 6",
    "A a ; B? b ; C c WHERE b.x > :p AND c.x > :q WITHIN 9",
    "A a ; !B b FOR 2 units WHERE a.x > :p AND b.x > :q WITHIN 9",
    "A a ; B+ b ; C c HAVING sum(b.x * :p) > :q WITHIN 9",
    "C c ; (A a ; B b)+ WHERE a.x > :p AND b.x > a.x - :q AND [id] WITHIN 9",
    "A a ; B b WHERE [id] AND a.x IN :l AND b.s NOT IN :t WITHIN 9",
    "A a ; B b WHERE a.s IN :t WITHIN 5",
    "A a ; B b WHERE (a.x IN :l OR b.s IN :t) AND b.x > :q WITHIN 5",
    "A a ; !C c ; B b WHERE c.x IN :l AND b.x > :q WITHIN 7",
    "A a -> B+ b RUNS WHERE b.x IN :l WITHIN 9",
    "A a ; B b WHERE a.s LIKE :k AND b.x > :q WITHIN 7",
    "A a ; B b WHERE a.s NOT LIKE :k WITHIN 7",
    "A a ; B b WHERE (:k IS NULL OR a.s LIKE :k) AND b.x > :q WITHIN 7",
    "A+ a RUNS WHERE ALL(a.x) > :p AND a.s = :s WITHIN 5 AFTER MATCH SKIP TO NEXT EVENT",
    "A a ; !B WHERE [id] AND a.x > :p WITHIN :w units",
    "!B b ; A a ; C c WHERE b.x > :p WITHIN :w units",
    "!A a ; B b ; !C c WHERE [id] AND b.x > :p WITHIN :w units AFTER MATCH SKIP PAST LAST EVENT",
    "A a ; B+ b WHERE b.x > PREV(b.x) + :p HAVING sum(b.x) > :q WITHIN :w units",
    "A a ; B* b WHERE [id] AND a.x > :p WITHIN :w units LIMIT 1 PER KEY",
    "A a ; C c ; B{1,2} b WHERE [id] AND c.x > :p WITHIN :w units",
)


def drawn_rows(draw: Any, query: str) -> Mapping[str, list[Any]]:
    count = draw(st.integers(3, 6))
    columns = {}
    for name in (name for name in SOME if f":{name}" in query):
        columns[name] = draw(st.lists(st.sampled_from(SOME[name]), min_size=count, max_size=count))
        columns[name][0] = SOME[name][0]
    return columns


@st.composite
def cases(draw: Any) -> tuple[str, Mapping[str, list[Any]], tuple[Event, ...]]:
    query = f"PATTERN {draw(st.sampled_from(TEMPLATES))}"
    return query, drawn_rows(draw, query), draw(streams("ABC", 18))


@pytest.mark.parametrize("room", [1 << 20, 4])
@settings(max_examples=examples("variants"), suppress_health_check=list(HealthCheck), deadline=None)
@given(cases())
def test_every_rule_finds_what_it_finds_alone(
    room: int, case: tuple[str, Mapping[str, list[Any]], tuple[Event, ...]]
) -> None:
    query, columns, events = case
    rules = RuleSet.from_template("rule", query, columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(variants, "MOST_ROWS", room)
        result = found(rules, table(SCHEMA, events), Options("ts", type="type", jit=False))
    for name, rule in rules.items():
        assert result[name] == expected(rule, SCHEMA, events), (query, rule.params)


@pytest.mark.parametrize("query", TEMPLATES)
def test_rules_are_variants_of_one_query(query: str) -> None:
    columns = {name: [*SOME[name][:3], SOME[name][0]] for name in SOME if f":{name}" in query}
    columns["rule"] = list("1234")
    compiled = _compiled(f"PATTERN {query}", columns)
    (shared,) = compiled.alone
    assert shared.variants is not None and len(shared.rules) == 4


@pytest.mark.parametrize(
    ("query", "given", "why"),
    [
        ("A a => B+ b => C c WHERE b.x > :p", {}, "`=>` looks at every event of the stream"),
        ("A a ; B+ b STRICT ; C c WHERE b.x > :p WITHIN 9", {}, "STRICT looks at every event"),
        ("A{2} a WHERE a.x > :p WITHIN 5 EVENTS", {}, "counts all events of the stream"),
        ("A{2} a WHERE a.x > :p WITHIN 5 LIMIT 1", {}, "LIMIT counts the matches of all keys"),
        ("A{2} a WHERE a.x > :p WITHIN 5", {"limit": Limit(total=5)}, "a limit, until="),
        ("A{2} a WHERE a.x > :p WITHIN 5", {"until": 7}, "a limit, until="),
    ],
)
def test_rules_that_depend_on_other_events_run_alone_and_say_why(
    query: str, given: dict[str, Any], why: str
) -> None:
    compiled = _compiled(f"PATTERN {query}", {"p": [1, 2, 3]}, **given)
    assert len(compiled.alone) == 3
    assert all(why in each.reason and each.variants is None for each in compiled.alone)


def _compiled(query: str, columns: Mapping[str, list[Any]], **given: Any) -> Any:
    rules = RuleSet.from_template("rule", query, columns)
    options = Options("ts", type="type", **given)
    return compile_rules(rules.templates, table(SCHEMA, ()).schema, options, deals=True, ends=True)


def test_only_events_near_an_anchor_are_copied() -> None:
    """Rule 1 needs the two events at 50 and 51, rule 2 those at 80 and 81; none needs another."""
    times = [*range(0, 100, 2), 51, 81]
    events = pa.table(
        {
            "ts": sorted(times),
            "type": ["B" if time % 2 else "A" for time in sorted(times)],
            "x": [time if time % 2 else 0 for time in sorted(times)],
        }
    )
    query = "PATTERN A a -> B b WHERE b.x = :p WITHIN 2 units"
    rules = RuleSet.from_template("rule", query, {"p": [51, 81, 7]})
    options = Options("ts", type="type")
    (shared,) = compile_rules(rules.templates, events.schema, options, deals=True).alone
    assert shared.variants is not None
    (dealt,) = shared.variants.dealt(events)
    rows = sorted(zip(dealt[variants.VARIANT].to_pylist(), dealt["ts"].to_pylist(), strict=True))
    assert rows == [(0, 50), (0, 51), (1, 80), (1, 81)]  # not those after the last step


def test_written_lists_are_looked_up_in_one_index() -> None:
    lists = ["('u')", "('v', 'w')", "('it''s', \"w\")", "('x')", "('u', 'u')", "('u', 'v')"]
    queries = [
        f"PATTERN A a ; B b WHERE a.s {asked} {values} WITHIN 5"
        for asked in ("IN", "NOT IN")
        for values in (*lists, "('a')", "('b')")
    ]
    rules = RuleSet.of({f"rule {n}": query for n, query in enumerate(queries)})
    events = tuple(
        Event(n, n, {"ts": n, "type": kind, "row": n, "x": 0, "id": 0, "y": 0.0, "s": s, "n": n})
        for n, (kind, s) in enumerate(
            [("A", "u"), ("A", "it's"), ("B", "w"), ("A", None), ("B", "")]
        )
    )
    data, options = table(SCHEMA, events), Options("ts", type="type", jit=False)
    compiled = compile_rules(rules.templates, data.schema, options, deals=True)
    assert [len(query.rules) for query in compiled.alone] == [8, 8]
    result = found(rules, data, options)
    for name, rule in rules.items():
        assert result[name] == expected(rule, SCHEMA, events), rule.query.text
    assert sum(map(len, result.values())) > 8
