"""What lowering works with: where variables are, what a kernel is called with, values as source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from cepheid.algebra.expressions import Call, Constant
from cepheid.algebra.types import Type
from cepheid.engine.arrays.columns import Column, KernelColumn, TextPlaces

COMPARISONS = {
    "=": "({x} == {y})",
    "<>": "({x} != {y})",
    "<": "({x} < {y})",
    "<=": "({x} <= {y})",
    ">": "({x} > {y})",
    ">=": "({x} >= {y})",
}
# Spark's order of doubles: NaN equals itself and is above every number.
NAN_COMPARISONS = {
    "=": "({x} == {y} or ({x} != {x} and {y} != {y}))",
    "<>": "({x} != {y} and ({x} == {x} or {y} == {y}))",
    "<": "({x} < {y} or ({y} != {y} and {x} == {x}))",
    "<=": "({x} <= {y} or {y} != {y})",
    ">": "({x} > {y} or ({x} != {x} and {y} == {y}))",
    ">=": "({x} >= {y} or {x} != {x})",
}


DOUBLES = (Type.FLOAT, Type.DECIMAL)
"""What kernels compute in doubles; all other numbers are integers."""

CHECKED = {"+": "checked_sum", "-": "checked_difference", "*": "checked_product"}
"""What kernels have that give a result, and whether it fits into 64 bits."""


class NotLowered(Exception):
    """The expression has no form over arrays; the operator then runs as plain Python."""


@dataclass(frozen=True, slots=True)
class Term:
    """Source of a value and of its being not NULL (None: it never is NULL)."""

    value: str
    valid: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """A variable bound to one event: `row` is the source of its index in the store. Where the
    event may be absent, `present` says whether it is there; an absent one reads as NULL."""

    row: str
    outer: bool
    present: str | None = None


@dataclass(frozen=True, slots=True)
class GroupPlace:
    """A variable bound to a group: elements `array[start:start + count]` are absolute rows."""

    array: str
    start: str
    count: str
    outer: bool = False


Place = Event | GroupPlace


@dataclass
class Inputs:
    """What a kernel is called with, in order: store columns (the values and, if one may be NULL,
    its validity) and parameters. `objects` lets string columns be Python strings."""

    nullable: frozenset[Column]
    objects: bool
    columns: list[KernelColumn] = field(default_factory=list)
    params: list[Constant | Call] = field(default_factory=list)
    pools: list[str] = field(default_factory=list)

    def column(self, column: KernelColumn) -> int:
        if column not in self.columns:
            self.columns.append(column)
        return self.columns.index(column)

    def param(self, value: Constant | Call) -> str:
        """A constant; or a call without a kernel form, as a function of its arguments' values."""
        self.params.append(value)
        return f"p{len(self.params) - 1}"

    def may_be_null(self, column: KernelColumn) -> bool:
        held = column.column if isinstance(column, TextPlaces) else column
        return held in self.nullable

    def pool(self, variable: str) -> int:
        if variable not in self.pools:
            self.pools.append(variable)
        return self.pools.index(variable)

    def unpack(self, offset: int) -> list[str]:
        """Lines that name the columns, pools and parameters; `offset` tuples come before them."""
        lines: list[str] = []
        at = offset
        for n, column in enumerate(self.columns):
            lines.append(f"c{n} = cols[{at}]")
            at += 1
            if self.may_be_null(column):
                lines.append(f"v{n} = cols[{at}]")
                at += 1
        for n in range(len(self.pools)):
            lines.append(f"g{n} = cols[{at}]")
            lines.append(f"gb{n} = params[{len(self.params) + n}]")
            at += 1
        lines += [f"p{n} = params[{n}]" for n in range(len(self.params))]
        return lines


def compare(operator: str, x: Term, y: Term, type_: Type) -> str:
    table = NAN_COMPARISONS if type_ is Type.FLOAT else COMPARISONS
    return table[operator].format(x=x.value, y=y.value)


def zero(type_: Type, objects: bool = False) -> str:
    match type_:
        case _ if type_ in DOUBLES:
            return "0.0"
        case Type.BOOLEAN:
            return "False"
        case Type.STRING if objects:
            return "''"
        case _:
            return "0"


def both(value: str, valid: str | None) -> str:
    return value if valid is None else f"({valid} and {value})"


def all_valid(parts: Iterable[str | None]) -> str | None:
    known = [p for p in parts if p is not None]
    return None if not known else known[0] if len(known) == 1 else f"({' and '.join(known)})"
