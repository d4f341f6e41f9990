"""Wrong text and the exact message: `syntax/*.txt` hold the query, a line `---`, the message.

`pytest tests/diagnostics --regen` rewrites the messages; read the difference before you keep it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cepheid.errors import QueryError
from cepheid.language import parse
from tests.examples import examples

CASES = sorted((Path(__file__).parent / "syntax").glob("*.txt"))


@pytest.mark.parametrize("path", CASES, ids=[case.stem for case in CASES])
def test_syntax(path: Path, request: pytest.FixtureRequest) -> None:
    text, _, expected = path.read_text(encoding="utf-8").partition("\n---\n")
    with pytest.raises(QueryError) as caught:
        parse(text)
    message = str(caught.value) + "\n"
    if request.config.getoption("--regen"):
        path.write_text(f"{text}\n---\n{message}", encoding="utf-8")
    else:
        assert message == expected


def test_there_are_cases() -> None:
    assert len(CASES) >= 30


def test_deep_nesting_is_reported() -> None:
    with pytest.raises(QueryError, match=r"^CEP116: this is nested more than 100 levels deep"):
        parse("PATTERN " + "!" * 5000 + "A")


def test_the_name_of_the_source_is_shown() -> None:
    with pytest.raises(QueryError, match=r"fraud\.cep:2:1\n"):
        parse("PATTERN A a\nWHEER a.x > 1", name="fraud.cep")


_PIECES = [
    *("PATTERN", "INTO", "WHERE", "HAVING", "WITHIN", "USING", "AFTER MATCH", "RETURN", "FROM"),
    *("SEQ", "ANY", "NOT", "AND", "OR", "IN", "IS", "NULL", "CASE", "WHEN", "END", "OCCURS"),
    *("SKIP", "TO", "UNTIL", "RUNS", "EVENTS", "min", "A", "a", "b.x", ".", ":p", "5", "1.5", "0"),
    *("(", ")", "[", "]", "{", "}", "{2}", ";", "->", "=>", "&", "|", "!", "\\", "@", "+", "*"),
    *("?", "-", "=", "<", ">", ",", "%", "20%", "'", "'x'", '"', "`", "/*", "*/", "--", "\n", "#"),
    *("$", "\t", "\r\n", "é", "\x00", "\u2028", "WITHING", "fortnights", "1e999", "9" * 200),
]


@settings(max_examples=examples("any text"))
@given(st.lists(st.sampled_from(_PIECES), max_size=12), st.sampled_from(["", " "]), st.booleans())
def test_no_text_is_answered_by_anything_but_a_query_or_its_error(
    pieces: list[str], between: str, started: bool
) -> None:
    text = ("PATTERN A a " if started else "") + between.join(pieces)
    try:
        parse(text)
    except QueryError as error:
        (finding,) = error.diagnostics
        assert finding.code.startswith("CEP1")
        assert 0 <= finding.span.start <= finding.span.end <= len(text)
        assert finding.render()
