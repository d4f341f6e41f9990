"""Writing the source of kernels: lines at a level of indentation, names that are given once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

INDENT = "    "


class Code:
    """Lines of a kernel as they are being written. `prefix` begins names that have none of their
    own."""

    def __init__(self, level: int = 0, prefix: str = "t") -> None:
        self.lines: list[str] = []
        self.level = level
        self.prefix = prefix
        self._names = 0

    def name(self, prefix: str | None = None) -> str:
        """A new name."""
        self._names += 1
        return f"{self.prefix if prefix is None else prefix}{self._names}"

    def line(self, text: str) -> None:
        self.lines.append(INDENT * self.level + text)

    def let(self, prefix: str, source: str) -> str:
        """A new name for a value."""
        name = self.name(prefix)
        self.line(f"{name} = {source}")
        return name

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines inside of this one; `pass`, if there are none."""
        self.line(head)
        with self.deeper(1):
            yield

    @contextmanager
    def deeper(self, levels: int) -> Iterator[None]:
        """Lines inside of the last ones, which have gone so many levels deeper."""
        before = len(self.lines)
        self.level += levels
        yield
        if levels and len(self.lines) == before:
            self.line("pass")
        self.level -= levels
