"""What `explain` says of a query over a stream."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import cepheid as cep
from cepheid.spark.streaming.pipeline import PROVIDER, ROCKSDB, use_rocksdb

pytestmark = pytest.mark.classic

KEYED = "PATTERN A a ; B b WHERE [user] WITHIN 10 seconds"


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> DataFrame:
    columns = "ts timestamp, type string, user long, x double"
    return spark.readStream.schema(columns).parquet(str(tmp_path))


def told(stream: DataFrame, query: str, **options: object) -> dict[str, str]:
    explained = cep.Query(query).explain(stream, time="ts", type="type", **options)
    assert all(text in str(explained) for _, text in explained.distribution)
    return dict(explained.distribution)


def test_keys_go_into_buckets(stream: DataFrame) -> None:
    found = told(stream, KEYED)
    assert found["partitioning"] == "key user (8 buckets)"
    assert "matches never cross keys" in found["why"]
    assert found["watermark"].startswith("no delay: events are matched in their batch")
    assert "Spark's state store, by bucket" in found["state"]
    assert found["columns"] == "ts, type, user, x"
    assert told(stream, KEYED, buckets=3)["partitioning"] == "key user (3 buckets)"


def test_a_delay_makes_events_wait(stream: DataFrame) -> None:
    for delay, text in (("10 seconds", "10 s behind"), ("1500 milliseconds", "1500 ms behind")):
        found = told(stream.withWatermark("ts", delay), KEYED)
        assert found["watermark"].startswith(text) and "events wait" in found["watermark"]


def test_answers(stream: DataFrame) -> None:
    found = told(stream, f"{KEYED} GROUP BY a.x, TUMBLE(1 minute)", buckets=3)
    assert "merged in 3 buckets by a hash of the group" in found["answers"]
    assert "when the watermark has passed the end of a window" in found["answers"]
    found = told(stream, "FROM A a GROUP BY TUMBLE(1 minute)")
    assert "merged in one bucket" in found["answers"]
    assert "Spark's state store, by bucket" in found["state"]


def test_a_partial_key(stream: DataFrame) -> None:
    query = "PATTERN A a ; B b ; C c WHERE a.user = c.user WITHIN 10 seconds"
    assert told(stream, query)["partitioning"] == "partial key user (8 buckets)"


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("PATTERN A a ; B b WITHIN 10 seconds", "no key partitions all events"),
        ("PATTERN A a ; B b WITHIN 10 EVENTS", "the window counts events of the whole stream"),
    ],
)
def test_without_a_key_there_is_one_bucket(stream: DataFrame, query: str, why: str) -> None:
    found = told(stream, query)
    assert found["partitioning"] == "one bucket" and found["why"].startswith(why)


def test_counted_keys_have_buckets_of_their_own(stream: DataFrame) -> None:
    """Or share some, where every match is known with its last event."""
    waiting = "PATTERN A a ; !B b WHERE [user] WITHIN 10 EVENTS"
    assert told(stream, waiting)["partitioning"] == "key user (a bucket for each value)"
    settled = "PATTERN A a ; B b WHERE [user] WITHIN 10 EVENTS"
    assert told(stream, settled)["partitioning"] == "key user (8 buckets)"
    assert told(stream, settled, partitioning="single")["partitioning"] == "one bucket"
    with pytest.raises(cep.PlanError, match="Leave partitioning= out"):
        told(stream, waiting, partitioning="single")
    for query in (waiting, settled):
        assert "if new keys keep coming, the state grows" in told(stream, query)["state"]
        idle = told(stream, query, idle="1 day")["state"]
        assert idle.endswith("until it has no event for 1 day")


def test_one_event_needs_no_state(stream: DataFrame) -> None:
    found = told(stream, "PATTERN A a WHERE a.x > 1 WITHIN 10 seconds")
    assert found["partitioning"] == "rows stay where they are: a match is one event"
    assert found["state"] == "none"


def test_a_stream_has_no_end_to_analyze(stream: DataFrame) -> None:
    with pytest.raises(cep.DataError, match="a stream has none"):
        cep.Query(KEYED).explain(stream, time="ts", type="type", analyze=True)


class Fixed:
    """A session whose settings can't be changed, as in declarative pipelines."""

    def __init__(self, **settings: str) -> None:
        self.conf, self.settings = self, settings

    def get(self, name: str, default: str) -> str:
        return self.settings.get(name, default)

    def set(self, name: str, value: str) -> None:
        raise PySparkException("SESSION_MUTATION_IN_DECLARATIVE_PIPELINE")


def test_a_session_that_can_not_be_changed() -> None:
    use_rocksdb(cast(SparkSession, Fixed(**{PROVIDER: ROCKSDB})))
    with pytest.raises(cep.StreamError, match=rf"set {PROVIDER} to {ROCKSDB} where the session"):
        use_rocksdb(cast(SparkSession, Fixed()))
