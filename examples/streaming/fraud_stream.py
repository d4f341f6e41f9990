"""Find stolen cards while transactions come in: Structured Streaming over a folder of files.

    python examples/streaming/fraud_stream.py

Two days of transactions lie in a few files. Spark reads one file per micro-batch, Cepheid matches
the query of examples/card_fraud.cep, and alarms are written to another folder, each exactly once.
What each batch did is printed. docs/streaming.md explains it.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import cepheid as cep
from cepheid.spark.start.session import local_session
from cepheid.workloads import fraud

QUERY = Path(__file__).parents[1].joinpath("card_fraud.cep").read_text()
COLUMNS = "id long, ts timestamp, card long, kind string, amount double, country string"


def write_files(folder: Path, transactions: pa.Table, files: int) -> None:
    folder.mkdir(parents=True)
    rows = -(-transactions.num_rows // files)
    for n in range(files):
        path = folder / f"{n:04}.parquet"
        pq.write_table(transactions.slice(n * rows, rows), path)
        os.utime(path, (n, n))  # the order in which Spark reads them


def main(spark: SparkSession, folder: Path, rows: int = 50_000, files: int = 5) -> DataFrame:
    write_files(folder / "transactions", fraud.generate(rows, days=2.0, cards=2000), files)
    transactions = (
        spark.readStream.schema(COLUMNS)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / "transactions"))
    )
    alarms = cep.match(transactions, QUERY, time="ts", tie="id")
    query = (
        alarms.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)  # all that is there; without it the query runs until stopped
        .start(str(folder / "alarms"))
    )
    query.awaitTermination()
    for progress in query.recentProgress:
        done = cep.status(progress)
        print(
            f"batch {done.batch}: {done.events} events, {done.matches} alarms, watermark "
            f"{done.watermark}, {done.rows} events held in {done.size / 1e6:.1f} MB"
        )
    return spark.read.parquet(str(folder / "alarms"))


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        found = main(local_session("local[2]", "fraud stream"), Path(folder))
        print(found.count(), "alarms; the first ones:")
        found.orderBy("match_end", "id").show(5)
