"""The answers of a query, by brute force: all matches are enumerated, put
into the windows that their ends lie in, and aggregated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cepheid.algebra.answer_shape import (
    ANSWER,
    WINDOW_END,
    WINDOW_START,
    AnswerWindow,
    MatchAggregate,
)
from cepheid.algebra.query import BoundQuery, Kind, Variable
from cepheid.language.group_clause import WindowKind

from . import values
from .events import Event, rank
from .expressions import Scope, evaluate
from .match import matches, outputs
from .state import State


@dataclass(frozen=True)
class Row:
    """A match, as answers see it."""

    end: int
    start: int
    key: tuple[Any, ...]
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Group:
    """Matches that are one answer. Its `start` and `end` are those of its window; without one,
    both are None."""

    key: tuple[Any, ...]
    rows: Sequence[Row]
    start: int | None
    end: int | None


def answers(query: BoundQuery, events: Sequence[Event]) -> list[dict[str, Any]]:
    """In the order of `window_end`, those of one window by their group expressions."""
    assert query.answers is not None
    rows = [row_of(query, m, events) for m in matches(query, events)]
    found = sorted(groups(query, rows), key=lambda g: (-1 if g.end is None else g.end, g.key))
    answered = [values_of(query, group) for group in found]
    kept = [a for a in answered if all(of_answer(c, a) is True for c in query.answers.having)]
    most = query.answers.most
    return [
        {o.name: of_answer(o.expression, a) for o in query.answers.outputs} for a in kept[:most]
    ]


def row_of(query: BoundQuery, match: Any, events: Sequence[Event]) -> Row:
    assert query.answers is not None
    found = outputs(query, match, events)
    key = tuple(last_null(found[name]) for name in query.answers.groups)
    return Row(match.end, match.start, key, found)


def last_null(value: Any) -> tuple[Any, ...]:
    """Sorts NULL after NaN, and that after all else. -0.0 is 0.0."""
    return (3,) if value is None else rank(value)


def groups(query: BoundQuery, rows: Sequence[Row]) -> Iterator[Group]:
    shape = query.answers
    assert shape is not None
    if shape.whole:
        yield Group((), rows, None, None)
        return
    for key in sorted({row.key for row in rows}):
        own = [row for row in rows if row.key == key]
        if shape.window is None:
            yield Group(key, own, None, None)
        else:
            yield from windows(shape.window, key, own, empty=not shape.groups)


def windows(window: AnswerWindow, key: Any, rows: list[Row], empty: bool) -> Iterator[Group]:
    ends = [row.end for row in rows]
    size = window.size
    match window.kind:
        case WindowKind.TUMBLE | WindowKind.HOP:
            # "intervals `[k*r, (k+1)*r)` from time zero", "`[k*s, k*s + r)`"
            slide = window.slide or size
            first, last = min(ends) // slide - size // slide - 1, max(ends) // slide + 1
            found = [
                Group(key, [r for r in rows if k * slide <= r.end < k * slide + size], k * slide,
                      k * slide + size)
                for k in range(first, last + 1)
            ]  # fmt: skip
            some = [n for n, group in enumerate(found) if group.rows]
            if some:
                between = found[some[0] : some[-1] + 1]
                yield from (g for g in between if g.rows or empty)
        case WindowKind.SESSION:
            # "as long as the next match of the group ends less than g after the last"
            session: list[Row] = []
            for row in sorted(rows, key=lambda r: r.end):
                if session and row.end - session[-1].end >= size:
                    yield Group(key, session, session[0].end, session[-1].end + size)
                    session = []
                session = [*session, row]
            yield Group(key, session, session[0].end, session[-1].end + size)
        case WindowKind.RANGE:
            # "a row for every match, over the matches of its group that end in `(t - r, t]`"
            for t in ends:
                yield Group(key, [r for r in rows if t - size < r.end <= t], t - size, t)


def values_of(query: BoundQuery, group: Group) -> dict[str, Any]:
    shape = query.answers
    assert shape is not None
    found: dict[str, Any] = {WINDOW_START: group.start, WINDOW_END: group.end}
    for name in shape.groups:
        found[name] = group.rows[0].values[name]
    for aggregate in shape.aggregates:
        found[aggregate.name] = aggregated(aggregate, group.rows)
    return found


def aggregated(aggregate: MatchAggregate, rows: Sequence[Row]) -> Any:
    """In the order of ends, then starts, then values (NULL last)."""
    if aggregate.column is None:
        count = len(rows)
        return float(count) if aggregate.function == "approx_count" else count
    column = aggregate.column
    ordered = sorted(rows, key=lambda r: (r.end, r.start, last_null(r.values[column])))
    return values.aggregate(
        aggregate.function, [r.values[column] for r in ordered], aggregate.distinct
    )


def of_answer(expr: Any, found: Mapping[str, Any]) -> Any:
    """The value of an expression over a group."""
    answer = {ANSWER: Variable(ANSWER, (), Kind.SINGLE, None, ())}
    scope = Scope(State(env={ANSWER: 0}), {0: Event(0, 0, found)}, answer)
    return evaluate(expr, scope)
