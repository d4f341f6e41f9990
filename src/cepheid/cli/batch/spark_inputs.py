"""The inputs of a run on Spark: columns are decided, and rows read, by the code of a local run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.cli.arguments import InputSource
from cepheid.cli.inputs import fitting_types, input_options, warn_of_texts, with_types
from cepheid.files.bad_rows import BadRows
from cepheid.files.events import (
    InputColumns,
    InputOptions,
    columns_of,
    file_columns,
    nothing_to_tell,
    row_format,
)
from cepheid.files.file_sample import Sampled, combine, sample_texts
from cepheid.files.formats import Format, existing_files, is_deep, is_local, spark_path
from cepheid.files.inference import InferredColumn
from cepheid.files.parquet_rows import read_as
from cepheid.language import ast
from cepheid.options import Options
from cepheid.spark.columns.schema import arrow_schema
from cepheid.spark.event_files.parquet_files import (
    parquet_rows,
    read_parquet_events,
    read_parquet_rejected,
)
from cepheid.spark.event_files.text_files import lines_of, read_text_events, read_text_rejected

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_HEAD, _SAMPLE, _SHARE = 2000, 5000, 0.01
"""For files that only Spark can read: how many of their first lines are sampled, at most how many
others, and the share of all lines that those are."""


@dataclass(frozen=True)
class SparkInput:
    """The files of an input: their rows as Spark brings them, and their columns for the queries."""

    rows: DataFrame
    format: Format
    given: InputOptions
    columns: InputColumns

    def events(self, wanted: pa.Schema) -> DataFrame:
        """The events. A rejected row is only counted."""
        form = row_format(self.format, self.columns, wanted, self.given)
        if self.format is Format.PARQUET:
            return read_parquet_events(self.rows, form)
        return read_text_events(self.rows, form, self.columns.header)

    def rejected(self, wanted: pa.Schema) -> DataFrame:
        form = row_format(self.format, self.columns, wanted, self.given)
        if self.format is Format.PARQUET:
            return read_parquet_rejected(self.rows, form)
        return read_text_rejected(self.rows, form, self.columns.header)


def open_spark_inputs(
    spark: SparkSession,
    sources: Sequence[InputSource],
    queries: Iterable[ast.Query],
    options: Options,
) -> dict[str, SparkInput]:
    """The inputs by the names of their streams."""
    queries = list(queries)
    fitting = fitting_types(queries, options)
    inputs = {s.name or "": _opened(spark, s, options, fitting) for s in sources}
    warn_of_texts(queries, [input_.columns for input_ in inputs.values()])
    return inputs


def _opened(
    spark: SparkSession, source: InputSource, options: Options, fitting: dict[str, pa.DataType]
) -> SparkInput:
    given, format = input_options(source, options.time, options.start), source.format
    local = is_local(source.path)
    files = existing_files(source.path) if local else []
    if format is Format.PARQUET:
        reader = spark.read.option("recursiveFileLookup", is_deep(source.path))
        rows = parquet_rows(reader, spark_path(source.path))
        read = (InferredColumn(f.name, read_as(f, given.time)) for f in arrow_schema(rows.schema))
        columns = columns_of(source.path, Sampled(tuple(read)), given)
    else:
        # The files one by one, so that they are those of a local run; folders tell no columns.
        paths = [spark_path(str(file)) for file in files] or [source.path]
        rows = lines_of(spark.read.option("recursiveFileLookup", True).text(paths))
        columns = (
            file_columns(source.path, files, format, given)
            if local
            else columns_of(source.path, sampled_lines(rows, source, given), given)
        )
    if not columns.schema:
        raise nothing_to_tell(source.path)
    return SparkInput(rows, format, given, columns.with_schema(with_types(columns.schema, fitting)))


def sampled_lines(lines: DataFrame, source: InputSource, given: InputOptions) -> Sampled:
    """A sample of files that only Spark can read."""
    first = lines.limit(_HEAD).collect()
    others = lines.sample(fraction=_SHARE, seed=1).limit(_SAMPLE).collect()
    texts = [bytes(row["line"]).decode(given.encoding, "replace") for row in first]
    header = texts[0] if texts else ""
    texts += [bytes(row["line"]).decode(given.encoding, "replace") for row in others]
    if source.format.delimiter is not None:
        texts = [header, *(text for text in texts if text != header)]
    sample = sample_texts(["\n".join(texts)], source.format, source.path)
    return combine([sample], given.time, exact=given.bad_rows is BadRows.KEEP)
