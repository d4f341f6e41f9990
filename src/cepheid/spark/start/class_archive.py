"""An archive of the classes that Spark loads when a session and its first stream start.

Java then maps them into memory, read and verified, instead of taking them out of 200 jars. The
first session of `local_session` writes it to the user's cache folder when it ends
(`java.archive_options`), and the others use it. Java checks that it belongs to the same runtime and
the same jars, and does without it otherwise. `python -m cepheid.spark.start.class_archive` writes
one beforehand, with the classes of a stream.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from cepheid.errors import StreamError
from cepheid.spark.start.java import archive_path


def create_archive() -> Path:
    """Start a session, run a stream in it, and let Java archive the classes that it loaded."""
    target = archive_path()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".archive-") as folder:
        written = Path(folder, "spark.jsa")
        # In a process of its own: Java writes when it ends, and may be running here already.
        command = [sys.executable, "-c", _PROGRAM, folder, str(written)]
        run = subprocess.run(command, capture_output=True, text=True, env={**os.environ})
        if not written.is_file():
            said = (run.stderr.strip().splitlines() or ["Java has written nothing"])[-1]
            raise StreamError(f"no archive could be made: {said}")
        os.replace(written, target)
    return target


_PROGRAM = """
import sys
from cepheid.spark.start.class_archive import load_classes
load_classes(*sys.argv[1:])
"""


def load_classes(folder: str, archive: str) -> None:
    """Run a first stream in a session whose Java writes the archive."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import cepheid as cep
    from cepheid.spark.start.session import java_options, local_session

    options = f'{java_options()} "-XX:ArchiveClassesAtExit={archive}"'
    spark = local_session("local[2]", config={"spark.driver.extraJavaOptions": options})
    gateway: Any = spark.sparkContext._gateway
    times = pa.array([1, 2], pa.int64()).cast(pa.timestamp("us", "UTC"))
    events = pa.table({"ts": times, "kind": ["A", "B"], "id": [1, 1]})
    Path(folder, "events").mkdir()
    pq.write_table(events, Path(folder, "events", "0.parquet"))
    stream = spark.readStream.schema("ts timestamp, kind string, id long")
    rows = stream.parquet(f"{folder}/events").withWatermark("ts", "10 seconds")
    query = "PATTERN A a ; B b WHERE [id] WITHIN 1 hour"
    matches = cep.match(rows, query, time="ts", type="kind", buckets=2, jit=False)
    writer = matches.writeStream.format("parquet").option("path", f"{folder}/found")
    writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
    cep.wait(writer.trigger(availableNow=True).start())
    spark.stop()
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    print(create_archive())
