"""The option `throttle=`: one alert for a rule and key in a time."""

from __future__ import annotations

import pyarrow as pa

from cepheid.engine.attribution.json_rows import RULE
from cepheid.engine.attribution.throttled import SUPPRESSED
from cepheid.errors import DataError, OptionError
from cepheid.options import TICK_US, Options, duration_us
from cepheid.planner.bounds import known_after
from cepheid.rules.compile.compiled_rules import CompiledRules
from cepheid.streaming.throttle import Throttle


def check_carried(alerts: pa.Schema) -> None:
    """Raise DataError if the rules carry a column that throttle= adds."""
    if SUPPRESSED in alerts.names:
        raise DataError(f"the rules carry a column `{SUPPRESSED}`, which throttle= adds: rename it")


def throttle_of(compiled: CompiledRules, pause: int) -> Throttle:
    """For alerts of these rules that come bit by bit. Where no time bounds when matches are known,
    their order is that in which they are."""
    names = compiled.rules[RULE].combine_chunks()
    exempt = frozenset(compiled.choosing.to_pylist())
    lags = {
        name: lag
        for query in compiled.alone
        if (lag := known_after(query.bound))
        for name in names.take(pa.array(query.rules)).to_pylist()
        if name not in exempt
    }
    return Throttle(pause, exempt, lags)


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
