"""A key with more events than a task should have goes to slices of time, and nothing changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import cepheid as cep
from cepheid.options import Options
from cepheid.query.entry import Query
from cepheid.rules import RuleSet
from cepheid.spark.batch import source_of
from cepheid.spark.columns.predicates import Translator
from cepheid.spark.partitions import hot_keys
from cepheid.spark.partitions.arrange import arrange, task_of
from cepheid.spark.partitions.hot_keys import Grid, HotKeys, Reach, balanced, slices
from cepheid.spark.partitions.layout import choose
from cepheid.spark.partitions.salts import partition_of
from tests.corpus.reader import cases
from tests.spark.harness import again, event_table, expected, frame, in_process, on_spark
from tests.spark.test_rules import rows

Places = list[HotKeys | None]
QUERY = "PATTERN A a ; B b WHERE [id] WITHIN 90"


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Places:
    """Few rows are many; what each look finds."""
    found: Places = []

    def look(*args: Any) -> HotKeys | None:
        found.append(original(*args))
        return found[-1]

    original = hot_keys.look
    monkeypatch.setattr(hot_keys, "WORTH", 2)
    monkeypatch.setattr(hot_keys, "SMALL", 0)
    for place in ("cepheid.spark.partitions.arrange", "cepheid.spark.rule_sets"):
        monkeypatch.setattr(f"{place}.look", look)
    return found


def stream(rows: int) -> pa.Table:
    """Half of the events have one key, and a tenth none. There is a pause in the middle."""
    random = np.random.default_rng(7)
    share, ts = random.random(rows), np.sort(random.integers(0, 4 * rows, rows))
    return pa.table(
        {
            "row": np.arange(rows),
            "ts": np.where(ts > 2 * rows, ts + 5 * rows, ts),
            "name": random.choice(["A", "B", "C", "D"], rows),
            "id": pa.array(np.where(share < 0.5, 3, (share * 40).astype(int)), mask=share > 0.9),
            "other": np.where(share < 0.4, 3, (share * 40).astype(int)),
            "x": random.random(rows).round(2),
        }
    )


QUERIES = {
    "negation": "PATTERN A a ; !B b ; C c WHERE [id] AND a.x < c.x WITHIN 90",
    "known later": "PATTERN A a ; B b ; !C c WHERE [id] AND a.x < 0.5 WITHIN 60",
    "a time before": "PATTERN !C c FOR 80 ; A a ; B b WHERE [id] WITHIN 30",
    "a group": "PATTERN A a ; B+ b ; C c WHERE [id] AND a.x < 0.3 WITHIN 60",
    "next events": "PATTERN A a => B b -> C c WHERE [id] WITHIN 60",
    "two names": "PATTERN A a ; B b ; A c WHERE a.id = b.other = c.id WITHIN 60",
}


@pytest.mark.parametrize("query", QUERIES)
def test_matches_are_the_same(spark: SparkSession, looks: Places, query: str) -> None:
    events, text = stream(2_000), QUERIES[query]
    options: dict[str, Any] = {"time": "ts", "type": "name", "tie": "row"}
    want = in_process(events, text, jit=False, **options)
    assert len(want) > 20
    assert on_spark(frame(spark, events), text, **options, partitions=4) == {"auto": want}
    (found,) = looks
    assert found is not None and len(found.owned) > 6


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "name",
    [
        "keys/[id]",
        "keys/[id] reaches the negation",
        "keys/different names",
        "keys/composite",
        "keys/NULL takes part in nothing",
        "keys/NaN is a key of its own",
        "closure/keyed, aggregates per key",
    ],
)
def test_corpus(spark: SparkSession, looks: Places, name: str) -> None:
    """The stream eight times over, against the oracle."""
    (case,) = (c for c in cases() if c.name == name)
    events = again(case.events, 8)
    data = frame(spark, event_table(case, events))
    options: dict[str, Any] = {"time": "ts", "type": "type", "tie": case.schema.tie}
    options |= {"params": case.params, "partitions": 3}
    assert on_spark(data, case.query_text, **options) == {"auto": expected(case, events)}
    assert looks[0] is not None


def test_no_task_has_many_more_events_than_others(spark: SparkSession, looks: Places) -> None:
    events = frame(spark, stream(40_000))
    options = Options("ts", type="name", tie="row", partitions=16)
    source, _ = source_of(Query(QUERY), events, options)
    query = source.prepared.query
    layout = choose(source.plan, query, options, Translator(source.types))
    arranged, _ = arrange(source, layout, None, task_of(source, False))
    counts = arranged.groupBy(F.spark_partition_id()).count().toPandas()["count"]
    assert len(counts) == 16 and counts.max() <= 1.5 * counts.mean()


def test_a_window_as_long_as_the_stream_leaves_keys_whole(
    spark: SparkSession, looks: Places
) -> None:
    events, text = stream(200), QUERY.replace("90", "1000")
    options: dict[str, Any] = {"time": "ts", "type": "name", "tie": "row"}
    want = in_process(events, text, **options)
    assert on_spark(frame(spark, events), text, **options, partitions=4) == {"auto": want}
    assert looks == [None]


@pytest.mark.parametrize(
    "end", ["AFTER MATCH SKIP PAST LAST EVENT", "LIMIT 2 PER KEY", pytest.param("", id="forced")]
)
def test_keys_that_stay_whole(spark: SparkSession, looks: Places, end: str) -> None:
    events, text = stream(500), f"{QUERY} {end}"
    options: dict[str, Any] = {"time": "ts", "type": "name", "tie": "row"}
    options |= {} if end else {"partitioning": "key"}
    data = frame(spark, events)
    assert cep.match(data, text, **options).count() == cep.match(events, text, **options).num_rows
    assert looks == []
    reason = "AFTER MATCH and LIMIT choose among all matches of a key" if end else "forced"
    assert ("hot keys", f"stay whole: {reason}") in Query(text).explain(
        data, **options
    ).distribution


def test_events_are_counted_where_a_key_is_whole(spark: SparkSession, looks: Places) -> None:
    explained = Query("PATTERN A a ; B b WHERE [id] WITHIN 9 EVENTS").explain(
        frame(spark, stream(10)), time="ts", type="name"
    )
    text = "stay whole: the window counts events of the key"
    assert ("hot keys", text) in explained.distribution


@pytest.mark.classic
def test_little_data_is_not_looked_at(spark: SparkSession) -> None:
    assert hot_keys._small(spark.createDataFrame(stream(100)))
    assert not hot_keys._small(spark.createDataFrame(stream(100_000)))


MERGED = RuleSet.from_template(
    "merged",
    "PATTERN A a ; !C c ; B b WHERE [id] AND a.x < :low AND b.x > :high AND c.x = :low "
    "WITHIN :window RETURN a.row AS first, b.row AS last",
    {"low": [0.1, 0.2, 0.2], "high": [0.8, 0.9, 0.6], "window": [30, 60, 100]},
)
BESIDE = RuleSet.of(
    {
        "group": "PATTERN A a ; B+ b ; C c WHERE [id] AND a.x > 0.9 WITHIN 60 RETURN c.row",
        "later": "PATTERN A a ; !B b WHERE [id] AND a.x > 0.5 WITHIN 60 RETURN a.row",
    }
)
DEALT = RuleSet.from_template(
    "three",
    "PATTERN A a{3} WHERE [id] AND a.x > :low WITHIN 60 RETURN LAST(a.row) AS last",
    {"low": [0.3, 0.4, 0.5]},
)
SKIPPED = RuleSet.of({"skipped": f"{QUERY} AFTER MATCH SKIP PAST LAST EVENT RETURN a.row"})


@pytest.mark.parametrize(
    ("rules", "cut"),
    [
        pytest.param(MERGED, True, id="merged"),
        pytest.param(MERGED | BESIDE | DEALT, True, id="with queries beside them"),
        pytest.param(MERGED | SKIPPED, False, id="one needs whole keys"),
    ],
)
def test_rules(spark: SparkSession, looks: Places, rules: RuleSet, cut: bool) -> None:
    events = stream(2_000)
    options: dict[str, Any] = {"time": "ts", "type": "name", "tie": "row", "jit": False}
    want = rules.match(events, **options)
    assert set(want["rule"].to_pylist()) == set(rules)
    found = rules.match(frame(spark, events), partitions=4, **options)
    assert rows(found.toArrow().cast(want.schema)) == rows(want)
    assert any(look is not None for look in looks) == cut


# ── where rows go, without Spark ─────────────────────────────────────────────


@given(
    counts=st.lists(st.integers(0, 30), min_size=1, max_size=60),
    width=st.integers(1, 9),
    reach=st.builds(Reach, st.integers(0, 100), st.sampled_from([0, 25])),
    most=st.integers(1, 200),
)
def test_slices_hold_what_their_matches_need(
    counts: list[int], width: int, reach: Reach, most: int
) -> None:
    grid, cells = Grid(-17, width, len(counts)), np.array(counts)
    found = list(slices(5, cells, grid, reach, most))
    assert [s.begin for s in found] == [0, *(s.end for s in found[:-1])]
    assert found[-1].end == len(counts)
    before, after = grid.cells(reach.before), grid.cells(reach.after)
    for s in found:
        first, last = grid.range(s.low, s.high)
        begin, end = grid.range(s.begin, s.end)
        assert s.low == 0 or first <= begin - reach.before
        assert s.high == len(counts) or last >= end + reach.after
        assert s.load == sum(counts[s.low : s.high])
        least = max(1, before, after)
        assert s.load <= most or s.end - s.begin < 2 * least


@given(loads=st.lists(st.integers(0, 100), min_size=1, max_size=100), partitions=st.integers(1, 20))
def test_partitions_are_balanced(loads: list[int], partitions: int) -> None:
    filled = [0] * partitions
    for load, partition in zip(loads, balanced(loads, partitions), strict=True):
        filled[partition] += load
    assert max(filled) <= sum(loads) / partitions + max(loads)


def test_every_hash_and_time_has_a_place() -> None:
    """Rows may have come since they were counted."""
    counts = np.ones(hot_keys.HASHES, np.int64)
    grid = Grid(0, 10, 40)
    counts[7] = 400
    cut = list(slices(7, np.full(40, 10), grid, Reach(25), 100))
    found = hot_keys._places(counts, cut, grid, 5)
    places = found.places.to_pydict()["__place"]
    whole = [n * 40 for n in range(hot_keys.HASHES) if n != 7]
    assert found.cut == (7,) and set(places) == {*whole, *range(280, 320)}
    sections = {part: partition_of(part, 5) for part in found.owned}
    assert set(sections.values()) == set(range(5)) and len(sections) == 5 + len(cut)
    ranges = sorted(found.owned[n] for n in found.owned if n in list(found.owned)[5:])
    assert [end for _, end in ranges[:-1]] == [begin for begin, _ in ranges[1:]]
