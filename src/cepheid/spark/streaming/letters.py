"""Dead letters: the rows of a stream that can take part in no match, with their values and why.

They leave the stream in a column of their own beside the matches, whose columns are NULL in their
rows. So they are written together with the matches of their batch, exactly once as those are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.kinds import is_unreadable
from cepheid.algebra.types import STREAM_COLUMN
from cepheid.errors import OptionError
from cepheid.options import Options
from cepheid.spark.columns.column_names import named as column
from cepheid.spark.columns.column_names import types_of
from cepheid.spark.columns.schema import event_schema
from cepheid.spark.streaming.stateful.packed_rows import (
    COUNT,
    KIND,
    LATE,
    LETTERS,
    REASON_COLUMN,
    TIME,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DEAD_LETTER, REASON, ROW, STREAM = "dead_letter", "reason", "row", "stream"
"""The column of dead letters and its two parts, of which the second has the columns of the row; and
in that the name of the row's stream, if there are several."""


@dataclass(frozen=True)
class Letters:
    """The columns kept of each dead letter."""

    columns: pa.Schema

    @property
    def field(self) -> pa.Field:
        row = pa.struct([(self._name(f.name), f.type) for f in self.columns])
        return pa.field(DEAD_LETTER, pa.struct({REASON: pa.string(), ROW: row}))

    def late(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        return self._letters(rows, pa.repeat(LATE, rows.num_rows))

    def rejected(self, rows: pa.Table | pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The dead letters of rows that have a reason."""
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        return self._letters(table, table[REASON_COLUMN].combine_chunks())

    def _letters(self, rows: pa.Table, reasons: pa.Array) -> Iterator[pa.RecordBatch]:
        if not rows.num_rows:
            return
        values = [rows[f.name].combine_chunks().cast(f.type) for f in self.columns]
        row = pa.StructArray.from_arrays(values, [self._name(f.name) for f in self.columns])
        letters = pa.StructArray.from_arrays([reasons, row], [REASON, ROW])
        yield pa.record_batch({DEAD_LETTER: letters}).replace_schema_metadata({KIND: LETTERS})

    def _name(self, column: str) -> str:
        return STREAM if column == STREAM_COLUMN and STREAM not in self.columns.names else column


def wanted_letters(
    events: DataFrame, read: Iterable[str], output: pa.Schema, options: Options
) -> Letters | None:
    """The columns kept of each dead letter, if dead letters are wanted: the `read` columns and
    those that the option names. `output` are the columns of the matches."""
    if options.dead_letters is False:
        return None
    types = types_of(events)
    named = () if options.dead_letters is True else tuple(options.dead_letters)
    for name in named:
        if name not in types:
            raise OptionError(f"there is no column `{name}` (dead_letters=)")
    if DEAD_LETTER in output.names:
        raise OptionError(
            f"RETURN has a column called `{DEAD_LETTER}`, as dead letters have: give it another "
            "name with AS"
        )
    columns = event_schema(events.select(*(column(n) for n in dict.fromkeys((*read, *named)))))
    for field in columns:
        if is_unreadable(field):
            kind = types[field.name].simpleString()
            raise OptionError(
                f"column `{field.name}` is {kind}, which can't be kept (dead_letters=)"
            )
    return Letters(columns)


def late_among(unread: Sequence[pa.Table], watermark: int) -> int:
    """How many rows that no variable takes are late, from their counts per time."""
    late = 0
    for times in unread:
        passed = pc.less_equal(times[TIME], watermark)
        late += pc.sum(times.filter(passed)[COUNT]).as_py() or 0
    return late
