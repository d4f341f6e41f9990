"""Rules of a session or an iterator whose alerts are throttled."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from cepheid.rules.run.chains.in_sessions import ChainedRuns
from cepheid.rules.run.rule_session import RuleRuns
from cepheid.streaming.throttle import FOREVER, Throttle, Throttled


class ThrottledRuns:
    """See `sessions.session.SessionRuns`. Rules that read others read what is left out, too."""

    def __init__(self, runs: RuleRuns | ChainedRuns, throttle: Throttle) -> None:
        self._runs, self._throttle = runs, throttle
        self._throttled = Throttled(runs.schema)
        self.schema = runs.schema
        self._matches = 0

    def step(self, rows: pa.Table, reached: int) -> pa.Table:
        return self._kept(self._runs.step(rows, reached), reached - 1)

    def finish(self, rows: pa.Table) -> pa.Table:
        return self._kept(self._runs.finish(rows), FOREVER)

    def _kept(self, alerts: pa.Table, watermark: int) -> pa.Table:
        kept = self._throttled.step(alerts.to_batches(), self._throttle, watermark)
        self._matches += kept.num_rows
        return kept

    @property
    def waits(self) -> bool:
        return self._throttled.waits or self._runs.waits

    def total(self, figure: str) -> int:
        match figure:
            case "matches":
                return self._matches
            case "suppressed":
                return self._throttled.total
            case _:
                return self._runs.total(figure)

    def save(self) -> dict[str, bytes]:
        figures = self._matches.to_bytes(8, "little")
        own = {"throttle": self._throttled.save(), "kept": figures}
        return {**own, **self._runs.save()}

    def resume(self, saved: Mapping[str, bytes]) -> None:
        """A session that was saved without a throttle begins to count now, and so do rules that
        have changed."""
        self._runs.resume(saved)
        self._matches = self._runs.total("matches")
        if "throttle" in saved:
            self._throttled.load(saved["throttle"])
            self._throttled.keep(self._runs.stayed)
            self._matches = int.from_bytes(saved["kept"], "little")
