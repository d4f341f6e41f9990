"""The header of a bucket: all that is saved of it besides rows.

It is small, and written with every batch: JSON for numbers and names, Arrow for what has rows (the
bounds of AFTER MATCH, the counts of LIMIT and the matches that are held back). A random token
identifies a version.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.engine.after_match import Considered, together
from cepheid.engine.limits import Floors
from cepheid.engine.operators.base import Horizon
from cepheid.engine.rows.clock import Numbering
from cepheid.engine.sink import HeldMatches, SkipState
from cepheid.engine.state import EngineState
from cepheid.streaming.cells import arrow_bytes, framed, table_of, unframed
from cepheid.streaming.log import Segment
from cepheid.streaming.signature import Signature

TOKEN = 16
"""The length of a token in bytes."""

_WHAT = "the saved state"
_FIELDS = ("last", "first", "lead", "until")


@dataclass(frozen=True)
class Version:
    """A past version of this state: its token, and how far its rows went. An epoch ends when rows
    get new numbers."""

    token: str
    end: int
    epoch: int


@dataclass(frozen=True)
class Saved:
    """The saved header. `released` is the time up to which rows have left the pending ones.
    `statistics` are those of the current plan, if it isn't the first."""

    signature: Signature
    columns: tuple[str, ...]
    buckets: int
    history: tuple[Version, ...]
    rows: tuple[Segment, ...]
    pending: tuple[Segment, ...]
    numbers: tuple[int, int]  # of the next segments of each kind
    released: int
    reached: int
    engine: EngineState
    statistics: str | None
    replans: int


def encode(saved: Saved, token: bytes) -> bytes:
    """The header."""
    parts = _parts(saved.engine)
    blobs = {name: arrow_bytes(table.combine_chunks()) for name, table in parts.items()}
    meta: dict[str, Any] = {
        **{name: getattr(saved, name) for name in _PLAIN},
        **{name: [asdict(item) for item in getattr(saved, name)] for name in _LISTS},
        "signature": dict(saved.signature),
        "engine": _numbers(saved.engine),
        "parts": {name: len(blob) for name, blob in blobs.items()},
    }
    text = json.dumps(meta).encode()
    body = b"".join((token, struct.pack("<I", len(text)), text, *blobs.values()))
    return framed(body)


_PLAIN = ("columns", "buckets", "numbers", "released", "reached", "statistics", "replans")
_LISTS = ("history", "rows", "pending")


def token_of(data: bytes) -> bytes:
    """The token of a header; nothing else is read if the bucket is still in memory."""
    return bytes(unframed(data, _WHAT)[:TOKEN])


def decode(data: bytes) -> Saved:
    body = unframed(data, _WHAT)
    (length,) = struct.unpack_from("<I", body, TOKEN)
    begin = TOKEN + 4 + length
    meta = json.loads(bytes(body[TOKEN + 4 : begin]))
    parts: dict[str, pa.Table] = {}
    for name, size in meta["parts"].items():
        parts[name] = table_of(body[begin : begin + size])
        begin += size
    return Saved(
        signature=meta["signature"],
        columns=tuple(meta["columns"]),
        buckets=meta["buckets"],
        history=tuple(Version(**item) for item in meta["history"]),
        rows=tuple(Segment(**item) for item in meta["rows"]),
        pending=tuple(Segment(**item) for item in meta["pending"]),
        numbers=(meta["numbers"][0], meta["numbers"][1]),
        released=meta["released"],
        reached=meta["reached"],
        engine=_engine(meta["engine"], parts),
        statistics=meta["statistics"],
        replans=meta["replans"],
    )


# ── the engine ──


def _numbers(state: EngineState) -> dict[str, Any]:
    numbering = state.numbering
    return {
        "base": state.base,
        "end": state.end,
        "started": state.started,
        "frontier": state.frontier,
        "horizon": [state.horizon.position, state.horizon.time, state.horizon.clock],
        "eat": state.eat,
        "prompt": state.prompt,
        "floor": None if state.floor is None else list(astuple(state.floor)),
        "numbering": {
            name: getattr(numbering, name)
            for name in ("reached", "latest", "position", "ordinal", "clock", "offset")
        },
    }


def _parts(state: EngineState) -> dict[str, pa.Table]:
    tables: dict[str, pa.Table] = {}
    if state.numbering.last is not None:
        tables["last"] = pa.Table.from_batches([state.numbering.last])
    if len(state.floors):
        tables["floors"] = _bounds_table(state.floors.keys, state.floors.positions)
    choice = state.choice
    if choice is not None:
        tables["bounds"] = _bounds_table(choice.keys, choice.bounds)
    if choice is not None and choice.counted is not None:
        tables["counted"] = _bounds_table(*choice.counted)
    if choice is not None and choice.held:
        matches = together([held.matches for held in choice.held])
        tables["considered"] = _considered_table(matches)
        tables["held"] = pa.Table.from_batches([held.batch for held in choice.held])
    if state.strings:
        tables["strings"] = _strings_table(state.strings)
    return tables


def _bounds_table(keys: Any, bounds: Any) -> pa.Table:
    columns = {f"key {n}": keys[:, n] for n in range(keys.shape[1])}
    return pa.table({**columns, "bound": bounds})


def _engine(meta: Mapping[str, Any], parts: Mapping[str, pa.Table]) -> EngineState:
    last = parts["last"].to_batches()[0] if "last" in parts else None
    choice = None
    if "bounds" in parts:
        table = parts["bounds"]
        held: tuple[HeldMatches, ...] = ()
        if "held" in parts:
            (batch,) = parts["held"].combine_chunks().to_batches()
            held = (HeldMatches(_considered(parts["considered"]), batch),)
        counted = None
        if "counted" in parts:
            counted = _keys(parts["counted"]), _column(parts["counted"], "bound")
        choice = SkipState(_keys(table), _column(table, "bound"), held, counted)
    floors = parts.get("floors", pa.table({"bound": pa.array([], pa.int64())}))
    return EngineState(
        base=meta["base"],
        end=meta["end"],
        started=meta["started"],
        frontier=meta["frontier"],
        horizon=Horizon(*meta["horizon"]),
        eat=meta["eat"],
        numbering=Numbering(last=last, **meta["numbering"]),
        choice=choice,
        strings=_strings(parts["strings"]) if "strings" in parts else {},
        floor=None if meta["floor"] is None else Horizon(*meta["floor"]),
        floors=Floors(_keys(floors), _column(floors, "bound")),
        prompt=meta.get("prompt", False),
    )


def _considered_table(matches: Considered) -> pa.Table:
    def lists(values: Any) -> pa.Array:
        return pa.LargeListArray.from_arrays(pa.array(matches.offsets), pa.array(values))

    keys = {f"key {n}": matches.keys[:, n] for n in range(matches.keys.shape[1])}
    plain = {name: getattr(matches, name) for name in _FIELDS}
    events = {"rows": lists(matches.rows), "positions": lists(matches.positions)}
    return pa.table({**keys, **plain, **events})


def _considered(table: pa.Table) -> Considered:
    table = table.combine_chunks()
    rows, positions = (table[name].chunk(0) for name in ("rows", "positions"))
    last, first, lead, until = (_column(table, name) for name in _FIELDS)
    offsets = np.asarray(rows.offsets, np.int64).copy()
    return Considered(
        last,
        first,
        _keys(table),
        lead,
        until,
        offsets,
        np.asarray(rows.values, np.int64).copy(),
        np.asarray(positions.values, np.int64).copy(),
    )


def _column(table: pa.Table, name: str) -> Any:
    return np.asarray(table[name].to_numpy(), np.int64).copy()


def _keys(table: pa.Table) -> Any:
    names: Sequence[str] = [n for n in table.column_names if n.startswith("key ")]
    columns = [_column(table, name) for name in names]
    return np.column_stack(columns) if columns else np.zeros((table.num_rows, 0), np.int64)


def _strings_table(strings: Mapping[int, str | bytes]) -> pa.Table:
    texts = [value.encode() if isinstance(value, str) else value for value in strings.values()]
    kinds = [isinstance(value, str) for value in strings.values()]
    return pa.table({"code": list(strings), "text": pa.array(texts, pa.binary()), "is text": kinds})


def _strings(table: pa.Table) -> dict[int, str | bytes]:
    return {
        row["code"]: row["text"].decode() if row["is text"] else row["text"]
        for row in table.to_pylist()
    }
