"""Rules that share a pass over the events, and the pass itself."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.expressions import Call, Constant, Expr, Value
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.types import Type
from cepheid.engine.arrays.columns import Column
from cepheid.engine.arrays.ordered_codes import HIGHEST, LOWEST, disordered
from cepheid.engine.attribution.json_rows import alert_rows
from cepheid.engine.merged.machine import Machine
from cepheid.engine.merged.merge import Merged

SHARE, MOST_SHARES = 1 << 15, 16
"""The batch rows that justify another machine, and the most machines."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
MOST_NODES = 1 << 14
"""Up to this many nodes, an automaton may have several machines."""
MOST_VALUES = 100
"""If a column must equal one of more values than this, the filter uses only the least and the
greatest."""


GONE = -1
"""The number of a rule that was taken out of its set."""


@dataclass(frozen=True)
class RuleGroup:
    """A group of rules. `numbers` are the global numbers of the rules of each branch, or GONE;
    `key` is a column that partitions the events of all of them, if there is one."""

    merged: Merged
    numbers: tuple[NDArray[np.int64], ...]
    key: str | None = None

    @property
    def query(self) -> BoundQuery:
        """The query of the first branch, for what all have in common: time, tie-break and type
        columns."""
        return self.merged.branches[0].path.query

    @property
    def required(self) -> tuple[str, ...]:
        """The event columns that any rule reads."""
        queries = (branch.path.query for branch in self.merged.branches)
        return tuple(dict.fromkeys(chain.from_iterable(q.required for q in queries)))

    @property
    def counts_all(self) -> bool:
        """Whether events that no rule names matter, since they stand between others."""
        return bool(self.merged.graph.strict.any())

    @property
    def single(self) -> bool:
        """Whether every match is one event."""
        return bool(self.merged.graph.depth.max() == 0)


class GroupMachines:
    """The machines of a group. With a key and large batches, several machines each get a share of
    the keys, and a batch goes through them one after another: so the instances of a machine stay in
    the processor's cache. `first` is the first batch, of which there is no match yet."""

    def __init__(
        self,
        group: RuleGroup,
        rules: pa.Table,
        schema: pa.Schema,
        first: pa.RecordBatch,
        jit: bool = True,
    ) -> None:
        self._group, self._rules, self._schema = group, rules, schema
        count = _shares(group, first)
        self._machines = [Machine(group.merged, first.schema, jit=jit) for _ in range(count)]

    @property
    def instances(self) -> int:
        """Partial matches that are held, expired ones that are not dropped yet among them."""
        return sum(machine.instances for machine in self._machines)

    def push(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The alerts that end in these events, which follow those before."""
        shares = _split(self._group, batch, len(self._machines))
        for machine, share in zip(self._machines, shares, strict=True):
            for attributed in machine.push(share):
                numbers = self._group.numbers[attributed.branch][attributed.rules]
                found, there = attributed.matches, numbers != GONE
                if not there.all():
                    numbers, found = numbers[there], found.filter(pa.array(there))
                yield alert_rows(self._rules, numbers, found, self._schema)


def matches(
    group: RuleGroup,
    rules: pa.Table,
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    jit: bool = True,
) -> Iterator[pa.RecordBatch]:
    """The alerts of the rules in events that come in order. `rules` has the names of all rules and
    their carried columns."""
    first = next(batches, None)
    if first is None:
        return
    machines = GroupMachines(group, rules, schema, first, jit)
    for batch in chain((first,), batches):
        yield from machines.push(batch)


def _shares(group: RuleGroup, batch: pa.RecordBatch) -> int:
    """How many machines pay for their tables."""
    if group.key is None or group.merged.graph.nodes > MOST_NODES:
        return 1
    kind = batch.schema.field(group.key).type
    if not (pa.types.is_integer(kind) or pa.types.is_string(kind)):
        return 1
    return max(1, min(MOST_SHARES, int(batch.num_rows) // SHARE))


def _split(group: RuleGroup, batch: pa.RecordBatch, shares: int) -> Iterator[pa.RecordBatch]:
    """The rows of each share of the keys, in their order."""
    if shares == 1:
        yield batch
        return
    assert group.key is not None
    places = _places(batch.column(group.key), shares)
    rows = batch.take(pa.array(np.argsort(places, kind="stable")))
    ends = np.cumsum(np.bincount(places, minlength=shares)).tolist()
    for begin, end in pairwise([0, *ends]):
        yield rows.slice(begin, end - begin)


def _places(keys: pa.Array, shares: int) -> NDArray[np.uint8]:
    """The share of each key; it is the same in all batches."""
    if pa.types.is_integer(keys.type):
        mixed = pc.fill_null(keys, 0).to_numpy().astype(np.uint64) * _ODD
        hashed: NDArray[np.uint8] = ((mixed >> np.uint64(32)) % np.uint64(shares)).astype(np.uint8)
        return hashed
    each = keys.dictionary_encode()
    hashes = [zlib.crc32(str(key).encode()) % shares for key in each.dictionary.to_pylist()]
    places = np.append(np.array(hashes, np.uint8), np.uint8(0))
    numbers: NDArray[np.int32] = pc.fill_null(each.indices, -1).to_numpy()
    return places[numbers]


def necessary(group: RuleGroup) -> tuple[Expr, ...]:
    """Conditions that hold for every event that any rule can take: the hull of all predicates,
    column by column. Variables are left blank."""
    index = group.merged.index
    every = len(index.atoms) - 1
    conditions: list[Expr] = []
    for n, column in enumerate(group.merged.columns):
        intervals = np.flatnonzero(index.columns == n)
        if len(intervals) < every or column.type not in (Type.INTEGER, Type.FLOAT, Type.STRING):
            continue
        lows, highs = index.lows[intervals], index.highs[intervals]
        values = np.unique(lows)
        if (lows == highs).all() and len(values) <= MOST_VALUES:
            options = (Constant(v, column.type) for v in values_of(group, column, values))
            conditions.append(Call("in", (column.expression, *options), Type.BOOLEAN))
        elif column.type is not Type.STRING:
            conditions += _between(group, column, int(lows.min()), int(highs.max()))
    return tuple(conditions)


def _between(group: RuleGroup, column: Column, low: int, high: int) -> Iterator[Expr]:
    for bound, none, operator in ((low, LOWEST, ">="), (high, HIGHEST, "<=")):
        if bound != none:
            (value,) = values_of(group, column, np.array([bound]))
            constant = Constant(value, column.type)
            yield Call(operator, (column.expression, constant), Type.BOOLEAN)


def values_of(group: RuleGroup, column: Column, codes: NDArray[np.int64]) -> list[Value]:
    """The values that these integers stand for."""
    match column.type:
        case Type.STRING:
            strings = group.merged.interner.strings(codes.tolist())
            return [strings[code] for code in codes.tolist()]
        case Type.FLOAT:
            return [float(value) for value in disordered(codes)]
        case _:
            return [int(code) for code in codes]
