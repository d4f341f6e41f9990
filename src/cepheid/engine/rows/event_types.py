"""The types that events have, and what to say of a type that none of them has."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.binding.scope import listed
from cepheid.language.diagnostics import nearest

ABSENT = "no event is of type `[^`]*`; `"
"""The message of a type that is missing, and isn't like any that is there."""


def types_in(column: pa.Array | pa.ChunkedArray) -> set[str]:
    """The types that the events have, as a pattern writes them."""
    found = pc.unique(column).drop_null()
    if pa.types.is_dictionary(found.type):
        found = found.cast(found.type.value_type)
    if pa.types.is_boolean(found.type) or pa.types.is_date(found.type):
        found = found.cast(pa.string())
    return {
        v.decode(errors="replace") if isinstance(v, bytes) else str(v) for v in found.to_pylist()
    }


def no_such_type(name: str, present: set[str], column: str) -> str:
    """What to say of a type that no event has."""
    close = nearest(name, present)
    there_are = f"`{column}` has {listed(sorted(present))}" if present else f"`{column}` is empty"
    hint = f"did you mean `{close}`?" if close else there_are
    return f"no event is of type `{name}`; {hint}"


def misspelled(names: Iterable[str], present: set[str], column: str) -> list[str]:
    """What to say of types that no event has, but that look like one that some event has."""
    missing = [name for name in dict.fromkeys(names) if name not in present]
    return [no_such_type(name, present, column) for name in missing if nearest(name, present)]
