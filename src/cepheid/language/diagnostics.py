"""Errors as values: a code, a span, a message, a hint; and how they are shown.

CEP204: Trade has no attribute `prise`
  fraud.cep:3:14
  3 | WHERE a.id = b.prise
    |              ^^^^^^^ did you mean `price`?
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from cepheid.language.ast import Span


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
        whole = self.source.text
        begin = whole.rfind("\n", 0, self.span.start) + 1
        text = whole[begin:].partition("\n")[0].rstrip("\r")
        before = self.span.start - begin
        # A span over several lines is underlined on its first.
        width = max(1, min(self.span.end - self.span.start, len(text) - before))
        number = str(line)
        gutter = " " * len(number)
        # Tabs are kept, so that the caret stays under its text in any terminal.
        lead = "".join("\t" if c == "\t" else " " for c in text[:before])
        caret = f"{lead}{'^' * width} {self.hint}".rstrip()
        return (
            f"{self.code}: {self.message}\n"
            f"  {self.source.name}:{line}:{column}\n"
            f"  {number} | {text}\n"
            f"  {gutter} | {caret}"
        )


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that a misspelled one most likely means."""
    by_lower = {k.lower(): k for k in known}
    close = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[close[0]] if close else None
