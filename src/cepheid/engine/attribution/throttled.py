"""One alert for a rule and key in a time: what comes sooner is counted, and left out.

This is `AFTER MATCH SKIP FOR` of the language for rules that don't say it themselves, made of their
matches: so rules share work as before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.engine.attribution.json_rows import KEY, RULE
from cepheid.engine.match_schema import MATCH_END, MATCH_START
from cepheid.engine.rows.clock import times

SUPPRESSED = "suppressed"
"""How many matches of the rule and key were left out after this one."""


def throttled_schema(alerts: pa.Schema) -> pa.Schema:
    return alerts.append(pa.field(SUPPRESSED, pa.int64()))


def throttled_by_rule(
    batches: Iterable[pa.RecordBatch], pause: int, exempt: pa.Array
) -> Iterator[pa.RecordBatch]:
    """As `throttled`, of alerts that come sorted by rule and key. Those of one rule and key are
    held until the next one begins."""
    held: pa.Table | None = None
    for batch in batches:
        come = pa.Table.from_batches([batch])
        alerts = come if held is None else pa.concat_tables([held, come])
        begin = _last_group(alerts)
        yield from throttled(alerts.slice(0, begin), pause, exempt).to_batches()
        held = alerts.slice(begin)
    if held is not None:
        yield from throttled(held, pause, exempt).to_batches()


def _last_group(alerts: pa.Table) -> int:
    """Where the last rule and key begin."""
    rule, key = (_codes(alerts[name].combine_chunks()) for name in (RULE, KEY))
    changes = np.flatnonzero((rule[1:] != rule[:-1]) | (key[1:] != key[:-1]))
    return int(changes[-1]) + 1 if len(changes) else 0


def throttled(alerts: pa.Table, pause: int, exempt: pa.Array) -> pa.Table:
    """The alerts without those that end less than a pause after the last one that was kept of the
    same rule and key, except of `exempt` rules; and how many are left out after each. Of alerts
    that end together, the one that began first is kept."""
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
