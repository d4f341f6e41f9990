"""Separates the matches of several queries that run as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.attribution.residual import Ints, Residual, alerts_of_query
from cepheid.engine.match_schema import MATCH_END, MATCH_START
from cepheid.engine.rows.clock import times


@dataclass(frozen=True)
class Owner:
    """Selects the matches of one query, which have a value in the column `tag`. `columns` maps
    the joint names to the query's own; `window` is the query's own window, if the joint one is
    longer."""

    tag: str
    columns: Mapping[str, str]
    window: int | None = None

    def of(self, matches: pa.RecordBatch) -> pa.RecordBatch:
        taken = pc.is_valid(matches.column(self.tag)).to_numpy(zero_copy_only=False)
        if self.window is not None:
            spans = times(matches.column(MATCH_END)) - times(matches.column(MATCH_START))
            taken = taken & (spans < self.window)
        names = {**self.columns, MATCH_START: MATCH_START, MATCH_END: MATCH_END}
        owned = matches.select(list(names)).take(pa.array(np.flatnonzero(taken)))
        return pa.RecordBatch.from_arrays(owned.columns, names=list(names.values()))


@dataclass(frozen=True)
class Attribution:
    """The rules with these numbers, and what decides whether a match is theirs. A query that runs
    on its own has no `owner`: all its matches are."""

    numbers: Ints
    residual: Residual | None
    owner: Owner | None = None

    def of(self, kept: Ints) -> Attribution:
        """For the rules with these places."""
        left = None if self.residual is None else self.residual.of(kept)
        return Attribution(self.numbers[kept], left, self.owner)


def gathered(
    attributions: Sequence[Attribution], batches: Iterable[pa.RecordBatch]
) -> Iterable[pa.RecordBatch]:
    """The matches as one batch, if rules choose among theirs."""
    residuals = (attribution.residual for attribution in attributions)
    if all(residual is None or residual.choice is None for residual in residuals):
        return batches
    held = list(batches)
    return [pa.concat_batches(held)] if held else []


def alerts_of_queries(
    rules: pa.Table, attributions: Sequence[Attribution], matches: pa.RecordBatch, schema: pa.Schema
) -> pa.RecordBatch:
    """The alerts of the rules, from the matches of the queries that stand for them."""
    parts = [
        matches if attribution.owner is None else attribution.owner.of(matches)
        for attribution in attributions
    ]
    batches = [
        alerts_of_query(rules, attribution.numbers, attribution.residual, part, schema)
        for attribution, part in zip(attributions, parts, strict=True)
        if part.num_rows
    ]
    return pa.concat_batches(batches) if batches else pa.RecordBatch.from_pylist([], schema=schema)
