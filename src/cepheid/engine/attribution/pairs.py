"""Which pairs of a row, a match or an event, and a rule satisfy the rule's conditions.

Conditions are checked on pairs, many at once. If one of them compares a value of the row with a
parameter, the rules in the order of that parameter say which pairs are worth asking: those of a row
are next to each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.expressions import FLIPPED, Attribute, Call, Expr, transform, walk
from cepheid.algebra.types import Type
from cepheid.engine.arrays.ordered_codes import ordered
from cepheid.engine.arrays.vector import Read, evaluate
from cepheid.engine.attribution.parameters import RuleParameters

Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

OF_ROW = "row"
"""The variable of attributes that are columns of the row; parameters have none."""

PAIRS = 1 << 18
"""The most pairs that are checked at once, unless a single row has more."""


def holding(
    conditions: Sequence[Expr], rows: RuleParameters, batch: pa.RecordBatch, at: Ints, rule: Ints
) -> tuple[Ints, Ints]:
    """Those of the pairs that satisfy all conditions."""
    for condition in conditions:
        tested, read = _with_lists(condition, rows, reading(rows, batch, at, rule), rule)
        holds = evaluate(tested, read, len(at))
        kept = np.flatnonzero(pc.fill_null(holds, False).to_numpy(zero_copy_only=False))
        at, rule = at[kept], rule[kept]
    return at, rule


def reading(rows: RuleParameters, batch: pa.RecordBatch, at: Ints, rule: Ints) -> Read:
    """What attributes are for each pair."""
    places, rules = pa.array(at), pa.array(rule)

    def read(attribute: Attribute) -> pa.Array:
        if attribute.variable == OF_ROW:
            return batch.column(attribute.name).take(places)
        return rows.parameters[attribute.name].take(rules)

    return read


def _with_lists(condition: Expr, rows: RuleParameters, read: Read, rule: Ints) -> tuple[Expr, Read]:
    """The condition with a column, for each pair, of whether a list has a value."""
    answers: dict[Expr, Attribute] = {}

    def change(node: Expr) -> Expr | None:
        match node:
            case Call("in_list"):
                return answers.setdefault(node, Attribute(_LISTED, str(len(answers)), Type.BOOLEAN))
            case _:
                return None

    tested = transform(condition, change)
    if not answers:
        return condition, read
    columns: dict[str, pa.Array] = {}
    for node, answer in answers.items():
        assert isinstance(node, Call)
        value, listed = node.arguments
        assert isinstance(listed, Attribute)
        values = evaluate(value, read, len(rule))
        columns[answer.name] = _members(values, rows.parameters[listed.name], rule)
    return tested, lambda a: columns[a.name] if a.variable == _LISTED else read(a)


_LISTED = "listed"
"""The variable of columns that say whether a list has a value."""


def _members(values: pa.Array, lists: pa.Array, rule: Ints) -> pa.Array:
    """Whether the rule's list has the value; NULL for no value."""
    distinct, codes = _list_codes(lists)
    wanted = pc.index_in(values, value_set=distinct)
    known = pc.fill_null(wanted, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    places = rule * (len(distinct) + 1) + known
    listed = np.zeros(len(places), np.bool_)
    if len(codes):
        at = np.minimum(np.searchsorted(codes, places), len(codes) - 1)
        listed = (codes[at] == places) & (known >= 0)
    return pc.if_else(values.is_valid(), pa.array(listed), pa.scalar(None, pa.bool_()))


def _list_codes(lists: pa.Array) -> tuple[pa.Array, Ints]:
    """The different values in the lists, and the sorted pairs of a list and a value, as numbers."""
    flat, parents = lists.flatten(), pc.list_parent_indices(lists)
    distinct = pc.unique(flat)
    value = pc.index_in(flat, value_set=distinct).to_numpy(zero_copy_only=False).astype(np.int64)
    code = parents.to_numpy(zero_copy_only=False).astype(np.int64) * (len(distinct) + 1) + value
    return distinct, np.unique(code)


@dataclass(frozen=True)
class Near:
    """The rules to check on row i: `first[i]` to before `last[i]` in this order."""

    order: Ints
    first: Ints
    last: Ints

    @property
    def pairs(self) -> int:
        return int((self.last - self.first).sum())

    def chunks(self) -> Iterator[tuple[Ints, Ints]]:
        """The rows and the rules of the pairs."""
        counts = self.last - self.first
        ends = np.cumsum(counts)
        begin = 0
        while begin < len(ends):
            before = int(ends[begin] - counts[begin])
            end = max(begin + 1, int(np.searchsorted(ends, before + PAIRS, "right")))
            sizes = counts[begin:end]
            at = np.repeat(np.arange(begin, end), sizes)
            within = np.arange(len(at)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            yield at, self.order[self.first[at] + within]
            begin = end


def nearest(conditions: Sequence[Expr], rows: RuleParameters, batch: pa.RecordBatch) -> Near:
    """The pairs to check by the condition that leaves the fewest."""
    n, rules = batch.num_rows, rows.length
    chosen = Near(np.arange(rules), np.zeros(n, np.int64), np.full(n, rules))
    for condition in conditions:
        near = _near_by(condition, rows, batch)
        if near is not None and near.pairs < chosen.pairs:
            chosen = near
    return chosen


def _near_by(condition: Expr, rows: RuleParameters, batch: pa.RecordBatch) -> Near | None:
    """The pairs by a condition that compares the row with the rule; None if it doesn't."""
    match condition:
        case Call("in_list", (value, Attribute("", name))) if _sides(value) == {OF_ROW}:
            values = evaluate(value, lambda a: batch.column(a.name), batch.num_rows)
            return _in_lists(values, rows.parameters[name])
        case Call(operator, (left, right)) if operator in FLIPPED and operator != "<>":
            if _sides(left) == {""}:
                left, right, operator = right, left, FLIPPED[operator]
        case _:
            return None
    if _sides(left) != {OF_ROW} or _sides(right) != {""}:
        return None
    values = evaluate(left, lambda a: batch.column(a.name), batch.num_rows)
    bounds = rows.evaluate(right)
    if values.type != bounds.type:
        return None
    if not (pa.types.is_int64(values.type) or pa.types.is_float64(values.type)):
        if operator != "=":
            return None
        distinct = pc.unique(bounds.drop_null())
        values, bounds = (pc.index_in(side, value_set=distinct) for side in (values, bounds))
    return compared(*_codes(values), operator, *_codes(bounds))


def _in_lists(values: pa.Array, lists: pa.Array) -> Near:
    """The rules in whose list the value is."""
    distinct, codes = _list_codes(lists)
    rule, value = np.divmod(codes, len(distinct) + 1)
    by_value = np.argsort(value, kind="stable")
    wanted = pc.index_in(values, value_set=distinct)
    known = wanted.is_valid().to_numpy(zero_copy_only=False)
    place = pc.fill_null(wanted, 0).to_numpy(zero_copy_only=False)
    first, last = (np.searchsorted(value[by_value], place, side) for side in ("left", "right"))
    return Near(rule[by_value], np.where(known, first, 0), np.where(known, last, 0))


def _sides(expr: Expr) -> set[str]:
    return {node.variable for node in walk(expr) if isinstance(node, Attribute)}


def _codes(array: pa.Array) -> tuple[Ints, Mask]:
    """The values as integers of the same order, and the mask of those that aren't NULL."""
    known = array.is_valid().to_numpy(zero_copy_only=False)
    return ordered(pc.fill_null(array, 0).to_numpy(zero_copy_only=False)), known


def compared(values: Ints, known: Mask, operator: str, bounds: Ints, live: Mask) -> Near:
    """The rules for whose bound `value operator bound` holds."""
    order = np.flatnonzero(live)
    order = order[np.argsort(bounds[order], kind="stable")]
    below, through = (np.searchsorted(bounds[order], values, side) for side in ("left", "right"))
    none, every = np.zeros_like(below), np.full_like(below, len(order))
    first, last = {
        "=": (below, through),
        ">": (none, below),
        ">=": (none, through),
        "<": (through, every),
        "<=": (below, every),
    }[operator]
    return Near(order, np.where(known, first, 0), np.where(known, last, 0))
