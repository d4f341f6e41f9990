"""Warnings for types of events that look misspelled in a rule."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import pyarrow as pa

from cepheid.algebra.binding.scope import types_of
from cepheid.engine.rows.event_types import misspelled, types_in
from cepheid.inprocess.frames import as_table, to_arrow
from cepheid.options import Options
from cepheid.query.runtimes import runtime_of
from cepheid.query.several_endless import is_endless
from cepheid.rules.template import Template


def warn_of_types(
    templates: Iterable[Template], present: Collection[str], column: str, stacklevel: int
) -> None:
    """Some rules may well be about types that are missing for once: only those are named that
    resemble one that is there."""
    patterns: dict[object, Template] = {}
    for template in templates:  # of queries that differ in constants, one is parsed
        outline = template.outline
        patterns.setdefault(template if outline is None else outline.frame[0], template)
    for template in patterns.values():
        for message in misspelled(types_of(template.query.syntax.pattern), set(present), column):
            warnings.warn(f"{template.name}: {message}", stacklevel=stacklevel + 1)


def types_at_hand(data: Any, options: Options) -> set[str]:
    """The types of the events of a table in this process; none of a schema, of several streams and
    of what is read only once."""
    if data is None or isinstance(data, pa.Schema | Mapping) or options.type is None:
        return set()
    if runtime_of(data).place != "process" or is_endless(data):
        return set()
    table = as_table(to_arrow(data))
    return types_in(table[options.type]) if options.type in table.column_names else set()
