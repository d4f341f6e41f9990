"""Types and values of a query that no event has, with the nearest that occur."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.rows.event_types import no_such_type, types_in
from cepheid.language import ast
from cepheid.language.diagnostics import nearest
from cepheid.language.traversal import walk
from cepheid.reasons.anatomy import Anatomy
from cepheid.reasons.trials import Trials

_VALUES = 10_000
"""Different values of a column that are compared with a misspelled one."""


def misspelled_types(parts: Anatomy, trials: Trials) -> Iterator[str]:
    """Of one stream with a type column; of several, binding knows the names."""
    column = trials.options.type
    if column is None or isinstance(trials.data, Mapping):
        return
    present = types_in(trials.data[column])
    named = dict.fromkeys(t for v in parts.bound.variables.values() for t in v.types)
    for name in named:
        if name not in present:
            yield no_such_type(name, present, column)


def misspelled_values(parts: Anatomy, trials: Trials) -> Iterator[str]:
    """Texts that are compared with a column for equality and don't occur in it."""
    for condition in parts.conditions:
        for column, text in dict.fromkeys(_equalities(condition.node)):
            values = _values(trials, column)
            if values and text not in values:
                close = nearest(text, values)
                hint = f"; did you mean '{close}'?" if close else ""
                yield f"no event has '{text}' in `{column}`{hint}"


def _equalities(node: ast.Expression) -> Iterator[tuple[str, str]]:
    for part in walk(node):
        match part:
            case ast.Comparison((ast.Attribute(_, column), ast.Literal(str(text))), ("=",)):
                yield column, text
            case ast.Comparison((ast.Literal(str(text)), ast.Attribute(_, column)), ("=",)):
                yield column, text
            case ast.InList(ast.Attribute(_, column), options, False):
                for option in options:
                    if isinstance(option, ast.Literal) and isinstance(option.value, str):
                        yield column, option.value
            case ast.KeyTest(column, ast.Literal(str(text))):
                yield column, text
            case _:
                pass


def _values(trials: Trials, column: str) -> set[str]:
    """The different texts in a column, none if there are too many or it has none."""
    texts: set[str] = set()
    tables = trials.data.values() if isinstance(trials.data, Mapping) else (trials.data,)
    for table in tables:
        names = [n for n in table.column_names if n.lower() == column.lower()]
        for name in names:
            distinct = pc.unique(table[name]).drop_null()
            if pa.types.is_dictionary(distinct.type):
                distinct = distinct.cast(distinct.type.value_type)
            if len(distinct) <= _VALUES:
                texts.update(v for v in distinct.to_pylist() if isinstance(v, str))
    return texts
