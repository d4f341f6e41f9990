"""What an engine must save to resume in another process: rows, and a few numbers.

Intermediate records are not a part of it: they are made anew from the rows of the leaves, as when
another plan takes over. Rows are noted once, as they are loaded, and are immutable; what changes
with every batch is small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.engine.after_match import textual
from cepheid.engine.arrays.columns import decoded
from cepheid.engine.limits import Floors
from cepheid.engine.operators.base import Horizon
from cepheid.engine.rows.classes import Mask
from cepheid.engine.rows.clock import Numbering, Ticks, joined_ticks
from cepheid.engine.sink import SkipState
from cepheid.plan.nodes import Plan

Ints = NDArray[np.int64]

_TIME, _POSITION, _CLOCK = "…time", "…position", "…clock"
_START, _BEGIN, _OPENED = "…start", "…begin", "…opened"
_CLASSES = "…classes"
_OWN = (_TIME, _POSITION, _CLOCK, _START, _BEGIN, _OPENED, _CLASSES)


@dataclass(frozen=True)
class LoadedRows:
    """Rows as they went into the store and the leaf buffers: their columns, their ticks, and for
    each class which of them it takes."""

    batch: pa.RecordBatch
    ticks: Ticks
    masks: list[Mask]


@dataclass(frozen=True)
class EngineState:
    """`base` and `end` are the numbers of the first row that is retained and of the next one to
    come. `strings` are those whose codes are in the keys of the choice and of the floors, up to
    which events have been dropped: in single keys, and in total. `prompt`: automata have matched
    the events of the last position, too, where they could."""

    base: int
    end: int
    started: bool
    frontier: int
    horizon: Horizon
    eat: int
    numbering: Numbering
    choice: SkipState | None
    strings: Mapping[int, str | bytes]
    floor: Horizon | None
    floors: Floors
    prompt: bool = True


def joined(parts: Sequence[LoadedRows], names: Sequence[str]) -> LoadedRows:
    """Rows that were loaded one after the other, with these columns only."""
    if len(parts) == 1:
        return parts[0]
    columns = {
        n: pa.chunked_array([decoded(part.batch.column(n)) for part in parts]).combine_chunks()
        for n in names
    }
    ticks = [part.ticks for part in parts]
    batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
    masks = [
        np.concatenate(class_masks)
        for class_masks in zip(*(part.masks for part in parts), strict=True)
    ]
    return LoadedRows(batch, joined_ticks(ticks), masks)


def as_table(loaded: LoadedRows, names: Sequence[str]) -> pa.Table:
    """The rows with these columns only, and everything else that is known of them."""
    columns: dict[str, pa.Array] = {n: decoded(loaded.batch.column(n)) for n in names}
    ticks = loaded.ticks
    columns[_TIME], columns[_POSITION] = pa.array(ticks.time), pa.array(ticks.position)
    if ticks.clock is not ticks.time:
        columns[_CLOCK] = pa.array(ticks.clock)
    if ticks.start is not ticks.time:
        columns[_START], columns[_BEGIN] = pa.array(ticks.start), pa.array(ticks.begin)
        columns[_OPENED] = pa.array(ticks.opened)
    bits = np.packbits(np.column_stack(loaded.masks), axis=1, bitorder="little")
    data = pa.py_buffer(np.ascontiguousarray(bits))
    kind = pa.binary(bits.shape[1])
    columns[_CLASSES] = pa.Array.from_buffers(kind, len(bits), [None, data])
    return pa.table(columns)


def from_table(table: pa.Table, classes: int) -> LoadedRows:
    """The rows of which a table was made."""
    batch = table.combine_chunks().to_batches()[0]
    given = {n: np.asarray(batch.column(n)) for n in _OWN[:-1] if n in batch.schema.names}
    time, position = given[_TIME], given[_POSITION]
    clock = given.get(_CLOCK, time)
    start, begin, opened = time, position, clock
    if _START in given:
        start, begin, opened = given[_START], given[_BEGIN], given[_OPENED]
    ticks = Ticks(time, position, clock, start, begin, opened, reached=int(clock[-1]))
    packed = batch.column(_CLASSES)
    width = packed.type.byte_width
    raw = np.frombuffer(packed.buffers()[1], np.uint8)[packed.offset * width :]
    bits = np.unpackbits(raw[: len(packed) * width].reshape(-1, width), axis=1, bitorder="little")
    names = [n for n in batch.schema.names if n not in _OWN]
    masks = [bits[:, n] != 0 for n in range(classes)]
    return LoadedRows(batch.select(names), ticks, masks)


# ── codes of strings, which every process gives anew ──


def codes(plan: Plan, choice: SkipState | None, floors: Floors) -> set[int]:
    """Those in the keys of the floors, and of what AFTER MATCH remembers."""
    parts = [floors.keys]
    if choice is not None:
        parts += [choice.keys, *(held.matches.keys for held in choice.held)]
        parts += [] if choice.counted is None else [choice.counted[0]]
    return {code for keys in parts for n in textual(plan, keys) for code in keys[:, n].tolist()}


def recoded(plan: Plan, choice: SkipState, known: Mapping[int, int]) -> SkipState:
    """The choice with the codes that strings have here."""
    held = (
        replace(h, matches=replace(h.matches, keys=_recoded(plan, h.matches.keys, known)))
        for h in choice.held
    )
    counted = choice.counted
    if counted is not None:
        counted = (_recoded(plan, counted[0], known), counted[1])
    return SkipState(_recoded(plan, choice.keys, known), choice.bounds, tuple(held), counted)


def recoded_floors(plan: Plan, floors: Floors, known: Mapping[int, int]) -> Floors:
    return replace(floors, keys=_recoded(plan, floors.keys, known))


def _recoded(plan: Plan, keys: Ints, known: Mapping[int, int]) -> Ints:
    keys = keys.copy()
    for n in textual(plan, keys):
        keys[:, n] = [known.get(code, -1) for code in keys[:, n].tolist()]
    return keys
