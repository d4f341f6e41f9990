"""What counters give instead of matches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from cepheid.algebra.expressions import Attribute, Expr
from cepheid.answers.aggregate_states import MatchCounts, State
from cepheid.answers.counted.step_rows import StepRows
from cepheid.engine.arrays.vector import Read, evaluate
from cepheid.engine.match_values import typed


@dataclass(frozen=True)
class CountedMatches:
    """Rows that stand for several matches each, as the fold takes them. `states` are those of
    aggregates that are known already, by name."""

    rows: pa.RecordBatch
    counts: MatchCounts
    states: Mapping[str, State] = field(default_factory=dict)


def value_of(expr: Expr, read: Read, rows: int, type_: pa.DataType) -> pa.Array:
    """A column of the rows."""
    if isinstance(expr, Attribute):
        column = read(expr)
        return column if column.type == type_ else column.cast(type_)
    return typed(evaluate(expr, read, rows), type_)


class Counter(Protocol):
    """Says what the matches among events come to. `steps` are the variables whose events it needs,
    and `columns` what it reads of those."""

    steps: tuple[str, ...]
    columns: list[str]

    def matches(self, rows: StepRows) -> Iterator[CountedMatches]: ...
