"""Cases by language feature: a query, events, and the matches that it must give."""

from .reader import Case, bound, cases, files, rewrite, show, table

__all__ = ["Case", "bound", "cases", "files", "rewrite", "show", "table"]
