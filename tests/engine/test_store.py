"""The event store holds what a plain list of rows would, at a cost that follows what comes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cepheid.algebra.expressions import Attribute, Call
from cepheid.algebra.types import Type
from cepheid.engine.arrays import window_columns
from cepheid.engine.arrays.columns import Column, Hash
from cepheid.engine.arrays.interner import Interner
from cepheid.engine.arrays.window_columns import Growing
from cepheid.engine.rows.clock import Ticks
from cepheid.engine.rows.store import EventStore

EPOCH = datetime(2020, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    {
        "s": pa.string(),
        "x": pa.float64(),
        "price": pa.float64(),
        "at": pa.timestamp("us", "UTC"),
        "yes": pa.bool_(),
    }
)
S = Column(Attribute("", "s", Type.STRING))
X = Column(Attribute("", "x", Type.FLOAT))
KEYS = Hash((S,)), Hash((S, X))
RETURNED = ("s", "price", "at", "yes")
FIXED = ("price", "at")

Row = dict[str, Any]

rows = st.fixed_dictionaries(
    {
        "s": st.sampled_from(["one", "two", "", None]),
        "x": st.sampled_from([0.0, -0.0, 1.5]),
        "price": st.one_of(*[st.floats(0, 9)] * 9, st.none()),
        "at": st.integers(0, 9).map(lambda n: EPOCH + timedelta(seconds=n)),
        "yes": st.sampled_from([True, False, None]),
        "step": st.integers(0, 2),
        "length": st.integers(0, 3),
    }
)


@dataclass
class Model:
    """A store, and what it should hold: rows with their time and length."""

    store: EventStore
    now: int = 0
    forgotten: int = 0
    held: list[Row] = field(default_factory=list)
    seen: list[tuple[NDArray[Any], NDArray[Any]]] = field(default_factory=list)

    def append(self, new: list[Row], eat: int) -> None:
        self._forget(eat)
        for row in new:
            self.now += row["step"]
            self.held.append({**row, "time": self.now})
        time = np.array([row["time"] for row in self.held[len(self.held) - len(new) :]], np.int64)
        start = time - np.array([row["length"] for row in new], np.int64)
        starts = (start, start, start) if self.store.lasting else (time, time, time)
        batch = pa.RecordBatch.from_pylist(new, SCHEMA)
        self.store.append(batch, Ticks(time, time, time, *starts, self.now), eat)

    def expire(self, eat: int) -> None:
        self._forget(eat)
        self.store.expire(eat)

    def _forget(self, eat: int) -> None:
        before = len(self.held)
        self.held = [row for row in self.held if row["time"] > eat]
        self.forgotten += before - len(self.held)

    def keep(self, chosen: list[int]) -> None:
        self.forgotten += len(self.held) - len(chosen)
        self.held = [self.held[n] for n in chosen]
        self.store.keep(np.array(chosen, np.int64))

    def column(self, name: str) -> list[Any]:
        return [row[name] for row in self.held]

    def note(self, array: NDArray[Any]) -> None:
        self.seen.append((array, array.copy()))

    def check(self, draw: st.DataObject) -> None:
        store = self.store
        assert (store.base, store.n) == (self.forgotten, len(self.held))
        assert store.time.tolist() == store.position.tolist() == store.clock.tolist()
        assert store.time.tolist() == self.column("time")
        begun = [row["time"] - (row["length"] if store.lasting else 0) for row in self.held]
        assert store.start.tolist() == store.begin.tolist() == store.opened.tolist() == begun
        self.note(store.time)
        if S in store.values:
            self._check_values(draw)
            self._check_returned(draw)
        for array, copy in self.seen:
            assert array.tolist() == copy.tolist()

    def _check_values(self, draw: st.DataObject) -> None:
        store, strings, known = self.store, self.column("s"), self.column("s")
        values, *valid = store.kernel_columns([S], objects=True)
        if valid:
            assert valid[0].tolist() == [s is not None for s in strings]
            known = [s for s in strings if s is not None]
            values = values[valid[0]]
        assert values.tolist() == known
        assert store.values[X].tolist() == self.column("x")
        assert all(v.flags.writeable and v.flags.c_contiguous for v in store.values.values())
        for key in draw.draw(st.sets(st.sampled_from(KEYS)), "hashes"):
            self._check_hashes(key)

    def _check_hashes(self, key: Hash) -> None:
        """Equal where the values are, -1 for NULL."""
        names = [str(c.expression.name) for c in key.columns if isinstance(c.expression, Attribute)]
        wanted = [tuple(row[name] for name in names) for row in self.held]
        found: NDArray[np.int64] = self.store.hash(key)
        self.note(found)
        of = dict(zip(wanted, found.tolist(), strict=True))
        assert [of[one] for one in wanted] == found.tolist()
        assert all((hashed == -1) == (one[0] is None) for one, hashed in of.items())
        whole = [hashed for one, hashed in of.items() if one[0] is not None]
        assert len(set(whole)) == len(whole)

    def _check_returned(self, draw: st.DataObject) -> None:
        place = st.integers(0, max(0, len(self.held) - 1))
        chosen = draw.draw(st.lists(place, max_size=8 if self.held else 0), "taken")
        for name in RETURNED:
            column = self.store.returned[name]
            assert column is not None
            taken = column.take(np.array(chosen, np.int64))
            assert taken.type == SCHEMA.field(name).type
            assert taken.to_pylist() == [self.held[n][name] for n in chosen]
            if name not in FIXED:
                assert column.numbers is None
            elif column.numbers is not None:
                assert len(column.numbers) == len(self.held)
                assert not column.numbers.flags.writeable
                self.note(column.numbers)
            else:
                assert name == "price"


@settings(deadline=None)
@given(st.data(), st.booleans(), st.sampled_from([1, 4, 1 << 16]), st.sampled_from([0, 2, 32]))
def test_like_a_list_of_rows(data: st.DataObject, lasting: bool, merged: int, spread: int) -> None:
    store = EventStore(RETURNED, Interner(), lasting)
    store.require([S, X])
    model = Model(store)
    with (
        patch.object(window_columns, "MERGED", merged),
        patch.object(window_columns, "SPREAD", spread),
    ):
        for _ in range(data.draw(st.integers(1, 12), "steps")):
            step = data.draw(st.sampled_from(["append"] * 4 + ["expire", "keep"]), "step")
            version = store.version
            eat = model.now - data.draw(st.integers(-1, 20), "window")
            match step:
                case "append":
                    model.append(data.draw(st.lists(rows, max_size=12), "new"), eat)
                    assert store.version > version
                case "expire":
                    held = store.n
                    model.expire(eat)
                    assert (store.version > version) == (store.n < held)
                case _:
                    places = st.sets(st.integers(0, store.n - 1)) if store.n else st.just(set())
                    model.keep(sorted(data.draw(places, "kept")))
                    assert store.version > version
            model.check(data)


def test_names_what_is_returned_and_what_kernels_read() -> None:
    store = EventStore(("price", "s"), Interner())
    upper = Column(Call("upper", (Attribute("", "name", Type.STRING),), Type.STRING))
    store.require([X, upper])
    assert store.names == ("name", "price", "s", "x")


@pytest.mark.parametrize("window", [1, 10, 1000])
def test_rows_are_moved_about_once(window: int) -> None:
    batch, batches = 10, 5000
    growing = Growing(np.zeros(batch, np.int64))
    moved = 0
    for _ in range(batches):
        growing.drop(max(0, len(growing) - window * batch))
        before = growing.array
        growing.append(np.zeros(batch, np.int64))
        moved += 0 if np.shares_memory(before, growing.array) else len(before)
    assert moved <= 2 * batch * batches


def test_memory_shrinks_with_the_window() -> None:
    growing = Growing(np.zeros(1, np.int64))
    growing.append(np.zeros(100_000, np.int64))
    growing.drop(99_990)
    growing.append(np.zeros(10, np.int64))
    base = growing.array.base
    assert base is not None
    assert len(base) < 1000


def test_numbers_are_an_array_again_when_the_nulls_have_expired() -> None:
    store = EventStore(("price",), Interner())
    kinds = []
    for n, price in enumerate([1.0, None, 2.0, 3.0]):
        time = np.array([n])
        batch = pa.RecordBatch.from_pylist([{"price": price}], pa.schema({"price": pa.float64()}))
        store.append(batch, Ticks(time, time, time, time, time, time, n), eat=n - 2)
        column = store.returned["price"]
        assert column is not None
        kinds.append(None if column.numbers is None else column.numbers.tolist())
    assert kinds == [[1.0], None, None, [2.0, 3.0]]
