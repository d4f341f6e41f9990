"""The rows of a session on their way in: which can be matched now, and which are rejected."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.types import Schema
from cepheid.engine.rows.clock import unplaced
from cepheid.engine.rows.order import sorted_by
from cepheid.errors import StateError
from cepheid.inprocess.disorder import NEVER, WaitingRows, late_rows, row_times
from cepheid.streaming.cells import arrow_bytes, table_of

logger = logging.getLogger(__name__)

KEPT = 10_000
"""Rejected rows that a session keeps: the last ones."""

REASON = "reason"
LATE, UNPLACED = "late", "no time"


@dataclass(frozen=True)
class Rejections:
    """Rows that were rejected, the last of them with all their columns, and how many there were."""

    rows: pa.Table
    late: int = 0
    unplaced: int = 0

    @staticmethod
    def of(schema: pa.Schema) -> Rejections:
        return Rejections(schema.append(pa.field(REASON, pa.string())).empty_table())

    def plus(self, rows: pa.Table, reason: str) -> Rejections:
        more = rows.append_column(
            pa.field(REASON, pa.string()), pa.repeat(pa.scalar(reason), rows.num_rows)
        )
        every = pa.concat_tables([self.rows, more])
        kept = every.slice(max(0, every.num_rows - KEPT))
        late, unplaced = self.late, self.unplaced
        if reason == LATE:
            return Rejections(kept, late + rows.num_rows, unplaced)
        return Rejections(kept, late, unplaced + rows.num_rows)


class Intake:
    """Puts rows in order. With a delay they wait until others can't come before them any more;
    without, those of one push are put in order, and the next push may have only later ones.

    `reached` is the time that has come: every row before it is known.
    """

    def __init__(self, schema: Schema, columns: pa.Schema, delay: int | None) -> None:
        self._schema, self._columns, self._delay = schema, columns, delay
        self._latest = NEVER
        self._tie: Any = None  # of the last row, as a scalar, if it is of the latest time
        self._waiting = WaitingRows(columns, schema.order)
        self.rejections = Rejections.of(columns)
        self.events = 0

    @property
    def reached(self) -> int:
        return self._latest - (self._delay or 0)

    @property
    def waiting(self) -> int:
        """How many rows wait for their turn."""
        return int(self._waiting.rows.num_rows)

    def take(self, rows: pa.Table) -> pa.Table:
        """Those that can be matched now, in order: of these, and of the ones that waited."""
        schema = self._schema
        rejections = self.rejections
        bad = unplaced(rows, schema.time, schema.start)
        if bad is not None and pc.any(bad).as_py():
            rejections = rejections.plus(rows.filter(bad), UNPLACED)
            placed = rows.filter(pc.invert(bad))
        else:
            placed = rows
        at = row_times(placed, schema.time)
        if len(at):
            late = self._late(placed, at)
            if late.any():
                rejections = rejections.plus(placed.filter(pa.array(late)), LATE)
                placed, at = placed.filter(pa.array(~late)), at[~late]
        if rejections is not self.rejections:
            logger.info(
                "rows rejected so far: %d late, %d without a time",
                rejections.late,
                rejections.unplaced,
            )
        # From here on nothing fails: a push is taken as a whole, or not at all.
        self.rejections = rejections
        self.events += rows.num_rows
        if not len(at):
            return self._waiting.release(self.reached) if self._delay is not None else placed
        self._latest = max(self._latest, int(at.max()))
        if self._delay is not None:
            self._waiting.add(placed)
            return self._waiting.release(self.reached)
        placed = sorted_by(placed, schema.order)
        if schema.tie is not None:
            self._tie = placed[schema.tie][-1]
        return placed

    def _late(self, rows: pa.Table, at: NDArray[np.int64]) -> NDArray[np.bool_]:
        if self._delay is not None:
            return late_rows(at, self._latest, self._delay)
        late: NDArray[np.bool_] = at < self._latest
        tie = self._schema.tie
        if tie is not None and self._tie is not None and self._tie.is_valid:
            same = at == self._latest
            if same.any():
                before = pc.fill_null(pc.less(rows[tie], self._tie), True)
                late |= same & before.combine_chunks().to_numpy(zero_copy_only=False)
        return late

    def advance(self, time: int) -> pa.Table:
        """Time has come so far: the rows that can be matched now."""
        if time > self._latest:
            self._latest, self._tie = time, None
        if self._delay is None:
            return self._columns.empty_table()
        return self._waiting.release(self.reached)

    def rest(self) -> pa.Table:
        """The end of the data: all that waits."""
        return self._waiting.release()

    # ── saving ──

    def save(self) -> dict[str, bytes]:
        tie = {} if self._tie is None else {"tie": pa.array([self._tie.as_py()], self._tie.type)}
        meta = pa.table(
            {
                "latest": [self._latest],
                "delay": pa.array([self._delay], pa.int64()),
                "events": [self.events],
                "late": [self.rejections.late],
                "unplaced": [self.rejections.unplaced],
                **tie,
            }
        )
        return {
            "intake": arrow_bytes(meta),
            "waiting": arrow_bytes(self._waiting.rows),
            "rejected": arrow_bytes(self.rejections.rows),
        }

    def resume(self, saved: Mapping[str, bytes], aligned: Callable[[pa.Table], pa.Table]) -> None:
        """Take up the saved state; `aligned` gives saved rows the columns of today."""
        meta = table_of(saved["intake"])
        (row,) = meta.select(["latest", "delay", "events", "late", "unplaced"]).to_pylist()
        if row["delay"] != self._delay:
            raise StateError(
                f"the session was saved with delay={row['delay']}, and now it is {self._delay} "
                "(in ticks of its clock): resume with the delay that it had"
            )
        self._latest, self.events = row["latest"], row["events"]
        self._tie = meta["tie"][0] if "tie" in meta.column_names else None
        self._waiting.add(aligned(table_of(saved["waiting"])))
        rejected = Rejections.of(self._columns).rows.schema
        before = table_of(saved["rejected"])
        rows = before if before.schema.equals(rejected) else rejected.empty_table()
        self.rejections = Rejections(rows, row["late"], row["unplaced"])
