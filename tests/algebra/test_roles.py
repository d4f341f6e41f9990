"""What each WHERE conjunct becomes: its role, and the expression that carries it."""

from __future__ import annotations

import pytest

from cepheid.algebra import BoundQuery, bind
from cepheid.algebra.patterns import Closure, Sequence
from cepheid.algebra.query import Conjunct
from cepheid.language import Source, parse
from tests.algebra.schemas import SCHEMAS
from tests.algebra.text import text


def bound(query: str, schema: str = "typed", **params: object) -> BoundQuery:
    return bind(parse(query), SCHEMAS[schema], params, Source(query))


def shown(conjunct: Conjunct) -> str:
    parts = [conjunct.role.value]
    if conjunct.target is not None:
        parts.append(f"of {conjunct.target}")
    if conjunct.negation is not None:
        parts.append(f"#{conjunct.negation}")
    return f"{' '.join(parts)} [{' '.join(conjunct.variables)}] {text(conjunct.expression)}"


THREE = "A a ; B b ; C c"
CLOSURE = "A a ; B+ b ; C c ; D d"
NEGATED = "A a ; !B b ; C c ; !D d ; E e"
GROUP = "X x ; (A a ; B b)+ ; C c ; D d"

ROLES = [
    # single variables
    (THREE, "a.x > 3", "class [a] a.x > 3"),
    (THREE, "a.x = a.id", "class [a] a.x = a.id"),
    (THREE, "a.x = b.id", "equality [a b] a.x = b.id"),
    (THREE, "c.x = a.x", "equality [a c] c.x = a.x"),
    (THREE, "a.x = b.price", "multi-class [a b] to_float(a.x) = b.price"),
    (THREE, "a.x < b.x", "multi-class [a b] a.x < b.x"),
    (THREE, "a.x = b.x OR c.x = 1", "multi-class [a b c] (a.x = b.x) or (c.x = 1)"),
    (THREE, "(a, c) OCCURS WITHIN 5 units", "multi-class [a c] span(a, c) < 5"),
    (THREE, "duration() > 5", "match [] duration() > 5"),
    (THREE, "duration() > a.x", "match [a] duration() > a.x"),
    (THREE, "1 = 2", "match [] 1 = 2"),
    # closures
    (CLOSURE, "b.x > 3", "class [b] b.x > 3"),
    (CLOSURE, "b.x > a.x", "closure filter of b [a b] b.x > a.x"),
    (CLOSURE, "b.x = c.x", "closure filter of b [b c] b.x = c.x"),
    (CLOSURE, "b.x > d.x", "group check [b d] every b: b.x > d.x"),
    (CLOSURE, "b.x > PREV(b.x)", "running of b [b] b.x > PREV(b.x)"),
    (CLOSURE, "b.x > PREV(b.x + 1)", "running of b [b] b.x > (PREV(b.x) + 1)"),
    (CLOSURE, "b.x > PREV(b.x, a.x)", "running of b [a b] b.x > (PREV(b.x) or first a.x)"),
    (CLOSURE, "PREV(b.x) > a.x", "running of b [a b] PREV(b.x) > a.x"),
    (CLOSURE, "b.x > FIRST(b.x) + a.x", "running of b [a b] b.x > (first(b.x) + a.x)"),
    (CLOSURE, "b.x < avg(b.x)", "running of b [b] to_float(b.x) < avg(to_float(b.x))"),
    (CLOSURE, "sum(b.x) > 3", "group check [b] sum(b.x) > 3"),
    (CLOSURE, "count(b) > d.x", "group check [b d] count(b) > d.x"),
    (CLOSURE, "count(*) > 2", "group check [b] count(b) > 2"),
    (CLOSURE, "ALL(b.x) <> c.x", "group check [b c] every b: b.x <> c.x"),
    (CLOSURE, "SOME(b.x) > c.x", "group check [b c] some b: b.x > c.x"),
    (CLOSURE, "SOME(b.x) BETWEEN 1 AND 2", "group check [b] some b: (b.x >= 1) and (b.x <= 2)"),
    (CLOSURE, "NOT ALL(b.x) = 1", "group check [b] not(every b: b.x = 1)"),
    (CLOSURE, "b.x > 3 OR SOME(b.x) = 1",
     "group check [b] every b: (b.x > 3) or (some b: b.x = 1)"),
    (CLOSURE, "b.x < duration()", "match [b] every b: b.x < duration()"),
    (CLOSURE, "(a, b) OCCURS WITHIN 5 units", "group check [a b] span(a, b) < 5"),
    ("A a ; !N n ; B+ b ; !M m ; C c ; D d", "b.x = c.x", "closure filter of b [b c] b.x = c.x"),
    ("A a ; (B+ b ; C c) ; D d", "b.x = c.x", "closure filter of b [b c] b.x = c.x"),
    ("A a ; B+ b ; (C c & D d)", "b.x = d.x", "closure filter of b [b d] b.x = d.x"),
    ("A a ; B+ b ; (C c | D d)", "b.x = d.x", "closure filter of b [b d] b.x = d.x"),
    ("B+ b ; C c", "b.x < c.x", "closure filter of b [b c] b.x < c.x"),
    ("A a ; B? b ; C c", "b.x = c.x", "closure filter of b [b c] b.x = c.x"),
    ("A a ; B? b ; C c ; D d", "b.x = d.x", "group check [b d] every b: b.x = d.x"),
    ("A a ; B+ b ; C c ; D+ d ; E e", "b.x = d.x", "group check [b d] every b: every d: b.x = d.x"),
    ("A a ; B+ b ; C c ; D+ d ; E e", "d.x > avg(b.x)",
     "group check [b d] every d: to_float(d.x) > avg(to_float(b.x))"),
    # negations
    (NEGATED, "b.x > 3", "class #0 [b] b.x > 3"),
    (NEGATED, "d.x > 3", "class #1 [d] d.x > 3"),
    (NEGATED, "b.x = e.x", "negation #0 [b e] b.x = e.x"),
    (NEGATED, "d.x > a.x + c.x", "negation #1 [a c d] d.x > (a.x + c.x)"),
    (NEGATED, "(b, c) OCCURS WITHIN 5 units", "negation #0 [b c] span(b, c) < 5"),
    ("A a ; !(B b ; C c) ; D d", "b.x = c.x", "negation #0 [b c] b.x = c.x"),
    ("A a \\ B b", "b.x > a.x", "negation #0 [a b] b.x > a.x"),
    ("A a ; B+ b ; !N n ; C c", "n.x > b.x", "negation #0 [b n] every b: n.x > b.x"),
    ("A a ; B+ b ; !N n ; C c", "n.x > sum(b.x)", "negation #0 [b n] n.x > sum(b.x)"),
    ("A a ; !(B b ; C+ c ; D d) ; E e", "c.x > 3", "class #0 [c] c.x > 3"),
    ("A a ; !(B b ; C+ c ; D d) ; E e", "c.x > a.x", "negation of c #0 [a c] c.x > a.x"),
    ("A a ; !(B b ; C+ c ; D d) ; E e", "c.x > e.x", "negation #0 [c e] every c: c.x > e.x"),
    ("A a ; !(B b ; C+ c ; D d) ; E e", "count(c) > 2", "negation #0 [c] count(c) > 2"),
    # closures over patterns
    (GROUP, "a.x > 3", "class [a] a.x > 3"),
    (GROUP, "a.x < b.x", "closure filter of a [a b] a.x < b.x"),
    (GROUP, "b.x < c.x", "closure filter of b [b c] b.x < c.x"),
    (GROUP, "a.x < b.x + d.x", "group check [a b d] every a: a.x < (b.x + d.x)"),
    (GROUP, "a.x > PREV(b.x)", "running of a [a b] a.x > PREV(b.x)"),
    (GROUP, "sum(b.x - a.x) > 3", "group check [a b] sum(b.x - a.x) > 3"),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "where", "expected"), ROLES)
def test_role(pattern: str, where: str, expected: str) -> None:
    query = bound(f"PATTERN {pattern} WHERE {where} WITHIN 10")
    assert [shown(c) for c in query.where] == [expected]


def test_conjuncts_keep_their_order() -> None:
    query = bound(f"PATTERN {THREE} WHERE a.x < b.x AND (c.x > 1 AND b.x = 2) WITHIN 10")
    assert [text(c.expression) for c in query.where] == ["a.x < b.x", "c.x > 1", "b.x = 2"]


HAVING = [
    ("a.x > 3", "a.x > 3"),
    ("b.x > a.x", "every b: b.x > a.x"),
    ("sum(b.x) > 3", "sum(b.x) > 3"),
    ("b.x < avg(b.x)", "every b: to_float(b.x) < avg(to_float(b.x))"),
    ("o.x > 3", "first(o.x) > 3"),
    ("o.x IS NULL", "is_null(first(o.x))"),
    ("b.x > o.x", "every b: b.x > first(o.x)"),
    ("ALL(o.x) > 3", "every o: o.x > 3"),
    ("count(o) = 0", "count(o) = 0"),
    ("duration() < 5", "duration() < 5"),
    ("[id]", "every b: a.id = b.id"),
]


@pytest.mark.parametrize(("having", "expected"), HAVING)
def test_having(having: str, expected: str) -> None:
    query = bound(f"PATTERN A a ; B+ b ; C c ; O? o ; D d HAVING {having} WITHIN 10")
    assert text(query.having[0]) == expected


def test_absent_attributes_of_another_stream_hold() -> None:
    query = bound("PATTERN ANY(Trade, Quote) x WHERE x.bid > 3 AND x.id = 1", "streams")
    assert [shown(c) for c in query.where] == [
        "class [x] not(in(x.__stream, 'Quote')) or (x.bid > 3.0)",
        "class [x] x.id = 1",
    ]


def test_until_is_bound() -> None:
    query = bound("PATTERN A a ; B+ b UNTIL (b.x > a.x + count(b)) ; C c WITHIN 10")
    assert isinstance(query.pattern, Sequence)
    closure = query.pattern.items[1]
    assert isinstance(closure, Closure) and closure.until is not None
    assert text(closure.until) == "b.x > (a.x + count(b))"
    assert query.where == ()
