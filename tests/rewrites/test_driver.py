"""Which rules run, what they leave behind, and what becomes of RETURN's names."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from cepheid.algebra import bind
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.text import query_text
from cepheid.algebra.types import Schema, Type
from cepheid.engine.run import Engine
from cepheid.language import parse
from cepheid.planner import make_plan
from cepheid.rewrites import REWRITES, Applied, rewrite
from cepheid.rewrites.driver import MOST_CONDITIONS
from cepheid.rewrites.measure import measure
from cepheid.statistics import Statistics

COLUMNS = {"ts": Type.INTEGER, "type": Type.STRING, "x": Type.INTEGER, "id": Type.INTEGER}


def bound(text: str) -> BoundQuery:
    return bind(parse(text), Schema(COLUMNS, time="ts", type="type"))


def test_steps_are_told_in_the_order_in_which_they_were_taken() -> None:
    query = bound("PATTERN A a ; (!B b & !C c) ; D d WHERE 3 < a.x HAVING d.x > a.x WITHIN 9")
    rewritten = rewrite(query)
    assert rewritten.applied == (
        Applied("folding", "3 < a.x", "a.x > 3"),
        Applied("pushdown", "HAVING d.x > a.x", "d.x > a.x"),
        Applied("negations", "A a ; !B b ; !C c ; D d", "A a ; !(B b | C c) ; D d"),
    )
    assert rewritten.warnings == ()


def test_a_query_with_very_many_conditions_is_run_as_it_is_written() -> None:
    conditions = [f"a.x > {n}" for n in range(MOST_CONDITIONS)]
    few = bound(f"PATTERN A a WHERE {' AND '.join(conditions)}")
    assert query_text(rewrite(few).query) == f"PATTERN A a\nWHERE {conditions[-1]}"
    many = bound(f"PATTERN A a WHERE {' AND '.join([*conditions, 'a.x > 0'])}")
    assert rewrite(many).query == many
    assert rewrite(many).applied == ()


def test_a_query_that_has_nothing_to_rewrite_stays_itself() -> None:
    query = bound("PATTERN A a ; B b WHERE a.x < b.x WITHIN 9")
    rewritten = rewrite(query)
    assert rewritten.query is query
    assert rewritten.applied == ()


@pytest.mark.parametrize("rule", [rule.name for rule in REWRITES])
def test_a_rule_can_be_left_out(rule: str) -> None:
    text = """
        PATTERN ((A a1 ; B b1) | (A a2 ; C c1)) ; D d ; (!E e & !F f) ; (G g -> H h)
        WHERE 1 = 1 AND d.x > 3 AND d.x > 2 AND d.x = h.x AND d.id = g.id AND d.id = h.id
          AND (g.x < h.x OR g.x = h.x)
        HAVING d.x < 9 AND d.x = 4
        WITHIN 9
    """
    applied = [step.rule for step in rewrite(bound(text), without=(rule,)).applied]
    assert rule not in applied
    assert applied


def test_an_unknown_rule_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ValueError, match=r"no rewrite rule 'flaten'; did you mean `flatten`\?"):
        rewrite(bound("PATTERN A a"), without=("flaten",))
    with pytest.raises(ValueError, match="rules are contradiction, folding"):
        rewrite(bound("PATTERN A a"), without=("zzz",))


def test_the_documentation_has_every_rule_in_order() -> None:
    text = (Path(__file__).parents[2] / "docs" / "rewrites.md").read_text()
    names = [rule.name for rule in REWRITES]
    assert re.findall(r"^\| \[(\w+)\]", text, re.MULTILINE) == names
    assert re.findall(r"^## ([a-z]+)$", text, re.MULTILINE) == names


def test_names_and_laws_are_told_apart() -> None:
    assert (
        len({rule.name for rule in REWRITES})
        == len({rule.law for rule in REWRITES})
        == len(REWRITES)
    )


def test_what_matches_nothing_says_why_and_is_left_alone() -> None:
    query = bound("PATTERN A a ; B b WHERE 5 < a.x AND a.x < 3 AND 1 < b.x WITHIN 9")
    rewritten = rewrite(query)
    assert rewritten.query.nothing == "`5 < a.x` and `a.x < 3` can't both be true"
    assert rewritten.warnings == (f"the query matches nothing: {rewritten.query.nothing}",)
    assert [step.rule for step in rewritten.applied] == ["contradiction"]


def test_a_contradiction_is_found_through_an_equality() -> None:
    query = bound("PATTERN A a ; B b ; C c WHERE a.id = b.id AND a.id = 1 AND b.id = 2 WITHIN 9")
    assert rewrite(query).query.nothing == "`a.id = 1` and `a.id = 2` can't both be true"


def test_columns_that_are_read_no_more_are_not_required() -> None:
    query = bound("PATTERN A a ; !B b ; C c WHERE b.x = NULL WITHIN 9 RETURN a.ts")
    assert query.required == ("ts", "type", "x")
    assert rewrite(query).query.required == ("ts", "type")


def test_factoring_asks_for_the_cost() -> None:
    query = bound("PATTERN (A a1 ; B b) | (A a2 ; C c) WITHIN 9")
    dear = rewrite(query, cost=lambda q: 1.0 / measure(q.pattern)[0])
    cheap = rewrite(query, cost=lambda q: float(measure(q.pattern)[0]))
    assert query_text(dear.query) == query_text(query)
    assert query_text(cheap.query) == "PATTERN A a1 ; B b | C c\nWITHIN 9 units"


def test_statistics_reach_the_rules() -> None:
    query = bound("PATTERN A a | B b")
    rewritten = rewrite(query, Statistics(rates={"a": 1.0, "b": 3.0}))
    assert query_text(rewritten.query) == "PATTERN B b | A a"


def rows(query: BoundQuery, events: dict[str, list[object]]) -> list[dict[str, object]]:
    table = pa.table(events)
    engine = Engine(make_plan(query), table.schema, jit=False)
    found = [b for batch in table.to_batches() for b in engine.push(batch)]
    return [row for batch in (*found, *engine.finish()) for row in batch.to_pylist()]


def test_return_keeps_the_names_that_factoring_takes_away() -> None:
    text = """
        PATTERN (A a1 ; B b) | (A a2 ; C c) WITHIN 9
        RETURN a1.x AS one, a2.x AS two, coalesce(a2.x, 0) + 1 AS more, a1, b.x AS b, c.x AS c
    """
    rewritten = rewrite(bound(text)).query
    assert query_text(rewritten) == "PATTERN A a1 ; B b | C c\nWITHIN 9 units"
    events: dict[str, list[object]] = {
        "ts": [1, 2, 3],
        "type": ["A", "B", "C"],
        "x": [10, 20, 30],
        "id": [1, 1, 1],
    }
    whole = {"ts": 1, "type": "A", "x": 10, "id": 1}
    assert rows(rewritten, events) == [
        {"one": 10, "two": None, "more": 1, "a1": whole, "b": 20, "c": None}
        | {"match_start": 1, "match_end": 2},
        {"one": None, "two": 10, "more": 11, "a1": None, "b": None, "c": 30}
        | {"match_start": 1, "match_end": 3},
    ]


def test_return_of_a_branch_that_is_gone_is_null() -> None:
    text = "PATTERN A a ; (B b | C c) WHERE b.x = NULL WITHIN 9 RETURN a.x AS a, b.x AS b, b AS w"
    rewritten = rewrite(bound(text)).query
    assert query_text(rewritten) == "PATTERN A a ; C c\nWITHIN 9 units"
    events: dict[str, list[object]] = {
        "ts": [1, 2, 3],
        "type": ["A", "B", "C"],
        "x": [10, 20, 30],
        "id": [1, 1, 1],
    }
    assert rows(rewritten, events) == [
        {"a": 10, "b": None, "w": None, "match_start": 1, "match_end": 3}
    ]
