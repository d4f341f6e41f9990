"""Where MATCH_RECOGNIZE and `cep_match` stand in a statement, and what they read.

Only words are looked at: strings, comments, quoted names and parentheses. Everything around is left
to the SQL engine, as it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from cepheid.errors import QueryError
from cepheid.language.ast import Span
from cepheid.language.diagnostics import Diagnostic, Source
from cepheid.statements.tokens import QUERIES, RECOGNIZE, Dialect, Token, tokens_of

_BEFORE_TABLE = frozenset({"FROM", "JOIN", "LATERAL", ","})
_BEFORE_ANY_TABLE = _BEFORE_TABLE | {"(", "TABLE", "USING"}
_BEGIN_TABLE = frozenset({"FROM", "JOIN", "SELECT", "(", ","})
_NO_ALIAS = _BEFORE_TABLE | {"TABLE", "USING", "AS", "ON", "WHERE", "SELECT"}


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

    name: str
    span: Span
    end: int
    recursive: bool


class Statement:
    """One statement, its clauses and its common tables."""

    def __init__(self, source: Source, dialect: Dialect) -> None:
        self.source = source
        self.dialect = dialect

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        return tuple(tokens_of(self.source.text, self.dialect))

    @property
    def end(self) -> int:
        """Where the last token ends, but for a semicolon."""
        tokens = [token for token in self.tokens if token.text != ";"]
        return tokens[-1].span.end

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
            if token.word == RECOGNIZE and opens:
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
            last = last if self._is_stream(last - 1) else self._before_alias(last)
        if last < 0 or self.tokens[last].word in _NO_ALIAS:
            raise self._no_table(self.tokens[place])
        begin = self._table_start(self._before_columns(last))
        begin -= self._is_stream(begin - 1)
        before = self.tokens[begin - 1].word if begin else ""
        if before not in _BEFORE_ANY_TABLE or self._is_lateral_view(begin):
            raise self._no_table(self.tokens[place])
        return begin, last

    def _is_stream(self, place: int) -> bool:
        """Whether Spark's `STREAM` may stand there, before the name of a table. `FROM stream t` is
        left to Spark, with the alias that t may be."""
        if place < 1 or self.dialect is not Dialect.SPARK or self.tokens[place].word != "STREAM":
            return False
        return self.tokens[place - 1].word in _BEFORE_ANY_TABLE

    def _no_table(self, token: Token) -> QueryError:
        hint = "put what it reads into a subquery: `FROM (SELECT …) MATCH_RECOGNIZE ( … )`"
        message = "MATCH_RECOGNIZE needs a table before it"
        return self.wrong("CEP607", message, token.span, hint)

    def _is_lateral_view(self, place: int) -> bool:
        """Whether LATERAL VIEW stands before: what follows it is no table of its own."""
        while place > 0:
            place -= 1
            if self.tokens[place].text == ")":
                place = self._opening(place)
            elif self.tokens[place].word == "VIEW":
                return place > 0 and self.tokens[place - 1].word == "LATERAL"
            elif self.tokens[place].word in _BEGIN_TABLE:
                return False
        return False

    def _before_alias(self, alias: int) -> int:
        """The last token of what an alias stands for."""
        return alias - 2 if self.tokens[alias - 1].word == "AS" else alias - 1

    def _before_columns(self, last: int) -> int:
        """The last token of a table, without an alias that names its columns, `AS t(id, price)`: it
        looks like a function, but stands after a table."""
        alias = self._opening(last) - 1 if self.tokens[last].text == ")" else 0
        if alias < 1 or not self.tokens[alias].is_name or self.tokens[alias].word in _NO_ALIAS:
            return last
        return self._before_alias(alias) if self._ends_table(alias - 1) else last

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
            begin = self._first_row(self._opening(last))
            before = tokens[begin - 1] if begin else None
            if before is None or not before.is_name or before.word in _BEFORE_TABLE:
                return begin
            if before.word == "USING" and tokens[begin + 1].word in QUERIES:  # of MERGE
                return begin
            begin -= 1
            if before.word == RECOGNIZE:  # one clause reads the result of another
                return self._table_before(begin)[0]
        elif not tokens[last].is_name:
            raise self._no_table(tokens[last])
        while begin >= 2 and tokens[begin - 1].text == "." and tokens[begin - 2].is_name:
            begin -= 2
        return begin

    def _first_row(self, opening: int) -> int:
        """The first row of `VALUES (1, 2), (3, 4)`; else the place itself."""
        first = opening
        while first >= 2 and self.tokens[first - 1].text == ",":
            if self.tokens[first - 2].text != ")":
                return opening
            first = self._opening(first - 2)
        return first if first and self.tokens[first - 1].word == "VALUES" else opening

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
                tables += self.tables_of(place)
        return tuple(tables)

    def query_begin(self) -> int | None:
        """The place of the first token of the query, which CREATE, INSERT and others may precede;
        None, if the statement has no query."""
        if self.tokens[0].word in QUERIES or self.tokens[0].text == "(":
            return 0
        place = 0
        while place < len(self.tokens):
            word = self.tokens[place].word
            if word in ("SELECT", "VALUES") or (word == "WITH" and any(self.tables_of(place))):
                return place
            place = self.closing.get(place, place) + 1
        return None

    def tables_of(self, place: int) -> Iterator[CommonTable]:
        """The tables of one WITH; other words follow it in `WITH UNMATCHED ROWS` and the like."""
        end = self._level_end(place)
        tokens, at = self.tokens, place + 1
        recursive = at < len(tokens) and tokens[at].word == "RECURSIVE"
        if recursive:
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
            whole = Span(tokens[begin].span.start, tokens[last].span.end)
            yield CommonTable(tokens[begin].name, whole, end, recursive)
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
            return "".join(token.text[place] for place in places_of(token)[:-1])
        case "number":
            return float(token.text) if "." in token.text else int(token.text)
        case _:
            return token.text if token.word not in ("TRUE", "FALSE") else token.word == "TRUE"


def places_of(literal: Token) -> list[int]:
    """For each character of the text that a string stands for, and its end, the place in the token:
    two quotes stand for one, but not in `$$…$$`."""
    text = literal.text
    tagged = text.startswith("$")
    quote = text[: text.index("$", 1) + 1] if tagged else text[-1]
    at, end = text.index(quote) + len(quote), len(text) - len(quote)
    places: list[int] = []
    while at < end:
        places.append(at)
        at += 2 if not tagged and text[at : at + 2] == quote * 2 else 1
    return [*places, end]
