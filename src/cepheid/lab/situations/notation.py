"""Events as text: `A@1(x=5) B@3`.

An event is its type, its time after an @, and its values in parentheses: numbers, 'texts' (an
apostrophe in one is doubled), true, false, null. A time is an integer or a moment such as
2026-03-02T10:00. A type or a name that isn't a word stands in backticks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from cepheid.errors import DataError
from cepheid.files.declared import quoted
from cepheid.lab.situations.cells import MOST
from cepheid.lab.situations.situation import TIME, TYPE

_TOKEN = re.compile(
    r"""\s+ | \#[^\n]*
    | (?P<moment>\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)
    | (?P<number>[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+))
    | (?P<word>[^\W\d]\w*)
    | `(?P<name>(?:[^`]|``)+)`
    | '(?P<text>(?:[^']|'')*)'
    | (?P<mark>[@(),=])""",
    re.VERBOSE,
)
_WORDS: Mapping[str, Any] = {"null": None, "true": True, "false": False, "nan": math.nan}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int


def read_events(text: str) -> pa.Table:
    """The events of a text, in its order, with the columns `ts`, `type` and the values' names."""
    events: list[tuple[str, int | datetime, dict[str, Any]]] = []
    tokens = _Tokens(text)
    while tokens.more:
        events.append(_event(tokens))
        if len(events) > MOST:
            raise DataError(f"the lab holds at most {MOST:,} events")
    moments = {isinstance(time, datetime) for _, time, _ in events}
    if len(moments) > 1:
        raise DataError("some times are integers and some are moments: use one kind")
    names = list(dict.fromkeys(name for *_, values in events for name in values))
    columns: dict[str, pa.Array] = {
        TIME: pa.array(
            [time for _, time, _ in events], pa.timestamp("us") if True in moments else pa.int64()
        ),
        TYPE: pa.array([type_ for type_, *_ in events], pa.string()),
    }
    for name in names:
        columns[name] = _column(name, [values.get(name) for *_, values in events])
    return pa.table(columns)


def write_events(table: pa.Table) -> str:
    """The text of events with the columns `ts` and `type`, one to a line."""
    return "\n".join(_lines(table))


def _lines(table: pa.Table) -> Iterator[str]:
    names = [n for n in table.column_names if n not in (TIME, TYPE)]
    for row in table.to_pylist():
        if row[TIME] is None:
            raise DataError("an event without a time can't be written")
        time = row[TIME].isoformat() if isinstance(row[TIME], datetime) else str(row[TIME])
        values = [f"{quoted(n)}={value_text(row[n])}" for n in names if row[n] is not None]
        inner = f"({', '.join(values)})" if values else ""
        yield f"{quoted(str(row[TYPE]))}@{time.removesuffix('+00:00')}{inner}"


def value_text(value: Any) -> str:
    """
    >>> value_text("it's"), value_text(2.5), value_text(True)
    ("'it''s'", '2.5', 'true')
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float() if math.isnan(value):
            return "nan"
        case int() | float():
            return repr(value)
        case _:
            return "'" + str(value).replace("'", "''") + "'"


# ── reading ──────────────────────────────────────────────────────────────────


class _Tokens:
    """The tokens of a text, one after the other."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._cut(text))
        self._at = 0

    def _cut(self, text: str) -> Iterator[_Token]:
        at = 0
        while at < len(text):
            token = _TOKEN.match(text, at)
            if token is None:
                raise DataError(f"{self._place(at)}: can't read {text[at : at + 12].split()[0]!r}")
            if token.lastgroup is not None:
                yield _Token(token.lastgroup, token[token.lastgroup], at)
            at = token.end()

    @property
    def more(self) -> bool:
        return self._at < len(self._tokens)

    def mark(self, mark: str) -> bool:
        """Whether the next is this mark; if so, it is taken."""
        here = self._tokens[self._at] if self.more else None
        taken = here is not None and here.kind == "mark" and here.text == mark
        self._at += taken
        return taken

    def take(self, *kinds: str, wanted: str) -> _Token:
        here = self._tokens[self._at] if self.more else None
        if here is None or here.kind not in kinds:
            seen = "the end" if here is None else repr(here.text)
            place = self._place(len(self._text) if here is None else here.start)
            raise DataError(f"{place}: expected {wanted}, not {seen}; an event is like A@1(x=5)")
        self._at += 1
        return here

    def need(self, mark: str) -> None:
        if not self.mark(mark):
            self.take("none", wanted=f"`{mark}`")

    def name(self, wanted: str) -> str:
        return self.take("word", "name", wanted=wanted).text.replace("``", "`")

    def _place(self, offset: int) -> str:
        line = self._text.count("\n", 0, offset) + 1
        return f"line {line}, column {offset - (self._text.rfind(chr(10), 0, offset) + 1) + 1}"


def _event(tokens: _Tokens) -> tuple[str, int | datetime, dict[str, Any]]:
    type_ = tokens.name("the type of an event")
    tokens.need("@")
    token = tokens.take("number", "moment", wanted="a time")
    if token.kind == "number" and not re.fullmatch(r"[+-]?\d{1,18}", token.text):
        raise DataError(f"the time {token.text} isn't an integer of at most 18 digits")
    time = int(token.text) if token.kind == "number" else _moment(token.text)
    values: dict[str, Any] = {}
    if tokens.mark("("):
        while not tokens.mark(")"):
            name = tokens.name("a name")
            if name in (TIME, TYPE):
                raise DataError(f"`{name}` stands before the parenthesis, as in A@1")
            tokens.need("=")
            values[name] = _value(tokens)
            if not tokens.mark(","):
                tokens.need(")")
                break
    return type_, time, values


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise DataError(f"there is no moment {text}") from None


def _value(tokens: _Tokens) -> Any:
    token = tokens.take("number", "word", "text", "moment", wanted="a value")
    match token.kind:
        case "number":
            return int(token.text) if re.fullmatch(r"[+-]?\d+", token.text) else float(token.text)
        case "text":
            return token.text.replace("''", "'")
        case "moment":
            return _moment(token.text)
        case _ if token.text.lower() in _WORDS:
            return _WORDS[token.text.lower()]
        case _:
            raise DataError(f"a text stands in quotes: '{token.text}'")


def _column(name: str, values: list[Any]) -> pa.Array:
    """Integers beside floats are floats."""
    kinds = {type(v) for v in values if v is not None}
    if kinds == {int, float}:
        values = [None if v is None else float(v) for v in values]
    elif len(kinds) > 1:
        raise DataError(f"the values of `{name}` are of several types")
    try:
        return pa.array(values, pa.int64()) if not kinds else pa.array(values)
    except (pa.ArrowException, OverflowError):
        raise DataError(f"a value of `{name}` is too large") from None
