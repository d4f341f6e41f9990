"""A window of each rule as a condition, where it is more than a filter on matches.

A negation or a group at an edge of the pattern reaches as far as the window does, so rules that
differ in it share no matches. But such a window says no more than which events are forbidden, or in
the group: those less than it from the match's other end. With the longest window for all, and that
as a condition with a parameter, the rules are those of a template without windows of their own.
Matches are then known only when the longest window is over: that is for data with an end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra.patterns import Closure, Leaf, Negation, Pattern, Sequence
from cepheid.algebra.query import BoundQuery, Clock
from cepheid.algebra.types import Type
from cepheid.language import ast
from cepheid.language.ast import Mode, SequenceOperator
from cepheid.language.render import render
from cepheid.query import Query
from cepheid.rules.template import Template

WINDOW = "__window"
"""The parameter with the window of a rule."""


def with_window_parameter(
    template: Template, windows: list[str], query: BoundQuery, sizes: NDArray[np.int64]
) -> Template | None:
    """The template with its windows as a parameter. `query` has the longest one, `sizes` are those
    of all rows. None if the window decides about more than events at the edges."""
    pairs = _pairs(query)
    schema, rows = query.schema, template.rows
    if pairs is None or rows is None or schema.start is not None or schema.streams is not None:
        return None
    match schema.columns[schema.time]:
        case Type.INTEGER:
            column = pa.array(sizes)
        case Type.TIMESTAMP:
            column = pa.array(sizes).cast(pa.duration("us"))
        case _:
            return None
    longest = int(np.argmax(sizes))
    for name in windows:
        place = rows.schema.get_field_index(name)
        same = pa.repeat(rows[name][longest], rows.num_rows)
        rows = rows.set_column(place, rows.schema.field(place), same)
    syntax = template.query.syntax
    conditions = [*pairs, ast.Call("duration", ())]
    shorter = [ast.Comparison((left, ast.Parameter(WINDOW)), ("<",)) for left in conditions]
    before = () if syntax.where is None else (syntax.where,)
    where = ast.Logical("AND", (*before, *shorter))
    text = render(replace(syntax, where=where))
    own = Query(text, template.query.name)
    return replace(template, query=own, rows=rows.append_column(WINDOW, column), outline=None)


def _pairs(query: BoundQuery) -> list[ast.Expression] | None:
    """How far the events at the edges that reach through the window are from its other end."""
    pattern, window = query.pattern, query.window
    if not isinstance(pattern, Sequence) or window is None or window.clock is not Clock.TIME:
        return None
    if any(operator is not SequenceOperator.ANY for operator in pattern.operators):
        return None
    items = pattern.items
    variables = [_variable(item) for item in items]
    if None in variables:
        return None
    leading, trailing = isinstance(items[0], Negation), isinstance(items[-1], Negation)
    first, last = int(leading), len(items) - 1 - int(trailing)
    grouped = isinstance(items[last], Closure)
    if first > last or not isinstance(items[first], Leaf):
        return None
    if not (isinstance(items[last], Leaf) or (grouped and not leading and not trailing)):
        return None
    return list(_spans(query, [str(v) for v in variables], first, last, grouped))


def _spans(
    query: BoundQuery, variables: list[str], first: int, last: int, grouped: bool
) -> Iterator[ast.Expression]:
    def span(late: int, early: int) -> ast.Expression:
        late_time, early_time = (
            ast.Attribute(variables[n], query.schema.time) for n in (late, early)
        )
        return ast.Binary("-", late_time, early_time)

    if first:
        yield span(last, 0)
    if last + 1 < len(variables):
        yield span(last + 1, first)
    if grouped:
        yield span(last, first)


def _variable(item: Pattern) -> str | None:
    """The variable of an item whose events are looked at one by one."""
    match item:
        case Leaf(variable) | Negation(Leaf(variable)):
            return variable
        case Closure(Leaf(variable), mode=Mode.MAXIMAL, strict=False, until=None):
            return variable
        case _:
            return None
