"""The rows of a template: which values must be equal for rows to be bound together, and which may
vary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.expressions import Varying, VaryingList
from cepheid.algebra.values import constant
from cepheid.engine.attribution.parameters import RuleParameters
from cepheid.language import ast
from cepheid.language.traversal import parameters, walk
from cepheid.rules.template import Template

Ints: TypeAlias = NDArray[np.int64]


def values_of(template: Template, rows: Ints) -> RuleParameters:
    if template.rows is None:
        return RuleParameters(len(rows), {})
    columns = template.rows.select(list(template.parameters)).take(pa.array(rows))
    return RuleParameters(
        len(rows), {name: columns[name].combine_chunks() for name in columns.column_names}
    )


def alike(
    template: Template, rows: Ints, names: list[str]
) -> Iterator[tuple[Ints, Mapping[str, object]]]:
    """Groups of rows with equal values in these columns, and the values."""
    if template.rows is None or not names:
        yield rows, {}
        return
    columns = (
        map(_hashable, template.rows[name].take(pa.array(rows)).to_pylist()) for name in names
    )
    groups: dict[tuple[object, ...], list[int]] = {}
    for row, values in zip(rows.tolist(), zip(*columns, strict=True), strict=True):
        groups.setdefault(values, []).append(row)
    for values, members in groups.items():
        yield np.array(members), dict(zip(names, values, strict=True))


def _hashable(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def shaping(template: Template) -> list[str]:
    """The parameters whose value shapes the query: amounts of time or events, durations, and lists
    (a condition has one part per list value)."""
    if template.rows is None:
        return []
    amounts = (
        part
        for part in walk(template.query.syntax)
        if isinstance(part, ast.Duration | ast.EventCount)
    )
    within = {name for amount in amounts for name in parameters(amount)}
    return [
        name for name in template.parameters if name in within or _shapes(template.rows[name].type)
    ]


def _shapes(type_: pa.DataType) -> bool:
    is_ = pa.types
    return bool(is_.is_duration(type_) or _is_list(type_))


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def lists(template: Template, rows: Ints) -> list[str]:
    """The parameters that are lists, and may vary as such: no list of these rows is NULL, or has a
    NULL, of which IN says nothing."""
    if template.rows is None:
        return []
    columns = {name: template.rows[name] for name in template.parameters}
    return [name for name, column in columns.items() if _may_vary(column.take(pa.array(rows)))]


def patterns(template: Template) -> list[str]:
    """The parameters that are patterns of texts, as in `a.path LIKE :p`."""
    likes = (part for part in walk(template.query.syntax) if isinstance(part, ast.Like))
    return [like.pattern.name for like in likes if isinstance(like.pattern, ast.Parameter)]


def _may_vary(column: pa.ChunkedArray) -> bool:
    if not _is_list(column.type) or not _is_plain(column.type.value_type):
        return False
    values = pc.list_flatten(column)
    return len(values) > 0 and not column.null_count and not values.null_count


def _is_plain(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_int64(type_))


def varying(template: Template, rows: Ints, fixed: Mapping[str, object]) -> dict[str, object]:
    """All other parameters, each with an example value from one of the rules; NULL if no rule has
    one."""
    values_by_name: dict[str, object] = {}
    for name in template.parameters:
        if template.rows is not None and name not in fixed:
            values = template.rows[name].take(pa.array(rows)).drop_null()
            if _is_list(template.rows[name].type):
                first = constant(pc.list_flatten(values)[0].as_py())
                assert first is not None
                values_by_name[name] = VaryingList(first.value, first.type, name)
                continue
            example = constant(values[0].as_py()) if len(values) else None
            if example is None:
                values_by_name[name] = values[0].as_py() if len(values) else None
            else:
                values_by_name[name] = Varying(example.value, example.type, name)
    return values_by_name
