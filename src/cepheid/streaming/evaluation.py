"""The protocol between a bucket and its engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cepheid.algebra.types import Schema
from cepheid.engine.counts import Counts
from cepheid.engine.run import Advisor
from cepheid.engine.state import EngineState, LoadedRows


class HeldEvents(Protocol):
    """The events that an engine holds: their number, the number of the first one, and their
    columns."""

    @property
    def n(self) -> int: ...

    @property
    def base(self) -> int: ...

    @property
    def names(self) -> tuple[str, ...]: ...


class Evaluation(Protocol):
    """A bucket's engine: of one query, or of merged rules (see `cepheid.engine.run.Engine`)."""

    counts: Counts
    schema: pa.Schema

    @property
    def advisor(self) -> Advisor | None: ...

    @property
    def store(self) -> HeldEvents: ...

    @property
    def classes(self) -> int: ...

    @property
    def last(self) -> pa.RecordBatch | None: ...

    @property
    def waits(self) -> bool: ...

    def push(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]: ...

    def advance(self, time: int) -> Iterator[pa.RecordBatch]: ...

    def spare(self) -> NDArray[np.int64] | None: ...

    def compact(self, kept: NDArray[np.int64]) -> None: ...

    def save(self) -> EngineState: ...

    def resume(self, state: EngineState, loaded: Iterable[LoadedRows]) -> None: ...


class Runnable(Protocol):
    """A query or merged rules, ready to run in buckets."""

    @property
    def schema(self) -> Schema: ...

    def engine(self, schema: pa.Schema, jit: bool, journal: list[LoadedRows]) -> Evaluation: ...

    def in_order(self, table: pa.Table) -> pa.Table: ...

    def replanned(self, statistics: str) -> Runnable: ...
