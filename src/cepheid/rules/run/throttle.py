"""One alert for a rule and key in a time: what comes sooner is counted, and left out.

This is `AFTER MATCH SKIP FOR` of the language for rules that don't say it themselves, made of their
matches: so rules share work as before.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.engine.attribution.json_rows import KEY, RULE
from cepheid.engine.match_schema import MATCH_END, MATCH_START
from cepheid.engine.rows.clock import times
from cepheid.errors import DataError, OptionError
from cepheid.options import TICK_US, Options, duration_us

SUPPRESSED = "suppressed"
"""How many matches of the rule and key were left out after this one."""


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


def throttled(alerts: pa.Table, pause: int, exempt: pa.Array) -> pa.Table:
    """The alerts without those that end less than a pause after the last one that was kept of the
    same rule and key, except of `exempt` rules; and how many are left out after each. Of alerts
    that end together, the one that began first is kept."""
    if SUPPRESSED in alerts.column_names:
        raise DataError(f"the rules carry a column `{SUPPRESSED}`, which throttle= adds: rename it")
    rule, key = (_codes(alerts[name].combine_chunks()) for name in (RULE, KEY))
    starts, ends = (times(alerts[n].combine_chunks()) for n in (MATCH_START, MATCH_END))
    free = pc.is_in(alerts[RULE].combine_chunks(), value_set=exempt)
    order = np.lexsort((starts, ends, key, rule))
    order = order[~free.to_numpy(zero_copy_only=False)[order]]
    left_out = np.zeros(alerts.num_rows, np.int64)
    dropped = np.zeros(alerts.num_rows, np.bool_)
    last, group = -1, (-1, -1)
    values = (order, rule[order], key[order], ends[order])
    for at, *rule_and_key, end in zip(*(column.tolist() for column in values), strict=True):
        if tuple(rule_and_key) == group and end - ends[last] < pause:
            dropped[at] = True
            left_out[last] += 1
        else:
            last, group = at, (rule_and_key[0], rule_and_key[1])
    counted = alerts.append_column(SUPPRESSED, pa.array(left_out))
    return counted.filter(pa.array(~dropped))


def _codes(values: pa.Array) -> NDArray[np.int64]:
    """A number for each value; NULL has one, too."""
    codes = values.dictionary_encode().indices.cast(pa.int64())
    return np.asarray(pc.fill_null(codes, -1).to_numpy(zero_copy_only=False))
