"""Variables, pattern, key, window, outputs and required columns of bound queries."""

from __future__ import annotations

import pickle
from datetime import timedelta

import pytest

from cepheid.algebra import Clock, Kind, Window, bind
from cepheid.algebra.patterns import (
    Closure,
    Conjunction,
    Disjunction,
    Leaf,
    Negation,
    Pattern,
    Sequence,
    Unless,
    leaves,
)
from cepheid.errors import QueryError
from cepheid.language import parse
from cepheid.language.ast import Between, SequenceOperator
from tests.algebra.schemas import STREAMS, TYPED, UNTYPED
from tests.algebra.test_roles import bound, shown
from tests.algebra.text import text

ANY, NEXT, STRICT = SequenceOperator.ANY, SequenceOperator.NEXT, SequenceOperator.STRICT
A, B, C, D = (Leaf(v) for v in "abcd")

PATTERNS: list[tuple[str, Pattern]] = [
    ("(A a ; B b) ; C c", Sequence((A, B, C), (ANY, ANY))),
    ("A a ; (B b ; C c)", Sequence((A, B, C), (ANY, ANY))),
    ("A a ; (!B b ; C c)", Sequence((A, Negation(B, 0), C), (ANY, ANY))),
    ("(A a -> B b) ; C c", Sequence((A, B, C), (NEXT, ANY))),
    ("(A a ; B b) -> C c", Sequence((A, B, C), (ANY, NEXT))),
    ("A a -> (B b ; C c)", Sequence((A, Sequence((B, C), (ANY,))), (NEXT,))),
    ("A a ; (B b -> C c)", Sequence((A, Sequence((B, C), (NEXT,))), (ANY,))),
    ("A a & (B b & C c)", Conjunction((A, B, C))),
    ("(A a | B b) | C c", Disjunction((A, B, C))),
    ("A a & (B b | C c)", Conjunction((A, Disjunction((B, C))))),
    ("A a ; !B b ; !C c ; D d",
     Sequence((A, Negation(B, 0), Negation(C, 1), D), (ANY, ANY, ANY))),
    ("(A a \\ B b) ; !C c ; D d",
     Sequence((Unless(A, B, 0), Negation(C, 1), D), (ANY, ANY))),
    ("A a ; B* b ; C c", Sequence((A, Closure(B, Between(0, None)), C), (ANY, ANY))),
]  # fmt: skip


@pytest.mark.parametrize(("written", "expected"), PATTERNS)
def test_pattern(written: str, expected: Pattern) -> None:
    assert bound(f"PATTERN {written} WITHIN 10").pattern == expected


def test_using_changes_plain_semicolons_alone() -> None:
    query = bound("PATTERN A a ; B b => C c USING SKIP TILL NEXT MATCH")
    assert query.pattern == Sequence((A, B, C), (NEXT, STRICT))
    assert query.window is None


VARIABLES = [
    ("A ; B", ["A", "B"]),
    ("A ; A ; A a", ["A", "A_2", "a"]),
    ("A ; B A_2 ; A", ["A", "A_2", "A_3"]),
    ("ANY(A, B) ; ANY(C, D)", ["any", "any_2"]),
    ("ANY(A, B) x ; C", ["x", "C"]),
]


@pytest.mark.parametrize(("pattern", "expected"), VARIABLES)
def test_variables(pattern: str, expected: list[str]) -> None:
    query = bound(f"PATTERN {pattern} WITHIN 10")
    assert list(query.variables) == expected == list(leaves(query.pattern))


def test_kinds_types_and_negations() -> None:
    query = bound("PATTERN A a ; B{2} b ; ANY(C, D) c ; E? e ; !F f ; (G g \\ H h) WITHIN 10")
    found = {v.name: (v.types, v.kind, v.negation) for v in query.variables.values()}
    assert found == {
        "a": (("A",), Kind.SINGLE, None),
        "b": (("B",), Kind.GROUP, None),
        "c": (("C", "D"), Kind.SINGLE, None),
        "e": (("E",), Kind.OPTIONAL, None),
        "f": (("F",), Kind.SINGLE, 0),
        "g": (("G",), Kind.SINGLE, None),
        "h": (("H",), Kind.SINGLE, 1),
    }


def test_one_stream_without_types_binds_aliases() -> None:
    query = bind(parse("PATTERN a ; b WHERE a.x < b.x WITHIN 10"), UNTYPED)
    assert [(v.name, v.types) for v in query.variables.values()] == [("a", ()), ("b", ())]


def test_streams_give_types_and_columns() -> None:
    query = bind(parse("PATTERN Trade t ; ANY(Trade, Quote) x WITHIN 10"), STREAMS)
    assert query.variables["t"].columns == ("ts", "id", "price", "volume")
    assert query.variables["x"].columns == ("ts", "id", "price", "volume", "bid")


def test_from_restricts_the_stream() -> None:
    query = bind(parse("PATTERN Trade t FROM Trade"), STREAMS)
    assert query.schema.streams is not None
    assert set(query.schema.streams) == {"Trade"}


KEYS = [
    ("A a ; B b", "[id]", [{"a": "id", "b": "id"}], []),
    ("A a ; B b", "[ID]", [{"a": "id", "b": "id"}], []),
    ("A a ; B b", "a.id = b.id", [{"a": "id", "b": "id"}], []),
    ("A a ; B b", "a.id = b.user", [{"a": "id", "b": "user"}], []),
    ("A a ; B b ; C c", "a.id = b.id = c.id", [dict.fromkeys("abc", "id")], []),
    ("A a ; B b ; C c", "a.id = b.id", [], ["equality [a b] a.id = b.id"]),
    ("A a ; B b", "[id] AND [user]", [dict.fromkeys("ab", "id"), dict.fromkeys("ab", "user")], []),
    ("A a ; !B b ; C c", "[id]", [dict.fromkeys("abc", "id")], []),
    ("A a ; !B b ; C c", "a.id = c.id", [], ["equality [a c] a.id = c.id"]),
    ("A a ; !B b ; C c", "a.id = b.id AND b.id = c.id", [dict.fromkeys("abc", "id")], []),
    ("A a \\ B b", "a.id = b.id", [dict.fromkeys("ab", "id")], []),
    ("A a ; B+ b ; C c", "a.id = b.id AND a.id = c.id", [dict.fromkeys("abc", "id")], []),
    ("A a ; B b", "a.id = b.id AND a.id = b.user", [dict.fromkeys("ab", "id")],
     ["equality [a b] a.id = b.user"]),
    ("A a ; B b", "a.id = 3 AND b.id = 3", [], ["class [a] a.id = 3", "class [b] b.id = 3"]),
    ("A a ; !B b", "[id = 3]", [], ["class [a] a.id = 3", "class #0 [b] b.id = 3"]),
    ("A a ; B b", "a.id = b.price", [], ["multi-class [a b] to_float(a.id) = b.price"]),
    ("A a ; B b", "a.id = b.id OR a.x = 1", [],
     ["multi-class [a b] (a.id = b.id) or (a.x = 1)"]),
    ("A a ; B b", "NOT [id]", [], ["multi-class [a b] not(a.id = b.id)"]),
    ("(A a | B b) ; C c", "[id]", [dict.fromkeys("abc", "id")], []),
    ("A a | B b", "[id]", [dict.fromkeys("ab", "id")], []),
    ("(A a | B b) ; C c", "a.id = c.id AND b.id = c.id", [dict.fromkeys("abc", "id")], []),
    ("A a | B b", "a.id = b.id", [], ["equality [a b] a.id = b.id"]),
    ("(A a | B b) ; C c", "NOT [id]", [],
     ["multi-class [a b c] not((a.id = c.id) and (b.id = c.id))"]),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "where", "key", "left"), KEYS)
def test_key(pattern: str, where: str, key: list[dict[str, str]], left: list[str]) -> None:
    query = bound(f"PATTERN {pattern} WHERE {where} WITHIN 10")
    assert [dict(part.columns) for part in query.key] == key
    assert [shown(c) for c in query.where] == left


def test_having_makes_no_key() -> None:
    assert bound("PATTERN A a ; B b HAVING a.id = b.id WITHIN 10").key == ()


def test_uniform_keys_have_one_column() -> None:
    uniform, mixed = (
        bound(f"PATTERN A a ; B b WHERE {where} WITHIN 10").key[0].uniform
        for where in ("[id]", "a.id = b.user")
    )
    assert (uniform, mixed) == ("id", None)


def test_an_attribute_that_a_stream_lacks_makes_no_key() -> None:
    query = bind(parse("PATTERN ANY(Trade, Quote) x ; Trade t WHERE [price] WITHIN 10"), STREAMS)
    assert query.key == ()
    assert [shown(c) for c in query.where] == [
        "multi-class [x t] not(in(x.__stream, 'Trade')) or (x.price = t.price)"
    ]


WINDOWS = [
    ("typed", "10", Window(10)),
    ("typed", "200 units", Window(200)),
    ("typed", "1.5 units", Window(2)),
    ("typed", "100 EVENTS", Window(100, Clock.EVENTS)),
    ("typed", ":w", Window(7)),
    ("milliseconds", "2 SEC", Window(2000)),
    ("milliseconds", "500 us", Window(1)),
    ("stamped", "3 hours", Window(10_800_000_000)),
    ("stamped", ":w minutes", Window(420_000_000)),
    ("stamped", ":d", Window(90_000_000)),
]


@pytest.mark.parametrize(("schema", "within", "expected"), WINDOWS)
def test_window(schema: str, within: str, expected: Window) -> None:
    query = bound(f"PATTERN A a ; B b WITHIN {within}", schema, w=7, d=timedelta(seconds=90))
    assert query.window == expected


WINDOWLESS = ["A a", "A a | B b", "A a -> B b", "A a => B b -> C c", "A a -> B+ b -> C c",
              "A a \\ B b", "A a @ 5"]  # fmt: skip


@pytest.mark.parametrize("pattern", WINDOWLESS)
def test_no_window_needed(pattern: str) -> None:
    assert bound(f"PATTERN {pattern}").window is None


RETURNS = [
    ("a.x", {"x": "a.x"}),
    ("a.x AS y", {"y": "a.x"}),
    ("a.x, c.x", {"a_x": "a.x", "c_x": "c.x"}),
    ("a.x, c.x AS x", {"a_x": "a.x", "x": "c.x"}),
    ("a.X", {"x": "a.x"}),
    ("a.x + c.x", {"a.x + c.x": "a.x + c.x"}),
    ("b.x", {"x": "collect(b.x)"}),
    ("o.x", {"x": "first(o.x)"}),
    ("o.x + 1 AS y", {"y": "first(o.x) + 1"}),
    ("sum(b.x)", {"sum(b.x)": "sum(b.x)"}),
    ("count(b) AS n", {"n": "count(b)"}),
    ("duration() AS d", {"d": "duration()"}),
    ("last(b)", {"last(b)": f"last(b{{{', '.join(TYPED.columns)}}})"}),
]


@pytest.mark.parametrize(("returned", "expected"), RETURNS)
def test_outputs(returned: str, expected: dict[str, str]) -> None:
    query = bound(f"PATTERN A a ; B+ b ; C c ; O? o ; D d WITHIN 10 RETURN {returned}")
    assert {o.name: text(o.expression) for o in query.outputs} == expected


TRADE = "ts, id, price, volume"


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("", {"t": f"t{{{TRADE}}}", "b": f"b{{{TRADE}}}"}),
        ("RETURN *", {"t": f"t{{{TRADE}}}", "b": f"b{{{TRADE}}}"}),
        ("RETURN t AS first", {"first": f"t{{{TRADE}}}"}),
        ("RETURN t.*", {"ts": "t.ts", "id": "t.id", "price": "t.price", "volume": "t.volume"}),
    ],
)
def test_whole_events(returned: str, expected: dict[str, str]) -> None:
    query = bind(parse(f"PATTERN Trade t ; !Quote q ; Trade+ b WITHIN 10 {returned}"), STREAMS)
    assert {o.name: text(o.expression) for o in query.outputs} == expected


REQUIRED = [
    ("PATTERN A a ; B b WITHIN 10 RETURN a.ts", ("ts", "type")),
    ("PATTERN A a ; B b WHERE [id] WITHIN 10 RETURN a.ts", ("ts", "type", "id")),
    ("PATTERN A a ; !B b WHERE b.price > a.x WITHIN 10 RETURN a.name",
     ("ts", "type", "x", "price", "name")),
    ("PATTERN A a ; B+ b ; C c WHERE b.x > PREV(b.price) WITHIN 10 RETURN avg(b.cost) AS y",
     ("ts", "type", "x", "price", "cost")),
    ("PATTERN A a ; B+ b UNTIL (b.user = 1) ; C c HAVING a.ok WITHIN 10 RETURN a.ts",
     ("ts", "type", "user", "ok")),
    ("PATTERN A a", tuple(TYPED.columns)),
]  # fmt: skip


@pytest.mark.parametrize(("query", "expected"), REQUIRED)
def test_required(query: str, expected: tuple[str, ...]) -> None:
    assert bound(query).required == expected


def test_all_findings_are_reported_in_order() -> None:
    with pytest.raises(QueryError) as caught:
        bound("PATTERN A a ; B a WHERE a.y = 1 AND z.x = 2 RETURN q.x")
    assert [d.code for d in caught.value.diagnostics] == [
        "CEP401", "CEP202", "CEP204", "CEP203", "CEP203",
    ]  # fmt: skip


def test_a_bound_query_can_be_pickled() -> None:
    query = bound("PATTERN A a ; B+ b ; C c WHERE [id] AND b.x > PREV(b.x) WITHIN 10")
    assert pickle.loads(pickle.dumps(query)) == query


def test_later_features_bind() -> None:
    query = bound(
        "INTO alarms PATTERN A a -> B+ b RUNS STRICT => C c @ 5 "
        "WITHIN 10 AFTER MATCH SKIP TO LAST b RETURN a"
    )
    assert query.into == "alarms"
    assert query.selection is not None
    assert query.selection.variable == "b"
