"""Which events belong to which class: types and single-class predicates, over whole batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.expressions import Call
from cepheid.algebra.query import Variable
from cepheid.algebra.types import Type
from cepheid.engine.vector import evaluate
from cepheid.plan.nodes import Leaf

CLASS_COLUMN = "__classes"
"""Bit i is set if the row belongs to leaf i: a runtime that has already computed the classes
says so in this column."""

MOST_CLASSES = 62

Mask = NDArray[np.bool_]


def class_masks(
    batch: pa.RecordBatch,
    leaves: Sequence[Leaf],
    variables: Mapping[str, Variable],
    type_column: str | None,
    key: Sequence[Mapping[str, str]],
) -> list[Mask]:
    """For each leaf, the rows that its buffer takes. In a keyed query a row without key takes
    part in nothing."""
    if CLASS_COLUMN in batch.schema.names:
        bits = batch.column(CLASS_COLUMN).to_numpy(zero_copy_only=False)
        return [(bits >> n) & 1 != 0 for n in range(len(leaves))]
    types = _type_masks(batch, [variables[leaf.variable].types for leaf in leaves], type_column)
    masks: list[Mask] = []
    for leaf, mask in zip(leaves, types, strict=True):
        for part in key:
            column = batch.column(part[leaf.variable])
            if column.null_count:
                mask = mask & pc.is_valid(column).to_numpy(zero_copy_only=False)
        if leaf.filters:
            mask = mask & _satisfied(batch, leaf)
        masks.append(mask)
    return masks


def _satisfied(batch: pa.RecordBatch, leaf: Leaf) -> Mask:
    condition = leaf.filters[0]
    for other in leaf.filters[1:]:
        condition = Call("and", (condition, other), Type.BOOLEAN)
    result = evaluate(condition, lambda a: batch.column(a.name), batch.num_rows)
    return np.asarray(pc.fill_null(result, False).to_numpy(zero_copy_only=False))


def _type_masks(
    batch: pa.RecordBatch, types: Sequence[tuple[str, ...]], type_column: str | None
) -> list[Mask]:
    """One look-up of the type per row, not one string comparison per row and class."""
    everything = np.ones(batch.num_rows, np.bool_)
    if type_column is None:
        return [everything] * len(types)
    names, codes = _type_codes(batch.column(type_column), types)
    masks: dict[tuple[str, ...], Mask] = {(): everything}
    for wanted in types:
        if wanted not in masks:
            table = np.array([name in wanted for name in names] + [False], np.bool_)
            masks[wanted] = table[codes]
    return [masks[wanted] for wanted in types]


def _type_codes(
    column: pa.Array, types: Sequence[tuple[str, ...]]
) -> tuple[list[str], NDArray[np.int64]]:
    """Names, and for each row the place of its type among them; one past the end if it has none."""
    if pa.types.is_dictionary(column.type):
        names = [str(name) for name in column.dictionary.to_pylist()]
        places = column.indices
    else:
        names = list(dict.fromkeys(name for wanted in types for name in wanted))
        values = column if pa.types.is_string(column.type) else column.cast(pa.string())
        places = pc.index_in(values, value_set=pa.array(names, pa.string()))
    codes = pc.fill_null(places.cast(pa.int64()), len(names))
    return names, codes.to_numpy(zero_copy_only=False)
