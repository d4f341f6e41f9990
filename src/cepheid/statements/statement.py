"""Where MATCH_RECOGNIZE and `cep_match` stand in a statement, and what they read.

Only words are looked at: strings, comments, quoted names and parentheses. Everything around is left
to the SQL engine, as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from cepheid.errors import QueryError
from cepheid.language.ast import Span
from cepheid.language.diagnostics import Diagnostic, Source

_TOKEN = re.compile(
    r"""
    (?P<space>  \s+ | --[^\n]* | /\*(?:[^*]|\*(?!/))*\*/ )
  | (?P<string> [rR]?'(?:[^'\\]|\\.|'')*' | [rR]?"(?:[^"\\]|\\.|"")*" )
  | (?P<quoted> `(?:[^`]|``)*` )
  | (?P<word>   [^\W\d]\w* )
  | (?P<number> \d+(?:\.\d+)? )
  | (?P<symbol> => | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_BEFORE_TABLE = frozenset({"FROM", "JOIN", "LATERAL", ","})
_NO_ALIAS = frozenset({"FROM", "JOIN", "TABLE", "AS", "LATERAL", "ON", "WHERE", "SELECT"})


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    span: Span

    @property
    def word(self) -> str:
        return self.text.upper() if self.kind == "word" else self.text

    @property
    def is_name(self) -> bool:
        return self.kind in ("word", "quoted")


@dataclass(frozen=True, slots=True)
class Recognizing:
    """`table MATCH_RECOGNIZE ( body )`: `span` is all of it, `table` what it reads."""

    span: Span
    table: Span
    body: Span


@dataclass(frozen=True, slots=True)
class Matching:
    """`cep_match(TABLE(table), 'query', name => value, …)`; `query` is the text's token."""

    span: Span
    table: Span
    query: Token
    options: tuple[tuple[Token, Token], ...]


Clause = Recognizing | Matching


@dataclass(frozen=True, slots=True)
class CommonTable:
    """`name AS ( … )` of a WITH; it can be read up to `end`."""

    span: Span
    end: int


class Statement:
    """One statement, its clauses and its common tables."""

    def __init__(self, source: Source) -> None:
        self.source = source

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        tokens: list[Token] = []
        for match in _TOKEN.finditer(self.source.text):
            kind = match.lastgroup or ""
            if kind != "space":
                tokens.append(Token(kind, match[0], Span(*match.span())))
        return tuple(tokens)

    @property
    def span(self) -> Span:
        """From the first word to the last."""
        return self.tokens[0].span.to(self.tokens[-1].span)

    def wrong(self, code: str, message: str, span: Span, hint: str = "") -> QueryError:
        return QueryError([Diagnostic(code, message, span, self.source, hint)])

    @cached_property
    def closing(self) -> dict[int, int]:
        """For every opening parenthesis the closing one, by their places among the tokens."""
        opened: list[int] = []
        pairs: dict[int, int] = {}
        for place, token in enumerate(self.tokens):
            if token.text == "(":
                opened.append(place)
            elif token.text == ")" and opened:
                pairs[opened.pop()] = place
        return pairs

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        """In the order in which they end, so an inner one comes before what it stands in."""
        clauses: list[Clause] = []
        for place, token in enumerate(self.tokens):
            opens = place + 1 < len(self.tokens) and self.tokens[place + 1].text == "("
            if token.word == "MATCH_RECOGNIZE" and opens:
                clauses.append(self._recognizing(place))
            elif token.word == "CEP_MATCH" and opens:
                clauses.append(self._matching(place))
        return tuple(sorted(clauses, key=lambda clause: clause.span.end))

    def _close(self, opening: int) -> int:
        if opening not in self.closing:
            span = self.tokens[opening].span
            raise self.wrong("CEP105", "this parenthesis is never closed", span)
        return self.closing[opening]

    # ── MATCH_RECOGNIZE ──

    def _recognizing(self, place: int) -> Recognizing:
        end = self._close(place + 1)
        tokens = self.tokens
        begin, last = self._table_before(place)
        table = Span(tokens[begin].span.start, tokens[last].span.end)
        whole = Span(table.start, tokens[end].span.end)
        return Recognizing(whole, table, Span(tokens[place + 1].span.end, tokens[end].span.start))

    def _table_before(self, place: int) -> tuple[int, int]:
        """The first and last token of the table that stands before MATCH_RECOGNIZE. An alias is
        left out, unless it names the columns."""
        last = place - 1
        if last >= 1 and self.tokens[last].is_name and self._ends_table(last - 1):
            last = self._before_alias(last)
        if last < 0:
            span = self.tokens[place].span
            raise self.wrong("CEP607", "MATCH_RECOGNIZE needs a table before it", span)
        return self._table_start(self._before_columns(last)), last

    def _before_alias(self, alias: int) -> int:
        """The last token of what an alias stands for."""
        return alias - 2 if self.tokens[alias - 1].word == "AS" else alias - 1

    def _before_columns(self, last: int) -> int:
        """The last token of a table, without an alias that names its columns, `AS t(id, price)`: it
        looks like a function, but stands after a table."""
        alias = self._opening(last) - 1 if self.tokens[last].text == ")" else 0
        if alias >= 1 and self.tokens[alias].is_name and self._ends_table(alias - 1):
            return self._before_alias(alias)
        return last

    def _opening(self, last: int) -> int:
        return next(o for o, c in self.closing.items() if c == last)

    def _ends_table(self, place: int) -> bool:
        token = self.tokens[place]
        if token.word == "AS":
            return True
        return token.text == ")" or (token.is_name and token.word not in _NO_ALIAS)

    def _table_start(self, last: int) -> int:
        tokens = self.tokens
        begin = last
        if tokens[last].text == ")":
            begin = self._opening(last)
            if begin == 0 or not tokens[begin - 1].is_name:
                return begin
            if tokens[begin - 1].word in _BEFORE_TABLE:
                return begin
            begin -= 1
        elif not tokens[last].is_name:
            span = tokens[last].span
            raise self.wrong("CEP607", "MATCH_RECOGNIZE needs a table before it", span)
        while begin >= 2 and tokens[begin - 1].text == "." and tokens[begin - 2].is_name:
            begin -= 2
        return begin

    # ── cep_match ──

    def _matching(self, place: int) -> Matching:
        end = self._close(place + 1)
        tokens = self.tokens
        hint = "write `cep_match(TABLE(events), 'PATTERN …', time => 'ts')`"

        def expect(index: int, good: bool) -> Token:
            if index >= end or not good:
                span = tokens[min(index, end)].span
                raise self.wrong("CEP608", "cep_match takes a table and a query", span, hint)
            return tokens[index]

        expect(place + 2, tokens[place + 2].word == "TABLE")
        opening = place + 3
        expect(opening, tokens[opening].text == "(")
        closing = self._close(opening)
        table = Span(tokens[opening].span.end, tokens[closing].span.start)
        expect(closing + 1, tokens[closing + 1].text == ",")
        query = expect(closing + 2, tokens[closing + 2].kind == "string")
        options: list[tuple[Token, Token]] = []
        at = closing + 3
        while at < end:
            expect(at, tokens[at].text == ",")
            name = expect(at + 1, at + 3 < end and tokens[at + 1].is_name)
            expect(at + 2, tokens[at + 2].text == "=>")
            value = expect(at + 3, tokens[at + 3].kind in ("string", "number", "word"))
            options.append((name, value))
            at += 4
        whole = Span(tokens[place].span.start, tokens[end].span.end)
        return Matching(whole, table, query, tuple(options))

    # ── WITH ──

    @cached_property
    def common_tables(self) -> tuple[CommonTable, ...]:
        tables: list[CommonTable] = []
        for place, token in enumerate(self.tokens):
            if token.word == "WITH":
                tables += self._with(place)
        return tuple(tables)

    def _with(self, place: int) -> Iterator[CommonTable]:
        """The tables of one WITH; other words follow it in `WITH UNMATCHED ROWS` and the like."""
        end = self._level_end(place)
        tokens, at = self.tokens, place + 1
        if at < len(tokens) and tokens[at].word == "RECURSIVE":
            at += 1
        while at + 1 < len(tokens) and tokens[at].is_name:
            begin = at
            at += 1
            if tokens[at].text == "(":
                at = self._close(at) + 1
            if at + 1 >= len(tokens) or tokens[at].word != "AS":
                return
            at += 1
            while at < len(tokens) and tokens[at].word in ("NOT", "MATERIALIZED"):
                at += 1
            if at >= len(tokens) or tokens[at].text != "(":
                return
            last = self._close(at)
            yield CommonTable(Span(tokens[begin].span.start, tokens[last].span.end), end)
            at = last + 1
            if at >= len(tokens) or tokens[at].text != ",":
                return
            at += 1

    def _level_end(self, place: int) -> int:
        """Where the parentheses around a token close."""
        around = [c for o, c in self.closing.items() if o < place < c]
        return self.tokens[min(around)].span.start if around else len(self.source.text)

    def tables_in_scope(self, clause: Clause) -> tuple[CommonTable, ...]:
        start = clause.span.start
        return tuple(t for t in self.common_tables if t.span.end <= start < t.end)

    # ── texts ──

    def text(self, span: Span, replaced: Sequence[tuple[Clause, str]]) -> str:
        """The text of a part, with some clauses replaced by the names of what they return."""
        pieces: list[str] = []
        at = span.start
        inside = [(c, name) for c, name in replaced if span.start <= c.span.start < span.end]
        outermost = [
            (c, name)
            for c, name in inside
            if not any(_holds(other.span, c.span) for other, _ in inside)
        ]
        for clause, name in sorted(outermost, key=lambda item: item[0].span.start):
            pieces += [self.source.text[at : clause.span.start], name]
            at = clause.span.end
        pieces.append(self.source.text[at : span.end])
        return "".join(pieces)


def _holds(outer: Span, inner: Span) -> bool:
    return outer != inner and outer.start <= inner.start and inner.end <= outer.end


def literal_value(token: Token) -> str | int | float | bool:
    """The value of an option of `cep_match`."""
    match token.kind:
        case "string":
            raw = token.text[token.text.index(token.text[-1]) + 1 : -1]
            return raw.replace(token.text[-1] * 2, token.text[-1])
        case "number":
            return float(token.text) if "." in token.text else int(token.text)
        case _:
            return token.text if token.word not in ("TRUE", "FALSE") else token.word == "TRUE"
