"""Where binding puts what is wrong with a query, so that one run reports all of it."""

from __future__ import annotations

from collections.abc import Iterable

from cepheid.errors import QueryError
from cepheid.language.ast import Span
from cepheid.language.diagnostics import Diagnostic, Source, nearest

MOST_FINDINGS = 100
"""With so many, the rest of the query isn't looked at."""


class Findings:
    """Collects diagnostics; the same finding at the same place is kept once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._diagnostics: dict[Diagnostic, None] = {}

    def add(self, code: str, message: str, span: Span, hint: str = "") -> None:
        self._diagnostics.setdefault(Diagnostic(code, message, span, self.source, hint))
        if len(self._diagnostics) >= MOST_FINDINGS:
            self.check()

    def text(self, span: Span) -> str:
        """The query's own words, on one line."""
        return " ".join(self.source.text[span.start : span.end].split())

    def __len__(self) -> int:
        return len(self._diagnostics)

    def check(self) -> None:
        """Raise what was found, in the order of the text."""
        if self._diagnostics:
            raise QueryError(sorted(self._diagnostics, key=lambda d: d.span))


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    close = nearest(name, known)
    return f"did you mean `{close}`?" if close else otherwise
