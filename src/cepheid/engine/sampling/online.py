"""Samples of a run, taken at round boundaries from the leaf buffers (ZStream 5.3).

A few dozen combinations of what is in the buffers are drawn and evaluated on the event store's
columns. That costs as much for a long window as for a short one, and touches no operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra.expressions import Attribute, Call, Constant, Expr, TimeSpan, variables, walk
from cepheid.algebra.types import Type
from cepheid.engine.arrays.columns import Column, as_column
from cepheid.engine.rows.buffers import Buffer
from cepheid.engine.rows.store import EventStore
from cepheid.engine.sampling.draws import Drawn, Events, draw
from cepheid.engine.sampling.numbers import Compute, Rows, compiled
from cepheid.engine.sampling.targets import JointTarget, Targets
from cepheid.statistics.samples import Interval, Sample, Tally, Values

DRAWS = 64
"""How many combinations a sample draws for conjuncts over the same variables."""

VALUES = 64
"""How many events of a variable a sample compares with each other."""


class Sampler:
    """Of one engine. Remembers how far it was at the last sample, so that every event is counted
    once.

    The leaves hold only events that satisfy the conjuncts of their class. Rates are of those, and
    these conjuncts hold for all of them: the product, which is what plans depend on, is right.
    """

    def __init__(self, targets: Targets, seed: int = 0) -> None:
        self._targets = targets
        self._random = np.random.default_rng(seed)
        self._counted: dict[str, int] = {}
        self._clock: int | None = None
        self._classes = [c.text for conditions in targets.classes.values() for c in conditions]
        self._stored: tuple[EventStore, _Stored] | None = None

    def sample(
        self, leaves: Mapping[str, Buffer], store: EventStore, window: int, clock: int
    ) -> Sample:
        """Sample the rounds since the last sample and the buffers. `clock` is how far all rows are
        known."""
        if self._stored is None or self._stored[0] is not store:
            self._stored = store, _Stored(store)
        stored = self._stored[1]
        observed, counts = self._progress(leaves, window, clock)
        events = {name: _visible(buffer, store.base) for name, buffer in leaves.items()}
        shares = {text: Tally(1, 1) for text in self._classes}
        equalities: dict[str, Tally] = {}
        values = {
            f"{a.variable}.{a.name}": Values(apart=self._apart(a, events, stored))
            for a in self._targets.columns
            if a.variable in events
        }
        for joint in self._targets.joints:
            if not events.keys() >= set(joint.variables):
                continue
            recent = _recent(joint, leaves, events, window, clock)
            # More combinations than events would tell the same thing again and again.
            few = min(len(recent[v].clock) for v in joint.variables)
            drawn = draw(joint, recent, window, min(DRAWS, few), self._random)
            if drawn is None:
                continue
            for condition in joint.conditions:
                tally = stored.tally(drawn, condition.text, condition.expression)
                if tally is not None:
                    where = shares if condition.equality is None else equalities
                    where[condition.text] = tally
            _try_key(joint, drawn, stored, values)
        return Sample((observed,), observed[1] - observed[0], counts, shares, equalities, values)

    def _progress(
        self, leaves: Mapping[str, Buffer], window: int, clock: int
    ) -> tuple[Interval, dict[str, float]]:
        """The time since the last sample and the events that came in it; the first sample looks
        back as far as buffers reach if nothing has left them, or else a window. Where events are
        counted key by key, the clock jumps from one to the next: all rates are then too small, by
        the same factor."""
        totals = {name: buffer.base + buffer.visible for name, buffer in leaves.items()}
        if self._clock is not None:
            begin = self._clock + 1
            counts = {name: float(n - self._counted[name]) for name, n in totals.items()}
        else:
            ends = {name: b.records.end[: b.visible] for name, b in leaves.items()}
            oldest = min((int(e[0]) for e in ends.values() if len(e)), default=clock + 1)
            complete = all(b.base == 0 for b in leaves.values())
            begin = oldest if complete else max(oldest, clock - window + 1)
            counts = {
                name: float(len(e) - np.searchsorted(e, begin, "left")) for name, e in ends.items()
            }
        self._counted, self._clock = totals, max(clock, begin - 1)
        return (begin, max(clock + 1, begin)), counts

    def _apart(self, column: Attribute, events: Mapping[str, Events], stored: _Stored) -> Tally:
        """Pairs among some random events of a variable, and those that agree."""
        rows = events[column.variable].row
        if len(rows) > VALUES:
            rows = rows[self._random.integers(len(rows), size=VALUES)]
        present = stored.present(column, rows)
        if present is None:
            return Tally()
        rows, values = present
        different = rows[:, None] != rows
        agree = different & (values[:, None] == values)
        return Tally(int(np.count_nonzero(different)) // 2, int(np.count_nonzero(agree)) // 2)


def _visible(buffer: Buffer, base: int) -> Events:
    """The events of a leaf whose values are still in the store."""
    records, end = buffer.records, buffer.visible
    rows = records.slots[0, :end]
    begin = int(np.searchsorted(rows, base, "left"))
    return Events(records.end[begin:end], records.last[begin:end], rows[begin:])


def _recent(
    joint: JointTarget,
    leaves: Mapping[str, Buffer],
    events: Mapping[str, Events],
    window: int,
    clock: int,
) -> Mapping[str, Events]:
    """Of the last variable only events before which the buffers still have a whole window, or
    nearly: older ones would be seen with near events alone, and not with those that were a window
    apart."""
    *others, last = joint.variables
    kept = [
        int(events[v].clock[0])
        for v in others
        if len(events[v].clock) and len(events[v].clock) < leaves[v].base + leaves[v].visible
    ]
    last_events = events[last]
    if not kept or not len(last_events.clock):
        return events
    whole = min(max(kept) + window, clock - window // 8)
    begin = min(int(np.searchsorted(last_events.clock, whole, "left")), len(last_events.clock) - 1)
    return {
        **events,
        last: Events(
            last_events.clock[begin:], last_events.position[begin:], last_events.row[begin:]
        ),
    }


def _try_key(joint: JointTarget, drawn: Drawn, stored: _Stored, values: dict[str, Values]) -> None:
    for sides in joint.key:
        left, right = sides
        text = f"{left.variable}.{left.name} = {right.variable}.{right.name}"
        tally = stored.tally(drawn, text, Call("=", sides, Type.BOOLEAN))
        if tally is None:
            continue
        for side in sides:
            name = f"{side.variable}.{side.name}"
            values[name] = replace(values[name], near=values[name].near.plus(tally))


@dataclass(frozen=True)
class _Prepared:
    """An expression over the store's columns, what it reads, and a quick way to compute it."""

    coded: Expr
    reads: tuple[Attribute, ...]
    compute: Compute | None


class _Stored:
    """Evaluates conjuncts on what the store keeps for kernels: numbers, and codes of strings, of
    which it can only be said whether they are equal."""

    def __init__(self, store: EventStore) -> None:
        self.store = store
        self.columns: list[Column] = []
        self._prepared: dict[str, _Prepared | None] = {}
        self._columns: dict[Attribute, Column | None] = {}

    def tally(self, drawn: Drawn, text: str, expr: Expr) -> Tally | None:
        """None if the store doesn't have all that the expression reads."""
        if text not in self._prepared:
            self._prepared[text] = self._prepare(expr)
        prepared = self._prepared[text]
        if prepared is None:
            return None
        rows = {v: r - self.store.base for v, r in drawn.rows.items()}
        if prepared.compute is None:
            return drawn.tally(
                prepared.coded, lambda a: self._array(a, rows), lambda v: self._times(v, rows)
            )
        held = prepared.compute(rows)
        for attribute in prepared.reads:
            valid = self.store.valid[self.columns[int(attribute.name)]]
            if valid is not None:
                held = held & valid[rows[attribute.variable]]
        return drawn.counted(held)

    def _prepare(self, expr: Expr) -> _Prepared | None:
        coded = self._coded(expr)
        if coded is None:
            return None
        reads = tuple(e for e in walk(coded) if isinstance(e, Attribute))
        return _Prepared(coded, reads, compiled(coded, self._gather, self._times))

    def _gather(self, attribute: Attribute, rows: Rows) -> NDArray[np.generic]:
        column = self.columns[int(attribute.name)]
        return self.store.values[column][rows[attribute.variable]]

    def _array(self, attribute: Attribute, rows: Rows) -> pa.Array:
        valid = self.store.valid[self.columns[int(attribute.name)]]
        missing = None if valid is None else ~valid[rows[attribute.variable]]
        return pa.array(self._gather(attribute, rows), mask=missing)

    def _times(self, variable: str, rows: Rows) -> NDArray[np.int64]:
        return self.store.time[rows[variable]]

    def present(
        self, attribute: Attribute, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.generic]] | None:
        """The rows at which the column is not NULL, and its values there."""
        if attribute not in self._columns:
            self._columns[attribute] = as_column(attribute)
        column = self._columns[attribute]
        if column is None or column not in self.store.values:
            return None
        places = rows - self.store.base
        valid = self.store.valid[column]
        if valid is not None:
            places = places[valid[places]]
        return places, self.store.values[column][places]

    def _coded(self, expr: Expr) -> Expr | None:
        """The expression over the store's columns, each called by its number; strings are their
        codes."""
        column = as_column(expr)
        if column is not None:
            if column not in self.store.values:
                return None
            if column not in self.columns:
                self.columns.append(column)
            (name,) = variables(expr)
            return Attribute(name, str(self.columns.index(column)), _code_type(expr.type))
        match expr:
            case Constant(value=str() | bytes() as value):
                code = self.store.interner.code(value)
                self.store.pin(code)
                return Constant(code, Type.INTEGER)
            case Constant() if expr.type in (Type.STRING, Type.BINARY):
                return Constant(None, Type.INTEGER)
            case Constant() | TimeSpan():
                return expr
            case Call():
                strings = any(a.type in (Type.STRING, Type.BINARY) for a in expr.arguments)
                if strings and expr.operator not in ("=", "<>", "in", "is_null"):
                    return None
                arguments = [self._coded(a) for a in expr.arguments]
                known = tuple(a for a in arguments if a is not None)
                return replace(expr, arguments=known) if len(known) == len(arguments) else None
            case _:
                return None


def _code_type(type_: Type) -> Type:
    return Type.INTEGER if type_ in (Type.STRING, Type.BINARY) else type_
