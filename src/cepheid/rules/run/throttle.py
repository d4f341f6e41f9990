"""The option `throttle=`: one alert for a rule and key in a time."""

from __future__ import annotations

import pyarrow as pa

from cepheid.engine.attribution.throttled import SUPPRESSED
from cepheid.errors import DataError, OptionError
from cepheid.options import TICK_US, Options, duration_us


def check_carried(alerts: pa.Schema) -> None:
    """Raise DataError if the rules carry a column that throttle= adds."""
    if SUPPRESSED in alerts.names:
        raise DataError(f"the rules carry a column `{SUPPRESSED}`, which throttle= adds: rename it")


def throttle_ticks(throttle: str | int, time: pa.DataType, options: Options) -> int:
    """The time of `throttle=` on the clock of the events."""
    number = pa.types.is_integer(time)
    if isinstance(throttle, str):
        ticks = duration_us(throttle)
        if number and options.unit is None:
            raise OptionError(
                f"throttle={throttle!r} is a duration, and the time column has integers: say what "
                "a tick of it is, as in unit='ms', or give the time in ticks"
            )
        ticks = ticks // TICK_US[options.unit] if number and options.unit is not None else ticks
    elif not number:
        raise OptionError(
            f"throttle={throttle!r} has no unit: give a duration, as in throttle='1 hour'"
        )
    else:
        ticks = throttle
    if ticks <= 0:
        raise OptionError(f"throttle={throttle!r} is no time: it must be longer than 0")
    return ticks
