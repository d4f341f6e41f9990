"""A message is short enough to be read, and can be printed, whatever the query is."""

from __future__ import annotations

import pytest

from cepheid.algebra import bind
from cepheid.errors import QueryError
from cepheid.language import Source, parse
from cepheid.language.ast import Span
from cepheid.language.diagnostics import Diagnostic, shown
from tests.algebra.schemas import SCHEMAS


def rendered(text: str, start: int, end: int) -> list[str]:
    return (
        Diagnostic("CEP000", "wrong", Span(start, end), Source(text), "hint").render().split("\n")
    )


def test_of_a_long_line_what_is_around_the_place_is_shown() -> None:
    text = "x" * 1000 + "WRONG" + "y" * 1000
    _, place, line, caret = rendered(text, 1000, 1005)
    assert place == "  query:1:1001"
    assert len(line) == len("  1 | ") + 160
    assert (line[6], line[-1]) == ("…", "…")
    at = line.index("WRONG")
    assert caret == "    | " + " " * (at - 6) + "^^^^^ hint"


@pytest.mark.parametrize(
    ("start", "first", "last"), [(0, "a", "…"), (199, "…", "z"), (200, "…", "z")]
)
def test_at_the_ends_of_a_long_line(start: int, first: str, last: str) -> None:
    text = "a" + "x" * 198 + "z"
    *_, line, caret = rendered(text, start, start)
    assert (line[6], line[-1]) == (first, last)
    assert len(line) == 6 + 160
    assert caret.index("^") == (6 if start == 0 else 6 + 160 - 200 + start)


def test_lines_of_usual_length_are_whole() -> None:
    text = "PATTERN A" + " " * 140 + "B"
    assert rendered(text, 0, 7)[2] == f"  1 | {text}"


def test_what_a_terminal_would_obey_is_not_printed() -> None:
    _, _, line, caret = rendered("a\x1b[31m\tb\x00\u202e'", 7, 8)
    assert line == "  1 | a\ufffd[31m\tb\ufffd\ufffd'"
    assert caret == "    |       \t^ hint"


def test_long_names_are_shortened() -> None:
    message = shown(f"nothing is called `{'n' * 5000}`; did you mean `{'m' * 99}`?")
    assert message == f"nothing is called `{'n' * 60}…{'n' * 19}`; did you mean `{'m' * 99}`?"
    assert len(shown("word " * 1000)) == 600


def test_of_many_findings_the_first_are_printed() -> None:
    text = "PATTERN A a WHERE " + " AND ".join(f"zz{n}.x > 1" for n in range(45))
    with pytest.raises(QueryError) as caught:
        bind(parse(text), SCHEMAS["typed"], {}, Source(text))
    assert len(caught.value.diagnostics) == 45
    assert str(caught.value).count("CEP203") == 20
    assert str(caught.value).endswith("\n\nand 25 more")


def test_a_query_with_hundreds_of_mistakes_is_not_looked_at_to_the_end() -> None:
    text = "PATTERN A a WHERE " + " AND ".join(f"zz{n}.x > 1" for n in range(500))
    with pytest.raises(QueryError) as caught:
        bind(parse(text), SCHEMAS["typed"], {}, Source(text))
    assert len(caught.value.diagnostics) == 100
