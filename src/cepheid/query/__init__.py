"""Queries as users write and call them: `Query`, and the functions that take a text or one."""

from __future__ import annotations

from cepheid.query.parsed_query import (
    Query,
    is_spark,
    match,
    of_kind,
    options_of,
    query_of,
    rejected,
)

__all__ = ["Query", "is_spark", "match", "of_kind", "options_of", "query_of", "rejected"]
