"""A program with some streaming queries, of which `start` measures how long it takes to start.

Called with a folder and a number of queries. It prints what it has come to, step by step, and goes
on until it is killed. It needs no more of Cepheid than every version has.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from importlib import import_module

from pyspark.sql.streaming.query import StreamingQuery

import cepheid as cep

try:
    session = import_module("cepheid.spark.start.session")
except ModuleNotFoundError:  # of a version before 0.2
    session = import_module("cepheid.spark.session")

QUERIES = (
    "PATTERN A a ; !B b ; C c WHERE [id] AND a.x > 0.5 WITHIN 3 hours",
    "PATTERN A a ; B b WHERE [id] AND a.x > b.x WITHIN 1 hour",
    "PATTERN A a ; B+ b ; C c WHERE [id] AND a.x > 0.9 WITHIN 2 hours",
    "PATTERN A a -> B b -> C c WHERE [id] AND a.x > 0.8 WITHIN 3 hours",
    "PATTERN A a ; C c ; !B b WHERE [id] AND a.y > 0.9 WITHIN 1 hour",
)


EVENT_TYPE = "ts timestamp, kind string, id long, x double, y double"


def main(folder: str, count: int) -> None:
    spark = session.local_session("local[2]", app="cepheid benchmarks")
    reach("session")
    queries = []
    for number, text in enumerate(QUERIES[:count]):
        rows = spark.readStream.schema(EVENT_TYPE).parquet(f"{folder}/events")
        events = rows.withWatermark("ts", "10 seconds")
        matches = cep.match(events, text, time="ts", type="kind")
        place = f"{folder}/checkpoint {number}"
        writer = matches.writeStream.format("noop").option("checkpointLocation", place)
        queries.append(writer.start())
    reach("queries")
    wait_for_batches(queries)


def wait_for_batches(queries: Sequence[StreamingQuery]) -> None:
    """Say when every query has done a batch, and go on until the process is killed."""
    waiting = set(queries)
    planning = 0.0
    while waiting:
        time.sleep(0.05)
        for query in [*waiting]:
            done = [json.loads(p.json) for p in query.recentProgress]
            batch = next((p for p in done if "addBatch" in p["durationMs"]), None)
            if batch is not None:
                waiting.remove(query)
                planning = max(planning, batch["durationMs"]["queryPlanning"] / 1000)
            elif (error := query.exception()) is not None:
                raise error
    reach("batches", planning=planning)
    while True:
        time.sleep(1)


def reach(step: str, **more: float) -> None:
    print(json.dumps({"step": step, **more}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
