"""The rows of a template: which values must be equal for rows to be bound together, and which may
vary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra.expressions import Varying
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
    return bool(is_.is_duration(type_) or is_.is_list(type_) or is_.is_large_list(type_))


def varying(template: Template, rows: Ints, fixed: Mapping[str, object]) -> dict[str, object]:
    """All other parameters, each with an example value from one of the rules; NULL if no rule has
    one."""
    values_by_name: dict[str, object] = {}
    for name in template.parameters:
        if template.rows is not None and name not in fixed:
            values = template.rows[name].take(pa.array(rows)).drop_null()
            example = constant(values[0].as_py()) if len(values) else None
            if example is None:
                values_by_name[name] = values[0].as_py() if len(values) else None
            else:
                values_by_name[name] = Varying(example.value, example.type, name)
    return values_by_name
