"""Text as words: what can be found in a text that may not be a query, or may be several.

The grammar's own lexer reads a word by what the grammar allows next, so it stops at the first
mistake. Comments, strings and names in backticks are the same to both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cepheid.language.ast import Span

_STRING = r"""'(?:[^']++|'')*+' | "(?:[^"]++|"")*+" """
_QUOTED = r"`(?:[^`]++|``)++`"
_SYMBOL = r"-> | => | =< | <> | != | <= | >= | == | \|\| | && | ."
_NUMBER = r":[^\W\d]\w* | \d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_WORD = r"[^\W\d]\w*"
_SPACE = r"\s+ | --[^\n]* | /\*[\s\S]*?\*/"

_WORDS = re.compile(
    rf"""
    (?P<space>  {_SPACE} )
  | (?P<open>   /\* )
  | (?P<string> {_STRING} )
  | (?P<quoted> {_QUOTED} )
  | (?P<quote>  ['"`] )
  | (?P<word>   {_WORD} )
  | (?P<number> {_NUMBER} )
  | (?P<symbol> {_SYMBOL} )
    """,
    re.VERBOSE,
)
_LEXEMES = re.compile(
    rf"{_WORD} | (?: {_SPACE} )++ | {_NUMBER} | {_STRING} | {_QUOTED} | /\* | {_SYMBOL}",
    re.VERBOSE,
)
"""The same without groups, so that Python makes no object but the text of each word."""


UNCLOSED = ("open", "quote")
"""The kinds of words that begin what is never closed."""


@dataclass(frozen=True, slots=True)
class Word:
    """`kind` is a group of the expression above."""

    kind: str
    text: str
    span: Span

    @property
    def keyword(self) -> str:
        return self.text.upper() if self.kind == "word" else ""


def words_of(text: str) -> Iterator[Word]:
    """All words of the text but space and comments, up to a quote or comment that is never closed:
    what follows may be inside it."""
    for token in scan(text):
        word = Word(token.lastgroup or "", token[0], Span(*token.span()))
        yield word
        if word.kind in UNCLOSED:
            return


def scan(text: str, begin: int = 0) -> Iterator[re.Match[str]]:
    """The same for a long text: a match for each word, its kind the last group."""
    return (token for token in _WORDS.finditer(text, begin) if token.lastgroup != "space")


def lexemes(text: str) -> list[str]:
    """The text cut into words and what is between them, space and comments: joined they are the
    text. It takes a tenth of the time of `scan`. The first character says what a word is; a quote
    alone is never closed.

    >>> lexemes("a.x>=5 -- or so\\n'it''s'")
    ['a', '.', 'x', '>=', '5', ' -- or so\\n', "'it''s'"]
    """
    return _LEXEMES.findall(text)
