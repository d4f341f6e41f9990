"""The events that are looked at: all of them, or of large data whole keys or a stretch of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.query import BoundQuery
from cepheid.engine.rows.clock import times
from cepheid.options import Options
from cepheid.plan.amounts import count
from cepheid.reasons.trials import INTERPRETED, Trials
from cepheid.runtime import Bindable, Runtime

ROWS = 20_000
"""Events that are looked at, if the caller doesn't say."""


def looked_at(
    query: Bindable,
    data: Any,
    options: Options,
    runtime: Runtime,
    rows: int | None = ROWS,
    around: Sequence[int] = (),
) -> Trials:
    """The events for a query, of repeatable data: at most about so many. Those of the rows `around`
    are among them."""
    tables, total = _tables(data, options, runtime, rows)
    whole = sum(len(t) for t in tables.values())
    name = _free(tables)
    numbered = _numbered(tables, name)
    moments = np.concatenate([_moments(t[options.time]) for t in tables.values()])
    plain = replace(options, plan="auto", stats=None, adapt=None, dead_letters=False)
    sample = None
    if rows is not None and whole > rows:
        bound = query.bind(_shaped(data, {n: t.schema for n, t in tables.items()}), options)
        chosen, sample = _chosen(bound, tables, moments, rows, around)
        numbered = _taken(numbered, chosen)
    elif total > whole:
        sample = f"the first {count(whole)} of {count(total)} events in time"
    least = sum(len(t) for t in numbered.values())
    plain = replace(plain, jit=options.jit and least > INTERPRETED)
    return Trials(_shaped(data, numbered), name, moments, plain, max(total, whole), sample)


def _tables(
    data: Any, options: Options, runtime: Runtime, rows: int | None
) -> tuple[dict[str, pa.Table], int]:
    """The events by stream, "" if it has no name, and how many there are in all."""
    source, total = runtime.first_events(data, options.time, rows)
    tables = dict(source) if isinstance(source, Mapping) else {"": source}
    return tables, total


def _shaped(data: Any, parts: Mapping[str, Any]) -> Any:
    return dict(parts) if isinstance(data, Mapping) else parts[""]


def _free(tables: Mapping[str, pa.Table]) -> str:
    name, taken = "row", {c.lower() for t in tables.values() for c in t.column_names}
    while name in taken:
        name += "_"
    return name


def _numbered(tables: Mapping[str, pa.Table], name: str) -> dict[str, pa.Table]:
    """With the number of each row; the numbers of a stream continue those of the one before."""
    numbered, first = {}, 0
    for stream, table in tables.items():
        numbers = pa.array(np.arange(first, first + len(table), dtype=np.int64))
        numbered[stream] = table.append_column(name, numbers)
        first += len(table)
    return numbered


def _moments(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """The times; of rows without one, the lowest."""
    whole = column.combine_chunks()
    known = times(whole.drop_null())
    moments = np.full(len(whole), np.iinfo(np.int64).min, dtype=np.int64)
    moments[np.asarray(pc.is_valid(whole))] = known
    return moments


def _chosen(
    bound: BoundQuery,
    tables: Mapping[str, pa.Table],
    moments: NDArray[np.int64],
    rows: int,
    around: Sequence[int],
) -> tuple[NDArray[np.bool_], str]:
    """Which rows are looked at, and what to say of that. Whole keys, if the query has one: their
    matches are exactly those that the whole data would give."""
    whole = len(moments)
    key = next((part.uniform for part in bound.key if part.uniform is not None), None)
    if key is not None and all(key in t.column_names for t in tables.values()):
        values = pa.chunked_array([c for t in tables.values() for c in t[key].chunks])
        codes = np.asarray(values.combine_chunks().dictionary_encode().indices.fill_null(-1))
        chosen = _keys(codes, rows, around)
        keys = len(np.unique(codes[codes >= 0]))
        seen = len(np.unique(codes[chosen & (codes >= 0)]))
        if 0 < chosen.sum() <= 2 * rows:
            text = f"{count(int(chosen.sum()))} of {count(whole)} events: those of {count(seen)} "
            return chosen, text + f"of {count(keys)} values of {key}"
    order = np.argsort(moments, kind="stable")
    first = 0
    if around:
        places = np.flatnonzero(np.isin(order, np.asarray(around)))
        first = max(0, min(int(places.min()) - rows // 2, whole - rows))
    chosen = np.zeros(whole, dtype=np.bool_)
    chosen[order[first : first + rows]] = True
    return chosen, f"{count(rows)} of {count(whole)} events, one after the other in time"


def _keys(codes: NDArray[np.int64], rows: int, around: Sequence[int]) -> NDArray[np.bool_]:
    """Keys drawn with a fixed seed until they have that many rows."""
    known = np.unique(codes[codes >= 0])
    sizes = np.bincount(codes[codes >= 0])
    wanted = [int(codes[r]) for r in around if codes[r] >= 0]
    drawn = [*dict.fromkeys([*wanted, *np.random.default_rng(7).permutation(known).tolist()])]
    taken: list[int] = []
    total = 0
    for key in drawn:
        if taken and total + sizes[key] > rows and key not in wanted:
            break
        taken.append(key)
        total += int(sizes[key])
    return np.isin(codes, taken)


def _taken(tables: Mapping[str, pa.Table], chosen: NDArray[np.bool_]) -> dict[str, pa.Table]:
    chosen_rows, first = {}, 0
    for name, table in tables.items():
        chosen_rows[name] = table.filter(pa.array(chosen[first : first + len(table)]))
        first += len(table)
    return chosen_rows
