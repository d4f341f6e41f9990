"""Queries that are too large are refused, with the place where they become so; all others are read,
whatever their size."""

from __future__ import annotations

import pytest

from cepheid.errors import QueryError
from cepheid.language import ast, parse, parse_expression, parse_pattern
from cepheid.language.diagnostics import Diagnostic
from cepheid.language.wrong_text.size import MOST_EVENTS, MOST_LEVELS, MOST_WORDS

# Each with what stands before its innermost part, so often, and behind it.
NESTED = {
    "negation": ("PATTERN ", "!", "A", "", ""),
    "exception": ("PATTERN ", "", "A a", " \\ B", ""),
    "delay": ("PATTERN ", "", "A a", " @ 1 ms", ""),
    "sequence": ("PATTERN ", "(A -> ", "B", ")", ""),
    "repeated group": ("PATTERN X ; ", "(", "A ; B", ")+", " ; C"),
    "not": ("PATTERN A a WHERE ", "NOT ", "TRUE", "", ""),
    "function": ("PATTERN A a WHERE ", "abs(", "a.x", ")", " > 1"),
    "sum": ("PATTERN A a WHERE 1 < ", "", "a.x", " + a.x", ""),
    "and in or": ("PATTERN A a WHERE ", "(TRUE OR (TRUE AND ", "TRUE", "))", ""),
    "case": ("PATTERN A a WHERE a.x > ", "CASE WHEN TRUE THEN ", "1", " END", ""),
    "list": ("PATTERN A a WHERE ", "a.x IN (", "2", ")", ""),
}


def nested(kind: str, levels: int) -> str:
    before, opening, middle, closing, after = NESTED[kind]
    return before + opening * levels + middle + closing * levels + after


def refused(text: str) -> Diagnostic:
    with pytest.raises(QueryError) as caught:
        parse(text)
    (found,) = caught.value.diagnostics
    assert 0 <= found.span.start < found.span.end <= len(text)
    return found


@pytest.mark.parametrize("kind", NESTED)
def test_what_nests_without_end_is_refused(kind: str) -> None:
    parse(nested(kind, MOST_LEVELS // 4))
    for levels in (MOST_LEVELS + 1, 1500):
        assert refused(nested(kind, levels)).code == "CEP116"


def test_the_place_is_where_it_becomes_too_deep() -> None:
    found = refused("PATTERN A a WHERE " + "NOT " * 200 + "TRUE")
    # The query and WHERE are levels, too.
    assert found.span.start == len("PATTERN A a WHERE ") + 4 * (MOST_LEVELS - 2)


def test_parentheses_and_conditions_side_by_side_are_no_levels() -> None:
    assert parse_pattern("(" * 3000 + "A" + ")" * 3000) == ast.Atom("A")
    condition = parse_expression(" OR ".join(["a.x > 1"] * 2000))
    assert isinstance(condition, ast.Logical)
    assert len(condition.operands) == 2000


def test_words_are_counted() -> None:
    others = 10  # PATTERN A a WHERE a . x IN ( )
    values = (MOST_WORDS - others + 1) // 2  # with a comma between two of them
    text = f"PATTERN A a WHERE a.x IN ({', '.join(['1'] * values)})"
    parse(text)
    found = refused(f"{text} WITHIN 5")
    assert found.code == "CEP117"
    assert found.span.start > len(text)
    assert refused("x " * (MOST_WORDS + 1)).span.start == 2 * MOST_WORDS


def test_a_long_text_of_few_words_is_read() -> None:
    name = "x" * 1_000_000
    assert parse(f"PATTERN A {name} -- {name}\n /* {name} */").pattern == ast.Atom("A", name)


def test_events_are_counted() -> None:
    events = [f"A a{n}" for n in range(MOST_EVENTS)]
    parse("PATTERN " + " ; ".join(events) + " WITHIN 5")
    text = "PATTERN " + " ; ".join([*events, "ANY(B, C) b", "D d"]) + " WITHIN 5"
    found = refused(text)
    assert found.code == "CEP118"
    assert text[found.span.start : found.span.end] == "ANY(B, C)"


@pytest.mark.parametrize("text", ["PATTERN \ud800", "PATTERN A WHERE A.x = '\udcff'", "\udfff"])
def test_bytes_that_are_no_text(text: str) -> None:
    found = refused(text)
    assert found.code == "CEP108"
    assert text[found.span.start : found.span.end].encode(errors="ignore") == b""
    assert str(QueryError([found])).encode()
