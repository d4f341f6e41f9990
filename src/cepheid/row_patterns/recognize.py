"""A bound MATCH_RECOGNIZE over the rows of a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.row_patterns.arrangement import ArrangedRows, arrange
from cepheid.row_patterns.bound import BoundRecognition
from cepheid.row_patterns.measures import MatchTable, OutputRows, measured
from cepheid.row_patterns.row_machine import Budget, MatchedRows
from cepheid.row_patterns.row_program import Take
from cepheid.row_patterns.row_search import search
from cepheid.row_patterns.syntax import RowsPerMatch

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class RecognitionProfile:
    """What a run did. A step is an instruction of the program; a backtrack is a step that failed,
    after which the last alternative was tried."""

    rows: int
    partitions: int
    matches: int
    steps: int
    backtracks: int


def recognize(
    bound: BoundRecognition,
    table: pa.Table,
    jit: bool | None = None,
    budget: Budget | None = None,
) -> pa.Table:
    """The rows that MATCH_RECOGNIZE returns. `budget` bounds the steps of a search."""
    return profiled(bound, table, jit, budget)[0]


def profiled(
    bound: BoundRecognition,
    table: pa.Table,
    jit: bool | None = None,
    budget: Budget | None = None,
) -> tuple[pa.Table, RecognitionProfile]:
    """The rows that MATCH_RECOGNIZE returns, and what finding them took."""
    arrangement = arrange(table, bound.partition, bound.order)
    rows = ArrangedRows(arrangement.apply(table), arrangement.begins)
    matched = search(bound, rows, jit, budget)
    profile = RecognitionProfile(
        rows.length, len(rows.begins) - 1, len(matched.starts), matched.steps, matched.backtracks
    )
    return output(bound, rows, matched), profile


def output(bound: BoundRecognition, rows: ArrangedRows, matched: MatchedRows) -> pa.Table:
    """The rows that are returned of these matches."""
    offsets = np.concatenate(([0], np.cumsum(matched.lengths)))
    label_of, shown_of = _tables(bound)
    instructions = matched.instructions
    starts = np.repeat(matched.starts - offsets[:-1], matched.lengths)
    matches = MatchTable(
        arranged=rows,
        names=bound.program.labels,
        starts=matched.starts,
        numbers=matched.numbers,
        offsets=offsets,
        rows=starts + np.arange(len(instructions)),
        labels=label_of[instructions],
    )
    if bound.rows is RowsPerMatch.ONE:
        output = OutputRows(np.arange(len(matched.starts)), offsets[1:])
        return _columns(bound, matches, output, matched.starts)
    output, sources = _all_rows(bound, matched, matches, shown_of[instructions])
    result = _columns(bound, matches, output, sources)
    if bound.rows is RowsPerMatch.UNMATCHED:
        result = _with_unmatched(bound, result, matches, matched, output)
    return result


def _tables(bound: BoundRecognition) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
    """The label of each instruction, and whether its rows are shown."""
    instructions = bound.program.instructions
    labels = [i.label if isinstance(i, Take) else -1 for i in instructions]
    shown = [isinstance(i, Take) and i.shown for i in instructions]
    return np.array(labels, np.int8), np.array(shown, np.bool_)


def _all_rows(
    bound: BoundRecognition, matched: MatchedRows, matches: MatchTable, shown: NDArray[np.bool_]
) -> tuple[OutputRows, Numbers]:
    """A row for every row of a match that is shown, and one for an empty match."""
    lengths = matched.lengths
    of_match = np.repeat(np.arange(len(lengths)), lengths)
    places = np.arange(len(of_match))
    match, until, sources = of_match[shown], places[shown] + 1, matches.rows[shown]
    if bound.rows is not RowsPerMatch.OMIT_EMPTY:
        empty = np.flatnonzero(lengths == 0)
        match = np.concatenate((match, empty))
        until = np.concatenate((until, matches.offsets[empty]))
        sources = np.concatenate((sources, matched.starts[empty]))
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
    matched: MatchedRows,
    output: OutputRows,
) -> pa.Table:
    """Rows that no match has, with NULL for measures, at their places."""
    rows = matches.arranged
    covered = np.zeros(rows.length, np.bool_)
    covered[matches.rows] = True
    covered[matched.starts[matched.lengths == 0]] = True
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
