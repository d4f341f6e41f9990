"""Several queries in one text: each begins with its INTO."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from cepheid.language.diagnostics import Source
from cepheid.language.words import scan

_LINE = re.compile(r"^[ \t]*(INTO)\b", re.IGNORECASE | re.MULTILINE)


def split_queries(source: Source) -> tuple[Source, ...]:
    """The queries of a text, each of which knows where in the text it begins.

    No comment belongs to a query that it stands before or after, and no INTO in a comment, a
    string, in backticks, or where every word is a name (`a.into`, `AS into`, `[into]`) begins one.
    A text without words is one query, an empty one.

    >>> text = "-- two rules\\nINTO a PATTERN A ; B WITHIN 5\\nINTO b PATTERN A ; C WITHIN 5"
    >>> [(query.text[:6], query.line) for query in split_queries(Source(text))]
    [('INTO a', 2), ('INTO b', 3)]
    """
    words = list(scan(source.text))
    if not words:
        return (source,)
    begins = [i for i in range(len(words)) if i == 0 or _begins(words, i)]
    pieces = [words[begin:end] for begin, end in pairwise([*begins, len(words)])]
    return _pieces(source, [(piece[0].start(), piece[-1].end()) for piece in pieces])


def split_at_lines(source: Source) -> tuple[Source, ...]:
    """The same by lines that begin with INTO alone, for a text in which a quote is forgotten: to
    the words, all that follows it is turned inside out."""
    begins = [found.start(1) for found in _LINE.finditer(source.text)]
    leading = source.text[: begins[0]] if begins else source.text
    if any(scan(leading)) or not begins:
        begins = [0, *begins]
    return _pieces(source, pairwise([*begins, len(source.text)]))


def spans_a_line_with_into(text: str) -> bool:
    """Whether a string or a quoted name goes on over the beginning of what looks like a query: a
    quote is then forgotten, or else somebody writes queries in strings."""
    return any(
        _LINE.search(word[0]) is not None
        for word in scan(text)
        if word.lastgroup in ("string", "quoted")
    )


def _begins(words: Sequence[re.Match[str]], i: int) -> bool:
    """Whether a query begins with the word."""
    if words[i][0].upper() != "INTO" or words[i - 1][0] in (".", "["):
        return False
    # After AS it is a name, if that isn't one itself: `PATTERN A as INTO b PATTERN …`.
    follows = [word[0].upper() for word in words[i + 1 : i + 3]]
    return words[i - 1][0].upper() != "AS" or follows[1:] == ["PATTERN"]


def _pieces(source: Source, spans: Iterable[tuple[int, int]]) -> tuple[Source, ...]:
    """Parts of the text, in order; it is gone through once."""
    found, line, line_start, seen = [], source.line, 1 - source.column, 0
    for start, end in spans:
        breaks = source.text.count("\n", seen, start)
        if breaks:
            line, line_start = line + breaks, source.text.rindex("\n", seen, start) + 1
        seen = start
        text = source.text[start:end]
        found.append(replace(source, text=text, line=line, column=start - line_start + 1))
    return tuple(found)
