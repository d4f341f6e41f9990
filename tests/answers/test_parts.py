"""Parts of groups can be merged wherever they come from, and a fold goes on where it was saved:
every case of the corpus that returns answers, in process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cepheid.algebra.query import BoundQuery
from cepheid.answers import AnswerFold
from cepheid.engine.match_schema import MATCH_END, MATCH_START
from cepheid.engine.rows.clock import times
from cepheid.options import Options
from cepheid.planner import prepare
from cepheid.streaming.cells import arrow_bytes, table_of
from tests.answers.test_corpus import CASES, same
from tests.corpus.reader import Case, table
from tests.oracle import answers
from tests.oracle.events import Event


def matches_of(query: BoundQuery, events: tuple[Event, ...]) -> pa.Table:
    """The matches of a query, in the order of their ends."""
    prepared = prepare(query, Options(query.schema.time, jit=False))
    data = prepared.in_order(table(query.schema, events)).combine_chunks()
    engine = prepared.engine(data.schema, jit=False)
    found = [m for batch in data.to_batches() for m in engine.push(batch)]
    return pa.Table.from_batches([*found, *engine.finish()], engine.schema).sort_by(MATCH_END)


def rows_of(batches: Iterator[pa.RecordBatch]) -> list[dict[str, Any]]:
    rows = [row for batch in batches for row in batch.to_pylist()]
    for row in rows:
        del row[MATCH_START], row[MATCH_END]
    return rows


@pytest.mark.parametrize("case", CASES, ids=str)
def test_parts_of_three_folds_are_merged(case: Case) -> None:
    found = matches_of(case.bound, case.events)
    shape = case.bound.answers
    assert shape is not None
    merging = AnswerFold(shape, found.schema)
    for n in range(3):
        fold = AnswerFold(replace(shape, most=None), found.schema)
        for match in range(n, found.num_rows, 3):
            for batch in found.slice(match, 1).combine_chunks().to_batches():
                fold.push(batch)
        merging.merge(table_of(arrow_bytes(fold.parts().combine_chunks())))
    assert same(rows_of(merging.finish()), [*(case.rows or ())])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_fold_goes_on_where_it_was_saved(case: Case) -> None:
    found = matches_of(case.bound, case.events)
    shape = case.bound.answers
    assert shape is not None
    fold, rows = AnswerFold(shape, found.schema), []
    for match in range(found.num_rows):
        (batch,) = found.slice(match, 1).combine_chunks().to_batches()
        rows += rows_of(fold.advance(int(times(batch.column(MATCH_END))[0])))
        fold.push(batch)
        parts, progress = fold.save()
        fold = AnswerFold(shape, found.schema)
        fold.resume(parts, progress)
    assert same(rows + rows_of(fold.finish()), [*(case.rows or ())])


def test_sessions_of_several_folds_meet() -> None:
    """A long session of one fold covers several short ones of another."""
    case = next(c for c in CASES if c.bound.answers and "SESSION" in c.bound.answers.text)
    ends = np.array([0, 4, 8, 12, 16, 1, 13, 40])
    events = tuple(
        Event(n, int(t), {**case.events[0].values, case.bound.schema.time: int(t)})
        for n, t in enumerate(ends)
    )
    found = matches_of(case.bound, events)
    shape = case.bound.answers
    assert shape is not None
    merging = AnswerFold(shape, found.schema)
    for rows in ([0, 2, 3, 4, 6], [1, 5, 7]):
        fold = AnswerFold(shape, found.schema)
        for batch in found.take(rows).combine_chunks().to_batches():
            fold.push(batch)
        merging.merge(fold.parts())
    assert same(rows_of(merging.finish()), answers(case.bound, events))
