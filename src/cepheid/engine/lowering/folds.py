"""Aggregates in kernels: totals and counts of values, as source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cepheid.algebra.aggregates import AggregateFunction, FoldResult, FoldStep
from cepheid.algebra.types import Type
from cepheid.engine.lowering.terms import CHECKED, DOUBLES, Term

if TYPE_CHECKING:
    from cepheid.engine.lowering.expressions import KernelLowering

_OVERFLOWN = -(1 << 62)
"""The count of an integer sum that doesn't fit into 64 bits: it has no values, whatever comes."""

_ONE = "1"


@dataclass(frozen=True, slots=True)
class FoldPart:
    """A fold of some of a group's values: the sources of their total and their count; for SPREAD,
    also of the sum of squared distances from the mean."""

    total: str
    count: str = _ONE
    squares: str | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """The values that DISTINCT has seen: see `is_new` of the kernels."""

    table: str
    places: str
    values: str


def accumulate(
    low: KernelLowering, aggregate: AggregateFunction, part: FoldPart, value: Term, type_: Type
) -> None:
    """Write the step that adds a value, unless it is NULL."""
    with low.block(f"if {value.valid or 'True'}:"):
        merge(low, aggregate, part, FoldPart(value.value), type_)


def accumulate_distinct(
    low: KernelLowering,
    aggregate: AggregateFunction,
    part: FoldPart,
    value: Term,
    type_: Type,
    seen: Seen,
    number: str,
) -> None:
    """Write the step that adds a value, unless it is NULL or was seen; it is the `number`-th of the
    group."""
    plain = low.let(value.value)
    # -0.0 is 0.0, and every NaN the same, as in Spark.
    canonical = (
        f"(math.nan if {plain} != {plain} else {plain} + 0.0)" if type_ in DOUBLES else plain
    )
    new = f"is_new({seen.table}, {seen.places}, {seen.values}, {number}, {canonical})"
    low.line(f"{seen.places}[u({number})] = -1")
    with low.block(f"if {value.valid or 'True'} and {new}:"):
        merge(low, aggregate, part, FoldPart(plain), type_)


def merge(
    low: KernelLowering, aggregate: AggregateFunction, part: FoldPart, later: FoldPart, type_: Type
) -> None:
    """Write the step that merges a later, nonempty part into a part."""
    total, count = part.total, part.count
    match aggregate.step:
        case FoldStep.COUNT:
            pass
        case FoldStep.ADD if type_ in DOUBLES:
            low.line(f"{total} = {total} + {later.total}")
        case FoldStep.ADD:
            fits = low.name()
            low.line(f"{total}, {fits} = {CHECKED['+']}({total}, {later.total})")
            held = fits if later.count == _ONE else f"{fits} and {later.count} > 0"
            low.line(f"{count} = {count} + {later.count} if {held} else {_OVERFLOWN}")
            return
        case FoldStep.LEAST | FoldStep.GREATEST:
            operator = "<" if aggregate.step is FoldStep.LEAST else ">"
            better = low.precedes(operator, Term(later.total), Term(total), type_)
            with low.block(f"if {count} == 0 or {better}:"):
                low.line(f"{total} = {later.total}")
        case FoldStep.SPREAD:
            _move_mean(low, part, later)
            return
        case FoldStep.FIRST | FoldStep.LAST | FoldStep.APPEND:
            raise AssertionError(f"`{aggregate.name}` is read from the group, not folded")
    low.line(f"{count} = {count} + {later.count}")


def _move_mean(low: KernelLowering, part: FoldPart, value: FoldPart) -> None:
    """Welford's update, as Spark's, so that all engines round alike."""
    assert part.squares is not None and value.count == _ONE, "means don't merge"
    low.line(f"{part.count} = {part.count} + 1")
    distance = low.let(f"{value.total} - {part.total}")
    step = low.let(f"{distance} / {part.count}")
    low.line(f"{part.total} = {part.total} + {step}")
    low.line(f"{part.squares} = {part.squares} + {distance} * ({distance} - {step})")


def finalized(aggregate: AggregateFunction, part: FoldPart) -> Term:
    """The aggregate's value."""
    total, count = part.total, part.count
    match aggregate.result:
        case FoldResult.COUNT:
            return Term(count)
        case FoldResult.MEAN:
            return Term(f"({total} / {count} if {count} > 0 else 0.0)", f"({count} > 0)")
        case FoldResult.TOTAL:
            return Term(total, f"({count} > 0)")
        case FoldResult.DEVIATION:
            spread = f"math.sqrt({part.squares} / ({count} - 1))"
            return Term(f"({spread} if {count} > 1 else 0.0)", f"({count} > 1)")
