"""Keys whose events are counted (`WITHIN n EVENTS`), where a match may wait for more of them: each
key is a bucket of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from cepheid.engine.arrays.vector import seen
from cepheid.engine.operators.base import FOREVER
from cepheid.plan.nodes import Plan
from cepheid.plan.reads import uniform_key
from cepheid.sessions.held_cells import HeldCells, nested, within
from cepheid.streaming.buckets.bucket import Bucket, Job, open_bucket
from cepheid.streaming.cells import arrow_bytes, table_of

Key: TypeAlias = tuple[Any, ...]

_KEY = "key"


@dataclass
class _OneKey:
    """A key: its columns as a row, and its events."""

    row: pa.Table
    bucket: Bucket
    cells: HeldCells


class KeyBuckets:
    """See `cepheid.streaming.buckets.bucket.Bucket`."""

    def __init__(self, job: Job, plan: Plan) -> None:
        self._job, self._plan = job, plan
        self._keys: dict[Key, _OneKey] = {}
        self.match_schema = job.new_bucket().match_schema

    def match(self, rows: pa.Table, watermark: int) -> Iterator[pa.RecordBatch]:
        """The matches that are decided by these rows, which are in order."""
        empty = rows.slice(0, 0)
        parts = {key: rows.take(pa.array(of_key)) for key, of_key in self._places(rows).items()}
        for key, of_key in parts.items():
            if key not in self._keys:
                columns = of_key.select(uniform_key(self._plan)).slice(0, 1)
                self._keys[key] = _OneKey(columns, self._job.new_bucket(), HeldCells())
        for key, held in self._keys.items():
            if key in parts or held.bucket.waits:
                yield from held.bucket.match(parts.get(key, empty), watermark)

    def _places(self, rows: pa.Table) -> dict[Key, list[int]]:
        """The rows of each key; those without one are in no match."""
        places: dict[Key, list[int]] = {}
        for place, key in enumerate(_keys(rows, self._plan)):
            if None not in key:
                places.setdefault(key, []).append(place)
        return places

    def finish(self, until: int | None) -> Iterator[pa.RecordBatch]:
        for held in self._keys.values():
            yield from held.bucket.finish(until)

    @property
    def waits(self) -> bool:
        return any(held.bucket.waits for held in self._keys.values())

    @property
    def due(self) -> int:
        return FOREVER

    def total(self, figure: str) -> int:
        """A figure of all keys together."""
        return sum(held.bucket.total(figure) for held in self._keys.values())

    # ── saving ──

    @property
    def noted(self) -> int:
        return max((held.bucket.noted for held in self._keys.values()), default=0)

    def write_rows(self, cells: HeldCells) -> None:
        """Write the rows of the keys that have many."""
        for held in self._keys.values():
            held.bucket.write_rows(held.cells)

    def parts(self) -> dict[str, bytes]:
        """All that is saved, by names."""
        parts: dict[str, bytes] = {}
        for number, held in enumerate(self._keys.values()):
            held.bucket.save(held.cells)
            state = {_KEY: arrow_bytes(held.row.combine_chunks()), **held.cells.parts()}
            parts |= nested(str(number), state)
        return parts

    def resume(self, saved: Mapping[str, bytes]) -> None:
        for number in dict.fromkeys(name.partition("/")[0] for name in saved):
            state = within(number, saved)
            row = table_of(state.pop(_KEY))
            cells = HeldCells.of(state)
            (key,) = _keys(row, self._plan)
            self._keys[key] = _OneKey(row, open_bucket(self._job, cells), cells)


def _keys(rows: pa.Table, plan: Plan) -> Iterator[Key]:
    """The key of each row: equal where predicates take keys as equal."""
    kinds = plan.schema.columns
    columns = [seen(name, rows[name], kinds[name]).to_pylist() for name in uniform_key(plan)]
    return (tuple(map(_value, values)) for values in zip(*columns, strict=True))


def _value(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and value != value else value
