"""Several queries in one text, told apart as the grammar would, and their places."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cepheid.errors import QueryError
from cepheid.language import Source, ast, parse_source, render
from cepheid.language.query_list import split_at_lines, split_queries
from cepheid.language.words import scan
from tests.examples import examples
from tests.language import strategies


def texts(whole: str) -> list[str]:
    return [piece.text for piece in split_queries(Source(whole))]


@settings(max_examples=examples("split texts", part=3))
@given(st.lists(st.tuples(strategies.queries(), strategies.names()), min_size=1, max_size=4))
def test_queries_written_one_after_another_are_read_back(
    written: list[tuple[ast.Query, str]],
) -> None:
    named = [replace(query, into=name) for query, name in written]
    pieces = split_queries(Source("\n".join(map(render, named))))
    assert [parse_source(piece) for piece in pieces] == named


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN A a RETURN a.into",
        "PATTERN A a RETURN a.x AS into",
        "PATTERN A a RETURN a.into AS pattern",
        "PATTERN A a RETURN a.x AS `into b pattern`",
        "PATTERN A a WHERE [into]",
        "PATTERN A a WHERE a.x = 'INTO b PATTERN B'",
        'PATTERN A a WHERE a.x = "it\'s\nINTO b PATTERN B"',
        "PATTERN A a WHERE a.x = :into",
        "PATTERN A a -- INTO b PATTERN B\nWITHIN 5",
        "PATTERN A a /* \nINTO b PATTERN B */ WITHIN 5",
    ],
)
def test_an_into_that_begins_no_query(text: str) -> None:
    parse_source(Source(text))
    assert texts(text) == [text]
    assert texts(f"{text}\nINTO next PATTERN B") == [text, "INTO next PATTERN B"]


def by_words(whole: str) -> list[str]:
    """Word by word, as it is defined."""
    words = list(scan(whole))
    upper = [word[0].upper() for word in words]
    begins = [
        i
        for i in range(len(words))
        if i == 0
        or (
            upper[i] == "INTO"
            and upper[i - 1] not in (".", "[")
            and (upper[i - 1] != "AS" or upper[i + 2 : i + 3] == ["PATTERN"])
        )
    ]
    ends = [*begins[1:], len(words)]
    pairs = zip(begins, ends, strict=True) if words else ()
    return [whole[words[i].start() : words[j - 1].end()] for i, j in pairs] or [whole]


PIECES = (
    *("INTO", "into", "a", "PATTERN", "AS", "as", ".", "[", "]", "'", '"', "`", "--", "\n", " "),
    *("/*", "*/", "5", "1.5", "1e3", ":", "-", "/", "x9", "é", "''", "a.into", "INTO b PATTERN"),
)


@settings(max_examples=examples("split texts"))
@given(st.lists(st.sampled_from([*PIECES, *(f"{piece} " for piece in PIECES)]), max_size=14))
def test_texts_are_split_as_if_word_by_word(pieces: list[str]) -> None:
    whole = "".join(pieces)
    assert texts(whole) == by_words(whole)


def test_a_quote_before_two_quotes_is_never_closed() -> None:
    assert texts("' INTO''") == by_words("' INTO''") == ["'", "INTO''"]


def test_as_may_be_a_name_itself() -> None:
    assert texts("PATTERN A as INTO b PATTERN B") == ["PATTERN A as", "INTO b PATTERN B"]


def test_comments_around_a_query_are_no_part_of_it() -> None:
    text = "-- first\nINTO a PATTERN A /* one */ a\n-- second\n\nINTO b PATTERN B\n-- end\n"
    assert texts(text) == ["INTO a PATTERN A /* one */ a", "INTO b PATTERN B"]


def test_a_text_without_words_is_one_empty_query() -> None:
    for text in ("", " \n", "-- nothing yet\n"):
        assert texts(text) == [text]


def test_every_query_knows_where_it_begins() -> None:
    text = "INTO a PATTERN A into b PATTERN B\n\n  INTO c\nPATTERN C"
    pieces = split_queries(Source(text, "three.cep"))
    assert [(p.line, p.column, p.text) for p in pieces] == [
        (1, 1, "INTO a PATTERN A"),
        (1, 18, "into b PATTERN B"),
        (3, 3, "INTO c\nPATTERN C"),
    ]


def test_a_part_of_a_part_knows_its_place_in_the_whole() -> None:
    inner = Source("INTO a PATTERN A INTO b\nPATTERN B INTO c PATTERN C", "x", line=7, column=5)
    places = [(p.line, p.column) for p in split_queries(inner)]
    assert places == [(7, 5), (7, 22), (8, 11)]


def test_messages_tell_the_place_in_the_file() -> None:
    text = "INTO a PATTERN A\nINTO b PATTERN B INTO c PATTERN C c\nWHERE c.x >"
    *_, last = split_queries(Source(text, "rules.cep"))
    with pytest.raises(QueryError) as first_line:
        parse_source(replace(last, text="INTO c PATTRN C c"))
    assert str(first_line.value).splitlines()[1:] == [
        "  rules.cep:2:25",
        "  2 | INTO c PATTRN C c",
        "    |        ^^^^^^ did you mean `PATTERN`?",
    ]
    with pytest.raises(QueryError) as second_line:
        parse_source(last)
    assert "  rules.cep:3:12\n  3 | WHERE c.x >\n" in str(second_line.value)


def test_a_forgotten_quote_is_found_by_lines() -> None:
    text = (
        "-- three\nINTO a PATTERN A a WHERE a.x = 'oops\n"
        "INTO b PATTERN B b WHERE b.x = 'fine'\n  INTO c PATTERN C"
    )
    pieces = split_at_lines(Source(text))
    assert [(p.line, p.column, p.text.split()[1]) for p in pieces] == [
        (2, 1, "a"),
        (3, 1, "b"),
        (4, 3, "c"),
    ]
    assert [p.line for p in split_at_lines(Source("PATTERN A\nINTO b PATTERN B"))] == [1, 2]
    assert split_at_lines(Source("PATTERN A")) == (Source("PATTERN A"),)
