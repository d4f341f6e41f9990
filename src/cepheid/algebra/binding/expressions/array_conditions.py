"""Conditions on arrays: `a.tags CONTAINS 'x'`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.algebra.binding.expressions.coercion import named, unify
from cepheid.algebra.expressions import Aggregate, Attribute, Call, Expr, Previous
from cepheid.algebra.kinds import attribute_type
from cepheid.algebra.nested_columns import is_array
from cepheid.algebra.types import Schema, Type
from cepheid.language import ast

if TYPE_CHECKING:
    from cepheid.algebra.binding.expressions.expression_binder import ExpressionBinder


def lower_contains(low: ExpressionBinder, node: ast.Like, array: Expr) -> Expr:
    """Whether a value is an element of the array, as Spark's `array_contains` has it: unknown if
    it isn't among the elements and one of them is NULL."""
    text, value = low.text(node.operand), low.lower(node.pattern)
    type_ = _type(array, low.schema)
    if isinstance(array, Aggregate) and type_ is None:
        message = f"CONTAINS is about an array of one event, and `{text}` is made of several"
        hint = f"write `SOME({array.variable}.x) = …`"
        return low.wrong("CEP210", message, node.operand.span, hint)
    if type_ is None or not is_array(type_):
        message = f"CONTAINS needs a string or an array, but `{text}` is neither"
        return low.wrong("CEP210", message, node.operand.span)
    element = Attribute("", "", attribute_type(type_.value_type))
    try:
        sides = None if value.type is Type.OTHER else unify([element, value])
    except ValueError:
        sides = None
    if sides is None:
        message = (
            f"the elements of `{text}` ({named(element)}) can't be compared with "
            f"`{low.text(node.pattern)}` ({named(value)})"
        )
        return low.wrong("CEP210", message, node.span)
    return Call("array_contains", (array, sides[1]), Type.BOOLEAN)


def _type(expr: Expr, schema: Schema) -> pa.DataType | None:
    """The Arrow type of a nested value of an event."""
    match expr:
        case Attribute(name=name) | Previous(name=name):
            return schema.nested.get(name)
        case Aggregate(function="first" | "last", argument=argument) if argument is not None:
            return _type(argument, schema)
        case _:
            return None
