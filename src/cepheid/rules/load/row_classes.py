"""Rows of a table in classes: of two rows in one class, the same is right and wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.values import parse_moment
from cepheid.language import ast
from cepheid.language.traversal import parameters, walk

Classes = npt.NDArray[np.int64]
"""The class of each row, from 0."""

MOST = 256
"""How many classes of rows of one part are told apart, the largest first. Only a condition that
reads many parameters which may be NULL has more."""


@dataclass(frozen=True)
class QueryPart:
    """A condition or another part of a query that is right or wrong by itself."""

    span: ast.Span
    names: tuple[str, ...]

    def has(self, span: ast.Span) -> bool:
        return self.span.start <= span.start and span.end <= self.span.end


def parts(query: ast.Query) -> Iterator[QueryPart]:
    """The parts of a query that have parameters."""
    conditions = [c for clause in (query.where, query.having) for c in _conjuncts(clause)]
    clauses = (query.pattern, query.within, query.after_match, query.limit)
    for part in (*clauses, *conditions, *query.returns):
        names = parameters(part)
        if part is not None and names:
            yield QueryPart(part.span, tuple(names))


def _conjuncts(condition: ast.Expression | None) -> Iterator[ast.Expression]:
    match condition:
        case None:
            return
        case ast.Logical("AND", operands):
            for operand in operands:
                yield from _conjuncts(operand)
        case _:
            yield condition


def amounts(query: ast.Query) -> set[str]:
    """The parameters that say how long or how many."""
    found = set()
    for node in walk(query):
        match node:
            case ast.Duration(amount=ast.Parameter(name=name)):
                found.add(name)
            case ast.EventCount(count=ast.Parameter(name=name)):
                found.add(name)
    return found


def sizes(column: pa.Array) -> Classes:
    """Amounts in classes: each by itself, or if they are many, by their sign, their magnitude, and
    whether they are whole."""
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
