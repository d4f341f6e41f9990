"""Queries as they were prepared last: a call with the same query, columns and options needn't bind
and plan it again, which takes longer than to match a few rows."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from threading import Lock
from typing import TypeAlias

import pyarrow as pa

from cepheid.algebra.query import BoundQuery
from cepheid.language.diagnostics import Source
from cepheid.options import Options
from cepheid.planner import Prepared, prepare
from cepheid.runtime import Bindable

_MOST = 64
"""How many are kept: of a service that runs one query after the other."""

_Use: TypeAlias = tuple[Bindable, Source | None, bytes, bytes]

_kept: OrderedDict[_Use | None, tuple[BoundQuery, Prepared]] = OrderedDict()
_lock = Lock()


def prepared_for(
    query: Bindable, schema: pa.Schema, options: Options
) -> tuple[BoundQuery, Prepared]:
    """The query bound to the columns of one stream, and planned."""
    use = _use(query, schema, options)
    with _lock:
        if use in _kept:
            _kept.move_to_end(use)
            return _kept[use]
    bound = query.bind(schema, options)
    fresh = bound, prepare(bound, options)
    with _lock:
        if use is not None:
            _kept[use] = fresh
        if len(_kept) > _MOST:
            _kept.popitem(last=False)
    return fresh


def _use(query: Bindable, schema: pa.Schema, options: Options) -> _Use | None:
    """What a preparation depends on, by value; None if a parameter can't be written as bytes."""
    try:
        written = pickle.dumps(options)
    except (pickle.PicklingError, TypeError, AttributeError):
        return None
    return query, query.source, schema.serialize().to_pybytes(), written
