"""Answers through `cepheid.match`: kinds of data, iterators, limits, INTO, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.planner.aggregation import Aggregation

TABLE = pa.table(
    {
        "ts": [1, 2, 3, 4, 11, 12],
        "name": ["A", "B", "A", "B", "A", "B"],
        "x": [1, 2, 3, 4, 5, 6],
    }
)
PAIRS = "PATTERN A a ; B b WITHIN 5"


def one_by_one(table: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from table.to_batches(max_chunksize=1)


def test_a_table() -> None:
    found = cep.match(TABLE, f"{PAIRS} GROUP BY TUMBLE(10)", time="ts", type="name")
    assert found.to_pydict() == {
        "window_start": [0, 10],
        "window_end": [10, 20],
        "count(*)": [3, 1],
        "match_start": [10, 20],
        "match_end": [10, 20],
    }


def test_timestamps_of_pandas() -> None:
    frame = TABLE.to_pandas()
    frame["ts"] = pd.to_datetime(frame["ts"], unit="h")
    query = """PATTERN A a ; B b WITHIN 5 hours
        GROUP BY TUMBLE(6 hours) RETURN window_start, avg(b.x) AS m"""
    found = cep.match(frame, query, time="ts", type="name")
    hours = [moment.hour for moment in found["window_start"]]
    assert (hours, found["m"].tolist()) == (
        [0, 6, 12],
        pytest.approx([10 / 3, float("nan"), 6.0], nan_ok=True),
    )


def test_dates_have_windows_of_hours() -> None:
    table = pa.table({"ts": pa.array([0, 1], pa.int32()).cast(pa.date32())})
    query = "FROM a GROUP BY TUMBLE(12 hours) RETURN window_end, count(*) AS n"
    found = cep.match(table, query, time="ts").to_pydict()
    assert [moment.isoformat() for moment in found["window_end"]] == [
        "1970-01-01T12:00:00",
        "1970-01-02T00:00:00",
        "1970-01-02T12:00:00",
    ]
    assert found["n"] == [1, 0, 1]


def test_an_answer_comes_when_time_has_reached_the_end_of_its_window() -> None:
    read: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in one_by_one(TABLE):
            read.append(batch["ts"][0].as_py())
            yield batch

    found = cep.match(batches(), f"{PAIRS} GROUP BY TUMBLE(5)", time="ts", type="name")
    first = next(iter(found))
    assert first["window_end"].to_pylist() == [5]
    assert read == [1, 2, 3, 4, 11]


def test_answers_of_matches_that_wait_are_not_given_too_early() -> None:
    query = "PATTERN A a ; !B b WITHIN 6 GROUP BY TUMBLE(5) RETURN window_end, count(*) AS n"
    rows = {"ts": [1, 4, 9, 30], "name": ["A", "A", "B", "C"], "x": [1, 1, 1, 1]}
    found = cep.match(one_by_one(pa.table(rows)), query, time="ts", type="name").read_all()
    assert found.select(["window_end", "n"]).to_pydict() == {"window_end": [5], "n": [1]}


def test_endless_data_need_a_window() -> None:
    with pytest.raises(cep.QueryError) as error:
        cep.match(one_by_one(TABLE), f"{PAIRS} GROUP BY a.x", time="ts", type="name")
    assert str(error.value) == (
        "CEP346: on data that may never end, a group without a window is never complete\n"
        "  query:1:9\n"
        f"  1 | {PAIRS} GROUP BY a.x\n"
        "    |         ^^^^^^^^^ add a window to GROUP BY, as in `TUMBLE(10 units)`"
    )


def test_answers_are_read_as_events() -> None:
    counts = f"INTO Busy {PAIRS} GROUP BY TUMBLE(10) RETURN count(*) AS n"
    after = "PATTERN Busy b ; A a WITHIN 20 RETURN b.n, a.x"
    found = cep.match(TABLE, [counts, after], time="ts", type="name")
    assert found["query 2"].select(["n", "x"]).to_pylist() == [{"n": 3, "x": 5}]


def test_several_streams() -> None:
    query = "FROM S s, R r WHERE s.x = r.x WITHIN 3 RETURN count(*) AS n"
    streams = {"S": TABLE.select(["ts", "x"]), "R": TABLE.select(["ts", "x"])}
    assert cep.match(streams, query, time="ts")["n"].to_pylist() == [6]


def test_what_can_match_nothing_is_counted() -> None:
    query = "PATTERN A a ; B b WHERE a.x > 5 AND a.x < 3 WITHIN 5 RETURN count(*) AS n"
    with pytest.warns(UserWarning):
        assert cep.match(TABLE, query, time="ts", type="name")["n"].to_pylist() == [0]


def test_the_limit_bounds_groups() -> None:
    limit = cep.Limit(total=3)
    query = "FROM A a GROUP BY a.x, TUMBLE(100)"
    with pytest.raises(cep.StateLimitError, match="GROUP BY holds 3 groups and slices"):
        cep.match(TABLE, query, time="ts", type="name", limit=cep.Limit(total=2))
    assert cep.match(TABLE, query, time="ts", type="name", limit=limit).num_rows == 3


def test_a_sum_beyond_64_bits_is_an_error() -> None:
    table = pa.table({"ts": [1, 2, 3], "x": [2**62, 2**62, -(2**62)]})
    found = cep.match(table, "FROM a RETURN sum(a.x) AS s", time="ts")
    assert found["s"].to_pylist() == [2**62]
    with pytest.raises(cep.DataError, match="a sum over matches is beyond 64 bits"):
        cep.match(table.slice(0, 2), "FROM a RETURN sum(a.x) AS s", time="ts")


def test_very_many_empty_windows_are_refused() -> None:
    table = pa.table({"ts": [1, 10**9]})
    with pytest.raises(cep.DataError, match="999,999,998 empty windows between two matches"):
        cep.match(table, "FROM a GROUP BY TUMBLE(1)", time="ts")


def test_until_leaves_open_windows_out() -> None:
    query = f"{PAIRS} GROUP BY TUMBLE(10)"
    with pytest.warns(UserWarning, match="1 match was left out: it was undecided"):
        found = cep.match(TABLE, query, time="ts", type="name", until="last event")
    assert found["window_end"].to_pylist() == [10]


def test_explain_says_how() -> None:
    query = cep.Query(f"{PAIRS} GROUP BY a.x, TUMBLE(10) HAVING count(*) > 1")
    text = str(query.explain(TABLE, time="ts", type="name"))
    assert "GROUP BY a.x, TUMBLE(10 units)\nHAVING count(*) > 1\n" in text
    assert "answers: counted in pairs, from each b on: " in text
    enumerated = "answers: enumerated, every match is found and folded into its group"
    assert f"{enumerated}: an aggregate needs every match\n" in told("RETURN collect(a.x)")
    assert "answers: counted from the events, no match is found: " in told("RETURN count(*)")
    dearer = Aggregation(None, 2e3, 1e3).text()
    assert f"answers: {dearer}" == f"{enumerated}: 1.0 µs per window, counting would take 2.0 µs"


def told(clauses: str, **options: Any) -> str:
    query = cep.Query(f"{PAIRS} {clauses}")
    return str(query.explain(TABLE, time="ts", type="name", **options))
