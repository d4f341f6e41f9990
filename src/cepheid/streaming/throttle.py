"""One alert for a rule and key in a time, where alerts come bit by bit.

As over tables (`engine.attribution.throttled`), alerts are kept in the order of their ends. Those
of a rule whose matches may be known late wait until no earlier one can come. What is remembered is
the end of the last alert of each rule and key, as long as it leaves others out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.attribution.json_rows import KEY, RULE, TEMPLATE
from cepheid.engine.match_schema import MATCH_END, MATCH_START
from cepheid.engine.rows.clock import times
from cepheid.streaming.cells import arrow_bytes, table_of
from cepheid.streaming.rule_figures import RuleName

FOREVER = 1 << 62


@dataclass(frozen=True)
class Throttle:
    """`pause` is the time in which a rule has one alert for a key. `exempt` rules have AFTER MATCH
    SKIP or LIMIT. `lags` says of rules how long after their end matches may be known."""

    pause: int
    exempt: frozenset[str] = frozenset()
    lags: Mapping[str, int] = field(default_factory=dict)

    def beside(self, other: Throttle, gone: Collection[str]) -> Throttle:
        """That of other rules, too, except for those that are gone."""
        lags = {name: lag for name, lag in other.lags.items() if name not in gone}
        exempt = self.exempt | other.exempt.difference(gone)
        return Throttle(self.pause, exempt, {**self.lags, **lags})


class Throttled:
    """What is remembered of alerts. `suppressed` counts those that the last step left out, `total`
    all of them."""

    def __init__(self, schema: pa.Schema) -> None:
        self._last: dict[tuple[str, str | None], int] = {}
        self._held = schema.empty_table()
        self.suppressed = Counter[RuleName]()
        self.total = 0

    def step(
        self, alerts: Iterable[pa.RecordBatch], throttle: Throttle, watermark: int
    ) -> pa.Table:
        """The alerts that are kept, of these and those that waited, when time has come so far."""
        come = pa.Table.from_batches(list(alerts), self._held.schema)
        self.suppressed = Counter()
        every = pa.concat_tables([self._held, come])
        if not every.num_rows:
            self._forget(throttle, watermark)
            return every
        ends = times(every[MATCH_END].combine_chunks())
        names = every[RULE].to_pylist()
        lags = np.array([throttle.lags.get(name, 0) for name in names], np.int64)
        due = (lags == 0) | (ends + lags <= watermark)
        self._held = every.filter(pa.array(~due)).combine_chunks()
        kept = self._kept(every, ends, names, due, throttle)
        self._forget(throttle, watermark)
        return every.take(pa.array(kept, pa.int64())).combine_chunks()

    def _kept(
        self,
        every: pa.Table,
        ends: np.ndarray,
        names: list[str],
        due: np.ndarray,
        throttle: Throttle,
    ) -> list[int]:
        """The places of the alerts that are kept, in the order of their ends."""
        starts, keys = times(every[MATCH_START].combine_chunks()), every[KEY].to_pylist()
        kept = []
        for at in np.lexsort((starts, ends)).tolist():
            name, end = names[at], int(ends[at])
            if not due[at]:
                continue
            place = (name, keys[at])
            last = self._last.get(place)
            if name in throttle.exempt:
                kept.append(at)
            elif last is not None and end - last < throttle.pause:
                self.suppressed[name, every[TEMPLATE][at].as_py()] += 1
                self.total += 1
            else:
                self._last[place] = end
                kept.append(at)
        return kept

    def _forget(self, throttle: Throttle, watermark: int) -> None:
        """What no alert that may still come is near to."""
        since = watermark - throttle.pause - max(throttle.lags.values(), default=0)
        if self._last and min(self._last.values()) <= since:
            self._last = {place: end for place, end in self._last.items() if end > since}

    def keep(self, rules: Collection[str]) -> None:
        """Only these rules stay what they were."""
        self._last = {place: end for place, end in self._last.items() if place[0] in rules}
        there = pc.is_in(self._held[RULE], pa.array(sorted(rules), pa.string()))
        self._held = self._held.filter(there)

    @property
    def waits(self) -> bool:
        """Whether passing time alone releases an alert."""
        return bool(self._held.num_rows)

    # ── saving ──

    def save(self) -> bytes:
        last = pa.table(
            {
                RULE: pa.array([rule for rule, _ in self._last], pa.string()),
                KEY: pa.array([key for _, key in self._last], pa.string()),
                MATCH_END: pa.array(list(self._last.values()), pa.int64()),
            }
        )
        parts = [arrow_bytes(last), arrow_bytes(self._held.combine_chunks())]
        head = json.dumps({"sizes": [len(part) for part in parts], "total": self.total}).encode()
        return b"".join((len(head).to_bytes(4, "little"), head, *parts))

    def load(self, data: bytes) -> None:
        begin = 4 + int.from_bytes(data[:4], "little")
        head = json.loads(data[4:begin])
        first, second = head["sizes"]
        last = table_of(data[begin : begin + first])
        held = table_of(data[begin + first : begin + first + second])
        rows = zip(*(last[name].to_pylist() for name in (RULE, KEY, MATCH_END)), strict=True)
        self._last = {(rule, key): end for rule, key, end in rows}
        self._held = _fitted(held, self._held.schema)
        self.total = head["total"]


def _fitted(alerts: pa.Table, schema: pa.Schema) -> pa.Table:
    """Alerts that wait, with the columns that alerts have now."""
    columns = [
        alerts[f.name].cast(f.type) if f.name in alerts.column_names
        else pa.nulls(alerts.num_rows, f.type)
        for f in schema
    ]  # fmt: skip
    return pa.Table.from_arrays(columns, schema=schema)
