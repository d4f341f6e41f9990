"""The events of a campaign, and the files that bring them.

Every row has a number of seven digits of its own, which is found again in whatever is kept of it.
What becomes of a row is known when it is written: it takes part, it is late, it has no time, it is
ahead of the clock, its line is malformed, or its whole file is one that can't be read.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

BEGIN = datetime(2026, 1, 31, 12, tzinfo=UTC)
FIRST_ROW = 1_000_000
KEYS = 4
DELAY = 10
"""Seconds by which events may be late: the watermark that is declared."""

DISORDER = 6
"""Seconds by which they are."""

NAMES = ("ts", "type", "id", "x", "row")
SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("us", "UTC"),
        "type": pa.string(),
        "id": pa.int64(),
        "x": pa.int64(),
        "row": pa.int64(),
    }
)
COLUMNS = "ts timestamp, type string, id long, x long, row long"
"""As the command line takes them."""


class Fate(Enum):
    TAKEN = "taken"
    LATE = "late"
    TIMELESS = "without a time"
    FUTURE = "ahead of the clock"
    MALFORMED = "malformed"
    UNREAD = "in files that can't be read"


@dataclass(frozen=True)
class Event:
    """`second` is counted from the beginning; None is no time."""

    row: int
    second: int | None
    type: str
    id: int
    x: int

    @property
    def time(self) -> datetime | None:
        return None if self.second is None else BEGIN + timedelta(seconds=self.second)

    @property
    def values(self) -> dict[str, object]:
        return {"ts": self.time, "type": self.type, "id": self.id, "x": self.x, "row": self.row}


YEAR_9999 = int((datetime(9999, 6, 1, tzinfo=UTC) - BEGIN).total_seconds())


@dataclass
class Source:
    """Writes events to a folder, or to one for each type, and remembers what must become of them.
    `format` is parquet, json or csv."""

    folder: Path
    format: str
    streams: tuple[str, ...]
    chance: random.Random
    fates: dict[Fate, list[Event]] = field(default_factory=lambda: {fate: [] for fate in Fate})
    unread: list[Path] = field(default_factory=list)
    clock: int = 0
    files: int = 0
    rows: int = FIRST_ROW

    def __post_init__(self) -> None:
        for place in self.folders:
            place.mkdir(parents=True)

    @property
    def folders(self) -> list[Path]:
        return [self.folder / name for name in self.streams] or [self.folder]

    # ── what comes ──

    def add(self, odd: Sequence[Fate] = ()) -> str:
        """A file of events out of order, with a few odd ones among them."""
        events = [self._event() for _ in range(self.chance.choice((1, 5, 20, 60)))]
        self._remember(Fate.TAKEN, events)
        for fate in odd:
            strange = self._event()
            match fate:
                case Fate.TIMELESS:
                    strange = replace(strange, second=None)
                case Fate.FUTURE:
                    strange = replace(strange, second=YEAR_9999)
            self._remember(fate, [strange])
            events.append(strange)
        self.chance.shuffle(events)
        self._write(events, {e.row for e in self.fates[Fate.MALFORMED]})
        few = ", ".join(f"1 {fate.value}" for fate in odd)
        return f"{len(events)} events{f' ({few})' if few else ''}"

    def add_late(self, second: int) -> str:
        """Events before a second that the watermark has passed, of types that every query takes:
        of others, late rows are only counted."""
        count = self.chance.randrange(1, 6)
        events = [
            replace(
                self._event(0),
                second=self.chance.randrange(second - 30, second),
                type=self.chance.choice(("A", "B")),
            )
            for _ in range(count)
        ]
        self._remember(Fate.LATE, events)
        self._write(events)
        return f"{count} late events"

    def add_end(self) -> str:
        """An event of no query, after which all windows have passed. It moves the clock of each
        stream."""
        self.clock += 1000
        for stream in self.streams or ("Z",):
            event = replace(self._event(0), second=self.clock, type=stream, id=-1)
            self._remember(Fate.TAKEN, [event])
            self._write([event])
        return "the end"

    def add_unreadable(self, kind: str) -> str:
        """A file of which nothing takes part. Lines before a cut may be read, so in a compressed
        file they are of no query's type; in a stream, which has one type, no other event has their
        id."""
        events = [self._event(0) for _ in range(20)]
        if kind == "cut" and self.format != "parquet":
            events = [replace(e, type="Z", id=-1) for e in events]
        # Lines of a CSV file that lacks a column are read, and each of them is rejected.
        lacking = kind == "another header"
        self._remember(Fate.MALFORMED if lacking else Fate.UNREAD, events)
        stream = self.chance.choice(self.streams) if self.streams else ""
        name, content = self._content(events, ())
        match kind:
            case "cut":
                if self.format != "parquet":
                    name, content = f"{name}.gz", gzip.compress(content)
                content = content[: len(content) * 2 // 3]
            case "another type":
                table = _table(events)
                text = table["row"].cast(pa.string())
                content = _parquet(table.set_column(4, "row", text))
            case "another header":
                content = content.replace(b"ts,type", b"when,what", 1)
        path = self._place(stream, name, content)
        self.unread += [] if lacking else [path]
        return f"a file that can't be read ({kind})"

    @property
    def unreadable_kinds(self) -> tuple[str, ...]:
        return {"parquet": ("cut", "another type"), "csv": ("cut", "another header")}.get(
            self.format, ("cut",)
        )

    @property
    def odd_fates(self) -> tuple[Fate, ...]:
        lines = () if self.format == "parquet" else (Fate.MALFORMED,)
        return (Fate.TIMELESS, Fate.FUTURE, *lines)

    def _event(self, forward: int = 2) -> Event:
        self.clock += self.chance.randrange(forward) if forward else 0
        self.rows += 1
        return Event(
            self.rows,
            self.clock - self.chance.randrange(DISORDER),
            self.chance.choice(self.streams or ("A", "B", "C")),
            self.chance.randrange(KEYS),
            self.chance.randrange(10),
        )

    def _remember(self, fate: Fate, events: Sequence[Event]) -> None:
        self.fates[fate] += events

    # ── files ──

    def _write(self, events: Sequence[Event], malformed: Collection[int] = ()) -> None:
        for stream in self.streams or ("",):
            own = [e for e in events if not stream or e.type == stream]
            if own:
                name, content = self._content(own, malformed)
                self._place(stream, name, content)

    def _place(self, stream: str, name: str, content: bytes) -> Path:
        """In one piece, as files must come to a folder that is read."""
        folder = self.folder / stream
        hidden = folder / f".{name}"
        # Spark reads files in the order of their milliseconds, and those of one in any order.
        time.sleep(0.002)
        hidden.write_bytes(content)
        return hidden.rename(folder / name)

    def _content(self, events: Sequence[Event], malformed: Collection[int]) -> tuple[str, bytes]:
        self.files += 1
        name = f"{self.files:05}.{self.format}"
        match self.format:
            case "parquet":
                return name, _parquet(_table(events))
            case "json":
                return name, _json(events, malformed)
            case _:
                return name, _csv(events, malformed)


def _table(events: Sequence[Event]) -> pa.Table:
    return pa.Table.from_pylist([e.values for e in events], SCHEMA)


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def _text(event: Event) -> dict[str, object]:
    time = event.time
    return {**event.values, "ts": None if time is None else time.isoformat()}


def _json(events: Sequence[Event], malformed: Collection[int]) -> bytes:
    lines = []
    for event in events:
        line = json.dumps(_text(event))
        lines.append(line[:-1] if event.row in malformed else line)
    return ("\n".join(lines) + "\n").encode()


def _csv(events: Sequence[Event], malformed: Collection[int]) -> bytes:
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(NAMES)
    for event in events:
        values = _text(event)
        if event.row in malformed:
            values["id"] = "oops"  # `none` would be NULL
        writer.writerow("" if values[name] is None else values[name] for name in NAMES)
    return sink.getvalue().encode()
