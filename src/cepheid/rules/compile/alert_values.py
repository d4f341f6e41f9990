"""What alerts have beside RETURN's values: the rule's own columns, and the value of the key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import pyarrow as pa

from cepheid.algebra.expressions import Aggregate, Attribute, Call, Expr
from cepheid.algebra.patterns import positive
from cepheid.algebra.query import BoundQuery, KeyPart, Kind, Output
from cepheid.algebra.structure import structure
from cepheid.engine.attribution.json_rows import KEY_PARTS, RULE, TEMPLATE
from cepheid.errors import DataError
from cepheid.rules.template import Template


def rule_columns(templates: Sequence[Template]) -> pa.Table:
    """A row for each rule: its name, its template's, and its carried columns."""
    none = pa.table({RULE: pa.array([], pa.string()), TEMPLATE: pa.array([], pa.string())})
    try:
        return pa.concat_tables(
            [none, *_tables(templates)], promote_options="permissive"
        ).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(
            f"the values of a carried column don't fit into one type: {error}"
        ) from None


def _tables(templates: Sequence[Template]) -> Iterator[pa.Table]:
    """One table for all rules in a row that carry nothing: there may be very many of them."""
    for bare, members in groupby(templates, lambda template: template.rows is None):
        if bare:
            names = pa.array([template.name for template in members], pa.string())
            yield pa.table({RULE: names, TEMPLATE: names})
            continue
        for template in members:
            assert template.rows is not None
            of = pa.repeat(template.name, len(template))
            rows = template.rows.select([RULE, *template.carried])
            yield rows.add_column(1, TEMPLATE, of)


def with_key(query: BoundQuery) -> BoundQuery:
    """The query, which also returns the values of its key. Answers are about matches of many
    keys, and have none."""
    if query.answers is not None or not query.key:
        return query
    parts = (
        Output(f"{KEY_PARTS}{n}", value_of_key(part, query)) for n, part in enumerate(query.key, 1)
    )
    return replace(query, outputs=(*query.outputs, *parts))


def value_of_key(part: KeyPart, query: BoundQuery) -> Expr:
    """The column of the first event that every match has. If there is none, as in `A a | B b` and
    `A+ a`, that of whichever event it has."""
    branches = structure(query.pattern).branches
    names = [name for name in positive(query.pattern) if name in part.columns]
    values = [_of_variable(name, part.columns[name], query) for name in names]
    for name, value in zip(names, values, strict=True):
        if query.variables[name].kind is Kind.SINGLE and not branches.get(name):
            return value
    alike = tuple(value for value in values if value.type is values[0].type)
    return alike[0] if len(alike) == 1 else Call("coalesce", alike, alike[0].type)


def _of_variable(name: str, column: str, query: BoundQuery) -> Expr:
    value = Attribute(name, column, query.schema.columns[column])
    if query.variables[name].kind is Kind.SINGLE:
        return value
    return Aggregate("first", value, name, value.type)
