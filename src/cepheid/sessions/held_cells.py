"""The state of a session: cells in memory, and all of them as bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from cepheid.errors import StateError
from cepheid.streaming.cells import framed, unframed

WHAT = "the saved session"
_HEADER = "header"


@dataclass
class HeldCells:
    """See `cepheid.streaming.cells.Cells`."""

    value: bytes | None = None
    segments: dict[int, bytes] = field(default_factory=dict)

    def header(self) -> bytes | None:
        return self.value

    def set_header(self, data: bytes) -> None:
        self.value = data

    def remove_header(self) -> None:
        self.value = None

    def segment(self, number: int) -> bytes | None:
        return self.segments.get(number)

    def set_segment(self, number: int, data: bytes) -> None:
        self.segments[number] = data

    def remove_segment(self, number: int) -> None:
        del self.segments[number]

    def parts(self) -> dict[str, bytes]:
        """All cells, by names."""
        header = {} if self.value is None else {_HEADER: self.value}
        return {**header, **{str(number): data for number, data in self.segments.items()}}

    @staticmethod
    def of(parts: Mapping[str, bytes]) -> HeldCells:
        segments = {int(name): data for name, data in parts.items() if name != _HEADER}
        return HeldCells(parts.get(_HEADER), segments)


def nested(name: str, parts: Mapping[str, bytes]) -> dict[str, bytes]:
    """The parts of something that has this name among others."""
    return {f"{name}/{part}": data for part, data in parts.items()}


def within(name: str, parts: Mapping[str, bytes]) -> dict[str, bytes]:
    """What was nested."""
    begin = f"{name}/"
    return {part[len(begin) :]: d for part, d in parts.items() if part.startswith(begin)}


def packed(parts: Mapping[str, bytes]) -> bytes:
    """Parts by their names as one value, which is checked when it is read."""
    sizes = json.dumps({name: len(data) for name, data in parts.items()}).encode()
    return framed(b"".join((struct.pack("<I", len(sizes)), sizes, *parts.values())))


def unpacked(data: bytes) -> dict[str, bytes]:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise StateError(
            f"{WHAT} is bytes, as session.save() gives them, not {type(data).__name__}"
        )
    body = unframed(bytes(data), WHAT)
    (length,) = struct.unpack_from("<I", body)
    begin, parts = 4 + length, dict[str, bytes]()
    for name, size in json.loads(bytes(body[4:begin])).items():
        parts[name] = bytes(body[begin : begin + size])
        begin += size
    return parts
