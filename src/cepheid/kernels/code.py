"""Writing the source of kernels: lines at a level of indentation, names that are given once.

Automata, the templates of operators and lowered expressions are all written with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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

    @property
    def source(self) -> str:
        return "\n".join(self.lines) + "\n"

    def name(self, prefix: str | None = None) -> str:
        """A new name."""
        self._names += 1
        return f"{self.prefix if prefix is None else prefix}{self._names}"

    def line(self, text: str) -> None:
        self.lines.append(INDENT * self.level + text)

    def add(self, lines: Iterable[str]) -> None:
        """Lines that are written already, at this level."""
        for text in lines:
            self.line(text)

    def text(self, template: str) -> None:
        """The lines of a template, at this level."""
        for text in template.strip("\n").split("\n"):
            if text:
                self.line(text)
            else:
                self.lines.append("")

    def let(self, prefix: str | None, source: str) -> str:
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

    def cut(self) -> tuple[list[str], int]:
        """The lines so far and how deep they end; others begin, with new names."""
        lines, level = self.lines, self.level
        self.lines, self.level = [], 0
        return lines, level
