"""The situation as a case in the notation of tests (CONTRIBUTING.md): a query, events, matches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from cepheid.algebra.query import BoundQuery, Kind
from cepheid.errors import DataError
from cepheid.lab.found import found
from cepheid.lab.situations.notation import value_text
from cepheid.lab.situations.situation import TIME, TYPE, Situation

_MOST = 200
"""Events of a case. A person has to check it."""

_WORD = re.compile(r"\w+")


def case_of(situation: Situation, name: str = "lab/case") -> str:
    """The text of the case. Its matches are those that were found: a person who keeps it says that
    they are right."""
    events, options = situation.events, situation.options
    if options.type is None:
        raise DataError("a case needs a column of types: the notation of events begins with them")
    if events.num_rows > _MOST:
        raise DataError(f"a case has at most {_MOST} events, not {events.num_rows:,}: keep few")
    bound = situation.query.bind(events.schema, options)
    answer = found(situation)
    if answer["answers"]:
        raise DataError("a case has matches, and this query returns answers")
    if not answer["complete"]:
        raise DataError("there are too many matches for a case")
    kept = _kept(situation, bound)
    fields = [
        ("name", name),
        ("query", "\n".join(line for line in situation.text.splitlines() if line.strip())),
        ("params", ", ".join(f"{n}={_value(v)}" for n, v in options.params.items())),
        ("tie", options.tie or ""),
        ("unit", options.unit or ""),
        ("columns", " ".join(_declared(situation, kept))),
        ("events", " ".join(_events(situation, kept))),
        ("matches", _matches(situation, bound, answer["matches"])),
    ]
    return "\n".join(f"{field:<8} {_indented(text)}" for field, text in fields if text) + "\n"


def _indented(text: str) -> str:
    first, *others = text.splitlines()
    return "\n".join([first, *(f"         {line.strip()}" for line in others)])


def _declared(situation: Situation, kept: Sequence[str]) -> Iterator[str]:
    """Columns whose types don't follow from the values: moments, and those without a value."""
    for field in situation.events.schema:
        names = [TIME] if field.name == situation.options.time else []
        names += [field.name] if field.name in kept else []
        if pa.types.is_timestamp(field.type):
            yield from (f"{name}:timestamp" for name in names)
        elif pa.types.is_date(field.type):
            yield from (f"{name}:date" for name in names)
        elif pa.types.is_decimal(field.type) or pa.types.is_nested(field.type):
            raise DataError(f"a case has no notation for the type of `{field.name}`")


def _kept(situation: Situation, bound: BoundQuery) -> list[str]:
    """The columns beside times and types, which have fixed names; those, too, if the query reads
    them by others."""
    options = situation.options
    fixed = {options.time: TIME, str(options.type): TYPE}
    return [
        name
        for name in situation.events.column_names
        if name not in fixed or (name in bound.required and fixed[name] != name)
    ]


def _events(situation: Situation, kept: Sequence[str]) -> Iterator[str]:
    options, events = situation.options, situation.events
    plain = {name: _numbers(events[name]) for name in events.column_names}
    for row in range(events.num_rows):
        kind, time = plain[str(options.type)][row], plain[options.time][row]
        if not isinstance(kind, str) or not _WORD.fullmatch(kind):
            raise DataError(f"row {row}: a case has no notation for the type {kind!r}")
        values = [(name, plain[name][row]) for name in kept]
        inner = ", ".join(f"{_name(n)}={_value(v)}" for n, v in values if v is not None)
        yield f"{kind}@{'null' if time is None else time}" + (f"({inner})" if inner else "")


def _numbers(column: pa.ChunkedArray) -> list[Any]:
    """Moments and dates as their numbers."""
    if pa.types.is_timestamp(column.type):
        return list(column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_pylist())
    if pa.types.is_date(column.type):
        return list(column.cast(pa.date32()).cast(pa.int32()).to_pylist())
    return list(column.to_pylist())


def _name(name: str) -> str:
    if not _WORD.fullmatch(name):
        raise DataError(f"a case has no notation for the name `{name}`")
    return name


def _value(value: Any) -> str:
    text = value_text(value)
    if isinstance(value, str) and ("'" in value or "\n" in value):
        raise DataError(f"a case has no notation for the text {value!r}")
    return text


def _matches(situation: Situation, bound: BoundQuery, matches: Sequence[dict[str, Any]]) -> str:
    times = _numbers(situation.events[situation.options.time])
    count = Counter(times)

    def label(row: int) -> str:
        return str(times[row]) if count[times[row]] == 1 and times[row] >= 0 else f"#{row}"

    def word(name: str, rows: Sequence[int]) -> str:
        if not rows and bound.variables[name].kind is not Kind.GROUP:
            return ""
        return name + (",".join(map(label, rows)) or "()")

    written = [
        " ".join(w for w in (word(n, rows) for n, rows in match["rows"].items()) if w)
        for match in matches
    ]
    return " | ".join(written) or "none"
