"""Patterns of branches and of events in any order, with conditions between events, counted in every
way that there is: as the oracle's."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import cepheid as cep
from cepheid.algebra import bind
from cepheid.algebra.query import BoundQuery
from cepheid.answers.counted.countable import CountedBranches, Way, ways
from cepheid.answers.counted.counting_automaton import NotCounted
from cepheid.language import parse
from cepheid.rewrites import rewrite
from tests.answers.harness import answered
from tests.answers.test_corpus import same
from tests.answers.test_counting import SCHEMA, rows
from tests.examples import examples
from tests.oracle import answers

PATTERNS = (
    "A a & B b",
    "A a & A b",
    "A a & ANY(A, B) b & B c",
    "A a & B b & C c & A d",
    "(A a ; B b) | (C c ; D d)",
    "A a ; (B b | C c) ; A d",
    "A a | (B b ; A c)",
    "(A a & B b) | C c",
    "A a ; (A b | (B c ; C d))",
    "(A a | B b) ; (C c | B d)",
    "A a ; !D n ; (B b | C c)",
)
CONDITIONS = (
    "a.x < b.x",
    "a.x = b.x",
    "b.x >= c.x",
    "a.x <> d.x",
    "c.x < d.x",
    "c.x + a.x > 2",
    "a.id = b.id",
    "n.x = a.x",
    "a.x > 1",
    "[id]",
)


def drawn_query(draw: random.Random) -> BoundQuery | None:
    """None where a condition names a variable that can't be there."""
    pattern = draw.choice(PATTERNS)
    names = [name for name in "abcdn" if f" {name}" in pattern]
    values = [name for name in names if name != "n"]
    possible = [c for c in CONDITIONS if all(f"{n}." not in c or n in names for n in "abcdn")]
    where = draw.sample(possible, min(len(possible), draw.randint(1, 2)))
    having = f"HAVING {draw.choice(possible)}" if draw.random() < 0.1 else ""
    groups = [draw.choice(values) + draw.choice((".x", ".id"))] * draw.randint(0, 1)
    window = draw.choice(("", "TUMBLE(7)", "HOP(3, 7)", "SESSION(3)"))
    parts = [*groups, *filter(None, [window])]
    functions = ("sum", "min", "avg", "count", "max")
    every = [f"{function}({name}.x)" for function in functions for name in values]
    columns = draw.sample(["count(*)", "approx_count(*)", *every], 2)
    group_by = f"GROUP BY {', '.join(parts)}" if parts else ""
    returned = ", ".join(f"{text} AS m{n}" for n, text in enumerate([*columns, *groups]))
    text = (
        f"PATTERN {pattern} WHERE {' AND '.join(where)} {having} WITHIN {draw.randint(2, 12)} "
        f"{group_by} RETURN {returned}"
    )
    try:
        return bind(parse(text), SCHEMA)
    except cep.QueryError:
        return None


def ways_of(query: BoundQuery) -> tuple[Way, ...]:
    try:
        return ways(rewrite(query).query)
    except NotCounted:
        return ()


@pytest.mark.parametrize("seed", range(examples("counted branches")))
def test_branches(seed: int) -> None:
    draw = random.Random(f"branches {seed}")
    query = drawn_query(draw)
    if query is None:
        return
    for way in ways_of(query):
        for _ in range(2):
            stream = rows(draw, draw.randint(2, 11))
            assert same(answered(query, stream, None, way), answers(query, stream)), stream


def test_most_are_counted_in_branches() -> None:
    drawn = [drawn_query(random.Random(f"branches {seed}")) for seed in range(60)]
    kinds = Counter(type(way) for q in drawn if q is not None for way in ways_of(q)[:1])
    assert kinds[CountedBranches] > 25


def test_a_group_by_the_key_of_an_event_that_is_absent() -> None:
    text = "PATTERN A a | B b WHERE [id] GROUP BY a.id RETURN a.id, count(*) AS n"
    query = bind(parse(text), SCHEMA)
    stream = rows(random.Random("absent"), 12)
    assert any(row["id"] is None for row in answers(query, stream))
    assert same(answered(query, stream, None), answers(query, stream))
