"""MEASURES: what is returned of matches, for all of them at once.

The rows of all matches stand one after the other, as they were taken. A leaf that reads a row
becomes the number of a row for each row of the output; an aggregate is one over a range of the rows
that have its labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.aggregates import AGGREGATES, AggregateFunction, FoldResult, FoldStep
from cepheid.algebra.expressions import Attribute, Constant, Expr
from cepheid.algebra.types import Type
from cepheid.engine.arrays.integers import may_overflow
from cepheid.engine.arrays.reduction import reduced
from cepheid.engine.arrays.vector import evaluate
from cepheid.engine.match_schema import computed_type
from cepheid.engine.match_values import typed
from cepheid.row_patterns.arrangement import ArrangedRows, ordered_integers
from cepheid.row_patterns.leaves import (
    CLASSIFIER,
    Labels,
    Leaf,
    MatchNumber,
    Navigation,
    RowAggregate,
    RowExpression,
    leaf_number,
    reads_classifier,
)

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class MatchTable:
    """Matches and their rows. `offsets` bound each match's rows among those of all; `rows` are
    their numbers in the partition's order, `labels` the numbers of their labels."""

    arranged: ArrangedRows
    names: tuple[str, ...]
    starts: Numbers
    numbers: Numbers
    offsets: Numbers
    rows: Numbers
    labels: NDArray[np.int8]


@dataclass(frozen=True)
class OutputRows:
    """For every row of the output: its match, and up to which row of it (among all rows of matches,
    exclusive) it looks back."""

    match: Numbers
    until: Numbers


def measured(
    value: RowExpression, matches: MatchTable, output: OutputRows, time: pa.DataType
) -> pa.Array:
    """One value per row of the output."""
    reader = _LeafReader(matches, output)
    expression = value.expression
    if isinstance(expression, Attribute):
        leaf = value.leaves[leaf_number(expression)]
        array = reader.read(leaf)
        if _keeps(leaf):
            return array
        if pa.types.is_list(array.type):
            assert isinstance(leaf, RowAggregate) and leaf.argument is not None
            elements = typed(array.values, computed_type(leaf.argument.type, time))
            return pa.ListArray.from_arrays(array.offsets, elements)
        return typed(array, _result_type(leaf, array, time))
    if isinstance(expression, Constant) and expression.type is Type.NULL:
        return pa.nulls(len(output.match))
    read = [reader.read(leaf) for leaf in value.leaves]
    result = evaluate(expression, lambda a: read[leaf_number(a)], len(output.match))
    return typed(result, computed_type(expression.type, time))


def _keeps(leaf: Leaf) -> bool:
    """Whether it returns values of a column as they are."""
    match leaf:
        case Navigation(argument):
            return isinstance(argument, Attribute)
        case RowAggregate(function, argument):
            chosen = AGGREGATES[function].chooses or AGGREGATES[function].lists
            return chosen and isinstance(argument, Attribute)
        case MatchNumber():
            return False


def _result_type(leaf: Leaf, array: pa.Array, time: pa.DataType) -> pa.DataType:
    if leaf.type is Type.OTHER:
        return array.type
    return computed_type(leaf.type, time)


@dataclass(frozen=True)
class _Selected:
    """The rows of matches that have some labels: `places` among all rows, and `before`, how many
    there are before each."""

    places: Numbers
    before: Numbers


class _LeafReader:
    """Reads leaves for the rows of one output."""

    def __init__(self, matches: MatchTable, output: OutputRows) -> None:
        self.matches = matches
        self.output = output
        self._selected: dict[Labels, _Selected] = {}

    def read(self, leaf: Leaf) -> pa.Array:
        match leaf:
            case MatchNumber():
                return pa.array(self.matches.numbers[self.output.match])
            case Navigation():
                return self._navigated(leaf)
            case RowAggregate():
                return self._aggregated(leaf)

    def selected(self, labels: Labels) -> _Selected:
        if labels not in self._selected:
            rows = self.matches.labels
            if labels is None:
                every = np.arange(len(rows) + 1)
                self._selected[labels] = _Selected(every[:-1], every)
            else:
                member = np.array([name in labels for name in self.matches.names])
                chosen = member[rows]
                before = np.zeros(len(rows) + 1, np.int64)
                np.cumsum(chosen, out=before[1:])
                self._selected[labels] = _Selected(np.flatnonzero(chosen), before)
        return self._selected[labels]

    def _range(self, leaf: Navigation | RowAggregate) -> tuple[Numbers, Numbers]:
        """For each row of the output, the range of selected rows that the leaf is over."""
        matches, output = self.matches, self.output
        before = self.selected(leaf.labels).before
        until = matches.offsets[output.match + 1] if leaf.final else output.until
        return before[matches.offsets[output.match]], before[until]

    # ── one row ──

    def _navigated(self, leaf: Navigation) -> pa.Array:
        matches, output = self.matches, self.output
        begin, end = self._range(leaf)
        ordinal = end - 1 - leaf.offset if leaf.last else begin + leaf.offset
        known = (ordinal >= begin) & (ordinal < end)
        places = self.selected(leaf.labels).places
        place = places[np.where(known, ordinal, 0)] if len(places) else np.zeros_like(ordinal)
        if reads_classifier(leaf.argument):
            place = place + leaf.shift
            first, last = matches.offsets[output.match], matches.offsets[output.match + 1]
            known &= (place >= first) & (place < last)
            return _taken(self._of_matched(leaf.argument), place, known)
        rows = matches.rows[place] if len(matches.rows) else place
        rows = rows + leaf.shift
        begins = matches.arranged.begins
        partition = np.searchsorted(begins, matches.starts[output.match], side="right") - 1
        known &= (rows >= begins[partition]) & (rows < begins[partition + 1])
        return _taken(matches.arranged.values(leaf.argument), rows, known)

    def _of_matched(self, argument: Expr) -> pa.Array:
        """An expression with CLASSIFIER(), of every row of every match."""
        names = pa.array(self.matches.names, pa.string())

        def read(attribute: Attribute) -> pa.Array:
            if attribute == CLASSIFIER:
                return names.take(pa.array(self.matches.labels))
            return self.matches.arranged.column(attribute.name).take(pa.array(self.matches.rows))

        return evaluate(argument, read, len(self.matches.rows))

    # ── many rows ──

    def _aggregated(self, leaf: RowAggregate) -> pa.Array:
        begin, end = self._range(leaf)
        if leaf.argument is None:
            return pa.array(end - begin)
        places = self.selected(leaf.labels).places
        if reads_classifier(leaf.argument):
            values = self._of_matched(leaf.argument).take(pa.array(places))
        else:
            rows = self.matches.rows[places]
            values = self.matches.arranged.values(leaf.argument).take(pa.array(rows))
        function = AGGREGATES[leaf.function]
        if leaf.distinct or not function.folds or _is_partitioned(begin, end, len(values)):
            return _over_ranges(function, begin, end, values, leaf.distinct)
        if function.step is FoldStep.ADD and may_overflow(values):
            return _over_ranges(function, begin, end, values, distinct=False)
        first = self.selected(leaf.labels).before[self.matches.offsets]
        return _running(function, first, begin, end, values)


def _taken(values: pa.Array, places: Numbers, known: NDArray[np.bool_]) -> pa.Array:
    if len(values) == 0:
        return pa.nulls(len(places), values.type)
    return values.take(pa.array(np.where(known, places, 0), mask=~known))


def _is_partitioned(begin: Numbers, end: Numbers, count: int) -> bool:
    """Whether the ranges stand one after the other, and are all of the values."""
    if not len(begin):
        return True
    touching = bool((begin[1:] == end[:-1]).all())
    return touching and int(begin[0]) == 0 and int(end[-1]) == count


def _over_ranges(
    function: AggregateFunction, begin: Numbers, end: Numbers, values: pa.Array, distinct: bool
) -> pa.Array:
    """The aggregate of each range, whose values are written out."""
    sizes = end - begin
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    places = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - begin, sizes)
    if distinct:
        groups = np.repeat(np.arange(len(sizes)), sizes)
        codes = pc.dictionary_encode(values).indices
        known = pc.fill_null(codes, -1).to_numpy(zero_copy_only=False)[places]
        pairs = groups * (len(values) + 1) + known
        _, first = np.unique(pairs, return_index=True)
        first = np.sort(first[known[first] >= 0])
        places = places[first]
        counts = np.bincount(groups[first], minlength=len(sizes))
        offsets = np.concatenate(([0], np.cumsum(counts)))
    return reduced(function, offsets, values.take(pa.array(places)))


def _running(
    function: AggregateFunction, first: Numbers, begin: Numbers, end: Numbers, values: pa.Array
) -> pa.Array:
    """The aggregate of ranges that begin where a match begins: from running totals. `first` are
    the places where matches begin."""
    known = pc.is_valid(values).to_numpy(zero_copy_only=False)
    counts = np.concatenate(([0], np.cumsum(known)))
    count = counts[end] - counts[begin]
    if function.step is FoldStep.COUNT:
        return pa.array(count)
    none = count == 0
    if function.step is FoldStep.ADD:
        filled = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
        total = _summed(filled, first)[np.maximum(end - 1, 0)] if len(filled) else count
        if function.result is FoldResult.MEAN:
            total = total / np.maximum(count, 1)
        return pa.array(total, mask=none)
    # The place of the best value so far, within each match.
    best = _best_places(values, known, first, least=function.step is FoldStep.LEAST)
    return _taken(values, best[np.maximum(end - 1, 0)] if len(best) else end, ~none)


def _summed(values: NDArray[np.generic], first: Numbers) -> NDArray[np.generic]:
    """Running sums that begin anew at each match, and so never mix the doubles of two."""
    total = values.copy()
    shift, place = 1, _place_in_match(len(values), first)
    while shift <= place.max(initial=0):
        later = place >= shift
        added = np.zeros_like(total)
        added[shift:] = total[:-shift]
        total = np.where(later, total + added, total)
        shift *= 2
    return total


def _place_in_match(length: int, first: Numbers) -> Numbers:
    begins = np.zeros(length, np.int64)
    inside = np.unique(first[first < length])
    begins[inside] = inside
    return np.arange(length) - np.maximum.accumulate(begins) if length else begins


def _best_places(
    values: pa.Array, known: NDArray[np.bool_], first: Numbers, least: bool
) -> Numbers:
    numbers = ordered_integers(values)
    order = numbers if least else ~numbers
    order = np.where(known, order, np.iinfo(np.int64).max)
    best = np.arange(len(order))
    shift, place = 1, _place_in_match(len(order), first)
    while shift <= place.max(initial=0):
        earlier = np.zeros_like(best)
        earlier[shift:] = best[:-shift]
        better = (place >= shift) & (order[earlier] <= order[best])
        best = np.where(better, earlier, best)
        shift *= 2
    return best
