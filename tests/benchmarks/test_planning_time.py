"""The program that measures searches measures each kind of query."""

from __future__ import annotations

from benchmarks.planning_time import queries, times


def test_each_kind_is_searched() -> None:
    found = times(4, 1)
    assert [t.kind for t in found] == list(queries(4))
    assert all(t.milliseconds > 0 and t.classes == 4 for t in found)
