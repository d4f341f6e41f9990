"""The benchmark of row state: what layouts write."""

from __future__ import annotations

from benchmarks.row_state import SMALL, StateCase, bytes_written


def test_a_small_batch_writes_a_small_part_of_many_partitions() -> None:
    case = StateCase(6_000, SMALL)
    pages, kept = bytes_written("pages", case)
    whole, _ = bytes_written("whole buckets", case)
    assert 5 * pages < whole
    assert 6_000 * 100 < kept < 6_000 * 250
