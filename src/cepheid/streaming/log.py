"""Rows in a store, as a log of immutable segments.

Every batch writes the rows that it brought, and segments are dropped whole when all their rows
are past, so that a batch costs what it brings, however long the window is. Small segments are
merged, each with one of its own size: there are never many, and a row is seldom written again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from cepheid.errors import StateError
from cepheid.streaming.cells import Cells, arrow_bytes, framed, table_of, unframed

SMALL = 1 << 14
"""Segments are merged up to this many rows."""


@dataclass(frozen=True)
class Segment:
    """A segment: none of its rows is past before `last` is. `first` is the number of its first
    row."""

    number: int
    first: int
    rows: int
    last: int
    size: int


class Log:
    """The segments of one kind of rows. Their numbers are `step` apart; other kinds use the numbers
    between."""

    def __init__(self, segments: Sequence[Segment] = (), next_number: int = 0, step: int = 2):
        self.segments = list(segments)
        self.next_number = next_number
        self._step = step

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(segment.size for segment in self.segments)

    def append(self, cells: Cells, table: pa.Table, first: int, last: int, begin: int) -> None:
        """Append rows; those before the number `begin` are past."""
        while self.segments and _alike(self.segments[-1].rows, table.num_rows):
            before = self.segments.pop()
            past = max(0, begin - before.first)
            # A resumed query may read fewer columns than before.
            rows = _read(cells, before).slice(past).select(table.column_names)
            table = pa.concat_tables([rows, table])
            first, last = before.first + past, max(before.last, last)
            cells.remove_segment(before.number)
        data = framed(arrow_bytes(table.combine_chunks()))
        cells.set_segment(self.next_number, data)
        segment = Segment(self.next_number, first, table.num_rows, last, len(data))
        self.segments.append(segment)
        self.next_number += self._step

    def drop(self, cells: Cells, past: int) -> None:
        """Delete segments whose `last` is at or before this."""
        for segment in self.segments:
            if segment.last <= past:
                cells.remove_segment(segment.number)
        self.segments = [s for s in self.segments if s.last > past]

    def read(self, cells: Cells, begin: int | None = None) -> Iterator[pa.Table]:
        """The rows, from this number on."""
        for segment in self.segments:
            if begin is None or segment.first + segment.rows > begin:
                table = _read(cells, segment)
                yield table if begin is None else table.slice(max(0, begin - segment.first))


def _alike(before: int, rows: int) -> bool:
    return before < 2 * rows and before + rows <= SMALL


def _read(cells: Cells, segment: Segment) -> pa.Table:
    data = cells.segment(segment.number)
    if data is None:
        raise StateError(
            f"segment {segment.number} of the saved state is missing. Restore the checkpoint"
        )
    table = table_of(unframed(data, f"segment {segment.number} of the saved state"))
    if table.num_rows != segment.rows:
        raise StateError(
            f"segment {segment.number} of the saved state has {table.num_rows} rows, not "
            f"{segment.rows}. Restore the checkpoint"
        )
    return table
