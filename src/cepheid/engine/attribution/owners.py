"""Matches of several queries that run as one: which are whose, as each query alone returns them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.attribution.residual import Ints, Residual, found_by
from cepheid.engine.match_schema import MATCH_END, MATCH_START
from cepheid.engine.rows.clock import times


@dataclass(frozen=True)
class Owner:
    """The matches of one query have a value in the column `tag`. `columns` are its own, by the
    names that they have for all; `window` is its own, where that of all is longer."""

    tag: str
    columns: Mapping[str, str]
    window: int | None = None

    def of(self, matches: pa.RecordBatch) -> pa.RecordBatch:
        taken = pc.is_valid(matches.column(self.tag)).to_numpy(zero_copy_only=False)
        if self.window is not None:
            spans = times(matches.column(MATCH_END)) - times(matches.column(MATCH_START))
            taken = taken & (spans < self.window)
        names = {**self.columns, MATCH_START: MATCH_START, MATCH_END: MATCH_END}
        own = matches.select(list(names)).take(pa.array(np.flatnonzero(taken)))
        return pa.RecordBatch.from_arrays(own.columns, names=list(names.values()))


@dataclass(frozen=True)
class Attribution:
    """The rules with these numbers, and what of a match decides whether it is theirs. A query that
    runs by itself has no `owner`: all matches are."""

    numbers: Ints
    residual: Residual | None
    owner: Owner | None = None

    def of(self, kept: Ints) -> Attribution:
        """For the rules with these places."""
        left = None if self.residual is None else self.residual.of(kept)
        return Attribution(self.numbers[kept], left, self.owner)


def found_by_each(
    rules: pa.Table, attributions: Sequence[Attribution], matches: pa.RecordBatch, schema: pa.Schema
) -> pa.RecordBatch:
    """What the rules find, given the matches of the query, or of the queries, that stand for
    them."""
    parts = [matches if one.owner is None else one.owner.of(matches) for one in attributions]
    found = [
        found_by(rules, one.numbers, one.residual, part, schema)
        for one, part in zip(attributions, parts, strict=True)
        if part.num_rows
    ]
    return pa.concat_batches(found) if found else pa.RecordBatch.from_pylist([], schema=schema)
