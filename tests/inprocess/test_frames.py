"""Data of any library: what is read of them, what comes back, and what is said of the rest."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import cepheid as cep

QUERY = "PATTERN A ; B WITHIN 9 RETURN A.ts AS a, B.ts AS b"
EVENTS = pa.table({"ts": [3, 1, 2], "type": ["B", "A", "A"]})
ROWS = [(1, 3), (2, 3)]


def run(data: Any, query: str = QUERY, **named: Any) -> Any:
    return cep.match(data, query, **{"time": "ts", "type": "type", "jit": False, **named})


def rows(found: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values())[:2] for row in found.to_pylist()]


class TestUnreadColumns:
    """They don't matter, whatever is wrong with them; one that is read is named."""

    def test_several_of_one_name(self) -> None:
        data = EVENTS.append_column("x", pa.array(N := [1, 2, 3])).append_column("x", pa.array(N))
        assert rows(run(data)) == ROWS
        with pytest.raises(cep.DataError, match="column `x` occurs several times"):
            run(data, "PATTERN A RETURN A.x")
        with pytest.raises(cep.DataError, match="column `x` occurs several times"):
            run(data, "PATTERN A")  # returns all of it
        frame = pd.concat(
            [EVENTS.to_pandas(), pd.DataFrame({"x": N}), pd.DataFrame({"x": N})], axis=1
        )
        assert len(run(frame)) == 2
        with pytest.raises(cep.DataError, match="column `ts` occurs several times"):
            run(data.append_column("ts", pa.array(N)))

    def test_reserved_names(self) -> None:
        """pandas leaves such columns in files."""
        data = EVENTS.append_column("__index_level_0__", pa.array([0, 1, 2]))
        assert rows(run(data)) == ROWS
        with pytest.raises(cep.DataError, match="`__index_level_0__` has a reserved name"):
            run(data, "PATTERN A")

    def test_names_that_are_no_text(self) -> None:
        frame = EVENTS.to_pandas().assign(**{"x": 5}).rename(columns={"x": 7})
        found = run(frame, "PATTERN A RETURN A.`7` AS x")
        assert found["x"].tolist() == [5, 5]

    def test_streams_that_disagree(self) -> None:
        parts = {"a": pa.table({"ts": [1], "v": ["x"]}), "b": pa.table({"ts": [2], "v": [1]})}
        query = "PATTERN a ; b WITHIN 5 RETURN a.ts AS a, b.ts AS b"
        assert rows(cep.match(parts, query, time="ts")) == [(1, 2)]
        with pytest.raises(cep.DataError, match="`v` is string in one stream and int64 in `b`"):
            cep.match(parts, query + ", a.v", time="ts")

    def test_of_streams(self) -> None:
        """One that can't be read in one stream can't be in all of them."""
        mixed = pd.DataFrame({"ts": [1], "v": pd.Series([1], dtype=object)})
        mixed = pd.concat([mixed, pd.DataFrame({"ts": [2], "v": ["x"]})])
        parts = {"a": mixed, "b": pd.DataFrame({"ts": [3], "v": [1]})}
        query = "PATTERN a ; b WITHIN 5 RETURN a.ts AS a, b.ts AS b"
        assert len(cep.match(parts, query, time="ts")) == 2
        with pytest.raises(cep.DataError, match="column `v` is object"):
            cep.match(parts, query + ", a.v", time="ts")

    def test_rule_sets(self) -> None:
        frame = EVENTS.to_pandas().assign(x=pd.Series([1, "x", 2.5], dtype=object))
        rules = cep.RuleSet.of({"pair": QUERY})
        assert len(rules.match(frame, time="ts", type="type")) == 2


class TestTimes:
    def test_zones_of_streams(self) -> None:
        """Moments are the same in every zone; without one nobody knows which they are."""
        at = [datetime(2024, 1, 1, hour, tzinfo=UTC) for hour in (1, 2)]
        paris = pa.array(at[:1]).cast(pa.timestamp("us", "Europe/Paris"))
        later = pa.array(at[1:]).cast(pa.timestamp("ms", "America/New_York"))
        parts = {"a": pa.table({"ts": paris}), "b": pa.table({"ts": later})}
        query = "PATTERN a ; b WITHIN 61 minutes RETURN a.ts AS a, b.ts AS b"
        assert rows(cep.match(parts, query, time="ts")) == [tuple(at)]
        parts["b"] = pa.table({"ts": later.cast(pa.timestamp("ms"))})
        with pytest.raises(cep.DataError, match=r"column `ts` is .* without a time zone nobody"):
            cep.match(parts, query, time="ts")

    def test_text(self) -> None:
        with pytest.raises(cep.DataError, match=r"the time column `type` is string; .* parse it"):
            run(EVENTS, time="type", type=None)


class TestOnlyWhatIsRead:
    """is converted: the rest may be large, or impossible."""

    def test_lazy_frames(self) -> None:
        def refuse(column: pl.Series) -> pl.Series:
            raise AssertionError("nobody reads it")

        unread = pl.col("ts").map_batches(refuse, return_dtype=pl.Int64).alias("x")
        found = run(pl.LazyFrame(pl.from_arrow(EVENTS)).with_columns(unread))
        assert isinstance(found, pl.LazyFrame)
        assert found.select("a", "b").collect().rows() == ROWS

    def test_datasets(self, tmp_path: Any) -> None:
        pa.parquet.write_table(EVENTS, tmp_path / "events.parquet")
        data = pa.dataset.dataset(tmp_path)
        found = run(data)
        assert isinstance(found, pa.Table) and rows(found) == ROWS


class Producer:
    """Of some library that we have never heard of."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


class TestArrowProducers:
    def test_of_any_library(self) -> None:
        found = run(Producer(EVENTS))
        assert isinstance(found, pa.Table) and rows(found) == ROWS

    def test_duckdb(self) -> None:
        relation = duckdb.sql("SELECT * FROM (VALUES (3, 'B'), (1, 'A'), (2, 'A')) t(ts, type)")
        found = run(relation)
        assert isinstance(found, duckdb.DuckDBPyRelation)
        assert found.project("a, b").fetchall() == ROWS

    def test_libraries_that_take_arrow(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Stand-ins for libraries that aren't installed here, called as these are documented."""
        made = type("Array", (Producer,), {"__module__": "nanoarrow.array"})
        assert type(run(made(EVENTS))) is made
        ibis = type("ibis", (), {"memtable": staticmethod(lambda table: ("memtable", table))})
        monkeypatch.setitem(__import__("sys").modules, "ibis", ibis)
        table = type("Table", (Producer,), {"__module__": "ibis.expr.types"})(EVENTS)
        assert run(table)[0] == "memtable"

    def test_readers_are_taken_as_they_come(self) -> None:
        reader = EVENTS.sort_by("ts").to_reader(max_chunksize=1)
        found = run(reader)
        assert isinstance(found, pa.RecordBatchReader)
        assert rows(found.read_all()) == ROWS


class TestBatches:
    def test_of_another_schema(self) -> None:
        ordered = EVENTS.sort_by("ts").to_batches(max_chunksize=1)
        text = pa.record_batch({"ts": ["4"], "type": ["B"]})
        with pytest.raises(cep.DataError, match="`ts` is string in batch 4, but int64 in the"):
            run(iter([*ordered, text])).read_all()
        lacking = pa.record_batch({"ts": [4]})
        with pytest.raises(cep.DataError, match="batch 4 has no column `type`"):
            run(iter([*ordered, lacking])).read_all()
        further = pa.record_batch({"x": [0.5], "type": ["B"], "ts": [4]})
        assert rows(run(iter([*ordered, further])).read_all()) == [*ROWS, (1, 4), (2, 4)]

    def test_that_are_none(self) -> None:
        with pytest.raises(cep.DataError, match="expected record batches, not Table: pass"):
            run(iter([EVENTS]))
        with pytest.raises(cep.DataError, match=r"not dict: make a table of them, with `pyarrow"):
            run([{"ts": 1, "type": "A"}])
        with pytest.raises(cep.DataError, match="the iterator of record batches is empty"):
            run(iter([]))


class TestMergedAsTheyCome:
    """A dict of iterators isn't read to its end before the first match."""

    QUERY = "PATTERN a ; b WITHIN 9 RETURN a.n AS a, b.n AS b"

    @staticmethod
    def stream(name: str, times: list[int | None], log: list[str]) -> Iterator[pa.RecordBatch]:
        for n, time in enumerate(times):
            log.append(f"{name}{time}")
            yield pa.record_batch({"ts": pa.array([time], pa.int64()), "n": [n]})

    def test_matches_come_meanwhile(self) -> None:
        log: list[str] = []
        data = {"a": self.stream("a", [1, 5, 9], log), "b": self.stream("b", [2, 6, 10], log)}
        found = cep.match(data, self.QUERY, time="ts", jit=False)
        assert isinstance(found, pa.RecordBatchReader)
        assert found.read_next_batch().select(["a", "b"]).to_pylist() == [{"a": 0, "b": 0}]
        assert "b10" not in log and "a9" not in log
        rest = found.read_all().select(["a", "b"]).to_pylist()
        assert rest == [{"a": 0, "b": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 2, "b": 2}]

    @pytest.mark.parametrize("size", [1, 2, 100])
    def test_as_tables(self, size: int) -> None:
        """The same matches as of tables: also of simultaneous events, and of rows without time."""
        parts = {
            "a": pa.table({"ts": [1, 1, 3, 3, 3, 8, None], "n": range(7)}),
            "b": pa.table({"ts": [1, 2, 3, 3, 9, 9, 9], "n": range(7)}),
            "c": pa.table({"ts": [2, 3], "n": range(2)}),
        }
        query = "PATTERN ANY(a, b, c) x ; ANY(a, b, c) y WITHIN 3 EVENTS RETURN x.n AS x, y.n AS y"
        simultaneous = "14 of 16 events have the same `ts`"
        with (
            pytest.warns(UserWarning, match=simultaneous),
            pytest.warns(UserWarning, match="1 of 16 events have no time"),
        ):
            want = cep.match(parts, query, time="ts", jit=False)
        streams = {name: iter(part.to_batches(max_chunksize=size)) for name, part in parts.items()}
        streams["c"] = parts["c"]  # a table may be among them
        limit = cep.Limit(total=100)
        with (
            pytest.warns(UserWarning, match=simultaneous),
            pytest.warns(UserWarning, match="1 of 16 events have no time"),
        ):
            found = cep.match(streams, query, time="ts", jit=False, limit=limit).read_all()
        assert found.to_pylist() == want.to_pylist()

    def test_stream_that_ends_early(self) -> None:
        log: list[str] = []
        data = {"a": self.stream("a", [1], log), "b": self.stream("b", [2, 3, 4], log)}
        assert cep.match(data, self.QUERY, time="ts", jit=False).read_all().num_rows == 3

    def test_a_stream_without_events(self) -> None:
        empty = pa.schema({"ts": pa.int64(), "n": pa.int64()}).empty_table().to_reader()
        data = {"a": self.stream("a", [1], []), "b": empty}
        assert cep.match(data, self.QUERY, time="ts", jit=False).read_all().num_rows == 0
        data = {"a": self.stream("a", [1], []), "b": iter([])}
        with pytest.raises(cep.DataError, match=r"stream `b`: the iterator .* is empty"):
            cep.match(data, self.QUERY, time="ts")

    def test_disorder_is_that_of_a_stream(self) -> None:
        data = {"a": self.stream("a", [1, 5, 4], []), "b": self.stream("b", [9], [])}
        with pytest.raises(cep.DataError, match=r"stream `a`: .* order of `ts`: 4 comes after 5"):
            cep.match(data, self.QUERY, time="ts", jit=False).read_all()

    def test_a_later_batch_of_another_schema(self) -> None:
        def changing() -> Iterator[pa.RecordBatch]:
            yield pa.record_batch({"ts": [1], "n": [1]})
            yield pa.record_batch({"ts": [2], "n": ["x"]})

        data = {"a": changing(), "b": self.stream("b", [9], [])}
        with pytest.raises(cep.DataError, match="stream `a`: column `n` is string in batch 2"):
            cep.match(data, self.QUERY, time="ts", jit=False).read_all()

    def test_streams_that_from_leaves_out_are_not_read(self) -> None:
        log: list[str] = []
        data = {"a": self.stream("a", [1], log), "b": self.stream("b", [2], log)}
        data["c"] = self.stream("c", [1, 2, 3], log)
        query = self.QUERY.replace("WITHIN", "FROM a, b WITHIN")
        assert cep.match(data, query, time="ts", jit=False).read_all().num_rows == 1
        assert log.count("c1") == 1 and "c2" not in log


WITH_NAN = pa.table(
    {
        "ts": [1, 2, 3, 4],
        "type": ["A", "A", "B", "B"],
        "x": pa.array([float("nan"), -0.0, float("nan"), 0.0]),
    }
)
FRAMES_WITH_NAN = {
    "pyarrow": WITH_NAN,
    "pandas": WITH_NAN.to_pandas(),
    "pandas, Arrow's types": WITH_NAN.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.DataFrame(WITH_NAN),
    "polars, lazy": pl.DataFrame(WITH_NAN).lazy(),
    "batches": WITH_NAN.to_batches(),
}
FOUND_WITH_NAN = {
    "WHERE A.x = B.x": [(1, 3), (2, 4)],
    "WHERE [x]": [(1, 3), (2, 4)],
    "WHERE A.x < B.x": [(2, 3)],
    "WHERE A.x > 5 AND B.x IS NOT NULL": [(1, 3), (1, 4)],
}


class TestNaN:
    """One value above all numbers, whatever frame it is in; NULL only where the frame says so."""

    @pytest.mark.parametrize("frame", FRAMES_WITH_NAN)
    @pytest.mark.parametrize("where", FOUND_WITH_NAN)
    def test_is_the_same_in_all_frames(self, frame: str, where: str) -> None:
        query = f"PATTERN A ; B {where} WITHIN 9 RETURN A.ts AS a, B.ts AS b"
        found = run(FRAMES_WITH_NAN[frame], query)
        found = found.collect() if isinstance(found, pl.LazyFrame) else found
        table = found.read_all() if isinstance(found, pa.RecordBatchReader) else pa.table(found)
        assert rows(table) == FOUND_WITH_NAN[where]

    def test_is_null_where_it_was_made_so(self) -> None:
        query = "PATTERN A ; B WHERE A.x = B.x OR A.x IS NULL WITHIN 9 RETURN A.ts AS a, B.ts AS b"
        expected = [(1, 3), (1, 4), (2, 4)]
        assert rows(pa.table(run(WITH_NAN.to_pandas().convert_dtypes(), query))) == expected
        assert rows(pa.table(run(pl.DataFrame(WITH_NAN).fill_nan(None), query))) == expected

    def test_is_null_in_a_table_of_parameters(self) -> None:
        """A limit that a row of a pandas frame doesn't have."""
        limits = pd.DataFrame({"rule": ["all", "some"], "low": [None, 0.0]})
        query = "PATTERN A WHERE :low IS NULL OR A.x <= :low"
        found = cep.RuleSet.from_template("limit", query, limits).match(
            WITH_NAN, time="ts", type="type", jit=False
        )
        assert found["rule"].to_pylist() == ["all", "all", "some"]
