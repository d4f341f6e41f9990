"""Text as words: what can be told of a text that may not be a query, or be several.

The grammar's own lexer reads a word by what the grammar can go on with, so it stops at the first
mistake. Comments, strings and names in backticks are the same to both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cepheid.language.ast import Span

_WORDS = re.compile(
    r"""
    (?P<space>  \s+ | --[^\n]* | /\*(?:.|\n)*?\*/ )
  | (?P<open>   /\* )
  | (?P<string> '(?:[^']|'')*' | "(?:[^"]|"")*" )
  | (?P<quoted> `(?:[^`]|``)+` )
  | (?P<quote>  ['"`] )
  | (?P<word>   [^\W\d]\w* )
  | (?P<number> :[^\W\d]\w* | \d+(?:\.\d+)?(?:[eE][+-]?\d+)? )
  | (?P<symbol> -> | => | =< | <> | != | <= | >= | == | \|\| | && | . )
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Word:
    """`kind` is a group of the expression above: `open` and `quote` are what is never closed."""

    kind: str
    text: str
    span: Span

    @property
    def keyword(self) -> str:
        return self.text.upper() if self.kind == "word" else ""


def words_of(text: str) -> list[Word]:
    """All words of the text but space and comments."""
    return [Word(m.lastgroup or "", m[0], Span(*m.span())) for m in scan(text)]


def scan(text: str, begin: int = 0) -> Iterator[re.Match[str]]:
    """The same for a long text: a match for each word, its kind the last group."""
    return (found for found in _WORDS.finditer(text, begin) if found.lastgroup != "space")
