"""How many events are held, and whether that is more than the caller allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from cepheid.algebra.expressions import Attribute
from cepheid.engine.columns import Column, as_integers
from cepheid.engine.operators import Context, LeafOperator
from cepheid.errors import StateLimitError
from cepheid.options import Limit
from cepheid.plan.nodes import STREAM, Leaf, Plan

Ints = NDArray[np.int64]


def enforce(limit: Limit | None, total: int, most: int) -> None:
    """`total` events are held, and `most` of one key."""
    if limit is None:
        return
    for name, count, allowed in (
        ("altogether (total)", total, limit.total),
        ("of one key (per_key)", most, limit.per_key),
    ):
        if allowed is not None and count > allowed:
            raise StateLimitError(
                f"{count} events would have to be held {name}, and the limit is {allowed}: "
                "matches may still need them. Add WITHIN, make it shorter, or pass a larger limit"
            )


class Window:
    """What joins and stacks hold: all events of their classes for as long as the window."""

    def __init__(self, plan: Plan, context: Context, leaves: Mapping[Leaf, LeafOperator]) -> None:
        self._context = context
        self._leaves = [
            (leaf.out, [_column(plan, part[node.variable]) for part in plan.key])
            for node, leaf in leaves.items()
            if node.variable != STREAM
        ]

    def columns(self) -> Iterable[Column]:
        """Columns that the store must keep for it."""
        return (column for _, columns in self._leaves for column in columns)

    def check(self) -> None:
        store = self._context.store
        gone = int(np.searchsorted(store.clock, self._context.eat, "right"))
        enforce(self._context.limit, store.n - gone, self._most(gone))

    def _most(self, gone: int) -> int:
        """How many events of one class and key there are at most; without a key all are of one."""
        store = self._context.store
        most = 0
        for out, columns in self._leaves:
            rows = out.records.slots[0, : out.n] - store.base
            rows = rows[rows >= gone]
            if not columns or not len(rows):
                most = max(most, len(rows))
                continue
            keys = np.column_stack([as_integers(store.values[c][rows]) for c in columns])
            most = max(most, int(np.unique(keys, axis=0, return_counts=True)[1].max()))
        return most


def _column(plan: Plan, name: str) -> Column:
    return Column(Attribute("", name, plan.schema.columns[name]))
