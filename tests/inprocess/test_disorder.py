"""Iterators whose events are out of order, and heartbeats among their batches."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

import cepheid as cep

TYPED: dict[str, Any] = {"time": "ts", "type": "type", "jit": False}
PAIR = "PATTERN A a ; B b WITHIN 10 RETURN a.ts AS a, b.ts AS b"
LEFT = "PATTERN A a ; !B b FOR 30 RETURN a.ts AS a"


def batch(*events: tuple[int | None, str]) -> pa.RecordBatch:
    return pa.record_batch(
        {"ts": pa.array([ts for ts, _ in events], pa.int64()), "type": [t for _, t in events]}
    )


def found(items: list[Any], query: str, **options: Any) -> list[dict[str, Any]]:
    reader = cep.match(iter(items), query, **{**TYPED, **options})
    rows: list[dict[str, Any]] = reader.read_all().to_pylist()
    return rows


def test_rows_inside_the_delay_are_put_in_order() -> None:
    items = [batch((5, "B")), batch((2, "A"), (3, "A")), batch((9, "C"))]
    assert found(items, PAIR, delay=3) == [
        {"a": 2, "b": 5, "match_start": 2, "match_end": 5},
        {"a": 3, "b": 5, "match_start": 3, "match_end": 5},
    ]


def test_later_ones_are_counted() -> None:
    items = [batch((5, "A"), (1, "A")), batch((0, "A"), (6, "B"))]
    message = (
        r"^2 events were left out: they came later than delay= allows; a session \(cepheid.open\) "
        r"hands such events out$"
    )
    with pytest.warns(UserWarning, match=message):
        assert [row["a"] for row in found(items, PAIR, delay=3)] == [5]


def test_rows_without_a_time_are_counted_as_ever() -> None:
    with pytest.warns(UserWarning, match="^1 of 4 events have no time and were left out"):
        assert len(found([batch((2, "A"), (None, "A"), (1, "B"), (3, "B"))], PAIR, delay=3)) == 1


def test_matches_come_as_early_as_they_can() -> None:
    """When the time less the delay has passed what they wait for."""
    read: list[int] = []

    def items() -> Iterator[Any]:
        for number, item in enumerate([batch((1, "A")), batch((33, "C")), batch((34, "C"))]):
            read.append(number)
            yield item

    reader = cep.match(items(), LEFT, delay=2, **TYPED)
    assert reader.read_next_batch().num_rows == 1
    assert read == [0, 1]


def test_heartbeats_release_what_waits() -> None:
    items = [cep.Heartbeat(0), batch((1, "A")), cep.Heartbeat(31)]

    def endless() -> Iterator[Any]:
        yield from items
        raise AssertionError("read too far")

    reader = cep.match(endless(), LEFT, **TYPED)
    assert reader.read_next_batch().to_pylist() == [{"a": 1, "match_start": 1, "match_end": 31}]


def test_heartbeats_are_no_events() -> None:
    items = [batch((1, "A")), cep.Heartbeat(2), batch((3, "B"))]
    assert len(found(items, "PATTERN A a => B b WITHIN 2 EVENTS RETURN b.ts")) == 1


def test_an_event_before_a_heartbeat_is_out_of_order() -> None:
    items = [batch((1, "A")), cep.Heartbeat(5), batch((4, "B"))]
    message = "the events are not in the order of `ts`: 4 comes after 5; sort them"
    with pytest.raises(cep.DataError, match=message):
        found(items, PAIR)
    assert len(found(items, PAIR, delay=1)) == 1


def test_a_heartbeat_moves_a_merged_stream() -> None:
    read: list[str] = []

    def silent() -> Iterator[Any]:
        yield batch((0, "x")).select(["ts"])
        read.append("heartbeat")
        yield cep.Heartbeat(40)
        read.append("too far")

    def lively() -> Iterator[Any]:
        for time in (1, 35, 50):
            yield pa.record_batch({"ts": [time]})

    reader = cep.match({"A": lively(), "B": silent()}, LEFT, time="ts", jit=False)
    assert reader.read_next_batch().to_pylist() == [{"a": 1, "match_start": 1, "match_end": 31}]
    assert read == ["heartbeat"]


def test_merged_streams_out_of_order() -> None:
    streams = {
        "A": iter([pa.record_batch({"ts": [3, 1]}), pa.record_batch({"ts": [9]})]),
        "B": iter([pa.record_batch({"ts": [4, 2]})]),
    }
    rows = cep.match(streams, PAIR, time="ts", delay=2, jit=False).read_all()
    assert sorted(zip(*rows.select(["a", "b"]).to_pydict().values(), strict=True)) == [
        (1, 2), (1, 4), (3, 4),
    ]  # fmt: skip


def test_windows_that_count_events_of_keys() -> None:
    query = "PATTERN A a ; B b WHERE a.k = b.k WITHIN 2 EVENTS RETURN a.ts AS a, b.ts AS b"
    one = pa.record_batch({"ts": [3, 1], "type": ["B", "A"], "k": [1, 1]})
    two = pa.record_batch({"ts": [2], "type": ["A"], "k": [2]})
    rows = found([one, cep.Heartbeat(3), two], query, delay=2)
    assert rows == [{"a": 1, "b": 3, "match_start": 1, "match_end": 3}]


def test_where_it_is_no_use() -> None:
    message = (
        "^delay= is for sessions and iterators of record batches, not for whole tables: these are "
        "put in order anyway; leave it out$"
    )
    with pytest.raises(cep.OptionError, match=message):
        cep.match(pa.Table.from_batches([batch((1, "A"))]), PAIR, delay=3, **TYPED)


def test_times_that_are_none() -> None:
    message = r"^Heartbeat is a time like those of `ts`, as in Heartbeat\(1000\); not datetime"
    with pytest.raises(cep.OptionError, match=message):
        found([batch((1, "A")), cep.Heartbeat(datetime(2026, 1, 1))], PAIR)
