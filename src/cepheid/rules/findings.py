"""Problems of rules: in a query, in a table, or between rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cepheid.errors import QueryError
from cepheid.language.diagnostics import Diagnostic

_SHOWN = 5
"""How many rows a finding names; further rows are only counted."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    file        the file, or what else the query or the table is called
    rows        the rows of the table that it is about, from 1; none, if it isn't about some
    template    the template that is affected, if it is known which
    diagnostic  the place in the query, if the query has one
    """

    file: str
    message: str
    hint: str = ""
    rows: tuple[int, ...] = ()
    template: str | None = None
    diagnostic: Diagnostic | None = None

    def render(self) -> str:
        """The printed text: the problem, its place, and what to do.

        >>> print(Finding("rules/big.csv", "the name is empty", "give it one", (3, 8)).render())
        rules/big.csv, rows 3 and 8: the name is empty
          give it one
        """
        place = self.file + (f", {listed_rows(self.rows)}" if self.rows else "")
        if self.diagnostic is None:
            return f"{place}: {self.message}" + (f"\n  {self.hint}" if self.hint else "")
        values = f"\n  with the values of {place}" if self.rows else ""
        return self.diagnostic.render() + values


def of_query(error: QueryError, template: str | None = None) -> tuple[Finding, ...]:
    """A finding for each of the query's diagnostics."""
    return tuple(of_diagnostic(diagnostic, template) for diagnostic in error.diagnostics)


def of_diagnostic(diagnostic: Diagnostic, template: str | None = None) -> Finding:
    return Finding(
        diagnostic.source.name, diagnostic.message, diagnostic.hint, (), template, diagnostic
    )


def listed_rows(rows: Iterable[int]) -> str:
    """
    >>> listed_rows([4]), listed_rows([4, 5]), listed_rows(range(1, 10))
    ('row 4', 'rows 4 and 5', 'rows 1, 2, 3, 4, 5 and 4 more')
    """
    shown = [f"{row:,}" for row in rows]
    if len(shown) == 1:
        return f"row {shown[0]}"
    left = len(shown) - _SHOWN
    *first, last = shown if left < 2 else [*shown[:_SHOWN], f"{left:,} more"]
    return f"rows {', '.join(first)} and {last}"
