"""Texts taken apart by words: what is taken out and put in again is the same query."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cepheid.language import ast, parse, parse_expression, render
from cepheid.language.outline import Outline, PlainCondition, outline
from cepheid.language.text_constants import FLOAT, INTEGER, STRING, Value
from cepheid.language.words import lexemes, scan
from tests.examples import examples
from tests.language.strategies import expressions, queries


@pytest.mark.parametrize(
    ("where", "conditions", "others"),
    [
        ("a.x = 1", ["a.x = {i}"], ()),
        ("a.x=-1.5 AND [id]", ["a.x = {f}"], ("[id]",)),
        ("a.s = 'x AND y' and b.x != 2", ["a.s = {s}", "b.x <> {i}"], ()),
        ("a.y BETWEEN 1 AND 2.5 AND b.x = 1", ["a.y BETWEEN {i} AND {f}", "b.x = {i}"], ()),
        ("a.x = 1 AND (a.y = 1 OR b.y = 2 AND b.x = 3)", ["a.x = {i}"], None),
        ("NOT a.x = 1 AND b.x = 2", ["b.x = {i}"], ("NOT a.x = {i}",)),
        ("a.x = 1 AND a.from = 2 AND a.and = 3", ["a.x = {i}", "a.from = {i}", "a.and = {i}"], ()),
        ("a.x = 5 % 3 AND a.ts > 5 minutes", [], ("a.x = 5 % 3", "a.ts > 5 minutes")),
        ("a.x = 1 = b.x AND b.x = 12345678901234567890", [], None),
        ("a.x = 1 AND b.y BETWEEN (1) AND 2", ["a.x = {i}"], ("b.y BETWEEN (1) AND 2",)),
        ("a.y BETWEEN b.y AND b.x AND a.x = 7", ["a.x = {i}"], ("a.y BETWEEN b.y AND b.x",)),
        ("(a, b) OCCURS WITHIN 3 AND a.x = 1", ["a.x = {i}"], ("(a, b) OCCURS WITHIN 3",)),
        ("a.x = 1 -- AND a.y = 2\n AND /* b */ b.x = 3", ["a.x = {i}", "b.x = {i}"], ()),
        ("a.s = 'it''s' AND b.s < 'u'", ["a.s = {s}"], ("b.s < 'u'",)),
        ("`a`.x = 1 AND true.x = 2", [], ("`a`.x = {i}", "true.x = {i}")),
    ],
)
def test_plain_conditions(
    where: str, conditions: list[str], others: tuple[str, ...] | None
) -> None:
    found = outline(f"INTO r PATTERN A a ; B b WHERE {where} WITHIN 5 RETURN a.x")
    assert found is not None
    assert found.label == "r"
    assert [condition.form for condition in found.conditions] == conditions
    if others is not None:
        assert found.frame == ("PATTERN A a ; B b", others, "WITHIN {i} RETURN a.x")


@pytest.mark.parametrize(
    "where",
    [
        "a.x = 1 OR a.y = 2 AND b.x = 3",
        "CASE WHEN a.x = 1 AND b.x = 2 AND a.y = 3 THEN 1 END = 1",
        "a.x = 1)AND b.x = 2 AND (a.x = 1",
    ],
)
def test_conditions_that_are_left_where_they_are(where: str) -> None:
    found = outline(f"PATTERN A a ; B b WHERE {where} WITHIN 5")
    assert found is not None
    assert found.conditions == ()
    assert filled(found, []).split() == f"PATTERN A a ; B b WHERE {where} WITHIN 5".split()


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN A a WHERE a.s = 'it",
        "PATTERN A a WHERE a.x = 1 /* no end",
        "PATTERN A a WHERE a.x > :low",
        "PATTERN A a W\u0130THIN 5",
        "INTO where PATTERN A a",
        "INTO `r` PATTERN A a",
        "no query at all",
        "",
        "PATTERN A a WHERE " + " AND ".join(["a.x = 1"] * 3_000),
    ],
)
def test_texts_that_the_parser_decides_about(text: str) -> None:
    assert outline(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN A AS where ; B b WHERE b.x = 1",
        "PATTERN A a ; B b WHERE b.x = 1 RETURN a.where AS where",
        "PATTERN A a ; B b WHERE b.x = 1 AND [from]",
        "PATTERN A a ; B b WHERE b.x = 1 HAVING a.x = 1 OR b.x = 2 WITHIN 5",
    ],
)
def test_names_are_no_clauses(text: str) -> None:
    found = outline(text)
    assert found is not None
    assert found.conditions == (PlainCondition("b.x = {i}", (1,)),)


@pytest.mark.parametrize(
    ("text", "frame", "constants"),
    [
        (
            "PATTERN A a ; B+ b WHERE [id] HAVING sum(b.x) > 2.5 AND a.s <> 'it''s' WITHIN 2 hours",
            ("PATTERN A a ; B+ b", ("[id]",),
             "HAVING sum(b.x) > {f} AND a.s <> {s} WITHIN {i} seconds"),
            (2.5, "it's", 7_200),
        ),
        (
            "PATTERN A a ; B b HAVING 2 * a.x > -3 * b.x WITHIN 7 ms RETURN 'x > 5'",
            ("PATTERN A a ; B b HAVING 2 * a.x > -{i} * b.x WITHIN {i} ms RETURN 'x > 5'", (), ""),
            (3, 7),
        ),
        (
            "PATTERN A a ; B b WHERE b.x > 3 * a.x AND (a.x = 1 OR b.x > 2) WITHIN 9 EVENTS",
            ("PATTERN A a ; B b", ("b.x > {i} * a.x", "(a.x = {i} OR b.x > {i})"),
             "WITHIN 9 EVENTS"),
            (3, 1, 2),
        ),
        (
            "PATTERN A+ a HAVING LAST(a.x, 2) > 5 s AND a.x BETWEEN 1 AND 20% WITHIN 5 EVENTS",
            ("PATTERN A+ a HAVING LAST(a.x, 2) > 5 s AND a.x BETWEEN 1 AND 20% WITHIN 5 EVENTS",
             (), ""),
            (),
        ),
        (
            "PATTERN A a WHERE [id] GROUP BY a.s HAVING count(*) > 2 RETURN a.s",
            ("PATTERN A a", ("[id]",), "GROUP BY a.s HAVING count(*) > 2 RETURN a.s"),
            (),
        ),
        (
            "PATTERN A a ; B b WHERE a.tags[2] = 1 AND [id = 7] WITHIN 1.5 s",
            ("PATTERN A a ; B b", ("a.tags[2] = {i}", "[id = 7]"), "WITHIN 1.5 s"),
            (1,),
        ),
    ],
)  # fmt: skip
def test_constants_of_other_conditions_and_of_the_window(
    text: str, frame: object, constants: tuple[Value, ...]
) -> None:
    found = outline(text)
    assert found is not None
    assert (found.frame, found.constants) == (frame, constants)
    again = filled(found, [written(condition) for condition in found.conditions])
    assert moved(parse(again)) == moved(parse(text))


def test_a_window_of_zero_stays_since_it_is_an_error() -> None:
    found = outline("PATTERN A a ; B b WITHIN 0")
    assert found is not None
    assert found.constants == ()


def test_a_text_with_marks_is_not_taken_apart() -> None:
    assert outline("PATTERN A a WHERE a.s = '{i}'") is None


def test_values_are_as_written() -> None:
    text = """PATTERN A a WHERE a.x = -7 AND a.y > 0.1 AND a.s = 'x:  y' AND a.s <> "it's" """
    found = outline(text)
    assert found is not None
    assert found.conditions == (
        PlainCondition("a.x = {i}", (-7,)),
        PlainCondition("a.y > {f}", (0.1,)),
        PlainCondition("a.s = {s}", ("x:  y",)),
        PlainCondition("a.s <> {s}", ("it's",)),
    )


@settings(max_examples=examples("any text"))
@given(st.text(st.sampled_from("a9_.:+-/*'\"`<>=| \n(é"), max_size=30))
def test_lexemes_are_the_words_and_what_is_between_them(text: str) -> None:
    found = lexemes(text)
    assert "".join(found) == text
    space = [lexeme for lexeme in found if not any(scan(lexeme))]
    assert [lexeme for lexeme in found if lexeme not in space] == [word[0] for word in scan(text)]


# ── a frame with its conditions is the query ──

PLAIN = st.sampled_from(
    [
        "a.x = 1",
        "b.and >= -2.5",
        "a.x BETWEEN 0 AND 1.5",
        "a.s <> 'it''s'",
        "occurs.x = 1",
        "as.y < 3",
    ]
)


QUERIES, EXPRESSIONS = queries(), expressions()


@st.composite
def mixed(draw: st.DrawFn) -> str:
    """A query in which plain conditions stand beside others, and between them."""
    query = draw(QUERIES)
    others = draw(st.lists(EXPRESSIONS, max_size=2))
    plain = [parse_expression(text) for text in draw(st.lists(PLAIN, max_size=3))]
    operands = tuple(draw(st.permutations([*others, *plain])))
    where = ast.Logical("AND", operands) if len(operands) > 1 else (*operands, None)[0]
    return render(replace(query, where=where))


def filled(found: Outline, conditions: list[str]) -> str:
    """The text with its own constants."""
    return found.text(conditions, [literal(value) for value in found.constants])


def literal(value: Value) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"{Decimal(repr(value)):f}"


def moved(query: ast.Query) -> ast.Query:
    """The query with its window in seconds, if it is a whole number of them."""
    match query.within:
        case ast.Duration(int() | Decimal() as amount, unit) if unit in SECONDS:
            whole = amount * SECONDS[unit]
            if whole == int(whole) > 0:
                within = replace(query.within, amount=int(whole), unit=ast.Unit.SECONDS)
                return replace(query, within=within)
    return query


SECONDS = {
    ast.Unit.SECONDS: 1,
    ast.Unit.MINUTES: 60,
    ast.Unit.HOURS: 3_600,
    ast.Unit.DAYS: 86_400,
    ast.Unit.WEEKS: 604_800,
}


def written(condition: PlainCondition) -> str:
    """The condition with its constants."""
    text = condition.form
    for value in condition.values:
        shown = str(value).replace("'", "''")
        constant = f"'{shown}'" if isinstance(value, str) else shown
        at = min(text.find(mark) for mark in (INTEGER, FLOAT, STRING) if mark in text)
        text = text[:at] + constant + text[at + len(INTEGER) :]
    return text


def conjuncts(where: ast.Expression | None) -> list[ast.Expression]:
    """What AND joins, also inside an operand: it joins as well."""
    if isinstance(where, ast.Logical) and where.operator == "AND":
        return [part for operand in where.operands for part in conjuncts(operand)]
    return [] if where is None else [where]


@settings(max_examples=examples("outlines"), deadline=None)
@given(mixed())
def test_a_frame_with_its_conditions_is_the_query(text: str) -> None:
    found = outline(text)
    if found is None:
        return
    query = parse(text)
    again = parse(filled(found, [written(condition) for condition in found.conditions]))
    assert moved(replace(again, where=None)) == moved(replace(query, where=None, into=None))
    assert found.label == query.into
    assert Counter(conjuncts(again.where)) == Counter(conjuncts(query.where))
