"""Which words need backticks, and where."""

from __future__ import annotations

import re

CLAUSES = ("FROM", "WHERE", "HAVING", "WITHIN", "USING", "AFTER", "RETURN")

RESERVED = frozenset(
    {
        *CLAUSES,
        *("INTO", "PATTERN", "SEQ", "ANY", "AND", "OR", "NOT", "UNLESS"),
        *("PREFIXES", "SUBSETS", "RUNS", "STRICT", "UNTIL"),
        *("BETWEEN", "IN", "LIKE", "CONTAINS", "IS", "NULL", "TRUE", "FALSE", "OCCURS"),
        *("CASE", "WHEN", "THEN", "ELSE", "END", "AS", "DISTINCT"),
    }
)
"""Words that the grammar reads as keywords in some place where a name may stand."""

_PLAIN = re.compile(r"[^\W\d]\w*")


def quoted(name: str, reserved: frozenset[str] = RESERVED) -> str:
    """The name as it is written: in backticks if it is reserved or has odd characters.

    >>> quoted("price"), quoted("where"), quoted("unit price")
    ('price', '`where`', '`unit price`')
    """
    if _PLAIN.fullmatch(name) and name.upper() not in reserved:
        return name
    return "`" + name.replace("`", "``") + "`"


def quoted_field(name: str) -> str:
    """A name after a dot, after AS or in `[id]`: no word is a keyword there."""
    return quoted(name, frozenset())


def quoted_function(name: str) -> str:
    """A name before `(`, where an expression starts."""
    return quoted(name, frozenset({*CLAUSES, *_NO_FUNCTION}))


_NO_FUNCTION = ("INTO", "PATTERN", "AND", "OR", "NOT", "CASE", "NULL", "TRUE", "FALSE", "DISTINCT")
