"""The types of events, and the warnings for types that no event has."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.binding.scope import listed
from cepheid.language.diagnostics import nearest

ABSENT = "no event is of type `[^`]*`; `"
"""The message for a missing type that resembles no existing one."""


def types_in(column: pa.Array | pa.ChunkedArray) -> set[str]:
    """The types that the events have, as a pattern writes them."""
    values = pc.unique(column).drop_null()
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_boolean(values.type) or pa.types.is_date(values.type):
        values = values.cast(pa.string())
    return {
        v.decode(errors="replace") if isinstance(v, bytes) else str(v) for v in values.to_pylist()
    }


def no_such_type(name: str, present: set[str], column: str) -> str:
    """The warning for a type that no event has."""
    close = nearest(name, present)
    there_are = f"`{column}` has {listed(sorted(present))}" if present else f"`{column}` is empty"
    hint = f"did you mean `{close}`?" if close else there_are
    return f"no event is of type `{name}`; {hint}"


def misspelled(names: Iterable[str], present: set[str], column: str) -> list[str]:
    """The warnings for missing types that resemble one that exists."""
    missing = [name for name in dict.fromkeys(names) if name not in present]
    return [no_such_type(name, present, column) for name in missing if nearest(name, present)]
