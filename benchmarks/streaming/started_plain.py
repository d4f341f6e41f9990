"""The same program as `started` without Cepheid: what Spark itself takes for as many queries that
keep state in Python. Each of them only counts the events of its groups."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from cepheid.spark.start.session import local_session

# A script has its own folder on the path, not the repository.
sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.streaming.started import EVENT_TYPE, reach, wait_for_batches

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_GROUPS = 16


class Counter(StatefulProcessor):
    """The number of events of a group so far."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.count = handle.getValueState("count", "events long")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        (before,) = self.count.get() or (0,)
        events = before + sum(len(batch) for batch in rows)
        self.count.update((events,))
        yield pd.DataFrame({"bucket": [key[0]], "events": [events]})

    def close(self) -> None:
        pass


def main(folder: str, count: int) -> None:
    spark = local_session("local[2]", app="cepheid benchmarks")
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", _ROCKSDB)
    reach("session")
    queries = []
    for number in range(count):
        rows = spark.readStream.schema(EVENT_TYPE).parquet(f"{folder}/events")
        events = rows.withWatermark("ts", "10 seconds").filter("x > 0.5")
        buckets = events.withColumn("bucket", F.col("id") % _GROUPS).groupBy("bucket")
        counted = buckets.transformWithStateInPandas(
            statefulProcessor=Counter(),
            outputStructType="bucket long, events long",
            outputMode="append",
            timeMode="eventTime",
        )
        writer = counted.writeStream.format("noop")
        queries.append(writer.option("checkpointLocation", f"{folder}/plain {number}").start())
    reach("queries")
    wait_for_batches(queries)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
