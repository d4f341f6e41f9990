"""Time that goes on with the clock when nothing comes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cepheid.errors import DataError
from cepheid.options import Options
from cepheid.spark.streaming.clock.heartbeat import heartbeat_of
from cepheid.spark.streaming.clock.time import Watermark
from cepheid.spark.streaming.stateful.packed_rows import BUCKET, BUCKET_COLUMN, DATA, packing
from cepheid.streaming.cells import table_of
from cepheid.streaming.silence import CELL, SilenceLimit, time_passed
from tests.streaming.simulation import MemoryCells

BEAT = SilenceLimit(silence=60_000, tick=1)
MINUTE = 60_000_000


class Overwritten(MemoryCells):
    def set_segment(self, number: int, data: bytes) -> None:
        assert number == CELL
        self.segments[number] = data


def reached(*batches: tuple[int, bool, int | None], beat: SilenceLimit = BEAT) -> list[int]:
    """After each batch: its watermark, whether it has events, and the clock in seconds."""
    cells = Overwritten()
    return [
        time_passed(cells, beat, mark, heard, None if clock is None else 1000 * clock)
        for mark, heard, clock in batches
    ]


def test_after_a_silence_time_follows_the_clock() -> None:
    """Heard at 100 s, when the watermark moved; a minute later time goes on from there."""
    batches = [(5, True, 98), (7, False, 100), (7, False, 159), (7, False, 160), (7, False, 170)]
    assert reached(*batches) == [5, 7, 7, 7 + MINUTE, 7 + MINUTE + 10_000_000]


def test_events_of_any_bucket_break_the_silence() -> None:
    batches = [(7, True, 100), (7, True, 159), (7, False, 161), (7, False, 218), (7, False, 219)]
    assert reached(*batches) == [7, 7, 7, 7, 7 + MINUTE]


def test_time_never_goes_back() -> None:
    """Events come again, and their watermark is behind what has been released."""
    batches = [(7, True, 100), (7, False, 160), (7, True, 161), (50, False, 162), (50, False, 230)]
    assert reached(*batches) == [7, 7 + MINUTE, 7 + MINUTE, 7 + MINUTE, 50 + 68_000_000]


def test_a_batch_that_does_not_tell_the_clock_decides_nothing() -> None:
    batches = [
        (7, True, None),
        (7, False, None),
        (7, False, 500),
        (7, False, None),
        (7, False, 560),
    ]
    assert reached(*batches) == [7, 7, 7, 7, 7 + MINUTE]


def test_ticks_of_integers() -> None:
    beat = heartbeat_of(Options("ts", unit="s", heartbeat="1 minute"), Watermark(True, False))
    assert beat == SilenceLimit(60_000, 1_000_000)
    assert reached((7, True, 100), (7, False, 165), beat=beat) == [7, 72]
    with pytest.raises(DataError, match=r"heartbeat='1 minute' is a duration, .* as in unit='ms'"):
        heartbeat_of(Options("ts", heartbeat="1 minute"), Watermark(True, False))
    assert heartbeat_of(Options("ts"), Watermark(True, False)) is None
    with pytest.raises(ValueError, match="heartbeat must be longer than 0 seconds"):
        Options("ts", heartbeat="0 seconds")


def test_every_bucket_hears_of_events() -> None:
    """Also of those that no variable takes, and which have no bucket."""
    rows = pa.record_batch({"ts": [1, 2], BUCKET_COLUMN: pa.array([None, 7], pa.int32())})
    (packed,) = packing(pa.int32(), "ts", (0, 3, 7))(iter([rows]))
    sizes = [table_of(data.as_buffer()).num_rows for data in packed.column(DATA)]
    found = dict(zip(packed.column(BUCKET).to_pylist(), sizes, strict=False))
    assert found.keys() == {0, 3, 7} and (found[3], found[7]) == (0, 1)
