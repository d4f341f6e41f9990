"""Names of columns on Spark: those that the caller has, and safe ones in between.

Spark takes `x` and `X` as one name, and a dot as a field of a struct. So the columns of events get
names of a few characters on the way in, and their own ones again in Python. No two names get the
same safe one, whatever else there is, so nothing has to be remembered: `userId` is `user~id`, and
`a.b` is `a~46~b`.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t


def safe(name: str) -> str:
    """
    >>> safe("user_id"), safe("userId"), safe("unit price")
    ('user_id', 'user~id', 'unit~32~price')
    """
    return re.sub(r"[^a-z0-9_]", _escaped, name)


def _escaped(found: re.Match[str]) -> str:
    letter = found[0]
    return f"~{letter.lower()}" if "A" <= letter <= "Z" else f"~{ord(letter)}~"


def given(name: str) -> str:
    """
    >>> given("user~id"), given("unit~32~price"), given("x-2")
    ('userId', 'unit price', 'x')
    """
    return re.sub(r"~([a-z])|~(\d+)~", _meant, name.partition("-")[0])


def _meant(found: re.Match[str]) -> str:
    return found[1].upper() if found[1] else chr(int(found[2]))


def in_quotes(name: str) -> str:
    """A name as SQL writes it, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def quoted(name: str) -> Column:
    """A column by the name that it has."""
    return F.col(in_quotes(name))


def named(name: str) -> Column:
    """The column of events that the caller calls so."""
    return quoted(safe(name))


def safe_names(names: list[str]) -> list[str]:
    """Of several columns with one name, the others get a number; `given` drops it."""
    seen: dict[str, int] = {}
    found: list[str] = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(safe(name) if seen[name] == 1 else f"{safe(name)}-{seen[name]}")
    return found


def types_of(events: DataFrame) -> dict[str, t.DataType]:
    """The types of events' columns, by the caller's names."""
    return {given(f.name): f.dataType for f in events.schema.fields}


def as_given(rows: pa.RecordBatch | pa.Table) -> Any:
    """Events that have come to Python, with the caller's names."""
    names = [given(name) for name in rows.schema.names]
    return rows if names == rows.schema.names else rows.rename_columns(names)
