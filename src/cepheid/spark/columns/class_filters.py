"""Classes of events as Spark filters: irrelevant rows are neither shuffled nor sent to Python.

Each class of the plan becomes a condition on rows, and the conditions together a filter that
data sources understand and a mask, bit i for the i-th class. A condition is exact, or, where some
predicate has no translation, a superset that the worker narrows down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import and_, or_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as t

from cepheid.algebra.expressions import Expr, conjuncts
from cepheid.algebra.text import expression_text
from cepheid.plan.nodes import LeafNode, Plan
from cepheid.plan.reads import columns_of, leaves
from cepheid.spark.columns.column_names import named
from cepheid.spark.columns.predicates import Translator, combine


@dataclass(frozen=True)
class Class:
    """A leaf, the conditions that Spark checks, their text, and the conditions left to the
    engine."""

    leaf: LeafNode
    conditions: tuple[Column, ...]
    texts: tuple[str, ...]
    left: tuple[Expr, ...]

    @property
    def condition(self) -> Column | None:
        return combine(and_, self.conditions) if self.conditions else None


def classify(plan: Plan, columns: Mapping[str, t.DataType]) -> tuple[Class, ...]:
    """The plan's classes, in the order of their bits."""
    translator = Translator(columns)
    return tuple(_class(plan, leaf, translator, columns) for leaf in leaves(plan))


def _class(
    plan: Plan, leaf: LeafNode, translator: Translator, columns: Mapping[str, t.DataType]
) -> Class:
    conditions: list[Column] = []
    texts: list[str] = []
    left: list[Expr] = []
    types, type_column = plan.variables[leaf.variable].types, plan.schema.type
    if types and type_column is not None:
        conditions.append(_type_test(type_column, columns[type_column], types))
        texts.append(_type_text(type_column, types))
    for part in plan.key:
        # In a keyed query a row without key takes part in nothing; but what looks at the whole
        # stream may have no key.
        if leaf.variable in part:
            conditions.append(named(part[leaf.variable]).isNotNull())
    for predicate in (c for f in leaf.filters for c in conjuncts(f)):
        column = translator.column(predicate)
        if column is None:
            left.append(predicate)
        else:
            conditions.append(column)
            texts.append(expression_text(predicate))
    return Class(leaf, tuple(conditions), tuple(texts), tuple(left))


def _type_text(name: str, types: Sequence[str]) -> str:
    values = ", ".join(f"'{type_}'" for type_ in types)
    return f"{name} IN ({values})" if len(types) > 1 else f"{name} = {values}"


def _type_test(name: str, type_: t.DataType, types: Sequence[str]) -> Column:
    column = type_text(name, type_)
    return column.isin(*types) if len(types) > 1 else column == types[0]


def type_text(name: str, type_: t.DataType) -> Column:
    """The type column as text, as patterns name types; binding refuses columns without such a
    text."""
    return named(name) if type_ == t.StringType() else named(name).cast("string")


def relevant(classes: Sequence[Class]) -> Column | None:
    """A filter for rows that may belong to any class; None if every row may."""
    conditions = [c.condition for c in classes]
    known = [c for c in conditions if c is not None]
    return combine(or_, known) if len(known) == len(conditions) else None


def mask(classes: Sequence[Class], chosen: Sequence[bool] | None = None) -> Column:
    """Bit i is set if the row may belong to class i (of the chosen ones)."""
    bits = [
        F.lit(1 << n).cast("long")
        if c.condition is None
        else F.when(c.condition, F.lit(1 << n).cast("long")).otherwise(F.lit(0).cast("long"))
        for n, c in enumerate(classes)
        if chosen is None or chosen[n]
    ]
    return combine(Column.bitwiseOR, bits) if bits else F.lit(0).cast("long")


def left_columns(classes: Sequence[Class]) -> frozenset[str]:
    """Columns that the predicates left to the engine read."""
    return columns_of(*(expr for c in classes for expr in c.left))
