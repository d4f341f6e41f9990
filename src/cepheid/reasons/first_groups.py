"""What tells first events apart: their values of a column, or the windows of GROUP BY."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from cepheid.algebra.answer_shape import WINDOW_START
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.types import Type
from cepheid.errors import DataError
from cepheid.language.group_clause import WindowKind

_ZERO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class StartWindows:
    """The windows of TUMBLE that first events are in: their size; whether times are integers."""

    size: int
    ticks: bool

    def text(self, start: int) -> str:
        """The start of a window; a moment is in UTC.

        >>> StartWindows(60_000_000, False).text(60_000_000), StartWindows(5, True).text(-5)
        ('1970-01-01 00:01:00', '-5')
        """
        if self.ticks:
            return str(start)
        return f"{(_ZERO + timedelta(microseconds=start)).replace(tzinfo=None)}"


Groups: TypeAlias = str | StartWindows
"""A column, or windows."""


def groups_of(by: str | None, bound: BoundQuery) -> Groups | None:
    """`window_start` names the windows of a query that has some."""
    window = None if bound.answers is None else bound.answers.window
    if window is None or by is None or by.lower() != WINDOW_START:
        return by
    if window.kind is not WindowKind.TUMBLE:
        raise DataError(
            f"by={by!r} needs GROUP BY TUMBLE: an event may be in several windows of "
            f"{window.kind.name}, or in none"
        )
    return StartWindows(window.size, bound.schema.columns[bound.schema.time] is Type.INTEGER)


def group_text(value: object, by: Groups) -> str:
    """A value of a column, or the start of a window, as the name of a group."""
    if isinstance(by, StartWindows) and isinstance(value, int):
        return by.text(value)
    return "NULL" if value is None else str(value)
