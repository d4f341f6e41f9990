"""Classes of table rows: checks have the same result for all rows of a class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.values import parse_moment
from cepheid.language import ast
from cepheid.language.traversal import parameters, walk, written_conjuncts

Classes = npt.NDArray[np.int64]
"""The class of each row, from 0."""

MOST = 256
"""The most row classes of one part, the largest first. Only a condition with many nullable
parameters has more."""


@dataclass(frozen=True)
class QueryPart:
    """A condition or other part of a query that can be checked on its own."""

    span: ast.Span
    names: tuple[str, ...]

    def has(self, span: ast.Span) -> bool:
        return self.span.start <= span.start and span.end <= self.span.end


def parts(query: ast.Query) -> Iterator[QueryPart]:
    """The parts of a query that have parameters."""
    conditions = [c for clause in (query.where, query.having) for c in written_conjuncts(clause)]
    clauses = (query.pattern, query.within, query.after_match, query.limit)
    for part in (*clauses, *conditions, *query.returns):
        names = parameters(part)
        if part is not None and names:
            yield QueryPart(part.span, tuple(names))


def amounts(query: ast.Query) -> set[str]:
    """The parameters that are durations or counts."""
    names = set()
    for node in walk(query):
        match node:
            case ast.Duration(amount=ast.Parameter(name=name)):
                names.add(name)
            case ast.EventCount(count=ast.Parameter(name=name)):
                names.add(name)
    return names


def numbers(query: ast.Query) -> set[str]:
    """The parameters that are compared by order, that something is calculated with, or that are
    amounts: where most values of such a column are numbers, all have to be."""
    names = amounts(query)
    for node in walk(query):
        match node:
            case ast.Comparison(operands=sides, operators=operators):
                by_order = any(operator not in ("=", "<>") for operator in operators)
            case ast.InRange(low=low, high=high):
                sides, by_order = (low, high), True
            case ast.Binary(operator=operator, left=left, right=right):
                sides, by_order = (left, right), operator != "||"
            case _:
                sides, by_order = (), False
        if by_order:
            names.update(side.name for side in sides if isinstance(side, ast.Parameter))
    return names


def sizes(column: pa.Array) -> Classes:
    """Classes of amounts: one per value; if there are many values, by sign, magnitude, and whether
    they are whole."""
    numbers = column.cast(pa.int64()) if pa.types.is_duration(column.type) else column
    values = pc.fill_null(numbers.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
    distinct, each = np.unique(values, return_inverse=True)
    if len(distinct) < MOST // 2:  # each of them may stand beside a NULL
        return each.astype(np.int64)
    finite = np.isfinite(values)
    tame = np.where(finite, values, 0.0)
    magnitude = np.frexp(tame)[1].astype(np.int64)
    whole = (tame == np.floor(tame)).astype(np.int64)
    kinds = ((magnitude * 2 + whole) * 3 + np.sign(tame).astype(np.int64)) * 2 + finite
    return np.unique(kinds, return_inverse=True)[1].astype(np.int64)


def moments(column: pa.Array) -> Classes:
    """1 where the text is a date or a timestamp."""
    coded = column.dictionary_encode() if not pa.types.is_dictionary(column.type) else column
    texts = coded.dictionary.to_pylist() or [None]  # all are NULL
    known = np.array([_is_moment(text) for text in texts], np.int64)
    codes = pc.fill_null(coded.indices, 0).to_numpy(zero_copy_only=False)
    return np.asarray(known[codes])


def _is_moment(text: str | None) -> bool:
    try:
        parse_moment(text or "")
    except ValueError:
        return False
    return True
