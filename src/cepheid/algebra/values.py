"""Literals, parameters and durations as constants."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real

from cepheid.algebra.expressions import Constant, Varying
from cepheid.algebra.types import Schema, Type
from cepheid.language.ast import Unit

MICROSECONDS: dict[Unit, int] = {
    Unit.MICROSECONDS: 1,
    Unit.MILLISECONDS: 1_000,
    Unit.SECONDS: 1_000_000,
    Unit.MINUTES: 60_000_000,
    Unit.HOURS: 3_600_000_000,
    Unit.DAYS: 86_400_000_000,
    Unit.WEEKS: 604_800_000_000,
}
DAY = MICROSECONDS[Unit.DAYS]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST = 2**63


class NoTick(ValueError):
    """A duration in seconds over an integer time column of which nobody said what a tick is."""


class NoUnit(ValueError):
    """A bare number where time is a timestamp."""


def constant(value: object) -> Constant | None:
    """A Python value as predicates see it; None if predicates can't."""
    match value:
        case Varying():
            return value
        case None:
            return Constant(None, Type.NULL)
        case bool():
            return Constant(value, Type.BOOLEAN)
        case Integral():
            number = int(value)
            if -_LARGEST <= number < _LARGEST:
                return Constant(number, Type.INTEGER)
            return Constant(float(number), Type.FLOAT)
        case Decimal() | Real():
            return Constant(float(value), Type.FLOAT)
        case str():
            return Constant(value, Type.STRING)
        case bytes():
            return Constant(value, Type.BINARY)
        case datetime():
            return Constant(microseconds_since_epoch(value), Type.TIMESTAMP)
        case date():
            return Constant((value - _EPOCH.date()).days, Type.DATE)
        case timedelta():
            return Constant(value // timedelta(microseconds=1), Type.DURATION)
        case _:
            return None


def microseconds_since_epoch(moment: datetime) -> int:
    """Naive moments are UTC."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def parse_moment(text: str) -> Constant:
    """An ISO date or timestamp; ValueError if it is neither."""
    written = text.strip()
    try:
        return Constant((date.fromisoformat(written) - _EPOCH.date()).days, Type.DATE)
    except ValueError:
        return Constant(microseconds_since_epoch(datetime.fromisoformat(written)), Type.TIMESTAMP)


def integer_time(schema: Schema) -> bool:
    return schema.columns.get(schema.time) is Type.INTEGER


def ticks(amount: Fraction, unit: Unit, schema: Schema) -> Fraction:
    """A duration on the clock of the time column; NoTick or NoUnit if it doesn't fit."""
    if not integer_time(schema):
        if unit is Unit.UNITS:
            raise NoUnit
        return amount * MICROSECONDS[unit]
    if unit is Unit.UNITS:
        return amount
    if schema.unit is None or schema.unit is Unit.UNITS:
        raise NoTick
    return amount * MICROSECONDS[unit] / MICROSECONDS[schema.unit]


def duration_constant(amount: Fraction, *, integer: bool) -> Constant:
    """Over integer time a duration is a plain number, so that it meets `b.ts - a.ts`."""
    if not integer:
        return Constant(round(amount), Type.DURATION)
    if amount.denominator == 1:
        return Constant(int(amount), Type.INTEGER)
    return Constant(float(amount), Type.FLOAT)


def window_size(amount: Fraction) -> int:
    """Differences of times are integers, so `< 1.5` is `< 2`."""
    return math.ceil(amount)
