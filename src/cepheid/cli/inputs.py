"""Files of events for the local engine: their columns, and those of their rows wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.json

from cepheid.cli.arguments import (
    Evaluation,
    Input,
    Negation,
    Propagation,
    TimeUnit,
    parse_parameters,
)
from cepheid.errors import DataError, OptionError
from cepheid.files.formats import Format, existing_files
from cepheid.inprocess.notices import types_in
from cepheid.options import Options
from cepheid.query import Query
from cepheid.schemas import assumed
from cepheid.statistics import Statistics

TIME_TYPE = pa.timestamp("us", "UTC")
"""What text in a time column is read as; without an offset it is taken as UTC."""

_BLOCK = 1 << 25
"""Bytes of a text file from which the types of its columns are inferred."""


def make_options(
    time: str,
    type: str | None,
    tie: str | None,
    unit: TimeUnit | None,
    param: Sequence[str] | None,
    plan: str = Options.plan,
    negation: Negation | None = None,
    propagation: Propagation | None = None,
    stats: Path | None = None,
    evaluation: Evaluation | None = None,
) -> Options:
    return Options(
        time=time,
        type=type,
        tie=tie,
        unit=None if unit is None else unit.value,
        params=parse_parameters(param or ()),
        engine=Options.engine if evaluation is None else evaluation.value,
        plan=plan,
        negation=Options.negation if negation is None else negation.value,
        propagation=Options.propagation if propagation is None else propagation.value,
        stats=None if stats is None else read_statistics(stats),
    )


def read_statistics(path: Path) -> Statistics:
    """The statistics of a file; what is wrong with them names it."""
    try:
        return Statistics.from_json(path.read_text(encoding="utf-8"))
    except DataError as error:
        raise OptionError(f"--stats {path}: {error}") from None


def read_events(
    query: Query, sources: Sequence[Input], options: Options
) -> pa.Table | Mapping[str, pa.Table]:
    """All events of the files, with the columns that the query reads; streams by their names."""
    files = {source.name or "": EventFile(source, options.time) for source in sources}
    schemas = {name: file.schema for name, file in files.items()}
    required = query.bind(schemas.get("", schemas), options).required
    tables = {
        name: file.read([column for column in file.schema.names if column in required])
        for name, file in files.items()
    }
    return tables.get("", tables)


def columns_for(
    query: Query, sources: Sequence[Input], options: Options
) -> tuple[pa.Schema | Mapping[str, pa.Schema], Options]:
    """The columns of the files named; if there are none, columns that fit the query."""
    if not sources:
        typed = options if options.type else replace(options, type="type")
        return assumed(query.syntax, typed), typed
    schemas = {source.name or "": EventFile(source, options.time).schema for source in sources}
    return schemas.get("", schemas), options


def types_for(sources: Sequence[Input], options: Options) -> set[str] | None:
    """The types that the events of a file have; None if they have none, or are those of several
    streams."""
    if options.type is None or len(sources) != 1 or sources[0].name is not None:
        return None
    return types_in(EventFile(sources[0], options.time).read([options.type])[options.type])


class EventFile:
    """The events of an input for the local engine: its columns, and those of its rows wanted."""

    def __init__(self, source: Input, time: str) -> None:
        files = [str(file) for file in existing_files(source.path)]
        self._path, self._format, self._time = source.path, source.format, time
        try:
            self._dataset = pa.dataset.dataset(files, format=_dataset_format(source.format))
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise self._unreadable(error) from None
        self.schema = pa.schema([self._field(f) for f in self._dataset.schema])

    def read(self, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
        try:
            table = self._dataset.to_table(columns=list(columns), filter=where)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise self._unreadable(error) from None
        for position, field in enumerate(table.schema):
            wanted = self.schema.field(field.name)
            if field.type != wanted.type:
                table = table.set_column(position, wanted, self._cast(table[field.name], wanted))
        return table

    def rejected(self) -> pa.Table:
        """The rows whose time is NULL, with all their columns."""
        return self.read(self.schema.names, pc.field(self._time).is_null())

    def _field(self, field: pa.Field) -> pa.Field:
        """Text in the time column is a time; text files give no more than microseconds."""
        if field.name == self._time and (_is_text(field.type) or self._inferred(field.type)):
            return field.with_type(TIME_TYPE)
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            return field.with_type(pa.timestamp("us", field.type.tz))
        return field

    def _inferred(self, type_: pa.DataType) -> bool:
        """A time that was text in the file: of what kind it is depends on how it is written."""
        return self._format is not Format.PARQUET and bool(pa.types.is_timestamp(type_))

    def _cast(self, column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
        if not _is_text(column.type):
            return column.cast(field.type, safe=False)
        try:
            return column.cast(field.type)
        except pa.ArrowInvalid:
            pass
        try:
            return column.cast(pa.timestamp("us")).cast(field.type)
        except pa.ArrowInvalid as error:
            raise DataError(
                f"{self._path}: the time column `{field.name}` must be ISO 8601, such as "
                f"2026-01-31T12:00:00Z: {error}"
            ) from None

    def _unreadable(self, error: Exception) -> DataError:
        return DataError(f"{self._path}: {str(error).splitlines()[0]}")


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _dataset_format(format: Format) -> Any:
    match format:
        case Format.CSV | Format.TSV:
            # An empty field is NULL, as it is to Spark; an empty string is written "".
            return pa.dataset.CsvFileFormat(
                parse_options=pa.csv.ParseOptions(delimiter=format.delimiter),
                read_options=pa.csv.ReadOptions(block_size=_BLOCK),
                convert_options=pa.csv.ConvertOptions(
                    strings_can_be_null=True, quoted_strings_can_be_null=False
                ),
            )
        case Format.JSON:
            return pa.dataset.JsonFileFormat(read_options=pa.json.ReadOptions(block_size=_BLOCK))
        case Format.PARQUET:
            return "parquet"
