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


def _escaped(character: re.Match[str]) -> str:
    letter = character[0]
    return f"~{letter.lower()}" if "A" <= letter <= "Z" else f"~{ord(letter)}~"


def given(name: str) -> str:
    """
    >>> given("user~id"), given("unit~32~price"), given("x-2")
    ('userId', 'unit price', 'x')
    """
    return re.sub(r"~([a-z])|~(\d+)~", _meant, name.partition("-")[0])


def _meant(escape: re.Match[str]) -> str:
    return escape[1].upper() if escape[1] else chr(int(escape[2]))


def in_quotes(name: str) -> str:
    """A name as SQL writes it, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def quoted(name: str) -> Column:
    """A column by its own name."""
    return F.col(in_quotes(name))


def named(name: str) -> Column:
    """The event column with this name of the caller's."""
    return quoted(safe(name))


def safe_names(names: list[str]) -> list[str]:
    """Safe names for columns; a repeated name gets a number, which `given` drops."""
    seen: dict[str, int] = {}
    safe_ones: list[str] = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        safe_ones.append(safe(name) if seen[name] == 1 else f"{safe(name)}-{seen[name]}")
    return safe_ones


def types_of(events: DataFrame) -> dict[str, t.DataType]:
    """The types of events' columns, by the caller's names."""
    return {given(f.name): f.dataType for f in events.schema.fields}


def as_given(rows: pa.RecordBatch | pa.Table) -> Any:
    """Rename the columns of a batch in Python back to the caller's names."""
    names = [given(name) for name in rows.schema.names]
    return rows if names == rows.schema.names else rows.rename_columns(names)
