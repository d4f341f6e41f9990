"""`:name` in a statement: what the SQL engine is given for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from cepheid.language.ast import Span
from cepheid.statements.tokens import Dialect, tokens_of

_MARKS = {Dialect.SPARK: ":", Dialect.DUCKDB: "$"}
_ENDS_VALUE = frozenset({")", "]", "[", ":"})
"""After these a colon is a slice, a cast or a path."""


def parameters_in(
    text: str, dialect: Dialect, params: Mapping[str, object]
) -> Mapping[str, object]:
    """Those parameters that the text has.

    >>> text = "SELECT ':b', x:c FROM t WHERE x > :a"
    >>> parameters_in(text, Dialect.SPARK, {"a": 1, "b": 2, "c": 3})
    {'a': 1}
    """
    found = _markers(text, dialect, _MARKS[dialect], params)
    names = {text[span.start + 1 : span.end] for span in found}
    return {name: value for name, value in params.items() if name in names}


def in_duckdb(text: str, params: Mapping[str, object]) -> str:
    """The text with parameters as DuckDB writes them.

    >>> in_duckdb("SELECT s[a:b], x::int FROM t WHERE x > :a", {"a": 1, "b": 2})
    'SELECT s[a:b], x::int FROM t WHERE x > $a'
    """
    for span in _markers(text, Dialect.DUCKDB, ":", params):
        text = f"{text[: span.start]}${text[span.start + 1 :]}"
    return text


def _markers(
    text: str, dialect: Dialect, mark: str, params: Mapping[str, object]
) -> Iterator[Span]:
    """Where the name of a parameter stands behind its mark."""
    before = None
    for token, following in pairwise(tokens_of(text, dialect)):
        place = token.span.to(following.span)
        beside = before is not None and before.span.end == token.span.start
        ends = before is not None and (before.kind != "symbol" or before.text in _ENDS_VALUE)
        named = token.text == mark and text[place.start + 1 : place.end] == following.text
        if named and following.text in params and not (beside and ends):
            yield place
        before = token
