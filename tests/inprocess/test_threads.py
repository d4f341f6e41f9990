"""How a table is divided among threads, and what a run says of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.errors import OptionError
from cepheid.inprocess import threads
from cepheid.planner import prepare

PAIR = "PATTERN A a ; B b WHERE [id] WITHIN 10 RETURN a.id"
LAST = "PATTERN A a -> B b WHERE [id] AFTER MATCH SKIP PAST LAST EVENT RETURN a.id"
RUN = """PATTERN a => b+ => c WHERE [id] AND b.ts - PREV(b.ts, a.ts) < 9 AND c.ts - LAST(b.ts) > 5
AFTER MATCH SKIP PAST LAST EVENT RETURN a.id, count(b) AS rises"""
TEXTS = "PATTERN A a => B b WHERE [id, word] AFTER MATCH SKIP TO NEXT EVENT RETURN a.id"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(threads, "LEAST_ROWS", 100)
    yield


def events(rows: int = 1000) -> pa.Table:
    random = np.random.default_rng(1)
    return pa.table(
        {
            "ts": np.arange(rows),
            "type": np.array(["A", "B"])[random.integers(0, 2, rows)],
            "id": random.integers(0, 5, rows),
            "word": np.array(["one", "two", None])[random.integers(0, 3, rows)],
        }
    )


def distribution(query: str, threads: int) -> str:
    explained = cep.Query(query).explain(events(), time="ts", type="type", threads=threads)
    return dict(explained.distribution).get("threads", "")


def test_explain_says_how_the_work_is_divided() -> None:
    assert distribution(PAIR, threads=3) == "3, for slices of time"
    assert distribution(LAST, threads=2) == "2, for shares of the keys"
    assert distribution(PAIR, threads=1) == ""
    whole = "PATTERN A a ; B b AFTER MATCH SKIP PAST LAST EVENT WITHIN 10"
    assert distribution(whole, threads=2).startswith("1: AFTER MATCH chooses among all matches")
    assert "in process\n  threads  3, for slices of time" in str(
        cep.Query(PAIR).explain(events(), time="ts", type="type", threads=3)
    )


@pytest.mark.parametrize("query", [PAIR, LAST])
def test_matches_are_the_same_as_in_one_thread(query: str) -> None:
    alone, together = (
        cep.match(events(), query, time="ts", type="type", threads=count) for count in (1, 4)
    )
    order = [(name, "ascending") for name in ("match_end", "match_start", "id")]
    assert alone.num_rows > 100
    assert together.sort_by(order) == alone.sort_by(order)
    assert together["match_end"] == alone["match_end"]


@pytest.mark.parametrize("query", [LAST, RUN, TEXTS])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("batch", [1 << 17, 50])
def test_shares_of_the_keys_have_the_matches_of_one_engine(
    query: str, count: int, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "BATCH", batch)
    columns = {"time": "ts"} if query == RUN else {"time": "ts", "type": "type"}
    divided = cep.match(events(), query, **columns, threads=count)
    monkeypatch.setattr(threads, "LEAST_ROWS", 1 << 18)
    whole = cep.match(events(), query, **columns, threads=1)
    order = [(name, "ascending") for name in divided.column_names]
    assert whole.num_rows > 20
    assert divided.sort_by(order) == whole.sort_by(order)
    assert divided["match_end"] == whole["match_end"]


def test_what_is_matched_at_once_has_the_same_order_in_all_threads() -> None:
    """Also matches of different keys that end at once, which a tie-break puts in order."""
    table = events(2000)
    table = table.set_column(0, "ts", pa.array(np.arange(2000) // 4))
    table = table.append_column("n", pa.array(np.arange(2000)))
    for after in ("AFTER MATCH SKIP PAST LAST EVENT", ""):
        query = f"""PATTERN a => b+ => c WHERE [id] AND b.n - PREV(b.n, a.n) < 9
            AND c.n - LAST(b.n) > 2 {after} RETURN a.n AS a, count(b) AS b, c.n AS c"""
        alone, *others = (
            cep.match(table, query, time="ts", tie="n", threads=count) for count in (1, 2, 5)
        )
        assert alone.num_rows > 100
        assert alone["c"].to_pylist() == sorted(alone["c"].to_pylist())
        assert all(other == alone for other in others)


def test_texts_that_arrow_cannot_join_are_not_divided_by_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table, options = events(), cep.Options(time="ts", type="type", threads=2)
    prepared = prepare(cep.Query(LAST).bind(table.schema, options), options)
    assert threads.shares(prepared.plan, prepared.query, table, options)
    monkeypatch.setattr(threads, "MOST_INDEXED", table.num_rows)
    assert not threads.shares(prepared.plan, prepared.query, table, options)


def test_one_thread_divides_what_has_no_window_by_its_keys() -> None:
    table, options = events(), cep.Options(time="ts", type="type", threads=1)
    for query, divides in (
        (LAST, True),
        (LAST.replace("RETURN", "WITHIN 10 RETURN"), False),
        ("PATTERN !B b FOR 10 ; A a WHERE [id] RETURN a.id", False),
        (PAIR, False),
    ):
        prepared = prepare(cep.Query(query).bind(table.schema, options), options)
        shares = threads.shares(prepared.plan, prepared.query, table, options)
        assert bool(shares) == divides


def test_slices_are_not_made_where_windows_would_be_copied_too_often() -> None:
    table, options = events(), cep.Options(time="ts", type="type", threads=4)
    for window, count in ((10, 4), (50, 4), (90, 3), (900, 0)):
        query = cep.Query(f"PATTERN A a ; B b WHERE [id] WITHIN {window}")
        prepared = prepare(query.bind(table.schema, options), options)
        assert len(threads.shares(prepared.plan, prepared.query, table, options)) == count


def test_events_without_a_time_are_counted_once() -> None:
    table = events()
    times = table["ts"].to_pylist()
    times[3] = times[700] = None
    table = table.set_column(0, "ts", pa.array(times, pa.int64()))
    with pytest.warns(UserWarning, match="^2 of 1000 events have no time"):
        cep.match(table, PAIR, time="ts", type="type", threads=3)


def test_a_wrong_number_of_threads() -> None:
    with pytest.raises(OptionError, match="threads must be at least 1, not 0"):
        cep.match(events(), PAIR, time="ts", type="type", threads=0)
