"""Which events belong to which class: types and single-class predicates, over whole batches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.expressions import Attribute, Call, Constant, Expr, transform, walk
from cepheid.algebra.kinds import attribute_type
from cepheid.algebra.query import Variable
from cepheid.algebra.types import Type
from cepheid.engine.arrays.vector import evaluate
from cepheid.plan.nodes import LeafNode

CLASS_COLUMN = "__classes"
"""Bit i is set if the row belongs to leaf i: a runtime that has already computed the classes
says so in this column."""

MOST_CLASSES = 62

MANY = 1 << 12
"""Rows of a batch for which it pays to find out what can be left out: conditions that another class
has, columns that nothing reads any more."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Classified:
    """The rows of a batch that belong to a class: their places, themselves, and for each leaf
    which of them its buffer takes. `types` are those of the wanted types that some row has."""

    rows: NDArray[np.int64]
    batch: pa.RecordBatch
    masks: list[Mask]
    types: frozenset[str] = frozenset()

    def only(self, chosen: Mask) -> Classified:
        """Keep the chosen rows."""
        masks = [mask[chosen] for mask in self.masks]
        return Classified(self.rows[chosen], self.batch.filter(pa.array(chosen)), masks, self.types)


def classify(
    batch: pa.RecordBatch,
    leaves: Sequence[LeafNode],
    variables: Mapping[str, Variable],
    type_column: str | None,
    key: Sequence[Mapping[str, str]],
    sought: Collection[str] = (),
    read: Collection[str] | None = None,
) -> Classified:
    """Classify the rows of a batch. In a keyed query a row without a key belongs to no class.
    `sought` are types whose occurrence is reported, `read` the columns that are read afterwards
    (None: all)."""
    rows: NDArray[np.int64] = np.arange(batch.num_rows)
    if CLASS_COLUMN in batch.schema.names:
        bits = batch.column(CLASS_COLUMN).to_numpy(zero_copy_only=False)
        return _kept(rows, batch, [(bits >> n) & 1 != 0 for n in range(len(leaves))])
    types = [variables[leaf.variable].types for leaf in leaves]
    seen: frozenset[str] = frozenset()
    if type_column is None:
        named = [np.ones(batch.num_rows, np.bool_)] * len(leaves)
    else:
        # Most rows of most streams are of no type that the query names: they end here.
        names, codes = _type_codes(batch.column(type_column), types)
        seen = frozenset(name for name in sought if (codes == names.index(name)).any())
        if all(types):
            rows = np.flatnonzero(codes < len(names))
            if len(rows) < batch.num_rows:
                if read is not None:  # the types themselves are mostly not read again
                    batch = batch.select(_names_of(batch, {*read, *_tested(leaves)}))
                batch, codes = batch.take(pa.array(rows)), codes[rows]
        named = [_of_types(names, codes, wanted) for wanted in types]
    masks = class_masks(batch, leaves, key)
    if read is not None:
        batch = batch.select(_names_of(batch, read))
    kept = _kept(rows, batch, [a & b for a, b in zip(named, masks, strict=True)])
    return replace(kept, types=seen) if seen else kept


def _names_of(batch: pa.RecordBatch, read: Collection[str]) -> list[str]:
    return [name for name in batch.schema.names if name in read]


def _tested(leaves: Sequence[LeafNode]) -> Iterator[str]:
    """The columns that the classes' predicates read."""
    for leaf in leaves:
        for condition in leaf.filters:
            yield from (e.name for e in walk(condition) if isinstance(e, Attribute))


def _kept(rows: NDArray[np.int64], batch: pa.RecordBatch, masks: list[Mask]) -> Classified:
    """Drop the rows that no leaf takes."""
    some = masks[0] if len(masks) == 1 else np.logical_or.reduce(masks)
    if some.all():
        return Classified(rows, batch, masks)
    kept = np.flatnonzero(some)
    return Classified(rows[kept], batch.take(pa.array(kept)), [mask[kept] for mask in masks])


def class_masks(
    batch: pa.RecordBatch, leaves: Sequence[LeafNode], key: Sequence[Mapping[str, str]]
) -> list[Mask]:
    """For each leaf, the rows that have a key and satisfy its predicates, whatever their type."""
    masks: list[Mask] = []
    every = np.ones(batch.num_rows, np.bool_)
    tested: dict[str, Mask] = {}
    for leaf in leaves:
        mask = every
        for part in key:
            name = part.get(leaf.variable)  # what looks at the whole stream may have no key
            column = None if name is None else batch.column(name)
            if column is not None and column.null_count:
                mask = mask & pc.is_valid(column).to_numpy(zero_copy_only=False)
        if leaf.filters:
            mask = mask & _satisfied(batch, leaf, tested)
        masks.append(mask)
    return masks


def narrowed(batch: pa.RecordBatch, left: Sequence[tuple[int, LeafNode]]) -> pa.RecordBatch:
    """The batch with classes that also say what the runtime that computed them couldn't: `left` are
    leaves, by bit, with the predicates that are left to test."""
    if not left:
        return batch
    masks = class_masks(batch, [leaf for _, leaf in left], ())
    bits: NDArray[np.int64] = batch.column(CLASS_COLUMN).to_numpy(zero_copy_only=False).copy()
    for (bit, _), mask in zip(left, masks, strict=True):
        bits &= np.where(mask, -1, ~(1 << bit))
    index = batch.schema.get_field_index(CLASS_COLUMN)
    return batch.set_column(index, CLASS_COLUMN, pa.array(bits))


def _satisfied(batch: pa.RecordBatch, leaf: LeafNode, tested: dict[str, Mask]) -> Mask:
    """The mask of the rows for which all predicates of the leaf are true. Those of other leaves
    that were `tested` before aren't tested again."""
    mask: Mask | None = None
    for condition in leaf.filters:
        if batch.num_rows < MANY:
            holds = _holds(batch, condition)
        else:
            text = repr(transform(condition, _of_any))
            if text not in tested:
                tested[text] = _holds_of_many(batch, condition)
            holds = tested[text]
        mask = holds if mask is None else mask & holds
    assert mask is not None
    return mask


def _holds_of_many(batch: pa.RecordBatch, condition: Expr) -> Mask:
    """Many conditions compare a number with a constant: NumPy does that several times as fast as
    Arrow, and makes no bits that have to become bytes."""
    match condition:
        case Call(operator, (Attribute(name=name, type=type_), Constant(value=value))):
            column, compared = batch.column(name), _COMPARED.get(operator)
            kind = _NUMBERS.get(type_)
            is_number = value is not None and value == value
            if kind is not None and kind[0] == column.type and compared is not None and is_number:
                held = np.frombuffer(column.buffers()[1], kind[1], column.offset + len(column))
                mask = compared(held[column.offset :], value)
                if column.null_count:
                    mask &= column.is_valid().to_numpy(zero_copy_only=False)
                return mask
        case _:
            pass
    return _holds(batch, condition)


_NUMBERS = {Type.FLOAT: (pa.float64(), np.float64), Type.INTEGER: (pa.int64(), np.int64)}

_COMPARED: dict[str, Callable[[NDArray[np.generic], Any], Mask]] = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": lambda values, least: ~np.less_equal(values, least),  # NaN is above every number
    ">=": lambda values, least: ~np.less(values, least),
}


def _holds(batch: pa.RecordBatch, condition: Expr) -> Mask:
    result = evaluate(condition, lambda a: batch.column(a.name), batch.num_rows)
    if result.null_count:
        result = pc.fill_null(result, False)
    return np.asarray(result.to_numpy(zero_copy_only=False))


def _of_any(expr: Expr) -> Expr | None:
    return replace(expr, variable="") if isinstance(expr, Attribute) else None


def _of_types(names: Sequence[str], codes: NDArray[np.integer], wanted: tuple[str, ...]) -> Mask:
    if not wanted:
        return np.ones(len(codes), np.bool_)
    if len(wanted) == 1:
        return np.asarray(codes == names.index(wanted[0]))
    table = np.array([name in wanted for name in names] + [False], np.bool_)
    return np.asarray(table[codes])


def _type_codes(
    column: pa.Array, types: Sequence[tuple[str, ...]]
) -> tuple[list[str], NDArray[np.integer]]:
    """Names, and for each row the place of its type among them; one past the end if it has none."""
    names = list(dict.fromkeys(name for wanted in types for name in wanted))
    if not pa.types.is_dictionary(column.type):
        return names, _places(column, names)
    known = np.append(_places(column.dictionary, names), len(names))
    if len(names) < 128:
        known = known.astype(np.int8)  # a gather's time is what it writes
    indices = column.indices
    if indices.null_count:
        indices = pc.fill_null(indices.cast(pa.int64()), len(known) - 1)
    return names, np.take(known, indices.to_numpy())


def _places(values: pa.Array, names: list[str]) -> NDArray[np.integer]:
    if attribute_type(values.type) is Type.BINARY:  # it need not be text
        values, wanted = values.cast(pa.large_binary()), pa.array(names).cast(pa.large_binary())
    else:
        values = values if pa.types.is_string(values.type) else values.cast(pa.string())
        wanted = pa.array(names, pa.string())
    positions = pc.index_in(values, value_set=wanted)
    places: NDArray[np.integer] = pc.fill_null(positions, len(names)).to_numpy(zero_copy_only=False)
    return places
