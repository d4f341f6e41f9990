"""The events that are looked at: all of them, or of large data whole keys or a stretch of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.query import BoundQuery, Clock
from cepheid.engine.match_schema import MATCH_END
from cepheid.engine.rows.clock import times
from cepheid.errors import DataError
from cepheid.language import ast
from cepheid.language.traversal import walk
from cepheid.options import Options
from cepheid.plan.amounts import count
from cepheid.reasons.far_trials import FarTrials
from cepheid.reasons.first_groups import Groups
from cepheid.reasons.local_trials import INTERPRETED, LocalTrials
from cepheid.reasons.trials import Trials, Variation
from cepheid.runtime import Bindable, KeptRows, Runtime

Amount: TypeAlias = int | Literal["all"] | None
"""About how many events to look at: None leaves it to where they are."""

ROWS = 20_000
"""Events in this process that are looked at, if the caller doesn't say."""

BROUGHT = 20_000
"""Events elsewhere that are brought here: with so few that is faster than any job there."""

FAR_ROWS = 1_000_000
"""The same for events that stay where they are."""

NAMED = 100
"""Events elsewhere that are looked at for each condition that names some."""


def trials_of(
    query: Bindable,
    data: Any,
    options: Options,
    runtime: Runtime,
    rows: Amount,
    by: Groups | None = None,
) -> Trials:
    """The events for a query, of repeatable data: here, or where they are. With `by` first events
    are told apart."""
    bound = query.bind(runtime.columns(data), options)
    most = _most(rows, FAR_ROWS)
    columns = _columns(query.syntax, options, by if isinstance(by, str) else None)
    kept = runtime.keep_events(data, _plain(options), columns, _key(bound), most, BROUGHT)
    if kept is not None:
        return FarTrials(kept, by)
    return looked_at(query, data, options, runtime, rows)


def looked_at(
    query: Bindable,
    data: Any,
    options: Options,
    runtime: Runtime,
    rows: Amount,
    around: Sequence[int] = (),
) -> LocalTrials:
    """The events for a query in this process: of repeatable data, at most about so many. Those of
    the rows `around` are among them."""
    most = _most(rows, ROWS)
    source, total = runtime.first_events(data, options.time, most)
    tables = dict(source) if isinstance(source, Mapping) else {"": source}
    whole = sum(len(t) for t in tables.values())
    if most is not None and whole > most:
        bound = query.bind(_shaped(data, {n: t.schema for n, t in tables.items()}), options)
        moments = _all_moments(tables, options)
        chosen, sample = _chosen(bound, tables, moments, most, around)
        return _local(data, tables, options, total, runtime, sample, chosen)
    first = f"the first {count(whole)} of {count(total)} events in time"
    return _local(data, tables, options, total, runtime, first if total > whole else None)


def looked_near(
    query: Bindable,
    data: Any,
    options: Options,
    runtime: Runtime,
    rows: Amount,
    named: Mapping[str, ast.Query],
) -> LocalTrials:
    """Those events of data elsewhere that may decide about the named ones: of their keys, or if the
    query has no key, from a window before to a window after them. `named` has a query for each
    variable, which finds its events."""
    bound = query.bind(runtime.columns(data), options)
    key = _key(bound)
    keys: set[Any] = set()
    moments: list[int] = []
    for variable, events in named.items():
        column = key or options.time
        returns = (ast.ReturnItem(ast.Attribute(variable, column), "key"),)
        limit = ast.MatchLimit(ast.EventCount(NAMED))
        found = replace(events, returns=returns, limit=limit)
        table = runtime.collected(runtime.match(Variation(found), data, _plain(options)))
        keys.update(table["key"].to_pylist())
        moments += times(table[MATCH_END].combine_chunks()).tolist()
    window = bound.window
    room = window.size if window is not None and window.clock is Clock.TIME else 0
    span = (min(moments) - room, max(moments) + room) if moments else (0, 0)
    most = _most(rows, ROWS)
    near = None if key is None else (key, keys - {None})
    tables, total = runtime.near(data, options.time, near, span, most)
    tables = dict(tables) if isinstance(tables, Mapping) else {"": tables}
    whole = sum(len(t) for t in tables.values())
    which = f"those of their {key}" if key else "those around them in time"
    sample = f"{count(whole)} of {count(total)} events, {which}"
    return _local(data, tables, options, total, runtime, None if whole == total else sample)


def _local(
    data: Any,
    tables: Mapping[str, pa.Table],
    options: Options,
    total: int,
    runtime: Runtime,
    sample: str | None,
    chosen: NDArray[np.bool_] | None = None,
) -> LocalTrials:
    names = KeptRows.beside({c for t in tables.values() for c in t.column_names})
    numbered = _numbered(tables, names.row)
    numbered = numbered if chosen is None else _taken(numbered, chosen)
    looked = sum(len(t) for t in numbered.values())
    run = replace(_plain(options), jit=options.jit and looked > INTERPRETED)
    moments = _all_moments(tables, options)
    return LocalTrials(
        _shaped(data, numbered),
        names.row,
        moments,
        run,
        max(total, len(moments)),
        sample,
        numbered=runtime.place == "process",
    )


def _most(rows: Amount, usual: int) -> int | None:
    if rows is None:
        return usual
    if isinstance(rows, int) and rows > 0:
        return rows
    if rows == "all":
        return None
    raise DataError(f'rows= is a number of events, at least 1, or "all", not {rows!r}')


def _plain(options: Options) -> Options:
    return replace(options, plan="auto", stats=None, adapt=None, dead_letters=False)


def _all_moments(tables: Mapping[str, pa.Table], options: Options) -> NDArray[np.int64]:
    return np.concatenate([_moments(t[options.time]) for t in tables.values()])


def _key(bound: BoundQuery) -> str | None:
    """A column that is a key of every variable."""
    return next((part.uniform for part in bound.key if part.uniform is not None), None)


def _columns(query: ast.Query, options: Options, by: str | None) -> set[str]:
    """What variations may read, in lower case; of a path also the column that it begins with."""
    read = {by, options.time, options.type, options.tie, options.start}
    for node in walk(query):
        match node:
            case ast.Attribute(_, name) | ast.KeyTest(name):
                read.update((name, name.partition(".")[0]))
            case _:
                pass
    return {name.lower() for name in read if name is not None}


def _shaped(data: Any, parts: Mapping[str, Any]) -> Any:
    return dict(parts) if isinstance(data, Mapping) else parts[""]


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
    key = _key(bound)
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
