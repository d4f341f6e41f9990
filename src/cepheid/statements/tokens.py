"""A statement as tokens: strings, comments, quoted names and parentheses, as its engine has them.

Inside of MATCH_RECOGNIZE they are those of the query language, which reads what stands there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from cepheid.language.ast import Span

RECOGNIZE = "MATCH_RECOGNIZE"
QUERIES = frozenset({"SELECT", "WITH", "FROM", "VALUES"})
"""The words that begin a query."""


class Dialect(Enum):
    """Who reads the text."""

    SPARK = "Spark"
    DUCKDB = "DuckDB"
    CLAUSE = "MATCH_RECOGNIZE"


@dataclass(frozen=True, slots=True)
class Token:
    """`quoted` are names in quotes; `string` are texts, with what stands before their quotes."""

    kind: str
    text: str
    span: Span

    @property
    def word(self) -> str:
        return self.text.upper() if self.kind == "word" else self.text

    @property
    def is_name(self) -> bool:
        """Spark can be told to take `"x"` for a name."""
        return self.kind in ("word", "quoted") or self.text.startswith('"')

    @property
    def name(self) -> str:
        """The name without its quotes."""
        if self.kind == "word":
            return self.text
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote)


_COMMON = r"""
  | (?P<comment> /\* )
  | (?P<quoted> `(?:[^`]|``)*` )
  | (?P<word>   [^\W\d]\w* )
  | (?P<number> \d+(?:\.\d+)? )
  | (?P<symbol> => | . )
"""
_PLAIN = r"'(?:[^']|'')*'"
_RULES = {
    # A backslash continues a comment on the next line; r'…' has no escapes.
    Dialect.SPARK: r"""
    (?P<space>  \s+ | --(?:\\\n|[^\n])* )
  | (?P<string> [rR]'[^']*' | [rR]"[^"]*" | '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" )
  """,
    Dialect.DUCKDB: rf"""
    (?P<space>  \s+ | --[^\n]* )
  | (?P<string> [eE]'(?:[^'\\]|\\.|'')*' | {_PLAIN} | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$ )
  | (?P<name>   "(?:[^"]|"")*" )
  """,
    Dialect.CLAUSE: rf"""
    (?P<space>  \s+ | --[^\n]* )
  | (?P<string> {_PLAIN} | "(?:[^"]|"")*" )
  """,
}
_TOKENS = {
    dialect: re.compile(rules + _COMMON, re.VERBOSE | re.DOTALL)
    for dialect, rules in _RULES.items()
}
_COMMENT_EDGE = re.compile(r"/\*|\*/")


def tokens_of(text: str, dialect: Dialect) -> Iterator[Token]:
    """All tokens but space and comments."""
    at, depth, before = 0, 0, ""
    while at < len(text):
        match = _TOKENS[Dialect.CLAUSE if depth else dialect].match(text, at)
        assert match is not None  # any character is a symbol
        kind, end = match.lastgroup or "", match.end()
        if kind == "comment":
            end = _comment_end(text, end, nested=depth == 0)
        elif kind != "space":
            token = Token("quoted" if kind == "name" else kind, match[0], Span(at, end))
            yield token
            if depth or (token.text == "(" and before == RECOGNIZE):
                depth += (token.text == "(") - (token.text == ")")
            before = token.word
        at = end


def _comment_end(text: str, at: int, nested: bool) -> int:
    """Comments of Spark and DuckDB hold comments."""
    depth = 1
    for edge in _COMMENT_EDGE.finditer(text, at):
        if edge[0] == "*/":
            depth -= 1
        elif nested:
            depth += 1
        if depth == 0:
            return edge.end()
    return len(text)
