"""The columns of matches: what RETURN reads, and the types of what it returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import pyarrow as pa

from cepheid.algebra.aggregates import AGGREGATES
from cepheid.algebra.expressions import Aggregate, Attribute, Constant, Expr, Whole, walk
from cepheid.algebra.nested_columns import read_field
from cepheid.algebra.query import Kind, Output, Variable
from cepheid.algebra.types import Schema, Type
from cepheid.engine.arrays.vector import ARROW

MATCH_START, MATCH_END = "match_start", "match_end"


class Returning(Protocol):
    """What is known of the query: a plan has it, and a bound query."""

    @property
    def outputs(self) -> tuple[Output, ...]: ...

    @property
    def variables(self) -> Mapping[str, Variable]: ...

    @property
    def schema(self) -> Schema: ...


def returned_columns(query: Returning) -> tuple[str, ...]:
    """Columns that RETURN reads."""
    return columns_read(output.expression for output in query.outputs)


def columns_read(expressions: Iterable[Expr]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for expression in expressions:
        for node in walk(expression):
            match node:
                case Attribute():
                    names[node.name] = None
                case Whole():
                    names.update(dict.fromkeys(node.columns))
                case _:
                    pass
    return tuple(names)


def output_schema(query: Returning, input_schema: pa.Schema) -> pa.Schema:
    """The schema of the matches, given that of the events."""
    time = value_type(input_schema.field(query.schema.time).type)
    fields = [
        pa.field(o.name, _arrow_type(o.expression, query, input_schema)) for o in query.outputs
    ]
    return pa.schema([*fields, pa.field(MATCH_START, time), pa.field(MATCH_END, time)])


def value_type(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _arrow_type(expr: Expr, query: Returning, schema: pa.Schema) -> pa.DataType:
    match expr:
        case Attribute():
            return value_type(_field(schema, expr.name).type)
        case Whole():
            struct = _struct_type(expr.columns, schema)
            grouped = query.variables[expr.variable].kind is Kind.GROUP
            return pa.list_(struct) if grouped else struct
        case Aggregate() if keeps_values(expr):
            assert expr.argument is not None
            if isinstance(expr.argument, Whole):
                element = _struct_type(expr.argument.columns, schema)
            else:
                element = _arrow_type(expr.argument, query, schema)
            return pa.list_(element) if AGGREGATES[expr.function].lists else element
        case Constant(type=Type.NULL):
            return pa.null()
        case _:
            return computed_type(expr.type, _time_type(expr, query, schema))


def _time_type(expr: Expr, query: Returning, schema: pa.Schema) -> pa.DataType:
    """The type that says in which zone a computed time is: that of the times which it is computed
    from, if they agree; else that of the events' time."""
    read = {_field(schema, node.name).type for node in walk(expr) if isinstance(node, Attribute)}
    times = {type_ for type_ in read if pa.types.is_timestamp(type_)}
    return times.pop() if len(times) == 1 else schema.field(query.schema.time).type


def keeps_values(expr: Aggregate) -> bool:
    """Whether it returns values of the group's events as they are."""
    function = AGGREGATES[expr.function]
    return function.chooses or function.lists


def _struct_type(columns: Iterable[str], schema: pa.Schema) -> pa.DataType:
    return pa.struct([pa.field(c, value_type(_field(schema, c).type)) for c in columns])


def _field(schema: pa.Schema, name: str) -> pa.Field:
    field = read_field(schema, name)
    assert field is not None, name
    return field


def computed_type(type_: Type, time: pa.DataType) -> pa.DataType:
    match type_:
        case Type.TIMESTAMP:
            return pa.timestamp("us", time.tz if pa.types.is_timestamp(time) else None)
        case Type.DATE:
            return pa.date32()
        case Type.DURATION:
            return pa.int64() if pa.types.is_integer(time) else pa.duration("us")
        case _:
            return ARROW[type_]
