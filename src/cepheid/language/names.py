"""Small things that are written the same everywhere: names, which may need backticks, and
quantifiers."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import assert_never

from cepheid.language.ast import Between, Exactly, Optional, Quantifier

CLAUSES = ("FROM", "WHERE", "HAVING", "WITHIN", "USING", "AFTER", "GROUP", "RETURN", "LIMIT")

RESERVED = frozenset(
    {
        *CLAUSES,
        *("INTO", "PATTERN", "SEQ", "ANY", "AND", "OR", "NOT", "UNLESS"),
        *("PREFIXES", "SUBSETS", "RUNS", "STRICT", "UNTIL", "FOR"),
        *("BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE", "CONTAINS"),
        *("IS", "NULL", "TRUE", "FALSE", "OCCURS"),
        *("CASE", "WHEN", "THEN", "ELSE", "END", "AS", "DISTINCT"),
    }
)
"""Words that the grammar reads as keywords in some place where a name may stand."""

_NO_FUNCTION = frozenset(
    {*CLAUSES, "INTO", "PATTERN", "AND", "OR", "NOT", "CASE", "NULL", "TRUE", "FALSE"}
    | {"WHEN", "DISTINCT", "TUMBLE", "HOP", "SESSION", "RANGE"}
)
_PLAIN = re.compile(r"[^\W\d]\w*")


def quoted(name: str, reserved: frozenset[str] = RESERVED) -> str:
    """The name as it is written: in backticks if it is reserved or has odd characters.

    >>> quoted("price"), quoted("where"), quoted("unit price")
    ('price', '`where`', '`unit price`')
    """
    if _PLAIN.fullmatch(name) and not _keywords(reserved).fullmatch(name):
        return name
    return "`" + name.replace("`", "``") + "`"


@lru_cache
def _keywords(words: frozenset[str]) -> re.Pattern[str]:
    """As the lexer matches them: its idea of upper and lower case isn't `str.upper`'s."""
    return re.compile("|".join(sorted(words)) or "(?!)", re.IGNORECASE)


def quoted_field(name: str) -> str:
    """A name after a dot, after AS or in `[id]`: no word is a keyword there."""
    return quoted(name, frozenset())


def quoted_function(name: str) -> str:
    """A name before `(`, where an expression starts and most keywords can't stand."""
    return quoted(name, _NO_FUNCTION)


def quantifier_text(quantifier: Quantifier) -> str:
    """As it stands after a type or an alias."""
    match quantifier:
        case Between(0, None):
            return "*"
        case Between(1, None):
            return "+"
        case Between(low, None):
            return f"{{{low},}}"
        case Between(low, high):
            return f"{{{low},{high}}}"
        case Exactly(count):
            return f"{{{count}}}"
        case Optional():
            return "?"
        case _:
            assert_never(quantifier)
