"""Folders of files as streams of events.

What can't be read as an event is rejected, and never stops the stream: a line that isn't what the
columns say has no time, and so counts as an event without one. The columns are those of the files
that are there at the first start, and are kept with the checkpoint: files that come later don't
change them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql import types as t

from cepheid.cli.arguments import Input
from cepheid.errors import DataError, OptionError
from cepheid.files.formats import Format, is_local
from cepheid.spark.names import in_quotes, quoted
from cepheid.spark.streaming.outcome import spark_sentence

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

_LINE, _FILE, _MALFORMED, _PARSED = "__line", "__file", "__malformed", "__parsed"


@dataclass(frozen=True)
class Folder:
    """A folder whose files are a stream; `name` is empty if there is only this one."""

    name: str
    path: str
    format: Format
    schema: t.StructType

    @property
    def is_local(self) -> bool:
        return is_local(self.path)


def open_folders(
    spark: SparkSession,
    sources: Sequence[Input],
    format: Format | None,
    schemas: Mapping[str, str],
    kept: Path,
) -> tuple[Folder, ...]:
    """The folders with their columns: those given, or else those of the first start, kept in a
    file, or else those of the files."""
    known: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    if known:
        refuse_other_inputs(sources, known, kept.parent)
    folders = []
    for source in sources:
        name = source.name or ""
        before = known.get(name)
        found = format or (Format(before["format"]) if before else source.format)
        if name in schemas:
            schema = _parsed(spark, schemas[name])
        elif before:
            schema = t.StructType.fromJson(before["schema"])
        else:
            schema = _columns(spark, replace(source, chosen=found))
        folders.append(Folder(name, source.path, found, schema))
    kept.parent.mkdir(parents=True, exist_ok=True)
    written = {
        f.name: {
            "path": _whole_path(f.path),
            "format": f.format.value,
            "schema": f.schema.jsonValue(),
        }
        for f in folders
    }
    kept.write_text(json.dumps(written, indent=1))
    return tuple(folders)


def refuse_other_inputs(
    sources: Sequence[Input], known: Mapping[str, Mapping[str, Any]], checkpoint: Path
) -> None:
    """Other inputs than those of the first start: Spark would take their files for new ones, and
    go on in the middle of events that have nothing to do with them."""
    before = {name: one.get("path") for name, one in known.items()}
    now = {source.name or "": _whole_path(source.path) for source in sources}
    for name in before.keys() | now.keys():
        # Before version 0.2, paths weren't kept.
        was, is_ = before.get(name, "no folder"), now.get(name, "no folder")
        if was is not None and was != is_:
            stream = f" for `{name}`" if name else ""
            raise OptionError(
                f"the checkpoint {checkpoint} was written with events from {was}{stream}, and now "
                f"they come from {is_}: name the same --input, or start with another checkpoint "
                "and another output"
            )


def _whole_path(path: str) -> str:
    return str(Path(path).resolve()) if is_local(path) else path


def _parsed(spark: SparkSession, text: str) -> t.StructType:
    try:
        return spark.createDataFrame([], text).schema
    except PySparkException as error:
        reason = str(error).strip().splitlines()[0]
        raise OptionError(
            f"--schema '{text}' isn't like 'ts timestamp, user long': {reason}"
        ) from None


def _columns(spark: SparkSession, source: Input) -> t.StructType:
    reader = spark.read.option("ignoreCorruptFiles", "true")
    try:
        match source.format:
            case Format.PARQUET:
                return reader.parquet(source.path).schema
            case Format.CSV | Format.TSV:
                sep = source.format.delimiter
                found = reader.csv(source.path, sep=sep, header=True, inferSchema=True).schema
            case Format.JSON:
                found = reader.option("inferTimestamp", "true").json(source.path).schema
            case _:
                assert_never(source.format)
    except PySparkException as error:
        if error.getCondition() == "UNABLE_TO_INFER_SCHEMA":
            raise _no_files(source) from None
        raise
    columns = [field for field in found.fields if field.name != "_corrupt_record"]
    if not columns:
        raise _no_files(source)
    return t.StructType(columns)


def _no_files(source: Input) -> DataError:
    return DataError(
        f"{source.path}: there is no {source.format.value} file yet to read the columns from; "
        "declare them: --schema 'ts timestamp, user long, amount double'"
    )


def read_folder(
    spark: SparkSession, folder: Folder, time: str, watermark: str | None, max_files: int | None
) -> DataFrame:
    """The events as a streaming DataFrame. Those that must be rejected have no time."""
    rows = _rows(spark, folder, time, max_files)
    events = rows.select(*(quoted(f.name) for f in folder.schema.fields))
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
    spark: SparkSession, folders: Sequence[Folder], time: str, max_files: int | None
) -> DataFrame:
    """What is rejected as a streaming DataFrame: each line as it is in its file (rows of Parquet as
    JSON), the file, and the stream if there are several."""
    streams = []
    for folder in folders:
        rows = _rows(spark, folder, time, max_files).filter(quoted(time).isNull())
        name = F.lit(folder.name or None).cast("string")
        line, file = quoted(_LINE).alias("line"), quoted(_FILE).alias("file")
        streams.append(rows.select(name.alias("stream"), file, line))
    return reduce(lambda one, other: one.union(other), streams)


def read_error(spark: SparkSession, folder: Folder, file: str) -> str | None:
    """Why Spark can't read a file of the folder to its end, if it can't."""
    reader = spark.read.option("ignoreCorruptFiles", "false").option("ignoreMissingFiles", "false")
    try:
        _opened(reader, folder, file).write.format("noop").mode("overwrite").save()
    except Exception as error:  # what Spark raises has no base of its own
        return spark_sentence(str(error))
    return None


def _opened(reader: DataStreamReader | DataFrameReader, folder: Folder, path: str) -> DataFrame:
    """Files as Spark reads them."""
    match folder.format:
        case Format.PARQUET:
            return reader.schema(folder.schema).parquet(path)
        case Format.CSV | Format.TSV:
            # With multiLine a file is read in one piece: only its beginning has the header, which
            # must be that of the columns.
            return reader.schema(_noted(folder)).csv(
                path, sep=folder.format.delimiter, header=True, enforceSchema=False, multiLine=True,
                columnNameOfCorruptRecord=_MALFORMED,
            )  # fmt: skip
        case Format.JSON:
            # As text, since whether a line is malformed must not depend on the columns that are
            # read, and what is rejected should be seen as it came.
            return reader.text(path)
        case _:
            assert_never(folder.format)


def _noted(folder: Folder) -> t.StructType:
    """The columns, and one for what is malformed."""
    return t.StructType([*folder.schema.fields, t.StructField(_MALFORMED, t.StringType())])


def _rows(spark: SparkSession, folder: Folder, time: str, max_files: int | None) -> DataFrame:
    """The rows with their columns, their lines and their files. Where a line is malformed, there is
    no time."""
    reader = spark.readStream
    if max_files is not None:
        reader = reader.option("maxFilesPerTrigger", max_files)
    # What can't be read is left out here, and found afterwards (`unreadable`), which looks into
    # local folders only.
    for option in ("ignoreCorruptFiles", "ignoreMissingFiles"):
        reader = reader.option(option, folder.is_local)
    read = _opened(reader, folder, folder.path)
    columns = [quoted(f.name) for f in folder.schema.fields]
    source = F.col("_metadata.file_path").alias(_FILE)
    match folder.format:
        case Format.PARQUET:
            line = F.to_json(F.struct(*columns))
            rows = read.select(*columns, source, line.alias(_LINE), F.lit(None).alias(_MALFORMED))
        case Format.CSV | Format.TSV:
            separated = F.to_csv(F.struct(*columns), {"sep": folder.format.delimiter or ","})
            line = F.coalesce(quoted(_MALFORMED), separated)
            rows = read.select(*columns, source, line.alias(_LINE), _MALFORMED)
        case Format.JSON:
            lines = read.select(F.col("value").alias(_LINE), source)
            options = {"columnNameOfCorruptRecord": _MALFORMED}
            value = F.from_json(quoted(_LINE), _noted(folder), options)
            lines = lines.filter(F.trim(quoted(_LINE)) != "").withColumn(_PARSED, value)
            rows = lines.select(f"{_PARSED}.*", _FILE, _LINE)
        case _:
            assert_never(folder.format)
    if time not in folder.schema.names:
        return rows
    moment = quoted(time)
    if isinstance(folder.schema[time].dataType, t.StringType):
        moment = moment.try_cast("timestamp")
    return rows.withColumn(time, F.when(quoted(_MALFORMED).isNull(), moment))
