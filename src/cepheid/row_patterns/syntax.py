"""MATCH_RECOGNIZE as written: frozen nodes. Expressions are those of `cepheid.language.ast`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import assert_never

from cepheid.language.ast import NOWHERE, Duration, Expression, Span


def _span() -> Span:
    return field(default=NOWHERE, compare=False, repr=False)


# ── patterns ─────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Label:
    """One row that satisfies the condition of this label."""

    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class EmptyPattern:
    """`()`: no row."""


class PartitionEdge(Enum):
    """`^` and `$`: no row, but only at the start or the end of the partition."""

    START = "^"
    END = "$"


@dataclass(frozen=True, slots=True)
class Anchor:
    edge: PartitionEdge


@dataclass(frozen=True, slots=True)
class Concatenation:
    items: tuple[RowPattern, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """`A | B`: the first is preferred."""

    items: tuple[RowPattern, ...]


@dataclass(frozen=True, slots=True)
class Quantified:
    """`A*`, `A{2,5}`, `A+?`: greedy prefers more, reluctant prefers less."""

    item: RowPattern
    low: int
    high: int | None
    greedy: bool = True


@dataclass(frozen=True, slots=True)
class Exclusion:
    """`{- A -}`: its rows are matched, but are not among the rows of ALL ROWS PER MATCH."""

    item: RowPattern


@dataclass(frozen=True, slots=True)
class Permutation:
    """`PERMUTE(A, B)`: all orders, preferred in the order of the list."""

    items: tuple[RowPattern, ...]


RowPattern = (
    Label
    | EmptyPattern
    | Anchor
    | Concatenation
    | Alternation
    | Quantified
    | Exclusion
    | Permutation
)


def labels_of(pattern: RowPattern) -> Iterator[Label]:
    """In the order of the text, each as often as it is written."""
    match pattern:
        case Label():
            yield pattern
        case EmptyPattern() | Anchor():
            return
        case Concatenation() | Alternation() | Permutation():
            for item in pattern.items:
                yield from labels_of(item)
        case Quantified() | Exclusion():
            yield from labels_of(pattern.item)
        case _:
            assert_never(pattern)


def has_exclusion(pattern: RowPattern) -> bool:
    match pattern:
        case Exclusion():
            return True
        case Label() | EmptyPattern() | Anchor():
            return False
        case Concatenation() | Alternation() | Permutation():
            return any(map(has_exclusion, pattern.items))
        case Quantified():
            return has_exclusion(pattern.item)
        case _:
            assert_never(pattern)


# ── the clause ───────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SortKey:
    """A column of ORDER BY. Without NULLS FIRST or LAST, NULL is the least value, as in Spark."""

    column: str
    descending: bool = False
    nulls_first: bool | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Measure:
    expression: Expression
    name: str
    span: Span = _span()


class RowsPerMatch(Enum):
    """What is returned of a match."""

    ONE = "ONE ROW PER MATCH"
    SHOW_EMPTY = "ALL ROWS PER MATCH SHOW EMPTY MATCHES"
    OMIT_EMPTY = "ALL ROWS PER MATCH OMIT EMPTY MATCHES"
    UNMATCHED = "ALL ROWS PER MATCH WITH UNMATCHED ROWS"


class SkipTo(Enum):
    """Where the search continues after a match."""

    PAST_LAST_ROW = "SKIP PAST LAST ROW"
    NEXT_ROW = "SKIP TO NEXT ROW"
    FIRST = "SKIP TO FIRST"
    LAST = "SKIP TO LAST"


@dataclass(frozen=True, slots=True)
class AfterRow:
    """AFTER MATCH; `label` (or a SUBSET) for FIRST and LAST."""

    skip: SkipTo = SkipTo.PAST_LAST_ROW
    label: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Subset:
    """`SUBSET U = (A, B)`: U stands for the rows of both."""

    name: str
    labels: tuple[str, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Definition:
    label: str
    condition: Expression
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Recognition:
    """All of `MATCH_RECOGNIZE ( … )`."""

    pattern: RowPattern
    partition: tuple[tuple[str, Span], ...] = ()
    order: tuple[SortKey, ...] = ()
    measures: tuple[Measure, ...] = ()
    rows: RowsPerMatch = RowsPerMatch.ONE
    after: AfterRow = AfterRow()
    within: Duration | None = None
    subsets: tuple[Subset, ...] = ()
    definitions: tuple[Definition, ...] = ()
    span: Span = _span()
    pattern_span: Span = _span()
