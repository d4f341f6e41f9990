"""Text to AST, or a `QueryError` that says what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from importlib.resources import files
from typing import TypeVar

from lark import Lark, Token
from lark.exceptions import UnexpectedInput, UnexpectedToken

from cepheid.cache import cache_folder
from cepheid.errors import QueryError
from cepheid.language.ast import Expression, Pattern, Query
from cepheid.language.build_expression import build_expression
from cepheid.language.build_query import build_pattern, build_query
from cepheid.language.diagnostics import Diagnostic, Source
from cepheid.language.lark_tree import Mistake, Node
from cepheid.language.wrong_text.mistakes import explain
from cepheid.language.wrong_text.size import check_characters, check_length, check_size

T = TypeVar("T")


def parse(text: str, name: str = "query") -> Query:
    """The query that the text says; `name` (a file, say) is how errors call it.

    >>> parse("PATTERN A a ; B b WITHIN 10 secs").within
    Duration(amount=10, unit=<Unit.SECONDS: 'seconds'>)
    """
    return parse_source(Source(text, name))


def parse_source(source: Source) -> Query:
    """The query of a text that may begin anywhere in a file; errors name the place there."""
    return _parse(source, "query", build_query)


def parse_pattern(text: str, name: str = "pattern") -> Pattern:
    """A pattern alone, what stands after PATTERN."""
    return _parse(Source(text, name), "pattern", build_pattern)


def parse_expression(text: str, name: str = "expression") -> Expression:
    """A condition or expression alone, what stands after WHERE."""
    return _parse(Source(text, name), "expression", build_expression)


def _parse(source: Source, start: str, build: Callable[[Node], T]) -> T:
    text = source.text
    try:
        check_characters(text)
        check_length(text)
        tree = _grammar().parse(text, start=start)
        check_size(tree)
        return build(tree)
    except UnexpectedInput as error:
        mistake = explain(error, _accepted(text, start, error), text, start)
    except Mistake as found:
        mistake = found
    raise QueryError(
        [Diagnostic(mistake.code, mistake.message, mistake.span, source, mistake.hint)]
    )


def _accepted(text: str, start: str, error: UnexpectedInput) -> set[str]:
    """The terminals that could have stood where the error is.

    Lark's own list comes too late: LALR reduces what it can before it sees that the token
    doesn't fit, and then has forgotten that an AND would have.
    """
    ended = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    interactive = _grammar().parse_interactive(text, start=start)
    with suppress(UnexpectedInput):
        for token in interactive.iter_parse():
            if not ended and token.start_pos == error.pos_in_stream:
                break
    accepts: Callable[[], set[str]] = interactive.accepts  # Lark gives it no types
    return set(accepts())


class _WholeWords:
    """Lets the lexer read a name anywhere, so that `ORDER` is never read as `OR` and `DER`."""

    always_accept = ("NAME",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        return stream


@lru_cache(maxsize=1)
def _grammar() -> Lark:
    """Built once per machine, which takes about 0.15 s, and read once per process, on first use."""
    return Lark(
        files("cepheid.language").joinpath("grammar.lark").read_text(encoding="utf-8"),
        parser="lalr",
        start=["query", "pattern", "expression"],
        propagate_positions=True,
        maybe_placeholders=True,
        postlex=_WholeWords(),
        cache=_kept(),
    )


def _kept() -> str | bool:
    """The file that keeps the tables of the grammar; False if there can be none. Lark builds them
    anew if they are of another grammar or version, or can't be read."""
    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: no home
        return False
    return str(folder / "grammar.pickle")
