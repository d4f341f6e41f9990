"""Pages: what a bucket of MATCH_RECOGNIZE keeps of its partitions, a few of them in each.

A batch reads and writes the pages of the partitions that it touches, and those in which passing
time decides something; of all others it reads a line in the directory. A page of one partition
would be written with less around it, but every page is a call of the store, which takes as long as
writing some hundred rows (`benchmarks/streaming/row_state.py`).

Pages are those of a hash table: rows go by the low bits of their place, a hash of their partition.
When partitions have become too many, one more bit counts, and each page is divided when it is next
touched.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.errors import StateError
from cepheid.streaming.cells import Cells, framed, unframed

Numbers = NDArray[np.int64]

PLACE = "__place"
"""A hash of the partition: the column that rows have beside those of the table."""

PER_PAGE = 32
"""How many partitions a page has, about."""

NEVER = (1 << 63) - 1

_HEAD = struct.Struct("<II")
_COLUMNS = ("number", "partitions", "rows", "size", "wakes")


@dataclass(frozen=True)
class PageRows:
    """Rows of some partitions. `held` are those in which matches are still to be found, partition
    after partition; `carried` says where the search goes on in each (see `Ongoing`). `pending` rows
    wait for the watermark."""

    held: pa.Table
    pending: pa.Table
    carried: Numbers


@dataclass(frozen=True)
class Wakes:
    """The watermarks at which time decides something: in partitions that are held, whose first rows
    are `begins`, and of pending rows."""

    begins: Numbers
    partitions: Numbers
    pending: Numbers


@dataclass(frozen=True)
class Directory:
    """The pages of a bucket: a page's `number` is 1 and then as many bits of a place as counted
    when it was written; how many partitions, rows and bytes it has, and the watermark at which it
    has to be read. `bits` count now."""

    bits: int
    pages: Numbers

    @classmethod
    def empty(cls) -> Directory:
        return cls.of(0, b"")

    @classmethod
    def of(cls, bits: int, saved: bytes) -> Directory:
        return cls(bits, np.frombuffer(saved, np.int64).reshape(-1, len(_COLUMNS)))

    @property
    def numbers(self) -> Numbers:
        return self.pages[:, 0]

    @property
    def rows(self) -> int:
        return int(self.pages[:, 2].sum())

    @property
    def size(self) -> int:
        return int(self.pages[:, 3].sum())

    @property
    def wakes(self) -> int:
        return int(self.pages[:, 4].min(initial=NEVER))

    def touched(self, places: Numbers, watermark: int) -> Numbers:
        """The pages that rows with these places belong to, and those that have to be read at the
        watermark."""
        wanted = [self.numbers[self.pages[:, 4] <= watermark]]
        wanted += [_numbers(np.unique(places), bits) for bits in range(self.bits + 1)]
        return np.intersect1d(np.concatenate(wanted), self.numbers)


def _numbers(places: Numbers, bits: int) -> Numbers:
    whole = 1 << bits
    return whole | (places.astype(np.int64) & (whole - 1))


def read_pages(cells: Cells, numbers: Iterable[int], schema: pa.Schema) -> PageRows:
    """What these pages have; `schema` is that of their rows."""
    held, pending = [schema.empty_table()], [schema.empty_table()]
    carried = [np.zeros((0, 3), np.int64)]
    for number in numbers:
        rows, count, places = _read_page(cells, number, schema)
        held.append(rows.slice(0, count))
        pending.append(rows.slice(count))
        carried.append(places)
    return PageRows(pa.concat_tables(held), pa.concat_tables(pending), np.concatenate(carried))


def _read_page(cells: Cells, number: int, schema: pa.Schema) -> tuple[pa.Table, int, Numbers]:
    """The rows, how many of them are held, and where the search goes on."""
    what = f"page {number} of the saved state"
    saved = cells.segment(number)
    if saved is None:
        raise StateError(f"{what} is missing. Restore the checkpoint")
    data = unframed(saved, what)
    partitions, held = _HEAD.unpack_from(data)
    end = _HEAD.size + partitions * 3 * 8
    carried = np.frombuffer(data[_HEAD.size : end], np.int64).reshape(partitions, 3)
    batch = pa.ipc.read_record_batch(pa.py_buffer(data[end:]), schema)
    return pa.Table.from_batches([batch]), held, carried


def write_pages(
    cells: Cells, before: Directory, read: Numbers, kept: PageRows, wakes: Wakes, per_page: int
) -> Directory:
    """The directory, after these rows have been written in place of the pages that were `read`."""
    untouched = before.pages[~np.isin(before.numbers, read)]
    rows = pa.concat_tables([kept.held, kept.pending])
    places = np.asarray(rows[PLACE].combine_chunks(), np.int64)
    bits, partitions = before.bits, int(untouched[:, 1].sum()) + len(np.unique(places))
    while partitions > per_page << bits:
        bits += 1
    written = np.array(
        list(_written(cells, rows, _numbers(places, bits), kept, wakes)), np.int64
    ).reshape(-1, len(_COLUMNS))
    for number in np.setdiff1d(read, written[:, 0]).tolist():
        cells.remove_segment(number)
    return Directory(bits, np.concatenate([untouched, written]))


def _written(
    cells: Cells, rows: pa.Table, numbers: Numbers, kept: PageRows, wakes: Wakes
) -> Iterator[tuple[int, ...]]:
    """Write the rows to the pages with these numbers; yield the pages' lines of the directory."""
    order = np.argsort(numbers, kind="stable")
    # The rows of a partition stay together, and so partitions stay in the order of their rows.
    page_of = numbers[wakes.begins]
    by_page = np.argsort(page_of, kind="stable")
    page_of, carried, expiring = page_of[by_page], kept.carried[by_page], wakes.partitions[by_page]
    held = kept.held.num_rows
    due = np.concatenate([np.full(held, NEVER), wakes.pending])[order]
    arranged = rows.take(pa.array(order)).combine_chunks()
    places = np.asarray(arranged[PLACE].combine_chunks())
    for number in np.unique(numbers).tolist():
        begin, end = np.searchsorted(numbers[order], [number, number + 1]).tolist()
        first, last = np.searchsorted(page_of, [number, number + 1]).tolist()
        (batch,) = arranged.slice(begin, end - begin).to_batches()
        data = framed(
            _HEAD.pack(last - first, int((order[begin:end] < held).sum()))
            + carried[first:last].tobytes()
            + batch.serialize().to_pybytes()
        )
        cells.set_segment(number, data)
        partitions = len(np.unique(places[begin:end]))
        wakes_at = min(expiring[first:last].min(initial=NEVER), due[begin:end].min(initial=NEVER))
        yield number, partitions, end - begin, len(data), int(wakes_at)
