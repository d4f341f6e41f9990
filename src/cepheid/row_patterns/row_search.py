"""The search for matches among arranged rows, and the error when it can't continue."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.engine.arrays.columns import microseconds
from cepheid.errors import DataError
from cepheid.row_patterns.arrangement import ArrangedRows
from cepheid.row_patterns.bound import BoundRecognition
from cepheid.row_patterns.definitions import path_checks, row_bits
from cepheid.row_patterns.row_machine import (
    Budget,
    MatchedRows,
    Ongoing,
    RowMachine,
    SearchStatus,
    Stuck,
)

_STUCK = {
    SearchStatus.BUDGET: (
        "the search for a match that begins at {row} takes too many steps, because {reason}"
    ),
    SearchStatus.NO_LABEL: (
        "AFTER MATCH SKIP TO {label}: the match that begins at {row} has no row with this label"
    ),
    SearchStatus.NO_PROGRESS: (
        "AFTER MATCH SKIP TO {label} would go to the first row of the match that begins at {row}, "
        "so the search would never end: skip to a later label, or TO NEXT ROW"
    ),
}


def search(
    bound: BoundRecognition,
    rows: ArrangedRows,
    jit: bool | None = None,
    budget: Budget | None = None,
    ongoing: Ongoing | None = None,
) -> MatchedRows:
    """The matches of all partitions. With `ongoing`, those that later rows can't change."""
    program = bound.program
    checks = path_checks(program.labels, bound.conditions, rows)
    machine = RowMachine(
        program,
        bound.skip,
        frozenset(program.labels.index(name) for name in bound.skip_labels),
        bound.window,
        checks,
        budget or Budget(),
    )
    bits = row_bits(program.labels, bound.conditions, rows)
    times = None if bound.window is None else _times(bound, rows)
    try:
        return machine.run(bits, rows.begins, times, jit, ongoing)
    except Stuck as stuck:
        dependent = tuple(program.labels[number] for number in sorted(checks.labels))
        raise DataError(_explained(bound, rows, stuck, dependent)) from None


def _times(bound: BoundRecognition, rows: ArrangedRows) -> NDArray[np.int64]:
    """What WITHIN measures. Rows without a time are within reach of each other alone."""
    key = bound.order[0]
    nowhere = 1 << 62 if key.nulls_first is False else -(1 << 62)
    known = microseconds(rows.column(key.column)).fill_null(nowhere)
    times: NDArray[np.int64] = known.to_numpy(zero_copy_only=False)
    return times


def _explained(
    bound: BoundRecognition, rows: ArrangedRows, stuck: Stuck, dependent: tuple[str, ...]
) -> str:
    if dependent:
        reason = (
            f"the conditions of {', '.join(dependent)} read rows that were taken before: compare "
            "with PREV, add WITHIN, or make the pattern less ambiguous"
        )
    else:
        reason = "WITHIN allows matches of very many rows: make it shorter"
    return _STUCK[stuck.status].format(
        row=_place(bound, rows, stuck), label="|".join(sorted(bound.skip_labels)), reason=reason
    )


def _place(bound: BoundRecognition, rows: ArrangedRows, stuck: Stuck) -> str:
    """The row, as a user can find it: its number in its partition."""
    first = int(rows.begins[stuck.partition])
    row = f"row {stuck.row + 1}"
    if not bound.partition:
        return row
    values = (f"{name} = {_shown(rows.column(name)[first])}" for name in bound.partition)
    return f"{row} of the partition {', '.join(values)}"


def _shown(value: pa.Scalar) -> str:
    return "NULL" if not value.is_valid else repr(value.as_py())
