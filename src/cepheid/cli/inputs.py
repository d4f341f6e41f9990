"""The options of a run, and the files of its inputs for the local engine."""

from __future__ import annotations

import warnings
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.schemas import assumed
from cepheid.cli.arguments import InputSource, parse_inputs, parse_parameters
from cepheid.cli.option_groups import AssumedEventOptions, EventOptions, FileOptions, PlanOptions
from cepheid.cli.output.command_words import SPOOLED, STANDARD_INPUT
from cepheid.engine.rows.event_types import types_in
from cepheid.errors import DataError, OptionError
from cepheid.files.declared import parse_columns, quoted
from cepheid.files.events import EventFiles, InputColumns, InputOptions
from cepheid.files.time_format import TimeFormat
from cepheid.inprocess.text_comparisons import as_texts, compared_by_order
from cepheid.language import ast
from cepheid.options import Options
from cepheid.query import Query
from cepheid.statistics import Statistics


def make_options(
    events: EventOptions | AssumedEventOptions, plan: PlanOptions | None = None
) -> Options:
    if events.start is not None and events.tie is not None:
        raise OptionError(
            "--start and --tie exclude each other: a tie is between events of one time"
        )
    plan = plan or PlanOptions()
    return Options(
        time=events.time,
        type=events.type,
        tie=events.tie,
        start=events.start,
        unit=None if events.unit is None else events.unit.value,
        params=parse_parameters(events.param or ()),
        engine=Options.engine if plan.engine is None else plan.engine.value,
        plan=plan.plan,
        negation=Options.negation if plan.negation is None else plan.negation.value,
        propagation=Options.propagation if plan.propagation is None else plan.propagation.value,
        stats=None if plan.stats is None else read_statistics(plan.stats),
    )


def input_sources(
    events: EventOptions | AssumedEventOptions, files: FileOptions
) -> tuple[InputSource, ...]:
    return parse_inputs(
        events.input or (),
        files.input_format,
        files.schema,
        files.time_format,
        files.encoding,
        files.bad_rows,
    )


def read_statistics(path: Path) -> Statistics:
    """The statistics of a file; what is wrong with them names it."""
    try:
        return Statistics.from_json(path.read_text(encoding="utf-8"))
    except DataError as error:
        raise OptionError(f"--stats {path}: {error}") from None


def input_options(source: InputSource, time: str, start: str | None = None) -> InputOptions:
    """What the user says of the files of an input."""
    return InputOptions(
        time,
        pa.schema([]) if source.declared is None else parse_columns(source.declared),
        None if source.time_format is None else TimeFormat.of(source.time_format),
        source.encoding,
        source.bad_rows,
        start,
    )


@dataclass(frozen=True, slots=True)
class ReadInputs:
    """The events by the names of their streams, and the rows that were rejected."""

    tables: Mapping[str, pa.Table]
    rejected: pa.Table

    @property
    def data(self) -> pa.Table | Mapping[str, pa.Table]:
        return self.tables.get("", self.tables)

    @property
    def events(self) -> int:
        """All rows that there are."""
        placed = sum(int(table.num_rows) for table in self.tables.values())
        return placed + int(self.rejected.num_rows)


@dataclass(frozen=True, slots=True)
class LocalInputs:
    """The files of the inputs by the names of their streams, and the columns that they have for
    the queries. An input without a name is the only one."""

    files: Mapping[str, EventFiles]
    schemas: Mapping[str, pa.Schema]

    @property
    def columns(self) -> pa.Schema | Mapping[str, pa.Schema]:
        return self.schemas.get("", self.schemas)

    def read(self, required: Container[str] | None = None) -> ReadInputs:
        """The events with the columns required, or else with all."""
        tables, rejected = {}, []
        for name, file in self.files.items():
            columns = [f for f in self.schemas[name] if required is None or f.name in required]
            rows = file.read(pa.schema(columns))
            tables[name] = rows.table
            lost = rows.rejected
            places = pc.replace_substring_regex(lost["file"], SPOOLED, STANDARD_INPUT)
            lost = lost.set_column(lost.column_names.index("file"), "file", places)
            streams = pa.array([name or None] * lost.num_rows, pa.string())
            rejected.append(lost.add_column(0, "stream", streams))
        return ReadInputs(tables, pa.concat_tables(rejected))


def open_inputs(
    sources: Sequence[InputSource], queries: Iterable[ast.Query], options: Options
) -> LocalInputs:
    """The files, before anything but samples of them is read."""
    files = {
        source.name or "": EventFiles(
            source.path, source.format, input_options(source, options.time, options.start)
        )
        for source in sources
    }
    queries = list(queries)
    warn_of_texts(queries, [file.columns for file in files.values()])
    fitting = fitting_types(queries, options)
    schemas = {name: with_types(file.schema, fitting) for name, file in files.items()}
    return LocalInputs(files, schemas)


def warn_of_texts(queries: Iterable[ast.Query], columns: Iterable[InputColumns]) -> None:
    """Warn of comparisons of columns that are text, but whose cells are numbers."""
    numeric = {name.lower(): name for input_ in columns for name in input_.numeric_texts}
    for query in queries if numeric else ():
        for text, names in compared_by_order(query).items():
            compared = [numeric[name.lower()] for name in sorted(names) if name.lower() in numeric]
            if len(compared) == len(names):
                declared = ", ".join(f"{quoted(name)} double" for name in compared)
                warnings.warn(as_texts(text, f"--schema '{declared}' reads numbers"), stacklevel=2)


def fitting_types(queries: Iterable[ast.Query], options: Options) -> dict[str, pa.DataType]:
    """Types that fit the queries, for columns that have no value."""
    types: dict[str, pa.DataType] = {}
    for query in queries:
        for column in assumed(query, options):
            if pa.types.is_string(column.type) or column.name not in types:
                types[column.name] = column.type
    return types


def with_types(columns: pa.Schema, types: Mapping[str, pa.DataType]) -> pa.Schema:
    """Columns that are all NULL may be of any type: as the queries want them, or else text."""
    return pa.schema(
        [
            f.with_type(types.get(f.name, pa.string())) if pa.types.is_null(f.type) else f
            for f in columns
        ]
    )


def read_events(
    query: Query, sources: Sequence[InputSource], options: Options
) -> pa.Table | Mapping[str, pa.Table]:
    """All events of the files, with the columns that the query reads; streams by their names."""
    inputs = open_inputs(sources, [query.syntax], options)
    bound = query.bind(inputs.columns, options)
    return inputs.read(bound.schema.held(bound.required)).data


def columns_for(
    query: Query, sources: Sequence[InputSource], options: Options
) -> tuple[pa.Schema | Mapping[str, pa.Schema], Options]:
    """The columns of the files named; if there are none, columns that fit the query."""
    if not sources:
        typed = options if options.type else replace(options, type="type")
        return assumed(query.syntax, typed), typed
    return open_inputs(sources, [query.syntax], options).columns, options


def types_for(sources: Sequence[InputSource], options: Options) -> set[str] | None:
    """The types that the events of a file have; None if they have none, or are those of several
    streams."""
    if options.type is None or len(sources) != 1 or sources[0].name is not None:
        return None
    inputs = open_inputs(sources, (), options)
    return types_in(inputs.read({options.time, options.type}).tables[""][options.type])
