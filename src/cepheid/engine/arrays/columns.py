"""Columns of the event store as kernels see them: numbers, and codes for strings.

A column is an attribute, or an expression over one event that kernels can't compute themselves
(`upper(a.name)`, `a.url LIKE '%x%'`); the latter is computed once per event with pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.expressions import (
    Attribute,
    Call,
    Constant,
    Expr,
    transform,
    variables,
    walk,
)
from cepheid.algebra.kinds import attribute_type
from cepheid.algebra.nested_columns import is_array
from cepheid.algebra.types import Type
from cepheid.engine.arrays.interner import Interner, validity
from cepheid.errors import DataError

NATIVE = frozenset(
    {"and", "or", "not", "=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "neg"}
    | {"is_null", "case", "coalesce", "in", "greatest", "least", "to_float", "to_timestamp"}
    | {"abs", "sign", "sqrt", "exp", "ln", "log10", "ceil", "floor"}
)
"""Operators that kernels compute; of strings only `=` and `<>`."""


@dataclass(frozen=True, slots=True)
class Column:
    """An expression over one event, whose variable is left blank."""

    expression: Expr

    @property
    def type(self) -> Type:
        return self.expression.type


@dataclass(frozen=True, slots=True)
class Hash:
    """One hash per event over several columns, for hash chains."""

    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """A column as it is in the store, of a type of fixed width and without NULLs: what kernels
    return."""

    name: str


@dataclass(frozen=True, slots=True)
class TextPlaces:
    """Where the bytes of a column's texts are: what kernels need to compare their order."""

    column: Column


@dataclass(frozen=True, slots=True)
class TextConstant:
    """The place of one constant text, as an array of one element."""

    value: str | bytes


@dataclass(frozen=True, slots=True)
class TextBytes:
    """The bytes themselves."""


KernelColumn: TypeAlias = Column | Hash | Stored | TextPlaces | TextConstant | TextBytes

TIME = Column(Attribute("", "", Type.INTEGER))
START = Column(Attribute("", "…start", Type.INTEGER))
"""The event's time, whatever the time column is called."""


def as_column(expr: Expr) -> Column | None:
    """The expression as a derived column, if it reads one event and kernels can't compute it."""
    match expr:
        case Attribute():
            return Column(replace(expr, variable=""))
        case Call():
            if len(variables(expr)) != 1 or not _of_one_event(expr) or _native(expr):
                return None
            return Column(transform(expr, _blank))
        case _:
            return None


def _of_one_event(expr: Expr) -> bool:
    """Whether it reads one event alone, not also earlier elements or the group (`b.name >
    PREV(b.name)`)."""
    return all(isinstance(part, Attribute | Constant | Call) for part in walk(expr))


def _blank(expr: Expr) -> Expr | None:
    return replace(expr, variable="") if isinstance(expr, Attribute) else None


def _native(call: Call) -> bool:
    if call.operator not in NATIVE:
        return False
    if any(a.type in (Type.STRING, Type.BINARY) for a in call.arguments):
        return call.operator in ("=", "<>", "is_null", "case", "coalesce", "in")
    return True


def decoded(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The values of a dictionary array, one by one; others as they are."""
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def in_one(column: pa.ChunkedArray) -> pa.Array:
    """All chunks as one array. (pyarrow would copy a single one, too.)"""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def with_clean_dictionaries(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A dictionary may hold NULL as one of its values, or a value twice; then the array is encoded
    anew, so that NULL looks the same everywhere, and equal values do."""
    for i, column in enumerate(batch.columns):
        if pa.types.is_dictionary(column.type) and not _is_clean(column.dictionary):
            anew = column.cast(column.type.value_type).cast(column.type)
            batch = batch.set_column(i, batch.schema.field(i), anew)
    return batch


def _is_clean(dictionary: pa.Array) -> bool:
    return not dictionary.null_count and pc.count_distinct(dictionary).as_py() == len(dictionary)


def kernel_values(
    array: pa.Array, type_: Type, interner: Interner
) -> tuple[NDArray[np.generic], NDArray[np.bool_] | None]:
    """Values as kernels see them, and which are not NULL (None: all)."""
    match type_:
        case Type.STRING | Type.BINARY:
            return interner.encode(array)
        case Type.OTHER if is_array(array.type):
            return _array_codes(array, interner)
        case Type.OTHER:  # all that can be checked is whether it is NULL
            return np.zeros(len(array), np.int64), validity(array)
        case Type.FLOAT | Type.DECIMAL:
            values, zero = _cast(array, pa.float64()), 0.0
        case Type.BOOLEAN:
            values, zero = array, False
        case Type.TIMESTAMP:
            values, zero = microseconds(array), 0
        case Type.DATE:
            values, zero = days(array), 0
        case Type.DURATION:
            values, zero = ticks(array), 0
        case _:
            values, zero = _cast(array, pa.int64()), 0
    valid = validity(values)
    if valid is not None:
        values = pc.fill_null(values, zero)
    return values.to_numpy(zero_copy_only=False), valid


def _cast(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """A cast to the same type costs as much as any."""
    return array if array.type == type_ else array.cast(type_)


def _array_codes(
    array: pa.Array, interner: Interner
) -> tuple[NDArray[np.generic], NDArray[np.bool_] | None]:
    """Arrays as codes of tuples."""
    kind = attribute_type(array.type.value_type)
    flat = pc.list_flatten(array)
    if kind in (Type.STRING, Type.BINARY, Type.OTHER):
        elements = flat.to_pylist() if kind is not Type.OTHER else [None] * len(flat)
    else:
        values, known = kernel_values(flat, kind, interner)
        elements = values.tolist()
        if known is not None:
            elements = [e if k else None for e, k in zip(elements, known.tolist(), strict=True)]
    sizes = pc.fill_null(pc.list_value_length(array), 0).to_pylist()
    ends = np.cumsum([0, *sizes]).tolist()
    codes = [interner.code(tuple(elements[b:e])) for b, e in pairwise(ends)]
    return np.array(codes, np.int64), validity(array)


def beyond(name: str, error: Exception) -> DataError:
    """The error for a column whose values don't fit into 64 bits."""
    return DataError(
        f"column `{name}` has values that don't fit into 64 bits, so it can't be compared: cast it "
        f"to a decimal or a string ({str(error).splitlines()[0]})"
    )


def microseconds(array: pa.Array) -> pa.Array:
    """A timestamp (or date) array as microseconds since the epoch; integers are that already."""
    if pa.types.is_integer(array.type):
        return array.cast(pa.int64())
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        return pc.divide(array.cast(pa.int64()), 1000)
    if pa.types.is_date(array.type):
        return array.cast(pa.timestamp("us")).cast(pa.int64())
    return _cast(array, pa.timestamp("us", array.type.tz)).cast(pa.int64())


def days(array: pa.Array) -> pa.Array:
    """A date array as days since the epoch."""
    if pa.types.is_integer(array.type):
        return array.cast(pa.int64())
    return array.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())


def ticks(array: pa.Array) -> pa.Array:
    """A duration array as microseconds; of a time of day, those since midnight."""
    if pa.types.is_integer(array.type):
        return array.cast(pa.int64())
    if pa.types.is_time(array.type):
        return array.cast(pa.time64("us"), safe=False).cast(pa.int64())
    if array.type.unit == "ns":
        return pc.divide(array.cast(pa.int64()), 1000)
    return array.cast(pa.duration("us")).cast(pa.int64())


def as_integers(values: NDArray[np.generic]) -> NDArray[np.int64]:
    """Integers that are equal exactly where the values are: -0.0 equals 0.0, and every NaN is one
    value."""
    if values.dtype == np.float64:
        floats = values.astype(np.float64)
        return np.where(np.isnan(floats), np.nan, floats + 0.0).view(np.int64)
    return values.astype(np.int64, copy=False)


def hashes(
    columns: Iterable[tuple[NDArray[np.generic], NDArray[np.bool_] | None]], length: int
) -> NDArray[np.int64]:
    """One non-negative hash per row for the values of several columns; -1 where one is NULL."""
    mixed = np.full(length, 0x9E3779B97F4A7C15, np.uint64)
    null: NDArray[np.bool_] | None = None
    turned = np.empty(length, np.uint64)
    for values, valid in columns:
        mixed ^= as_integers(values).view(np.uint64)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= np.right_shift(mixed, np.uint64(31), out=turned)
        if valid is not None:
            null = ~valid if null is None else null | ~valid
    mixed >>= np.uint64(2)
    result = mixed.view(np.int64)
    if null is not None:
        result[null] = -1
    return result
