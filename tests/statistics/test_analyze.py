"""`cep.analyze` on data whose rates, selectivities and keys are known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.workloads import stocks

QUERY = """
    PATTERN IBM a ; Sun b ; Oracle c
    WHERE a.price > b.price AND c.price > b.price AND b.volume <= 250
    WITHIN 200"""


def analyze(data: Any, query: str = QUERY, **named: Any) -> cep.Statistics:
    return cep.analyze(data, query, **({"time": "ts", "type": "name"} | named))


def ticks(rows: int = 60_000, **named: Any) -> pa.Table:
    rates = {"IBM": 1, "Sun": 2, "Oracle": 1}
    selectivity = {("IBM", "Sun"): 1 / 8, ("Oracle", "Sun"): 3 / 4}
    return stocks.generate(rows, seed=5, rates=rates, selectivity=selectivity, **named)


class TestKnownData:
    @pytest.mark.parametrize("rows", [60_000, 20_000])
    def test_rates_and_selectivities(self, rows: int) -> None:
        """One event in each unit of time; also if only a part is looked at."""
        found = analyze(ticks(), rows=rows)
        assert found.rates == pytest.approx({"a": 0.25, "b": 0.5, "c": 0.25}, rel=0.05)
        assert found.selectivities == pytest.approx(
            {"b.volume <= 250": 0.25, "a.price > b.price": 1 / 8, "c.price > b.price": 3 / 4},
            rel=0.12,
        )
        assert found.distinct == {}

    def test_rates_of_timestamps_are_per_second(self) -> None:
        found = analyze(ticks(interval=10_000), QUERY.replace("200", "2 seconds"))
        assert found.rates == pytest.approx({"a": 25, "b": 50, "c": 25}, rel=0.05)

    def test_rates_under_a_window_of_events_are_per_event(self) -> None:
        """Whatever the time column says."""
        found = analyze(ticks(interval=10_000), QUERY.replace("200", "200 EVENTS"))
        assert found.rates == pytest.approx({"a": 0.25, "b": 0.5, "c": 0.25}, rel=0.05)
        assert found.selectivities["a.price > b.price"] == pytest.approx(1 / 8, rel=0.12)

    def test_dates(self) -> None:
        """One a day."""
        first = datetime(2024, 1, 1, tzinfo=UTC).date()
        days = pa.table({"ts": [first + timedelta(days=n) for n in range(100)]})
        found = cep.analyze(days, "PATTERN a ; b WITHIN 5 days", time="ts")
        assert found.rates == pytest.approx({"a": 1 / 86400, "b": 1 / 86400}, rel=0.02)

    def test_negated_and_repeated_variables(self) -> None:
        query = """
            PATTERN IBM a ; !Sun b ; Oracle+ c
            WHERE a.price > b.price AND c.price > a.price WITHIN 200"""
        found = analyze(ticks(), query)
        assert found.rates == pytest.approx({"a": 0.25, "b": 0.5, "c": 0.25}, rel=0.05)
        assert found.selectivities["a.price > b.price"] == pytest.approx(1 / 8, rel=0.12)
        assert set(found.selectivities) == {"a.price > b.price", "c.price > a.price"}

    def test_disorder_does_not_matter(self) -> None:
        table = ticks(20_000)
        mixed = table.take(pa.array(np.random.default_rng(1).permutation(20_000)))
        assert analyze(mixed) == analyze(table)

    def test_the_same_data_give_the_same_answer(self) -> None:
        assert analyze(ticks(20_000), rows=5000) == analyze(ticks(20_000), rows=5000)

    def test_an_event_with_a_wrong_date_does_not_matter(self) -> None:
        """The others are found, though nearly all of the time is empty."""
        table = ticks(20_000)
        stray = table.slice(0, 1).set_column(4, "ts", pa.array([10**12]))
        found = analyze(pa.concat_tables([table, stray]), rows=4000)
        assert found.rates == pytest.approx({"a": 0.25, "b": 0.5, "c": 0.25}, rel=0.1)

    def test_windows_longer_than_the_sample(self) -> None:
        """A random part of the rows is looked at, and counted as more: pairs are far apart, and
        rates are right."""
        found = analyze(ticks(40_000), QUERY.replace("200", "15000"), rows=2000)
        assert found.rates == pytest.approx({"a": 0.25, "b": 0.5, "c": 0.25}, rel=0.12)
        assert found.selectivities["a.price > b.price"] == pytest.approx(1 / 8, rel=0.2)

    def test_a_change_over_time_is_averaged(self) -> None:
        parts = [
            stocks.generate(20_000, seed=1, rates={"IBM": 1, "Sun": 9}),
            stocks.generate(20_000, seed=2, rates={"IBM": 9, "Sun": 1}, first=20_000),
        ]
        found = analyze(pa.concat_tables(parts), "PATTERN IBM a ; Sun b WITHIN 50", rows=8000)
        assert found.rates == pytest.approx({"a": 0.5, "b": 0.5}, rel=0.05)


def keyed(keys: np.ndarray[Any, Any]) -> pa.Table:
    names = np.random.default_rng(2).choice(["A", "B"], len(keys))
    return pa.table({"ts": np.arange(len(keys)), "name": names, "id": keys})


PAIR = "PATTERN A a ; B b WHERE [id] WITHIN 500"


class TestKeys:
    @pytest.mark.parametrize("count", [3, 200, 20_000])
    def test_equally_frequent(self, count: int) -> None:
        keys = np.random.default_rng(1).integers(0, count, 60_000)
        found = analyze(keyed(keys), PAIR)
        # Each variable has 30,000 events, in which 1 - exp(-1.5) of 20,000 keys come at all.
        want = count if count < 20_000 else 0.777 * count
        assert found.distinct == pytest.approx({"a.id": want, "b.id": want}, rel=0.2)
        assert found.selectivities == {}

    def test_skew(self) -> None:
        """Half of the events have one key: two agree with a probability of 1/4."""
        random = np.random.default_rng(1)
        keys = np.where(random.random(40_000) < 0.5, 7, random.integers(10, 10_000, 40_000))
        found = analyze(keyed(keys), PAIR)
        assert found.distinct == pytest.approx({"a.id": 4, "b.id": 4}, rel=0.1)
        assert found.heavy["a.id"] == pytest.approx({"7": 0.5}, rel=0.2)

    def test_strings(self) -> None:
        random = np.random.default_rng(1)
        names = np.array([f"user{n}" for n in range(50)])
        found = analyze(keyed(names[random.integers(0, 50, 20_000)]), PAIR)
        assert found.distinct == pytest.approx({"a.id": 50, "b.id": 50}, rel=0.2)

    def test_sessions(self) -> None:
        """Twenty users, one after the other: inside a window nearly all events agree."""
        found = analyze(keyed(np.arange(40_000) // 2000), PAIR)
        assert max(found.distinct.values()) < 1.5

    def test_equalities_of_some_variables(self) -> None:
        """No key: a conjunct like any other, and its columns are counted."""
        keys = np.random.default_rng(1).integers(0, 4, 20_000)
        query = "PATTERN A a ; B b ; A c WHERE a.id = b.id WITHIN 50"
        found = analyze(keyed(keys), query)
        assert found.selectivities == pytest.approx({"a.id = b.id": 0.25}, rel=0.1)
        assert found.distinct == pytest.approx({"a.id": 4, "b.id": 4}, rel=0.15)

    def test_events_counted_key_by_key(self) -> None:
        """Inside such a window there is one key only."""
        keys = np.random.default_rng(1).integers(0, 40, 20_000)
        found = analyze(keyed(keys), "PATTERN A a ; B b WHERE [id] WITHIN 10 EVENTS")
        assert found.distinct == {"a.id": 1.0, "b.id": 1.0}
        assert found.rates == pytest.approx({"a": 0.5, "b": 0.5}, rel=0.05)


class TestNulls:
    def test_an_unknown_condition_does_not_hold(self) -> None:
        """A third of x is NULL: 2/3 of the events can satisfy anything."""
        random = np.random.default_rng(1)
        x = pa.array(np.ones(30_000), mask=random.random(30_000) < 1 / 3)
        table = keyed(np.zeros(30_000, np.int64)).append_column("x", x)
        query = """
            PATTERN A a ; B b ; A c
            WHERE a.x = b.x AND b.x >= 1 AND c.x >= a.x AND a.id <= c.id WITHIN 9"""
        found = analyze(table, query).selectivities
        # What holds for b.x holds for a.x, too: events of a and b without x are not joined.
        want = {"a.x >= 1": 2 / 3, "b.x >= 1": 2 / 3, "a.x = b.x": 1, "c.x >= a.x": 2 / 3}
        want["a.id <= c.id"] = 1
        assert found == pytest.approx(want, rel=0.06)

    def test_a_row_without_key_is_no_event(self) -> None:
        keys = pa.array(np.arange(9000) % 3, mask=np.arange(9000) % 2 == 0)
        table = keyed(np.zeros(9000)).set_column(2, "id", keys)
        found = analyze(table, PAIR)
        assert found.rates["a"] + found.rates["b"] == pytest.approx(0.5, rel=0.01)
        assert found.distinct["a.id"] == pytest.approx(3, rel=0.1)

    def test_a_row_without_time_is_no_event(self) -> None:
        ts = pa.array(np.arange(9000), mask=np.arange(9000) % 2 == 0)
        table = keyed(np.zeros(9000)).set_column(0, "ts", ts)
        found = analyze(table, PAIR)
        assert found.rates["a"] + found.rates["b"] == pytest.approx(0.5, rel=0.01)

    def test_nothing_but_nulls(self) -> None:
        table = pa.table(
            {"ts": [1, 2], "name": ["A", "B"], "x": pa.array([None, None], pa.int64())}
        )
        found = analyze(table, "PATTERN A a ; !A c ; B b WHERE a.x = b.x AND a.x < b.x WITHIN 9")
        assert found.selectivities == {"a.x < b.x": 0.5}
        assert found.distinct == {}


class TestLittleData:
    def test_none(self) -> None:
        assert analyze(ticks(100).slice(0, 0)) == cep.Statistics()
        no_time = pa.table({"ts": pa.array([None], pa.int64()), "name": ["A"]})
        assert analyze(no_time, "PATTERN A ; B WITHIN 5") == cep.Statistics()

    def test_no_pairs(self) -> None:
        """What was never tried is left out: the planner's defaults apply."""
        table = pa.table({"ts": [1, 50], "name": ["A", "B"], "x": [1, 2]})
        found = analyze(table, "PATTERN A a ; B b ; C c WHERE a.x < b.x AND c.x > 1 WITHIN 5")
        assert found.selectivities == {}
        assert found.rates == {"a": 1 / 50, "b": 1 / 50, "c": 0.0}

    def test_one_event(self) -> None:
        table = pa.table({"ts": [5], "name": ["A"]})
        assert analyze(table, "PATTERN A a").rates == {"a": 1.0}

    def test_all_at_the_same_time(self) -> None:
        table = pa.table({"ts": [5] * 1000, "name": ["A"] * 1000})
        assert analyze(table, "PATTERN A a ; A b WITHIN 5", rows=100).rates["a"] == 1000

    def test_more_variables_than_events(self) -> None:
        pattern = " ; ".join(f"A v{n}" for n in range(40))
        where = " AND ".join(f"v{n}.ts < v{n + 1}.ts" for n in range(39))
        table = pa.table({"ts": range(10), "name": ["A"] * 10})
        found = analyze(table, f"PATTERN {pattern} WHERE {where} WITHIN 5")
        assert set(found.selectivities.values()) == {1.0}


class TestKindsOfData:
    def test_frames(self) -> None:
        table = ticks(3000)
        want = analyze(table)
        assert analyze(table.to_pandas()) == want
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        assert analyze(frame) == want
        assert analyze(frame.lazy()) == want

    def test_dictionary_encoded_strings(self) -> None:
        table = ticks(3000)
        coded = table.set_column(1, "name", table["name"].dictionary_encode())
        query = "PATTERN IBM a ; ANY(IBM, Sun) b WHERE a.name = b.name WITHIN 50"
        assert analyze(coded, query) == analyze(table, query)

    def test_streams(self) -> None:
        """What FROM leaves out is not looked at."""
        streams = {
            "orders": pa.table({"ts": range(0, 1000, 2), "k": [1, 2] * 250}),
            "news": pa.table({"ts": range(1000), "word": ["x"] * 1000}),
            "other": pa.table({"ts": range(0, 100_000, 100), "k": [1] * 1000}),
        }
        query = "PATTERN orders o ; news n FROM orders, news WHERE o.k = 1 WITHIN 9"
        found = cep.analyze(streams, query, time="ts")
        assert found.rates == pytest.approx({"o": 0.5, "n": 1.0}, rel=0.01)
        assert found.selectivities == {"o.k = 1": 0.5}

    def test_options(self) -> None:
        options = cep.Options(time="ts", type="name")
        query = cep.Query("PATTERN IBM a ; Sun b WHERE a.price > :low WITHIN 9")
        found = cep.analyze(ticks(3000), query, options, params={"low": 200.0})
        assert found.selectivities["a.price > 200"] < 0.01

    def test_the_result_is_an_option(self) -> None:
        table = ticks(3000)
        given = cep.Options(time="ts", type="name", stats=analyze(table))
        assert cep.match(table, QUERY, given).equals(
            cep.match(table, QUERY, time="ts", type="name")
        )


class TestMistakes:
    @pytest.mark.parametrize("rows", [0, -5, 1.5, "many", True, None])
    def test_rows(self, rows: Any) -> None:
        with pytest.raises(cep.DataError, match="rows must be a number from 1 up, not "):
            analyze(ticks(10), rows=rows)

    def test_no_time(self) -> None:
        with pytest.raises(cep.DataError, match="say which column holds the event time"):
            cep.analyze(ticks(10), QUERY, type="name")
        with pytest.raises(cep.DataError, match=r"no column `tss`.*did you mean `ts`"):
            analyze(ticks(10), time="tss")

    def test_iterators(self) -> None:
        with pytest.raises(cep.DataError, match="an iterator could be read only once"):
            analyze(iter(ticks(10).to_batches()))

    def test_wrong_queries(self) -> None:
        with pytest.raises(cep.QueryError, match="did you mean `price`"):
            analyze(ticks(10), "PATTERN IBM a ; Sun b WHERE a.prise > 1 WITHIN 9")

    def test_queries_that_can_not_run_yet_can_be_analyzed(self) -> None:
        assert analyze(ticks(1000), "PATTERN IBM a -> Sun b").rates["a"] > 0
