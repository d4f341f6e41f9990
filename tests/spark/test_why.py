"""`why` and `funnel` on Spark: figures that were counted there are those of the same events here,
which tests/reasons has by hand."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import cepheid as cep
from cepheid.reasons import far_trials
from cepheid.reasons.why.report import Lost
from tests.reasons.test_why import EVENTS, QUERY, events
from tests.spark.harness import frame

TIMES = {"time": "ts", "type": "type"}

CHOICES = events((1, "A", 1, 1), (2, "A", 1, 1), (3, "B", 1, 5), (4, "B", 1, 7))
GROUPS = events(
    *((n, "A" if n % 7 == 0 else "B" if n % 3 else "X", n // 20, n % 5) for n in range(60))
)


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few events, too, stay on Spark."""
    monkeypatch.setattr("cepheid.reasons.looked_at.BROUGHT", 0)


@pytest.mark.essential
def test_few_events_are_brought_here(spark: SparkSession) -> None:
    here = cep.why(EVENTS, QUERY, **TIMES)
    brought = cep.why(frame(spark, EVENTS), QUERY, **TIMES)
    assert (brought.steps, brought.without, brought.sample) == (here.steps, here.without, None)
    assert [(dict(m.rows), m.times, m.values) for m in brought.misses[:2]] == [
        ({}, {"a": ("3",), "b": ("4",)}, (("a.id", "2"), ("b.x", "5"))),
        ({}, {"a": ("6",), "b": ("8",)}, (("a.id", "4"),)),
    ]


@pytest.mark.essential
def test_figures_are_counted_there(spark: SparkSession, there: None) -> None:
    counted = compare(spark, EVENTS, QUERY)
    assert [(m.times, m.kind, m.text, m.values) for m in counted.misses] == [
        ({"a": ("3",), "b": ("4",)}, "condition", "b.x > 6", (("a.id", "2"), ("b.x", "5"))),
        ({"a": ("6",), "b": ("8",)}, "negation", "!X n", (("a.id", "4"),)),
        ({"a": ("5",), "b": ("16",)}, "window", "WITHIN 12 units", (("a.id", "3"),)),
        ({"a": ("9",)}, "candidate", "no B b in the window", (("a.id", "5"),)),
    ]


@pytest.mark.essential
@pytest.mark.parametrize("pattern", ["A a ; B b", "B b & A a", "(A a ; B b) \\ X x"])
def test_windows_that_would_be_long_enough(spark: SparkSession, there: None, pattern: str) -> None:
    """The b of user 1 comes after 20, that of user 2 after 39, none for user 3."""
    data = events(
        (0, "A", 1, 1), (20, "B", 1, 1), (100, "A", 2, 1), (139, "B", 2, 1), (200, "A", 3, 1)
    )
    query = f"PATTERN {pattern} WHERE [id] WITHIN 10"
    found = cep.funnel(frame(spark, data), query, **TIMES).steps[1]
    assert Lost("window", "WITHIN 21 to 40 units", 2) in found.lost
    assert found == cep.funnel(data, query, **TIMES).steps[1]
    report = cep.why(frame(spark, data), query, misses=9, **TIMES)
    needs = [miss.text for miss in report.misses if miss.kind == "window"]
    assert needs[0] == "WITHIN 21 units"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "query"),
    [
        (
            CHOICES,
            "PATTERN A a ; B b WITHIN 9 HAVING b.x > 6 AFTER MATCH SKIP TO NEXT EVENT LIMIT 1",
        ),
        (CHOICES, "PATTERN A a ; B b WITHIN 9 AFTER MATCH SKIP PAST LAST EVENT"),
        (CHOICES, "PATTERN A a & B b WITHIN 9"),
        (EVENTS, "PATTERN A a ; (B b | X x) WHERE [id] WITHIN 10"),
        (EVENTS, "PATTERN (A a ; B b) \\ X x WHERE [id] WITHIN 20"),
        (EVENTS, "PATTERN (B b & A a) \\ X x WITHIN 4"),
        (EVENTS, "PATTERN A a ; (!X n ; B b -> A c) \\ X x WHERE n.x < c.x WITHIN 4"),
        (EVENTS, "PATTERN A a ; B b WHERE [id] AND b.x > 5 WITHIN 2 EVENTS"),
        (EVENTS, "PATTERN A a ; !B b FOR 5 WHERE [id]"),
        (EVENTS, "PATTERN A a -> B b -> A c WHERE a.id < c.id"),
        (GROUPS, "PATTERN A a ; B+ b ; X c WHERE b.x > 1 AND [id] WITHIN 9 HAVING sum(b.x) > 6"),
        (GROUPS, "PATTERN A a => B+ b => X c WHERE b.x > PREV(b.x)"),
        (GROUPS, "PATTERN A a ; B? b ; X c WHERE c.x > 1 AND b.x > 2 WITHIN 7 EVENTS"),
        (GROUPS, "PATTERN A a ; (B b ; X x){2} WHERE b.x <= x.x WITHIN 30 LIMIT 4"),
        (GROUPS, "PATTERN A a ; B{1,2} b SUBSETS WITHIN 9 AFTER MATCH SKIP FOR 6"),
        (EVENTS, f"{QUERY} GROUP BY a.id RETURN a.id, count(*) AS n"),
    ],
)
def test_all_constructs_are_counted_there(
    spark: SparkSession, there: None, data: pa.Table, query: str
) -> None:
    compare(spark, data, query)


def compare(spark: SparkSession, data: pa.Table, query: str) -> cep.Why:
    counted, here = cep.why(frame(spark, data), query, **TIMES), cep.why(data, query, **TIMES)
    blank = {"misses": ()}
    assert replace(counted, **blank) == replace(here, **blank)
    by = cep.funnel(frame(spark, data), query, by="id", **TIMES)
    assert by == cep.funnel(data, query, by="id", **TIMES)
    return counted


@pytest.mark.essential
def test_funnels_by_windows(spark: SparkSession, there: None) -> None:
    query = f"{QUERY} GROUP BY TUMBLE(4) RETURN window_start, count(*) AS n"
    here = cep.funnel(EVENTS, query, by="window_start", **TIMES)
    assert here.groups == ("0", "4", "8")
    assert cep.funnel(frame(spark, EVENTS), query, by="window_start", **TIMES) == here


@pytest.mark.essential
def test_several_streams(spark: SparkSession, there: None) -> None:
    pandas = EVENTS.to_pandas()
    streams = {name: pandas[pandas.type == name].drop(columns="type") for name in "ABX"}
    far = {
        name: frame(spark, pa.Table.from_pandas(part, preserve_index=False))
        for name, part in streams.items()
    }
    here = cep.funnel(streams, QUERY, by="x", time="ts")
    assert cep.funnel(far, QUERY, by="x", time="ts") == here


@pytest.mark.slow
def test_a_sample_of_large_data_says_so(spark: SparkSession, there: None) -> None:
    many = pa.table(
        {
            "ts": range(2000),
            "type": ["A", "B"] * 1000,
            "id": [n // 2 for n in range(2000)],
            "x": [1] * 2000,
        }
    )
    data = frame(spark, many)
    keyed = cep.funnel(data, "PATTERN A a ; B b WHERE [id] WITHIN 9", rows=200, **TIMES)
    assert keyed.sample == (f"{keyed.events} of 2,000 events, those of about 1 in 10 values of id")
    # All events of a key are looked at, so that each A has its B.
    assert 50 < keyed.events < 400
    assert [step.of_first for step in keyed.steps] == [1, 1, 1]
    first = cep.funnel(data, "PATTERN A a => B b", rows=200, **TIMES)
    assert first.sample == "200 of 2,000 events, the first in time"
    assert [step.reached for step in first.steps] == [100, 100, 100]


def test_many_matches_are_counted_or_said_to_be_more(
    spark: SparkSession, there: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(far_trials, "MOST", 5)
    monkeypatch.setattr("cepheid.reasons.why.investigation.MOST", 5)
    data = events(*((n, "A" if n < 5 else "B", 1, n) for n in range(10)))
    chain = cep.why(frame(spark, data), "PATTERN A a ; B b WHERE b.x > 5 WITHIN 20", **TIMES)
    assert (chain.matches, chain.complete) == (20, True)  # counted without finding them
    assert [part.more for part in chain.without] == [5]
    each = cep.why(
        frame(spark, data), "PATTERN A a & (B b -> B c) WHERE b.x > a.x WITHIN 20", **TIMES
    )
    assert (each.matches, each.complete) == (5, False)
    assert "more than 5 matches in 10 events" in str(each)


@pytest.mark.essential
def test_given_events(spark: SparkSession) -> None:
    data = frame(spark, EVENTS)
    named = {"a": "a.id = 2", "b": "b.id = 2"}
    verdict = cep.why(data, QUERY, events=named, **TIMES)
    assert verdict.change == "b.x >= 5 instead of b.x > 6"
    assert verdict.sample == "2 of 10 events, those of their id"
    unkeyed = "PATTERN A a -> B b WHERE a.x < 9 WITHIN 3"
    late = cep.why(data, unkeyed, events={"a": "a.id = 3", "b": "b.id = 3"}, **TIMES)
    assert late.change == "WITHIN 12 units instead of WITHIN 3 units" or late.problems
    with pytest.raises(cep.DataError, match="rows of a DataFrame of Spark have no numbers"):
        cep.why(data, QUERY, events={"a": 2}, **TIMES)
    with pytest.raises(cep.DataError, match=r"no event of `a` satisfies a\.id = 99"):
        cep.why(data, QUERY, events={"a": "a.id = 99"}, **TIMES)


def test_rules_that_never_fired(spark: SparkSession) -> None:
    rules = cep.RuleSet.of({"some": QUERY, "none": QUERY.replace("> 6", "> 600")})
    here = rules.funnel(EVENTS, **TIMES)
    there = rules.funnel(frame(spark, EVENTS), **TIMES)
    assert there.silent == here.silent == ("none",)
    assert (there.matches, there.funnels) == (here.matches, here.funnels)
