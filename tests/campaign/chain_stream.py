"""`python -m tests.campaign.chain_stream`: queries that read each other's matches, over a folder of
files, as a program would run them. The command runs single queries and rules on streams."""

from __future__ import annotations

import argparse
import signal
import threading
from pathlib import Path

import cepheid as cep
from cepheid.spark.start.session import local_session
from tests.campaign.events import COLUMNS


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("queries", "input", "output", "checkpoint", "watermark", "master", "trigger"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--max-files", type=int)
    parser.add_argument("--buckets", type=int)
    given = parser.parse_args()
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    spark = local_session(given.master, "a chain")
    files = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", given.max_files)
    events = files.parquet(given.input).withWatermark("ts", given.watermark)
    queries = [cep.Query(path.read_text()) for path in sorted(Path(given.queries).glob("*.cep"))]
    matches = cep.match(events, queries, time="ts", type="type", buckets=given.buckets)
    *_, last = matches.values()
    place = Path(given.checkpoint) / "queries" / "matches"
    writer = last.writeStream.format("parquet").option("checkpointLocation", str(place))
    if given.trigger == "once":
        writer = writer.trigger(availableNow=True)
    try:
        query = writer.start(given.output)
        while not stopped.is_set() and not query.awaitTermination(1):
            pass
        query.stop()
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
