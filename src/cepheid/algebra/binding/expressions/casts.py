"""`CAST(x AS type)`: the names of types, and which types can be converted.

What can't be converted (`CAST('x' AS bigint)`) is NULL, as of Spark's `try_cast`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cepheid.algebra.binding.expressions.coercion import cast, described
from cepheid.algebra.binding.findings import did_you_mean
from cepheid.algebra.expressions import Call, Constant, Expr
from cepheid.algebra.types import Type
from cepheid.language import ast

if TYPE_CHECKING:
    from cepheid.algebra.binding.expressions.expression_binder import ExpressionBinder

TYPES: dict[str, Type] = {
    **dict.fromkeys(("bigint", "long", "int", "integer"), Type.INTEGER),
    **dict.fromkeys(("double", "float", "real"), Type.FLOAT),
    **dict.fromkeys(("string", "varchar", "text"), Type.STRING),
    **dict.fromkeys(("boolean", "bool"), Type.BOOLEAN),
    "timestamp": Type.TIMESTAMP,
    "date": Type.DATE,
}
"""What may stand after AS. Integers have 64 bits, whatever they are called."""

_NUMBERS = (Type.INTEGER, Type.FLOAT, Type.DECIMAL)

SOURCES: dict[Type, tuple[Type, ...]] = {
    Type.INTEGER: (*_NUMBERS, Type.BOOLEAN, Type.STRING, Type.TIMESTAMP),
    Type.FLOAT: (*_NUMBERS, Type.BOOLEAN, Type.STRING, Type.TIMESTAMP),
    Type.STRING: (Type.INTEGER, Type.FLOAT, Type.BOOLEAN, Type.STRING, Type.DATE, Type.TIMESTAMP),
    Type.BOOLEAN: (*_NUMBERS, Type.BOOLEAN, Type.STRING),
    Type.TIMESTAMP: (*_NUMBERS, Type.STRING, Type.DATE, Type.TIMESTAMP),
    Type.DATE: (Type.STRING, Type.DATE, Type.TIMESTAMP),
}
"""What can be converted to each type, as in Spark. Decimals are doubles in conditions, so their
text isn't known."""


def lower_cast(low: ExpressionBinder, node: ast.Cast) -> Expr:
    target = TYPES.get(node.type)
    if target is None:
        hint = did_you_mean(node.type, TYPES, f"types are {', '.join(TYPES)}")
        return low.wrong("CEP218", f"there is no type `{node.type}`", node.span, hint)
    operand = low.lower(node.operand)
    if operand.type is Type.NULL:
        return Constant(None, target)
    if operand.type not in SOURCES[target]:
        message = f"`{low.text(node.operand)}` is {described(operand)}, "
        return low.wrong("CEP218", message + f"which can't be cast to {node.type}", node.span)
    if operand.type is target:
        return operand
    if operand.type is Type.DECIMAL:
        operand = cast(operand, Type.FLOAT)
    if target is operand.type:
        return operand
    if target is Type.FLOAT and operand.type is Type.INTEGER:
        return cast(operand, Type.FLOAT)
    if target is Type.TIMESTAMP and operand.type is Type.DATE:
        return cast(operand, Type.TIMESTAMP)
    return Call(f"cast_{target.value}", (operand,), target)
