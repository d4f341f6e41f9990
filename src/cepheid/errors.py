"""The exception tree.

    CepheidError              everything that Cepheid raises on purpose
    ├── QueryError            the query is wrong; carries its diagnostics
    ├── UnsupportedError      the query is right, but this version can't run it yet
    ├── PlanError             a forced plan doesn't fit the query
    └── DataError             the data doesn't fit: a missing column, a wrong type, disorder

Messages say what to do next. A `QueryError` prints the line and a caret (see
`cepheid.language.diagnostics`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cepheid.language.diagnostics import Diagnostic


class CepheidError(Exception):
    """Base of every error that Cepheid raises on purpose."""


class QueryError(CepheidError):
    """The query text is wrong. `diagnostics` holds every finding, the first one first."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n\n".join(d.render() for d in self.diagnostics))

    def __reduce__(self) -> tuple[type[QueryError], tuple[tuple[Diagnostic, ...]]]:
        return (QueryError, (self.diagnostics,))


class UnsupportedError(CepheidError):
    """The query means something, but no engine here runs it yet."""


class PlanError(CepheidError):
    """A plan that the caller forced doesn't fit the query."""


class DataError(CepheidError):
    """The data given doesn't fit the query or the options."""
