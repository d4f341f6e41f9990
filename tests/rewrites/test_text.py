"""Bound queries as text: what `explain` shows of a rewritten one."""

from __future__ import annotations

import pytest

from cepheid.algebra import bind
from cepheid.algebra.text import query_text
from cepheid.algebra.types import Schema, Type
from cepheid.language import parse

COLUMNS = {
    "ts": Type.TIMESTAMP,
    "type": Type.STRING,
    "x": Type.INTEGER,
    "user": Type.INTEGER,
    "customer": Type.INTEGER,
    "odd name": Type.INTEGER,
}
SCHEMA = Schema(COLUMNS, time="ts", type="type")

TEXTS = {
    "the key is shown, and what else holds": (
        "PATTERN A a ; B b WHERE a.user = b.user AND a.x < b.x WITHIN 90 seconds",
        "PATTERN A a ; B b\nWHERE [user] AND a.x < b.x\nWITHIN 90 seconds",
    ),
    "a key of two names is an equality": (
        "PATTERN A a ; B b WHERE a.user = b.customer WITHIN 1 hour",
        "PATTERN A a ; B b\nWHERE a.user = b.customer\nWITHIN 1 hour",
    ),
    "operators bind as in the language": (
        "PATTERN (A a | B b) & (C c ; !D d ; E e) WITHIN 5 EVENTS",
        "PATTERN (A a | B b) & (C c ; !D d ; E e)\nWITHIN 5 EVENTS",
    ),
    "closures, modes and types": (
        "PATTERN A ; B{2,3} b PREFIXES STRICT UNTIL (b.x > 5) -> ANY(C, D) c WITHIN 1 hour",
        "PATTERN A ; B{2,3} b PREFIXES STRICT UNTIL (b.x > 5) -> ANY(C, D) c\nWITHIN 1 hour",
    ),
    "exceptions": (
        "PATTERN (A a -> B b) \\ (C c | D d)",
        "PATTERN (A a -> B b) \\ (C c | D d)",
    ),
    "names in backticks, conditions in parentheses": (
        "PATTERN A a WHERE (a.x > 1 OR a.x IS NULL) AND [`odd name`] HAVING a.x IS NOT NULL",
        "PATTERN A a\nWHERE [`odd name`] AND ((a.x > 1) OR (a.x IS NULL))\nHAVING a.x IS NOT NULL",
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_query_text(name: str) -> None:
    query, expected = TEXTS[name]
    assert query_text(bind(parse(query), SCHEMA)) == expected
