"""The text of MATCH_RECOGNIZE becomes a `Recognition`.

Clauses and pattern are read word by word. Expressions go to the parser of the query language, at
their places in the text, so that every finding has its place in the user's whole statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from cepheid.errors import QueryError
from cepheid.language.ast import Duration, Expression, Span
from cepheid.language.diagnostics import Diagnostic, Source, nearest
from cepheid.language.parser import parse_expression
from cepheid.language.words import Word, words_of
from cepheid.row_patterns.syntax import (
    AfterRow,
    Alternation,
    Anchor,
    Concatenation,
    Definition,
    EmptyPattern,
    Exclusion,
    Label,
    Measure,
    PartitionEdge,
    Permutation,
    Quantified,
    Recognition,
    RowPattern,
    RowsPerMatch,
    SkipTo,
    SortKey,
    Subset,
)

_CLAUSES = (
    ("PARTITION", "BY"),
    ("ORDER", "BY"),
    ("MEASURES",),
    ("ONE", "ROW"),
    ("ALL", "ROWS"),
    ("AFTER", "MATCH"),
    ("INITIAL",),
    ("SEEK",),
    ("PATTERN",),
    ("WITHIN",),
    ("SUBSET",),
    ("DEFINE",),
)
"""The words that begin a clause, in the order in which clauses stand."""

_EMPTY_MATCHES = {
    ("SHOW", "EMPTY", "MATCHES"): RowsPerMatch.SHOW_EMPTY,
    ("OMIT", "EMPTY", "MATCHES"): RowsPerMatch.OMIT_EMPTY,
    ("WITH", "UNMATCHED", "ROWS"): RowsPerMatch.UNMATCHED,
}
_OPENING, _CLOSING = "([{", ")]}"
_DEEPEST = 60


def parse_recognition(source: Source, span: Span | None = None) -> Recognition:
    """What stands between the parentheses of MATCH_RECOGNIZE: all of the text, or a part."""
    return _ClauseReader(source, span or Span(0, len(source.text))).recognition()


def parse_pattern(text: str) -> RowPattern:
    """A pattern alone.

    >>> parse_pattern("A B+?")
    Concatenation(items=(Label(name='A'), Quantified(item=Label(name='B'), low=1, high=None,
        greedy=False)))
    """
    reader = _ClauseReader(Source(text, "pattern"), Span(0, len(text)))
    pattern = reader.alternation(0)
    reader.end("the pattern")
    return pattern


class _ClauseReader:
    """Goes through the words of one clause."""

    def __init__(self, source: Source, span: Span) -> None:
        self.source = source
        self.span = span
        shown = " " * span.start + source.text[span.start : span.end]
        self.words = list(words_of(shown))
        self.at = 0

    # ── words ──

    @property
    def word(self) -> Word | None:
        return self.words[self.at] if self.at < len(self.words) else None

    def here(self) -> Span:
        """The word at hand, or the end."""
        return self.word.span if self.word else Span(self.span.end, self.span.end)

    def wrong(
        self, code: str, message: str, span: Span | None = None, hint: str = ""
    ) -> QueryError:
        return QueryError([Diagnostic(code, message, span or self.here(), self.source, hint)])

    def unexpected(self, wanted: str, hint: str = "") -> QueryError:
        actual = f"`{self.word.text}`" if self.word else "the end"
        if not hint and actual.startswith('`"'):
            hint = "names stand in backticks, texts in quotes"
        return self.wrong("CEP603", f"expected {wanted}, not {actual}", hint=hint)

    def follows(self, *keywords: str) -> bool:
        ahead = self.words[self.at : self.at + len(keywords)]
        return len(ahead) == len(keywords) and all(
            k in (w.keyword, w.text) for w, k in zip(ahead, keywords, strict=True)
        )

    def take(self, *keywords: str) -> bool:
        """Go past these words, if they follow."""
        if not self.follows(*keywords):
            return False
        self.at += len(keywords)
        return True

    def need(self, *keywords: str) -> None:
        for keyword in keywords:
            if not self.take(keyword):
                raise self.unexpected(f"`{keyword}`")

    def end(self, what: str) -> None:
        if self.word is not None:
            raise self.unexpected(f"the end of {what}")

    def name(self, what: str) -> tuple[str, Span]:
        word = self.word
        if word is None or word.kind not in ("word", "quoted"):
            raise self.unexpected(what)
        self.at += 1
        plain = word.text[1:-1].replace("``", "`") if word.kind == "quoted" else word.text
        return plain, word.span

    def label(self, what: str = "a label") -> tuple[str, Span]:
        """A label: in capitals, unless it is quoted."""
        quoted = self.word is not None and self.word.kind == "quoted"
        name, span = self.name(what)
        return (name if quoted else name.upper()), span

    def separated(self, read: Callable[[], None]) -> None:
        read()
        while self.take(","):
            read()

    # ── clauses ──

    def recognition(self) -> Recognition:
        partition: list[tuple[str, Span]] = []
        order: list[SortKey] = []
        measures: list[Measure] = []
        subsets: list[Subset] = []
        definitions: list[Definition] = []
        rows, after, within = RowsPerMatch.ONE, AfterRow(), None
        if self.take("PARTITION", "BY"):
            self.separated(lambda: partition.append(self.column("PARTITION BY")))
        if self.take("ORDER", "BY"):
            self.separated(lambda: order.append(self.sort_key()))
        if self.take("MEASURES"):
            self.separated(lambda: measures.append(self.measure()))
        if self.follows("ONE", "ROW") or self.follows("ALL", "ROWS"):
            rows = self.rows()
        if self.take("AFTER", "MATCH"):
            after = self.after()
        for keyword in ("INITIAL", "SEEK"):
            if self.follows(keyword):
                message = f"{keyword} is for patterns of a WINDOW, not for MATCH_RECOGNIZE"
                raise self.wrong("CEP604", message, hint="leave it out")
        self.need_clause("PATTERN")
        begin = self.words[self.at - 1].span
        pattern = self.pattern()
        pattern_span = begin.to(self.words[self.at - 1].span)
        if self.take("WITHIN"):
            within = self.interval()
        if self.take("SUBSET"):
            self.separated(lambda: subsets.append(self.subset()))
        if self.take("DEFINE"):
            self.separated(lambda: definitions.append(self.definition()))
        if self.word is not None:
            raise self.misplaced()
        return Recognition(
            pattern=pattern,
            partition=tuple(partition),
            order=tuple(order),
            measures=tuple(measures),
            rows=rows,
            after=after,
            within=within,
            subsets=tuple(subsets),
            definitions=tuple(definitions),
            span=self.span,
            pattern_span=pattern_span,
        )

    def need_clause(self, keyword: str) -> None:
        if not self.take(keyword):
            raise self.misplaced()

    def misplaced(self) -> QueryError:
        """A clause out of its order, or none at all."""
        for words in _CLAUSES:
            if self.follows(*words):
                order = "PARTITION BY, ORDER BY, MEASURES, … ROWS PER MATCH, AFTER MATCH, PATTERN"
                hint = f"the order is {order}, WITHIN, SUBSET, DEFINE"
                return self.wrong("CEP602", f"{' '.join(words)} can't stand here", hint=hint)
        if self.word is None:
            return self.unexpected("`PATTERN`", "MATCH_RECOGNIZE needs a PATTERN")
        near = nearest(self.word.text, [words[0] for words in _CLAUSES])
        return self.unexpected("a clause", f"did you mean `{near}`?" if near else "")

    def column(self, clause: str) -> tuple[str, Span]:
        """A column; of `t.x`, x."""
        begin = self.at
        if self.at_clause(begin):
            raise self.unexpected("a column")
        if not self.at_name():
            raise self.not_a_column(clause, begin)
        name, span = self.name("a column")
        while self.take("."):
            name, last = self.name("a column")
            span = span.to(last)
        if not self.at_name() and not self.follows(","):
            raise self.not_a_column(clause, begin)
        return name, span

    def at_name(self) -> bool:
        return self.word is None or self.word.kind in ("word", "quoted")

    def not_a_column(self, clause: str, begin: int) -> QueryError:
        """The standard has columns there, as other systems do."""
        self.at = begin
        depth = 0
        while self.word is not None and not (depth == 0 and self.ends_item()):
            depth += (self.word.text in _OPENING) - (self.word.text in _CLOSING)
            self.at += 1
        span = self.words[begin].span.to(self.words[max(self.at - 1, begin)].span)
        text = self.text(span)
        hint = f"compute it in a subquery: `(SELECT *, {text} AS x FROM …)`, and use x"
        if self.words[begin].keyword in ("CLASSIFIER", "MATCH_NUMBER"):
            hint = "rows have labels and numbers in MEASURES and DEFINE alone"
        elif re.fullmatch('"[^"]*"', text):
            hint = f"names stand in backticks: `{text[1:-1]}`"
        return self.wrong("CEP617", f"{clause} takes columns, not expressions", span, hint)

    def ends_item(self) -> bool:
        return self.at_clause(self.at) or any(map(self.follows, (",", "ASC", "DESC", "NULLS")))

    def sort_key(self) -> SortKey:
        name, span = self.column("ORDER BY")
        descending = self.take("DESC")
        if not descending:
            self.take("ASC")
        first: bool | None = None
        if self.take("NULLS"):
            first = self.take("FIRST")
            if not first:
                self.need("LAST")
        return SortKey(name, descending, first, span)

    def measure(self) -> Measure:
        begin = self.here()
        words = self.expression_words(lambda: self.follows("AS"), "a measure")
        if not self.follows("AS"):
            span = words[0].span.to(words[-1].span)
            hint = f"write `{self.text(span)} AS name`"
            if len(words) > 1 and words[-1].kind == "word" and words[-2].text != ".":
                value = self.text(words[0].span.to(words[-2].span))
                hint = f"write `{value} AS {words[-1].text}`"
            raise self.wrong("CEP605", "a measure needs a name", span, hint)
        expression = parse_within(self.source, words[0].span.to(words[-1].span))
        self.need("AS")
        name, span = self.name("a name for the measure")
        return Measure(expression, name, begin.to(span))

    def rows(self) -> RowsPerMatch:
        if self.take("ONE", "ROW"):
            self.need("PER", "MATCH")
            return RowsPerMatch.ONE
        self.need("ALL", "ROWS", "PER", "MATCH")
        for words, rows in _EMPTY_MATCHES.items():
            if self.take(*words):
                return rows
        return RowsPerMatch.SHOW_EMPTY

    def after(self) -> AfterRow:
        begin = self.here()
        self.need("SKIP")
        if self.take("PAST"):
            self.need("LAST", "ROW")
            return AfterRow(SkipTo.PAST_LAST_ROW, None, begin)
        self.need("TO")
        if self.take("NEXT", "ROW"):
            return AfterRow(SkipTo.NEXT_ROW, None, begin)
        first = self.follows("FIRST") and not self.at_clause(self.at + 1)
        if first or (self.follows("LAST") and not self.at_clause(self.at + 1)):
            self.at += 1
        label, span = self.label()
        return AfterRow(SkipTo.FIRST if first else SkipTo.LAST, label, span)

    def interval(self) -> Duration:
        begin = self.at
        expression = self.expression()
        if not isinstance(expression, Duration):
            span = self.words[begin].span if begin < len(self.words) else self.here()
            hint = "write `WITHIN INTERVAL '10' MINUTES`"
            raise self.wrong("CEP606", "WITHIN needs an interval", span, hint)
        return expression

    def subset(self) -> Subset:
        name, span = self.label("a name for the subset")
        self.need("=", "(")
        labels: list[str] = []
        self.separated(lambda: labels.append(self.label()[0]))
        self.need(")")
        return Subset(name, tuple(labels), span)

    def definition(self) -> Definition:
        label, span = self.label()
        self.need("AS")
        return Definition(label, self.expression(), span)

    # ── expressions ──

    def at_clause(self, place: int) -> bool:
        kept, self.at = self.at, place
        begins = any(self.follows(*words) for words in _CLAUSES)
        self.at = kept
        return begins

    def expression(self) -> Expression:
        words = self.expression_words(lambda: False, "an expression")
        return parse_within(self.source, words[0].span.to(words[-1].span))

    def expression_words(self, stop: Callable[[], bool], what: str) -> list[Word]:
        """What stands before the next comma, clause or `stop`, outside of parentheses."""
        begin, depth = self.at, 0
        if self.follows("PATTERN", "("):
            raise self.unexpected(what)
        while (word := self.word) is not None:
            if depth == 0 and (word.text == "," or stop()):
                break
            if depth == 0 and self.at > begin and self.at_clause(self.at):
                break
            if word.keyword == "SELECT" and depth > 0 and self.words[self.at - 1].text == "(":
                hint = "join what it returns to the table, before MATCH_RECOGNIZE"
                raise self.wrong("CEP625", "a subquery can't stand in MATCH_RECOGNIZE", hint=hint)
            depth += (word.text in _OPENING) - (word.text in _CLOSING)
            self.at += 1
        if self.at == begin:
            raise self.unexpected(what)
        return self.words[begin : self.at]

    def text(self, span: Span) -> str:
        return " ".join(self.source.text[span.start : span.end].split())

    # ── the pattern ──

    def pattern(self) -> RowPattern:
        self.need("(")
        pattern = self.alternation(0)
        if self.follows(","):
            raise self.unexpected("`)`", "labels stand side by side, as in `A B+`")
        self.need(")")
        return pattern

    def alternation(self, depth: int) -> RowPattern:
        if depth > _DEEPEST:
            raise self.wrong("CEP116", f"this pattern is nested more than {_DEEPEST} deep")
        items = [self.concatenation(depth)]
        while self.take("|"):
            items.append(self.concatenation(depth))
        return items[0] if len(items) == 1 else Alternation(tuple(items))

    def concatenation(self, depth: int) -> RowPattern:
        items: list[RowPattern] = []
        while self.word is not None and self.word.text not in (")", "|", "-", ","):
            items.append(self.quantified(depth))
        if not items:
            raise self.unexpected("a label, or `()` for an empty pattern")
        return items[0] if len(items) == 1 else Concatenation(tuple(items))

    def quantified(self, depth: int) -> RowPattern:
        item = self.primary(depth)
        bounds = self.quantifier()
        if bounds is None:
            return item
        item = Quantified(item, *bounds, greedy=not self.take("?"))
        begin = self.here()
        if self.quantifier() is not None:
            hint = "put parentheses around what it quantifies, as in `(A+)*`"
            raise self.wrong("CEP111", "a quantifier can't follow another", begin, hint)
        return item

    def quantifier(self) -> tuple[int, int | None] | None:
        for symbol, bounds in {"*": (0, None), "+": (1, None), "?": (0, 1)}.items():
            if self.take(symbol):
                return bounds
        if not self.follows("{") or self.follows("{", "-"):
            return None
        begin = self.here()
        self.take("{")
        low = self.count()
        high = self.count() if self.take(",") else low
        if not self.take("}"):
            raise self.unexpected("`}`", "as in `A{2}`, `A{2,5}` or `A{2,}`")
        span = begin.to(self.words[self.at - 1].span)
        if low is None and self.words[self.at - 2].text == "{":
            raise self.wrong("CEP111", "this quantifier has no number", span, "as in `A{2,5}`")
        if high is not None and (high < (low or 0) or high == 0):
            raise self.wrong("CEP111", "this quantifier allows no number of rows", span)
        return low or 0, high

    def count(self) -> int | None:
        word = self.word
        if word is None or word.kind != "number" or not word.text.isdecimal():
            return None
        self.at += 1
        if len(word.text) > 6:
            raise self.wrong("CEP115", "this number is out of range", word.span)
        return int(word.text)

    def primary(self, depth: int) -> RowPattern:
        if self.take("^"):
            return Anchor(PartitionEdge.START)
        if self.take("$"):
            return Anchor(PartitionEdge.END)
        if self.take("(", ")"):
            return EmptyPattern()
        if self.take("("):
            inner = self.alternation(depth + 1)
            self.need(")")
            return inner
        if self.take("{", "-"):
            excluded = self.alternation(depth + 1)
            self.need("-", "}")
            return Exclusion(excluded)
        if self.take("PERMUTE", "("):
            items: list[RowPattern] = []
            self.separated(lambda: items.append(self.alternation(depth + 1)))
            self.need(")")
            return Permutation(tuple(items))
        name, span = self.label()
        return Label(name, span)


def parse_within(source: Source, span: Span) -> Expression:
    """An expression at its place in a larger text."""
    alone = "".join(c if c == "\n" else " " for c in source.text[: span.start])
    try:
        return parse_expression(alone + source.text[span.start : span.end], source.name)
    except QueryError as error:
        raise QueryError(_in_source(error.diagnostics, source)) from None


def _in_source(diagnostics: Sequence[Diagnostic], source: Source) -> list[Diagnostic]:
    return [replace(diagnostic, source=source) for diagnostic in diagnostics]
