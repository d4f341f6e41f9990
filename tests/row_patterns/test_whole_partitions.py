"""Sorted batches become tables of whole partitions, few at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pyarrow as pa

from cepheid.row_patterns.whole_partitions import whole_partitions


def test_batches_are_cut_where_partitions_end() -> None:
    table = pa.table({"k": [None, 1, 1, 1, 2, 2, 3], "x": range(7)})
    for size in range(1, 8):
        cut = list(whole_partitions(iter(table.to_batches(max_chunksize=size)), ["k"]))
        assert pa.concat_tables(cut).equals(table)
        for one, other in pairwise(cut):
            assert not set(one["k"].to_pylist()) & set(other["k"].to_pylist())


def test_no_more_is_held_than_a_batch_and_a_partition() -> None:
    """Partitions of 70 rows in batches of 100."""
    read = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal read
        for number in range(500):
            rows = range(number * 100, number * 100 + 100)
            read += 100
            yield pa.record_batch({"k": [row // 70 for row in rows]})

    returned = 0
    for table in whole_partitions(batches(), ["k"]):
        assert read - returned <= 170
        returned += table.num_rows
    assert returned == read == 50_000
