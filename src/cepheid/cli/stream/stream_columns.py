"""The folders of a stream and their columns, which are decided at the first start and kept.

At the first start the columns are those that most of the files have, of those that are there; bad
files and bad cells are outvoted. They are kept with the checkpoint: files that come later don't
change them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import types as t

from cepheid.algebra.kinds import is_unreadable
from cepheid.cli.arguments import InputSource
from cepheid.cli.batch.spark_inputs import sampled_lines
from cepheid.cli.inputs import fitting_types, input_options, warn_of_texts, with_types
from cepheid.cli.stream.stream_status import many
from cepheid.errors import DataError, OptionError
from cepheid.files.bad_rows import BadRows
from cepheid.files.declared import schema_text, type_name
from cepheid.files.events import InputColumns, InputOptions, columns_of, row_format
from cepheid.files.file_sample import Sampled, sample_files, spread
from cepheid.files.formats import Format, data_files, is_local, is_pattern, spark_path
from cepheid.files.guard import replace_text
from cepheid.files.inference import InferredColumn
from cepheid.files.parquet_rows import StoredColumn, read_as, stored_columns
from cepheid.files.text_rows import RowFormat
from cepheid.options import Options
from cepheid.query import Query
from cepheid.spark.columns.schema import arrow_schema, spark_schema
from cepheid.spark.event_files.text_files import lines_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Folder:
    """A folder whose files are a stream; `name` is empty if there is only this one. `form` says how
    their rows become events, `header` is that of most CSV files, and `stored` are the columns that
    Parquet files have. `named`: the format is the one that the files' names said."""

    name: str
    path: str
    form: RowFormat
    header: tuple[str, ...] = ()
    stored: t.StructType | None = None
    named: bool = False

    @property
    def format(self) -> Format:
        return self.form.format

    @property
    def is_local(self) -> bool:
        return is_local(self.path)


@dataclass(frozen=True)
class Evidence:
    """The columns of a folder, from this many files or from the first start; for Parquet, also how
    they are `stored`. `doubts` lists files that disagree."""

    sampled: Sampled
    stored: t.StructType | None = None
    doubts: Mapping[str, str] = field(default_factory=dict)
    files: int = 0

    @staticmethod
    def kept(known: Mapping[str, Any], format: Format, time: str) -> Evidence:
        """The columns decided at the first start. Before version 0.2, times stayed text."""
        fields = arrow_schema(t.StructType.fromJson(known["schema"]))
        columns = tuple(InferredColumn(f.name, read_as(f, time)) for f in fields)
        header, multiline = tuple(known.get("header", ())), known.get("multiline", False)
        stored = t.StructType.fromJson(known.get("stored", known["schema"]))
        parquet = format is Format.PARQUET
        return Evidence(Sampled(columns, header, multiline), stored if parquet else None)


def open_folders(
    spark: SparkSession,
    sources: Sequence[InputSource],
    queries: Sequence[Query],
    options: Options,
    kept: Path,
) -> tuple[Folder, ...]:
    """The folders with the columns that the only query reads. Else with all of them: one of several
    may return whole events, and rules may come to read any. Columns are those declared, or else
    those of the first start, kept in a file, or else those of the files."""
    known: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    if known:
        refuse_other_inputs(sources, known, kept.parent)
    syntaxes = [query.syntax for query in queries]
    fitting = fitting_types(syntaxes, options)
    inputs: dict[str, tuple[Format, InputColumns, Evidence]] = {}
    for source in sources:
        name = source.name or ""
        before = known.get(name)
        format = source.chosen or (Format(before["format"]) if before else source.format)
        evidence = _evidence(spark, replace(source, chosen=format), options.time, before)
        given = input_options(source, options.time, options.start)
        columns = _columns(source, format, evidence, given)
        columns = columns.with_schema(with_types(columns.schema, fitting))
        inputs[name] = format, columns, evidence
    warn_of_texts(syntaxes, [columns for _, columns, _ in inputs.values()])
    schemas = {name: columns.schema for name, (_, columns, _) in inputs.items()}
    read = _columns_read(queries, schemas, options)
    folders, notes = list[Folder](), dict[str, Any]()
    for source in sources:
        name, given = source.name or "", input_options(source, options.time, options.start)
        format, columns, evidence = inputs[name]
        stored = None if evidence.stored is None else _stored(evidence.stored, given)
        form = row_format(format, columns, _wanted(columns, given, read), given)
        named = source.chosen is None and known.get(name, {"named": True}).get("named", False)
        folder = Folder(name, source.path, form, columns.header, stored, named)
        for line in column_notes(folder, evidence, given):
            print(line, file=sys.stderr, flush=True)
        folders.append(folder)
        notes[name] = _kept(folder, columns)
    kept.parent.mkdir(parents=True, exist_ok=True)
    replace_text(kept, json.dumps(notes, indent=1))
    return tuple(folders)


def refuse_other_inputs(
    sources: Sequence[InputSource], known: Mapping[str, Mapping[str, Any]], checkpoint: Path
) -> None:
    """Refuse inputs other than those of the first start: Spark would take their files for new ones,
    and continue in the middle of unrelated events."""
    before = {name: entry.get("path") for name, entry in known.items()}
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


def column_notes(folder: Folder, evidence: Evidence, given: InputOptions) -> Iterator[str]:
    """Notes for the user on how undeclared columns were decided at the first start."""
    decided = [f for f in folder.form.columns if f.name not in given.declared.names]
    if not evidence.files or not decided:
        return
    named = f"{folder.name}=" if folder.name else ""
    files = evidence.files
    deciding = "its file" if files == 1 else f"most of {many(files, 'file')}"
    yield (
        f"{folder.path}: the columns are those of {deciding}, and are "
        "kept with the checkpoint. To be sure of them, declare them: --schema "
        f"'{named}{schema_text(folder.form.columns)}'"
    )
    for column in decided:
        if doubt := evidence.doubts.get(column.name):
            yield f"`{column.name}` is {type_name(column.type)}, but not in {doubt}"


def _whole_path(path: str) -> str:
    return str(Path(path).resolve()) if is_local(path) else path


def _kept(folder: Folder, columns: InputColumns) -> dict[str, Any]:
    notes: dict[str, Any] = {
        "path": _whole_path(folder.path),
        "format": folder.format.value,
        "named": folder.named,
        "schema": spark_schema(columns.schema).jsonValue(),
    }
    if folder.stored is not None:
        return {**notes, "stored": folder.stored.jsonValue()}
    return {**notes, "header": list(columns.header), "multiline": columns.multiline}


def _columns_read(
    queries: Sequence[Query], schemas: Mapping[str, pa.Schema], options: Options
) -> set[str] | None:
    """The columns that the only query reads; None for those that may read any."""
    if len(queries) != 1:
        return None
    (query,) = queries
    known: Any = schemas.get("", schemas)
    bound = query.bind(known, options)
    return set(bound.schema.held(bound.required))


def _wanted(columns: InputColumns, given: InputOptions, read: set[str] | None) -> pa.Schema:
    """The columns that are read. If the query may read any: those of most CSV files, since rows of
    a file that lacks one of them are rejected."""
    if read is not None:
        return pa.schema([f for f in columns.schema if f.name in read])
    common = {*columns.header, *given.declared.names}
    return pa.schema([f for f in columns.schema if not columns.header or f.name in common])


def _evidence(
    spark: SparkSession, source: InputSource, time: str, before: Mapping[str, Any] | None
) -> Evidence:
    if before is not None:
        return Evidence.kept(before, source.format, time)
    if source.format is Format.PARQUET:
        return _of_parquet(spark, source.path, time)
    return _of_text(spark, source, input_options(source, time))


def _columns(
    source: InputSource, format: Format, evidence: Evidence, given: InputOptions
) -> InputColumns:
    columns = columns_of(source.path, evidence.sampled, given)
    if not columns.schema:
        raise DataError(
            f"{source.path}: there is no {format.value} file yet to read the columns from; "
            "declare them: --schema 'ts timestamp, user long, amount double'"
        )
    return columns


def _stored(stored: t.StructType, given: InputOptions) -> t.StructType:
    """Columns that no file has had yet are stored as they are declared."""
    new = pa.schema([f for f in given.declared if f.name not in stored.names])
    return t.StructType([*stored.fields, *spark_schema(new).fields])


def _of_text(spark: SparkSession, source: InputSource, given: InputOptions) -> Evidence:
    if not is_local(source.path):
        lines = lines_of(spark.read.text(source.path))
        return Evidence(sampled_lines(lines, source, given))
    files, exact = list(data_files(source.path)), given.bad_rows is BadRows.KEEP
    sampled = sample_files(
        files, source.format, given.encoding, given.time, exact=exact, lenient=True
    )
    doubts = {
        c.name: f"{c.misfits:,} of {c.cells:,} cells, such as {c.examples[0]!r}"
        for c in sampled.columns
        if c.misfits and c.examples
    }
    return Evidence(sampled, None, doubts, len(spread(files)))


def _of_parquet(spark: SparkSession, path: str, time: str) -> Evidence:
    """Spark's types of the columns that most of the files have."""
    if is_local(path):
        files = spread(list(data_files(path)))
        columns = stored_columns(files)
        stored = _spark_types(spark, path, columns)
    else:
        files, columns, stored = (), [], _spark_columns(spark, path)
    doubts = {c.name: _listed([file.name for file in c.others]) for c in columns if c.others}
    known = [f for f in arrow_schema(stored) if not is_unreadable(f)]
    read = tuple(InferredColumn(f.name, read_as(f, time)) for f in known)
    return Evidence(Sampled(read), stored, doubts, len(files))


def _spark_types(spark: SparkSession, path: str, columns: Sequence[StoredColumn]) -> t.StructType:
    """Spark's types of the stored columns, also of partition folders such as day=3."""
    example = {column.name: column.example for column in columns}
    reader = spark.read if is_pattern(path) else spark.read.option("basePath", path)
    fields: dict[str, t.StructField] = {}
    for file in dict.fromkeys(example.values()):
        for stored in reader.parquet(spark_path(str(file))).schema.fields:
            if example.get(stored.name, file) == file:
                fields.setdefault(stored.name, stored)
    return t.StructType([fields[name] for name in dict.fromkeys((*example, *fields))])


def _spark_columns(spark: SparkSession, path: str) -> t.StructType:
    try:
        return spark.read.option("ignoreCorruptFiles", "true").parquet(path).schema
    except PySparkException as error:
        if error.getCondition() == "UNABLE_TO_INFER_SCHEMA":
            return t.StructType()
        raise


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names):,} others, such as {names[0]}"
