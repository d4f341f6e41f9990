"""Folders of files as streams of events.

Spark brings the files as they come, and rows are made of them by the code of a local run
(`spark.event_files`). What can't be read as an event is rejected, and never
stops the stream: it is an event without a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as t

from cepheid.cli.stream.stream_columns import Folder
from cepheid.errors import OptionError
from cepheid.files.formats import spark_path
from cepheid.spark.columns.column_names import in_quotes, quoted
from cepheid.spark.event_files.parquet_files import read_parquet_events, read_parquet_rejected
from cepheid.spark.event_files.text_files import lines_of, read_text_events, read_text_rejected
from cepheid.spark.streaming.status.outcome import spark_sentence

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader


def read_folder(
    spark: SparkSession, folder: Folder, watermark: str | None, max_files: int | None
) -> DataFrame:
    """The events as a streaming DataFrame. Rejected rows have no time."""
    events, time = _events(_rows(spark, folder, max_files), folder), folder.form.time
    if watermark is None or time not in events.columns:
        return events
    match events.schema[time].dataType:
        case t.TimestampType():
            return events.withWatermark(in_quotes(time), watermark)
        case t.TimestampNTZType() | t.DateType():
            moment = quoted(time).cast("timestamp")
            return events.withColumn(time, moment).withWatermark(in_quotes(time), watermark)
        case kind:
            raise OptionError(
                f"--watermark is a duration, and the time column `{time}` is "
                f"{kind.simpleString()}: only timestamps can be late by a duration"
            )


def read_rejected(
    spark: SparkSession, folders: Sequence[Folder], max_files: int | None, whole: bool
) -> DataFrame:
    """The rejected rows as a streaming DataFrame: the line as it is in its file (a row of Parquet
    as JSON), the file, the line number if it is known, the reason, and the stream if there are
    several. `whole`: Spark reads all rows of Parquet files, and pushes no filter into them."""
    streams = []
    for number, folder in enumerate(folders):
        rows = _rows(spark, folder, max_files)
        if whole:
            rows = rows.observe(f"rows of input {number}", F.count(F.lit(1)).alias("rows"))
        rejected = (
            read_text_rejected(rows, folder.form, folder.header)
            if folder.stored is None
            else read_parquet_rejected(rows, folder.form)
        )
        name = F.lit(folder.name or None).cast("string")
        streams.append(rejected.select(name.alias("stream"), *rejected.columns))
    return reduce(lambda left, right: left.union(right), streams)


def read_error(spark: SparkSession, folder: Folder, file: str) -> str | None:
    """The reason why Spark can't read a file of the folder to its end; None if it can."""
    reader = spark.read.option("ignoreCorruptFiles", "false").option("ignoreMissingFiles", "false")
    try:
        rows = _opened(reader, folder, file)
        if folder.stored is not None:
            rows = rows.select(*(quoted(n) for n in folder.form.columns.names))
        rows.write.format("noop").mode("overwrite").save()
    except Exception as error:  # what Spark raises has no base of its own
        return spark_sentence(str(error))
    return None


def _events(rows: DataFrame, folder: Folder) -> DataFrame:
    if folder.stored is None:
        return read_text_events(rows, folder.form, folder.header)
    return read_parquet_events(rows, folder.form)


def _rows(spark: SparkSession, folder: Folder, max_files: int | None) -> DataFrame:
    reader = spark.readStream
    if max_files is not None:
        reader = reader.option("maxFilesPerTrigger", max_files)
    # What can't be read is left out here, and found afterwards (`unreadable`), which looks into
    # local folders only.
    for option in ("ignoreCorruptFiles", "ignoreMissingFiles"):
        reader = reader.option(option, folder.is_local)
    return _opened(reader, folder, spark_path(folder.path))


def _opened(reader: DataStreamReader | DataFrameReader, folder: Folder, path: str) -> DataFrame:
    """Rows of Parquet files, or lines of text, as Spark reads them."""
    if folder.stored is not None:
        return reader.schema(folder.stored).parquet(path)
    # The files of all folders inside, as in a local run.
    return lines_of(reader.option("recursiveFileLookup", True).text(path))
