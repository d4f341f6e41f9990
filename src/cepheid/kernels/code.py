"""Writes the source of kernels: indented lines, and unique names.

Automata, the templates of operators and lowered expressions are all written with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

INDENT = "    "


class Code:
    """Lines of a kernel as they are being written. New names begin with `prefix` unless another
    beginning is given."""

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
        """Add finished lines at this level."""
        for text in lines:
            self.line(text)

    def text(self, template: str) -> None:
        """Add the lines of a template at this level."""
        for text in template.strip("\n").split("\n"):
            if text:
                self.line(text)
            else:
                self.lines.append("")

    def let(self, prefix: str | None, source: str) -> str:
        """Assign a value to a new name."""
        name = self.name(prefix)
        self.line(f"{name} = {source}")
        return name

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add a line, and a block inside it: `pass` if it stays empty."""
        self.line(head)
        with self.deeper(1):
            yield

    @contextmanager
    def deeper(self, levels: int) -> Iterator[None]:
        """Continue inside the last lines, which end that many levels deeper."""
        before = len(self.lines)
        self.level += levels
        yield
        if levels and len(self.lines) == before:
            self.line("pass")
        self.level -= levels

    def cut(self) -> tuple[list[str], int]:
        """Take out the lines so far and how deep they end; new lines and names begin."""
        lines, level = self.lines, self.level
        self.lines, self.level = [], 0
        return lines, level
