"""What the page begins with: a sample of a file, and a query or events if there are none."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.schemas import assumed
from cepheid.engine.rows.event_types import types_in
from cepheid.errors import CepheidError, DataError
from cepheid.files.declared import quoted
from cepheid.inprocess.runtime import InProcess
from cepheid.lab.situations.notation import read_events
from cepheid.lab.situations.situation import TIME, TYPE
from cepheid.language import ast, parse
from cepheid.language.diagnostics import nearest
from cepheid.language.traversal import walk
from cepheid.options import Options
from cepheid.plan.amounts import count
from cepheid.query import Query
from cepheid.reasons.looked_at import looked_at


def sample(text: str, events: pa.Table, options: Options, rows: int) -> tuple[pa.Table, str | None]:
    """At most about so many events, in the order of time, and which these are if not all. If the
    query has a key, whole keys are taken; if it is wrong, the first events."""
    _check(events, options)
    known = events.filter(pc.is_valid(events[options.time]))
    known = known.take(pc.sort_indices(known, [(options.time, "ascending")]))
    if known.num_rows <= rows:
        return known, None
    try:
        query = Query(text)
        query.bind(known.schema, options)
        trials = looked_at(query, known, options, InProcess(), rows)
        return trials.data.drop_columns([trials.row]), trials.sample
    except CepheidError:
        return known.slice(0, rows), f"the first {count(rows)} of {count(known.num_rows)} events"


def _check(events: pa.Table, options: Options) -> None:
    for option in ("time", "type", "tie"):
        name = getattr(options, option)
        if name is not None and name not in events.column_names:
            close = nearest(name, events.column_names)
            hint = f"; did you mean `{close}`?" if close else ""
            raise DataError(f"there is no column `{name}` (--{option}){hint}")


def starting_query(events: pa.Table, options: Options) -> str:
    """A pattern of the first two types."""
    types = [] if options.type is None else sorted(types_in(events[options.type]))
    first, second = (types * 2)[:2] if types else ("", "")
    if not types:
        return "PATTERN a ; b\nWITHIN 10 minutes"
    within = "10" if pa.types.is_integer(events.schema.field(options.time).type) else "10 minutes"
    return f"PATTERN {quoted(first)} a ; {quoted(second)} b\nWITHIN {within}"


def starting_events(text: str) -> pa.Table:
    """An event of each type of the pattern, in its order, with the columns that the query reads."""
    try:
        query = parse(text)
    except CepheidError:
        return read_events("A@1 B@2")
    leaves = [n for n in walk(query.pattern) if isinstance(n, ast.Atom | ast.AnyOf)]
    names = [leaf.name if isinstance(leaf, ast.Atom) else leaf.types[0] for leaf in leaves]
    read = assumed(query, Options(time=TIME, type=TYPE))
    values = ", ".join(
        f"{quoted(field.name)}=" + ("'a'" if pa.types.is_string(field.type) else "1")
        for field in read
        if field.name not in (TIME, TYPE)
    )
    inner = f"({values})" if values else ""
    return read_events(" ".join(f"{quoted(name)}@{n}{inner}" for n, name in enumerate(names, 1)))
