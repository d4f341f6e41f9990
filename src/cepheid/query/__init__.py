"""Queries as users write and call them: `Query`, and the functions that take a text or one."""

from __future__ import annotations

from cepheid.query.entry import match, rejected
from cepheid.query.option_arguments import options_of
from cepheid.query.parsed_query import Query, query_of
from cepheid.query.runtimes import runtime_of

__all__ = ["Query", "match", "options_of", "query_of", "rejected", "runtime_of"]
