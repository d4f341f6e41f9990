"""Errors as values: a code, a span, a message, a hint; and how they are shown.

CEP204: Trade has no attribute `prise`
  fraud.cep:3:14
  3 | WHERE a.id = b.prise
    |              ^^^^^^^ did you mean `price`?
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from cepheid.language.ast import Span

_LONGEST_LINE = 160
_LONGEST_MESSAGE = 600
_LONG_NAME = re.compile(r"`([^`]{60})[^`]{21,}([^`]{19})`")


@dataclass(frozen=True, slots=True)
class Source:
    """The query text and the name under which it is shown. `line` and `column` are where the text
    begins in what has that name: a file may hold several queries."""

    text: str
    name: str = "query"
    line: int = 1
    column: int = 1

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1."""
        before = self.text.count("\n", 0, offset)
        column = offset - (self.text.rfind("\n", 0, offset) + 1) + 1
        return self.line + before, column if before else self.column + column - 1


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. Codes: 1xx syntax, 2xx names and types, 3xx shape, 4xx window and key."""

    code: str
    message: str
    span: Span
    source: Source
    hint: str = ""

    def render(self) -> str:
        line, column = self.source.position(self.span.start)
        text, before = self._line()
        # A span over several lines is underlined on its first.
        width = max(1, min(self.span.end - self.span.start, len(text) - before))
        number = str(line)
        gutter = " " * len(number)
        # Tabs are kept, so that the caret stays under its text in any terminal.
        lead = "".join("\t" if c == "\t" else " " for c in text[:before])
        caret = f"{lead}{'^' * width} {shown(self.hint)}".rstrip()
        return (
            f"{self.code}: {shown(self.message)}\n"
            f"  {self.source.name}:{line}:{column}\n"
            f"  {number} | {text}\n"
            f"  {gutter} | {caret}"
        )

    def _line(self) -> tuple[str, int]:
        """The line of the place, or what is around the place in a long one; and how many
        characters of it stand before the place."""
        whole, start = self.source.text, self.span.start
        begin = whole.rfind("\n", 0, start) + 1
        end = whole.find("\n", start)
        text = whole[begin : len(whole) if end < 0 else end].rstrip("\r")
        before = start - begin
        left = max(0, min(before - _LONGEST_LINE // 2, len(text) - _LONGEST_LINE))
        text = _marked(text, left, left + _LONGEST_LINE)
        return printable(text), before - left


def printable(text: str) -> str:
    """Characters that a terminal doesn't show, or obeys, are replaced, one by one."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in text)


def shown(message: str) -> str:
    """A message, with long names and texts in it shortened."""
    short = _LONG_NAME.sub(lambda m: f"`{m[1]}…{m[2]}`", message)
    return printable(_marked(short, 0, _LONGEST_MESSAGE))


def _marked(text: str, begin: int, end: int) -> str:
    """A part of the text, with dots for what is left out."""
    part = text[begin:end]
    if begin > 0:
        part = "…" + part[1:]
    return part[:-1] + "…" if end < len(text) else part


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that a misspelled one most likely means."""
    by_lower = {k.lower(): k for k in known}
    close = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[close[0]] if close else None
