"""Types of attributes, and the schema that a query is bound against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

import pyarrow as pa

from cepheid.language.ast import Unit
from cepheid.language.attribute_paths import AttributePath

STREAM_COLUMN = "__stream"
"""The type column of several streams merged into one: it holds the stream's name."""

TIME_COLUMN, START_COLUMN = "__time", "__start"
"""Where streams of events and of matches are merged: when an event ends, and when it starts."""


class Type(Enum):
    """What an attribute can be. Values: how predicates see them.

    INTEGER 64-bit; FLOAT double; DECIMAL read as a double in predicates, exact in RETURN;
    TIMESTAMP microseconds since the epoch; DATE days since the epoch; DURATION microseconds, or
    the units of an integer time column; OTHER (arrays, structs, maps) can only be returned and
    tested for NULL.
    """

    BOOLEAN = "boolean"
    INTEGER = "integer"
    FLOAT = "float"
    DECIMAL = "decimal"
    STRING = "string"
    BINARY = "binary"
    DATE = "date"
    TIMESTAMP = "timestamp"
    DURATION = "duration"
    OTHER = "nested"
    NULL = "null"

    @property
    def numeric(self) -> bool:
        return self in (Type.INTEGER, Type.FLOAT, Type.DECIMAL)


@dataclass(frozen=True)
class Schema:
    """The columns of the merged input stream and the parts that some of them play.

    `streams` is set when the input is several streams: name → its own columns; `others` are the
    columns of events of every other type, if one of the streams has types of its own. `unit` says
    what one tick of an integer time column is; without it only `units` can be a window over
    integers. `start` is set if events have a duration: `time` is then the column of their ends.
    `unreadable` says why columns that are there can't be read. `nested` are the types of those
    that hold arrays, maps and structs, and `paths` the columns that are paths into them.
    """

    columns: Mapping[str, Type]
    time: str
    type: str | None = None
    tie: str | None = None
    streams: Mapping[str, frozenset[str]] | None = None
    unit: Unit | None = None
    start: str | None = None
    others: frozenset[str] | None = None
    unreadable: Mapping[str, str] = field(default_factory=dict)
    nested: Mapping[str, pa.DataType] = field(default_factory=dict)
    paths: Mapping[str, AttributePath] = field(default_factory=dict)

    @property
    def order(self) -> tuple[str, ...]:
        """The columns that the stream is sorted by. Simultaneous events that differ in their
        starts are so in the same order everywhere."""
        order = (self.time, self.tie, self.start)
        return tuple(dict.fromkeys(column for column in order if column is not None))

    @cached_property
    def _folded(self) -> Mapping[str, str | None]:
        folded: dict[str, str | None] = {}
        for name in self.columns:
            folded[name.lower()] = None if name.lower() in folded else name
        return folded

    def resolve(self, name: str) -> str | None:
        """The column that an attribute means: exactly, then without case if that is unique."""
        if name in self.columns:
            return name
        return self._folded.get(name.lower())

    def held(self, names: Iterable[str]) -> frozenset[str]:
        """The columns of the data that hold these, some of which may be paths."""
        return frozenset(self.paths[n].column if n in self.paths else n for n in names)

    def columns_of(self, types: Iterable[str]) -> frozenset[str]:
        """Columns that an event of one of these types (streams) may have."""
        if self.streams is None:
            return frozenset(self.columns)
        named = [columns for columns in map(self.own_columns, types) if columns is not None]
        return frozenset().union(*named) if named else frozenset(self.columns)

    def own_columns(self, type_: str) -> frozenset[str] | None:
        """The columns of the stream of that name, or of the one that has types of its own."""
        return self.others if self.streams is None else self.streams.get(type_, self.others)
