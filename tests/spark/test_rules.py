"""Sets of rules over DataFrames find what they find in process, however the work is spread."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from cepheid.errors import QueryError
from cepheid.options import Options
from cepheid.rules import RuleSet
from cepheid.rules.compile.compiled_rules import compile_rules
from tests.spark.test_pushdown import physical_plan

KEYED = RuleSet.from_template(
    "keyed",
    "PATTERN a ; !c ; b WHERE [card] AND a.amount < :low AND b.amount > :high "
    "AND (:country IS NULL OR b.country = :country) AND c.amount = :low WITHIN :window minutes "
    "RETURN a.id AS first, b.id AS last, b.country",
    {
        "low": [10.0, 20.0, 20.0, 5.0],
        "high": [80.0, 90.0, 60.0, 99.5],
        "country": ["DE", None, "FR", None],
        "window": [30, 60, 60, 120],
        "severity": ["low", "high", "high", None],
    },
)
OTHER_KEY = RuleSet.of(
    {"travel": "PATTERN a ; b WHERE a.country = b.country AND b.amount > 99 WITHIN 2 minutes"}
)
UNKEYED = RuleSet.from_template(
    "unkeyed",
    "PATTERN a ; b WHERE a.amount > :high AND b.amount > :high AND a.card <> b.card "
    "WITHIN 1 minute RETURN a.id AS first, b.id AS last",
    {"high": [99.0, 99.5]},
)
ROW = RuleSet.from_template("row", "PATTERN a WHERE a.amount > :high RETURN a.id", {"high": [99.8]})
ALONE = RuleSet.of(
    {
        "run": "PATTERN a ; b+ ; c WHERE [card] AND a.amount > 95 AND b.amount < 5 "
        "AND c.amount > 95 WITHIN 30 minutes RETURN a.id, count(b) AS n, c.id AS last",
        "next": "PATTERN a => b WHERE a.amount > 99 AND b.amount > 90 RETURN a.id, b.id AS last",
    }
)
SHARED = RuleSet.from_template(
    "shared",
    "PATTERN a ; b+ ; c "
    "WHERE [card] AND a.amount > :high AND b.amount < 5 AND c.country = :country "
    "HAVING sum(b.amount) > :total WITHIN :window minutes "
    "RETURN a.id, a.ts AS since, b.amount, count(b) + :total AS n, c.id AS last",
    {
        "high": [95.0, 90.0, 80.0],
        "country": ["DE", "FR", "US"],
        "total": [2.0, 3.5, 1.0],
        "window": [30, 60, 20],
        "severity": ["low", "high", None],
    },
)
JOINED = RuleSet.of(
    {
        "again": "PATTERN (a & b) ; c WHERE [card] AND a.amount > 95 AND b.amount < 5 "
        "AND c.amount > 95 WITHIN 30 minutes RETURN a.id, c.id AS last",
        "home": "PATTERN (b & a) ; d WHERE [card] AND a.amount > 95 AND b.amount < 5 "
        "AND d.country = 'DE' WITHIN 20 minutes RETURN b.id, d.country, d.id AS last",
    }
)
DEALT = (
    RuleSet.from_template(
        "three",
        "PATTERN a{3} WHERE [card] AND a.amount > :low WITHIN 20 minutes RETURN LAST(a.id) AS last",
        {"low": [90.0, 85.0, 95.0, 80.0]},
    )
    | RuleSet.from_template(
        "soon",
        "PATTERN a -> b WHERE a.amount > 97 AND b.amount > :high AND b.country = :country "
        "WITHIN 1 minute RETURN a.id, b.id AS last",
        {"high": [90.0, 85.0, 95.0, 80.0], "country": ["DE", "FR", "US", "US"]},
    )
    | RuleSet.from_template(
        "once",
        "PATTERN a ; b WHERE a.amount > :low AND b.amount > :low WITHIN 3 minutes "
        "AFTER MATCH SKIP PAST LAST EVENT RETURN a.id, b.id AS last",
        {"low": [97.0, 98.0, 99.0, 96.0]},
    )
)
"""With a key; without one, limited in time; and without one, about all matches."""
OPTIONS: dict[str, Any] = {"time": "ts", "tie": "id", "jit": False}


@pytest.fixture(scope="module")
def events() -> pa.Table:
    random = np.random.default_rng(4)
    n = 3_000
    seconds = np.cumsum(random.integers(0, 4, n)) * 1_000_000
    return pa.table(
        {
            "id": np.arange(n),
            "ts": pa.array(seconds).cast(pa.timestamp("us", "UTC")),
            "card": pa.array([None if c == 8 else int(c) for c in random.integers(0, 9, n)]),
            "amount": np.round(random.random(n) * 100, 1),
            "country": pa.array(random.choice(["DE", "FR", "US"], n)),
        }
    )


def rows(found: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in found.to_pylist())


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(KEYED | OTHER_KEY, id="two keys"),
        pytest.param(UNKEYED, id="no key"),
        pytest.param(ROW, id="one event"),
        pytest.param(ALONE, id="alone"),
        pytest.param(SHARED, id="one query"),
        pytest.param(DEALT, id="dealt"),
        pytest.param(KEYED | UNKEYED | ROW | ALONE | DEALT | SHARED | JOINED, id="all"),
    ],
)
def test_a_frame_and_a_table_give_the_same(
    spark: SparkSession, events: pa.Table, rules: RuleSet
) -> None:
    expected = rules.match(events, **OPTIONS)
    frame = spark.createDataFrame(events).repartition(3, F.rand(1))
    found = rules.match(frame, partitions=3, **OPTIONS)
    assert found.columns == expected.column_names
    assert set(expected["rule"].to_pylist()) == set(rules)
    assert rows(found.toArrow().cast(expected.schema)) == rows(expected)


CHAIN = RuleSet.from_template(
    "large",
    "INTO Large PATTERN FR a ; FR b WHERE [card] AND b.amount > :low WITHIN 20 minutes "
    "RETURN a.card, b.id",
    {"low": [90.0, 95.0], "severity": ["low", "high"]},
) | RuleSet.of(
    {
        "follow": "INTO Follow PATTERN Large l ; DE d WHERE [card] AND d.amount > 90 "
        "WITHIN 30 minutes RETURN l.rule, l.card, d.id AS last",
        "of_one": "PATTERN `large-2` l ; US u WHERE [card] AND u.amount > 97 WITHIN 5 minutes",
        "third": "PATTERN Follow f ; US u WHERE [card] AND u.amount > 95 WITHIN 2 hours "
        "RETURN f.last, u.id",
    }
)


@pytest.mark.filterwarnings("ignore:no event is of type")
def test_rules_read_rules(spark: SparkSession, events: pa.Table) -> None:
    options = {**OPTIONS, "type": "country"}
    expected = CHAIN.match(events, **options)
    assert set(expected["rule"].to_pylist()) == set(CHAIN)
    found = CHAIN.match(spark.createDataFrame(events), partitions=2, **options)
    assert found.columns == expected.column_names
    assert rows(found.toArrow().cast(expected.schema)) == rows(expected)
    clash = RuleSet.of({"x": "INTO US PATTERN FR f", "y": "PATTERN US u ; DE d WITHIN 5 minutes"})
    with pytest.raises(QueryError, match="`US` is both a rule of the set and a type of events"):
        clash.match(spark.createDataFrame(events), **options)


def test_alerts_are_throttled(spark: SparkSession, events: pa.Table) -> None:
    rules = KEYED | ROW | SHARED
    expected = rules.match(events, throttle="1 minute", **OPTIONS)
    frame = spark.createDataFrame(events).repartition(3, F.rand(1))
    found = rules.match(frame, partitions=3, throttle="1 minute", **OPTIONS)
    assert found.columns == expected.column_names
    columns = ["rule", "key", "match_start", "match_end", "suppressed"]
    plain = found.toArrow().cast(expected.schema).select(columns)
    assert rows(plain) == rows(expected.select(columns))
    assert sum(expected["suppressed"].to_pylist()) > 10


@pytest.mark.parametrize("placement", ["keys", "one", "split"])
@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_the_matches_are_the_same_wherever_rules_are_placed(
    spark: SparkSession, events: pa.Table, placement: str, partitions: int
) -> None:
    rules = KEYED | OTHER_KEY | UNKEYED | ROW
    frame = spark.createDataFrame(events).repartition(3, F.rand(1))
    options = {**OPTIONS, "placement": placement, "partitions": partitions}
    spread = [one.spread for one in rules.explain(frame, **options).passes]
    parts = [len(one.parts) for one in spread if one is not None]
    assert parts == {"keys": [1, 1, 1], "one": [1], "split": [2, 1, 2]}[placement]
    expected = rules.match(events, **OPTIONS)
    found = rules.match(frame, **options).toArrow().cast(expected.schema)
    assert rows(found) == rows(expected)


def test_types_come_back_as_texts(spark: SparkSession, events: pa.Table) -> None:
    """To Python they go as numbers: every rule is about some of them."""
    rules = RuleSet.from_template(
        "away",
        "PATTERN DE a ; ANY(FR, US) b WHERE [card] AND b.amount > :high WITHIN 10 minutes "
        "RETURN a.country, b.country AS there, b.id AS last",
        {"high": [99.0, 90.0]},
    ) | RuleSet.of({"back": "PATTERN US a ; DE b WHERE [card] AND b.amount > 99 WITHIN 1 minute"})
    options = {**OPTIONS, "type": "country"}
    expected = rules.match(events, **options)
    assert len(set(expected["rule"].to_pylist())) == 3
    frame = spark.createDataFrame(events)
    for placement in ("keys", "split"):
        found = rules.match(frame, partitions=2, placement=placement, **options)
        assert rows(found.toArrow().cast(expected.schema)) == rows(expected)


def test_rules_of_one_event_can_be_split(spark: SparkSession, events: pa.Table) -> None:
    rules = RuleSet.from_template("row", ROW["row-1"].query, {"high": [99.8, 99.0, 0.1]})
    found = rules.match(spark.createDataFrame(events), placement="split", **OPTIONS)
    expected = rules.match(events, **OPTIONS)
    assert rows(found.toArrow().cast(expected.schema)) == rows(expected)


def test_a_light_key_joins_the_slices_of_others(spark: SparkSession, events: pa.Table) -> None:
    rules = OTHER_KEY | UNKEYED
    (one,) = rules.explain(spark.createDataFrame(events), partitions=2, **OPTIONS).passes
    assert (one.key, one.rules) == (None, 3)
    assert one.spread is not None and one.spread.joined == ("country",)
    assert "joined      those with the key `country`" in str(
        rules.explain(spark.createDataFrame(events), partitions=2, **OPTIONS)
    )


def test_rules_of_a_stream_are_not_placed(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    rules = RuleSet.of({"pair": "PATTERN a ; b WHERE a.value < b.value WITHIN 1 minute"})
    (one,) = rules.explain(stream, time="timestamp").passes
    assert (one.rules, one.spread) == (1, None)


def test_joined_rules_share_a_shuffle(
    spark: SparkSession, events: pa.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    found = JOINED.match(spark.createDataFrame(events), partitions=2, **OPTIONS)
    assert physical_plan(found, capsys).count(") Exchange\n") == 1
    expected = {name: rule.match(events, **OPTIONS).num_rows for name, rule in JOINED.items()}
    assert all(expected.values())
    assert Counter(found.toArrow()["rule"].to_pylist()) == expected
    whole = JOINED.match(events, **OPTIONS)
    assert rows(found.toArrow().cast(whole.schema)) == rows(whole)


def test_all_rules_of_a_key_share_a_scan_and_a_shuffle(
    spark: SparkSession, events: pa.Table, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = (
        KEYED
        | JOINED
        | SHARED
        | ALONE.select("run")
        | DEALT.select([f"three-{n}" for n in (1, 2, 3)])
    )
    found = rules.match(spark.createDataFrame(events), partitions=2, **OPTIONS)
    plan = physical_plan(found, capsys)
    assert plan.count(") Exchange\n") == plan.count("MapInArrow") // 2 == 1, plan
    expected = rules.match(events, **OPTIONS)
    assert rows(found.toArrow().cast(expected.schema)) == rows(expected)


def test_an_unknown_placement_is_refused() -> None:
    with pytest.raises(ValueError, match="placement must be one of auto, keys, one, split"):
        Options("ts", placement="everywhere")  # as a user might


def test_rules_with_the_same_key_share_a_pass(events: pa.Table) -> None:
    rules = KEYED | OTHER_KEY | UNKEYED | ALONE
    options = Options("ts", tie="id")
    compiled = compile_rules(rules.templates, events.schema, options, by_key=True)
    assert [(g.key, sum(map(len, g.numbers))) for g in compiled.groups] == [
        ("card", 4),
        ("country", 1),
        (None, 2),
    ]
    assert [one.rules.tolist() for one in compiled.alone] == [[7], [8]]


def test_rules_with_a_closure_share_a_query(events: pa.Table) -> None:
    """Else the frames above would not show that they find the same."""
    compiled = compile_rules(SHARED.templates, events.schema, Options("ts", tie="id"), by_key=True)
    (one,) = compiled.alone
    assert one.rules.tolist() == [0, 1, 2] and one.residual is not None
    expected = Counter(
        name for name in SHARED for _ in range(SHARED[name].match(events, **OPTIONS).num_rows)
    )
    assert Counter(SHARED.match(events, **OPTIONS)["rule"].to_pylist()) == expected
