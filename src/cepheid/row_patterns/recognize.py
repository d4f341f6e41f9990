"""A bound MATCH_RECOGNIZE over the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra.kinds import attribute_type
from cepheid.algebra.types import Type
from cepheid.engine.arrays.columns import microseconds
from cepheid.engine.lowering import NotLowered
from cepheid.errors import DataError, UnsupportedError
from cepheid.row_patterns.arranged import ArrangedRows
from cepheid.row_patterns.arrangement import arrange
from cepheid.row_patterns.bound import BoundRecognition
from cepheid.row_patterns.definitions import path_checks, row_bits
from cepheid.row_patterns.measures import MatchTable, OutputRows, measured
from cepheid.row_patterns.row_machine import BUDGET, MatchedRows, RowMachine, SearchStatus, Stuck
from cepheid.row_patterns.row_program import Take
from cepheid.row_patterns.syntax import RowsPerMatch

Numbers = NDArray[np.int64]

_STUCK = {
    SearchStatus.BUDGET: (
        "the search for a match that begins at row {row} takes too many steps, because conditions "
        "read rows that were taken before: compare with PREV, add WITHIN, or make the pattern less "
        "ambiguous"
    ),
    SearchStatus.NO_LABEL: (
        "AFTER MATCH SKIP TO {label}: the match that begins at row {row} has no row with this label"
    ),
    SearchStatus.NO_PROGRESS: (
        "AFTER MATCH SKIP TO {label} would go to the first row of the match that begins at row "
        "{row}, so the search would never end: skip to a later label, or TO NEXT ROW"
    ),
}


def column_types(schema: pa.Schema) -> Mapping[str, Type]:
    return {field.name: attribute_type(field.type) for field in schema}


def recognize(
    bound: BoundRecognition, table: pa.Table, jit: bool | None = None, budget: int = BUDGET
) -> pa.Table:
    """The rows that MATCH_RECOGNIZE returns. `budget` bounds the steps of a search."""
    arrangement = arrange(table, bound.partition, bound.order)
    rows = ArrangedRows(arrangement.apply(table), arrangement.begins)
    found = _matched(bound, rows, jit, budget)
    return _output(bound, rows, found)


def _matched(
    bound: BoundRecognition, rows: ArrangedRows, jit: bool | None, budget: int
) -> MatchedRows:
    program = bound.program
    try:
        checks = path_checks(program.labels, bound.conditions, rows)
    except NotLowered as error:
        raise UnsupportedError(
            "a condition of DEFINE combines texts of several rows in a way that can't be checked "
            f"while rows are taken: {error}"
        ) from None
    machine = RowMachine(
        program,
        bound.skip,
        frozenset(program.labels.index(name) for name in bound.skip_labels),
        bound.window,
        checks,
        budget,
    )
    bits = row_bits(program.labels, bound.conditions, rows)
    times = None
    if bound.window is not None:
        column = rows.column(bound.order[0].column)
        times = microseconds(column).fill_null(0).to_numpy(zero_copy_only=False)
    try:
        return machine.run(bits, rows.begins, times, jit)
    except Stuck as stuck:
        label = "|".join(sorted(bound.skip_labels))
        raise DataError(_STUCK[stuck.status].format(row=stuck.row + 1, label=label)) from None


def _output(bound: BoundRecognition, rows: ArrangedRows, found: MatchedRows) -> pa.Table:
    offsets = np.concatenate(([0], np.cumsum(found.lengths)))
    label_of, shown_of = _tables(bound)
    instructions = found.instructions
    starts = np.repeat(found.starts - offsets[:-1], found.lengths)
    matches = MatchTable(
        arranged=rows,
        names=bound.program.labels,
        starts=found.starts,
        numbers=found.numbers,
        offsets=offsets,
        rows=starts + np.arange(len(instructions)),
        labels=label_of[instructions],
    )
    if bound.rows is RowsPerMatch.ONE:
        output = OutputRows(np.arange(len(found.starts)), offsets[1:])
        return _columns(bound, matches, output, found.starts)
    output, sources = _all_rows(bound, found, matches, shown_of[instructions])
    result = _columns(bound, matches, output, sources)
    if bound.rows is RowsPerMatch.UNMATCHED:
        result = _with_unmatched(bound, result, matches, found, output)
    return result


def _tables(bound: BoundRecognition) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
    """The label of each instruction, and whether its rows are shown."""
    instructions = bound.program.instructions
    labels = [i.label if isinstance(i, Take) else -1 for i in instructions]
    shown = [isinstance(i, Take) and i.shown for i in instructions]
    return np.array(labels, np.int8), np.array(shown, np.bool_)


def _all_rows(
    bound: BoundRecognition, found: MatchedRows, matches: MatchTable, shown: NDArray[np.bool_]
) -> tuple[OutputRows, Numbers]:
    """A row for every row of a match that is shown, and one for an empty match."""
    lengths = found.lengths
    of_match = np.repeat(np.arange(len(lengths)), lengths)
    places = np.arange(len(of_match))
    match, until, sources = of_match[shown], places[shown] + 1, matches.rows[shown]
    if bound.rows is not RowsPerMatch.OMIT_EMPTY:
        empty = np.flatnonzero(lengths == 0)
        match = np.concatenate((match, empty))
        until = np.concatenate((until, matches.offsets[empty]))
        sources = np.concatenate((sources, found.starts[empty]))
        order = np.argsort(match, kind="stable")
        match, until, sources = match[order], until[order], sources[order]
    return OutputRows(match, until), sources


def _columns(
    bound: BoundRecognition, matches: MatchTable, output: OutputRows, sources: Numbers
) -> pa.Table:
    """The columns of the input that are returned, and the measures."""
    time = pa.int64()
    if bound.order:
        time = matches.arranged.column(bound.order[0].column).type
    at = pa.array(sources)
    columns = {name: matches.arranged.column(name).take(at) for name in _leading(bound)}
    for measure in bound.measures:
        columns[measure.name] = measured(measure.value, matches, output, time)
    for name in bound.columns:
        if name not in columns:
            columns[name] = matches.arranged.column(name).take(at)
    return pa.table(columns)


def _leading(bound: BoundRecognition) -> tuple[str, ...]:
    """The columns before the measures: of ALL ROWS PER MATCH also those of ORDER BY."""
    order = () if bound.rows is RowsPerMatch.ONE else tuple(key.column for key in bound.order)
    return tuple(dict.fromkeys((*bound.partition, *order)))


def _with_unmatched(
    bound: BoundRecognition,
    result: pa.Table,
    matches: MatchTable,
    found: MatchedRows,
    output: OutputRows,
) -> pa.Table:
    """RowsPerMatch that no match has, with NULL for measures, at their places."""
    rows = matches.arranged
    covered = np.zeros(rows.length, np.bool_)
    covered[matches.rows] = True
    covered[found.starts[found.lengths == 0]] = True
    missing = np.flatnonzero(~covered)
    at = pa.array(missing)
    measures = {measure.name for measure in bound.measures}
    columns = {
        field.name: pa.nulls(len(missing), field.type)
        if field.name in measures
        else rows.column(field.name).take(at)
        for field in result.schema
    }
    both = pa.concat_tables([result, pa.table(columns, schema=result.schema)])
    # A match stands where its first row does.
    places = np.concatenate((matches.starts[output.match], missing))
    order = np.argsort(places, kind="stable")
    return both.take(pa.array(order)).combine_chunks()
