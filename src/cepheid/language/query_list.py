"""Several queries in one text: each begins with its INTO."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, islice, pairwise

from cepheid.language.diagnostics import Source
from cepheid.language.words import scan

_LINE = re.compile(r"^[ \t]*(INTO)\b", re.IGNORECASE | re.MULTILINE)
_MARKS = re.compile(
    r"""
    (?=[-/'"`i])  # most characters are nothing
    (?:
    (?P<comment> --[^\n]* | /\*(?:.|\n)*?\*/ )
  | (?P<quoted>  '(?:[^']++|'')*+' | "(?:[^"]++|"")*+" | `(?:[^`]++|``)++` )
  | (?<![^\W\d]) (?P<into> INTO)\b
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""What may begin a query, and what hides it: a long text has few of them, and very many words."""


def split_queries(source: Source) -> tuple[Source, ...]:
    """The queries of a text, each of which knows where in the text it begins.

    No comment belongs to a query that it stands before or after, and no INTO in a comment, a
    string, in backticks, or where every word is a name (`a.into`, `AS into`, `[into]`) begins one.
    A text without words is one query, an empty one.

    >>> text = "-- two rules\\nINTO a PATTERN A ; B WITHIN 5\\nINTO b PATTERN A ; C WITHIN 5"
    >>> [(query.text[:6], query.line) for query in split_queries(Source(text))]
    [('INTO a', 2), ('INTO b', 3)]
    """
    text = source.text
    first = next(scan(text), None)
    if first is None:
        return (source,)
    begins, ends, comments = [first.start()], list[int](), list[tuple[int, int]]()
    for mark in _MARKS.finditer(text):
        at = mark.start()
        if mark.lastgroup == "comment":
            comments.append(mark.span())
        elif mark.lastgroup == "into" and at > begins[0]:
            end = _end_of_words(text, at, comments)
            if _begins(text, at, end):
                begins.append(at)
                ends.append(end)
    ends.append(_end_of_words(text, len(text), comments))
    return _pieces(source, zip(begins, ends, strict=True))


def split_at_lines(source: Source) -> tuple[Source, ...]:
    """The same by lines that begin with INTO alone, for a text with an unclosed quote: to
    the words, all that follows it is turned inside out."""
    begins = [line.start(1) for line in _LINE.finditer(source.text)]
    leading = source.text[: begins[0]] if begins else source.text
    if any(scan(leading)) or not begins:
        begins = [0, *begins]
    return _pieces(source, pairwise([*begins, len(source.text)]))


def spans_a_line_with_into(text: str) -> bool:
    """Whether a string or a quoted name goes on over the beginning of what looks like a query: a
    quote is then unclosed, or else somebody writes queries in strings."""
    return any(
        _LINE.search(word[0]) is not None
        for word in scan(text)
        if word.lastgroup in ("string", "quoted")
    )


def _begins(text: str, at: int, before: int) -> bool:
    """Whether a query begins with the INTO at this place; the word before it ends at `before`."""
    if not _is_word(text, at, "INTO") or text[before - 1] in ".[":
        return False
    # After AS it is a name, if that isn't one itself: `PATTERN A as INTO b PATTERN …`.
    follows = [word[0].upper() for word in islice(scan(text, at), 3)]
    return not _is_word(text, before - 2, "AS") or follows[2:] == ["PATTERN"]


def _is_word(text: str, at: int, keyword: str) -> bool:
    """Whether a word that begins at this place begins with the keyword. It may stand right after a
    number, but not after letters, or a colon."""
    end = at + len(keyword)
    if at < 0 or text[at:end].upper() != keyword:
        return False
    begin = at
    while begin and (text[begin - 1].isalnum() or text[begin - 1] in "_:"):
        begin -= 1
    return any(begin + word.start() == at for word in scan(text[begin:end]))


def _end_of_words(text: str, end: int, comments: Sequence[tuple[int, int]]) -> int:
    """Where the last word before this place ends; the comments are those before it."""
    for begin, close in chain(reversed(comments), ((0, 0),)):
        while end and text[end - 1].isspace():
            end -= 1
        if close < end or not end:
            break
        end = begin
    return end


def _pieces(source: Source, spans: Iterable[tuple[int, int]]) -> tuple[Source, ...]:
    """Parts of the text, in order; it is gone through once."""
    pieces, line, line_start, seen = [], source.line, 1 - source.column, 0
    for start, end in spans:
        breaks = source.text.count("\n", seen, start)
        if breaks:
            line, line_start = line + breaks, source.text.rindex("\n", seen, start) + 1
        seen = start
        text = source.text[start:end]
        pieces.append(replace(source, text=text, line=line, column=start - line_start + 1))
    return tuple(pieces)
