"""A short run of the fuzzer, and the texts that it has found: each took minutes, or ended in
something other than a query or a diagnostic."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fuzz.known import queries, terminals
from tests.fuzz.outcome import Finding, outcome
from tests.fuzz.smaller import smaller
from tests.fuzz.texts import make

PLANNED, UNBOUND, REFUSED = "planned", "bound to none of the schemas", "refused by the parser"


PATIENT = 5.0
"""Seconds that a text may take here: other tests run beside this one."""


def repeated(before: str, part: str, between: str, after: str, times: int) -> str:
    return before + between.join(part.replace("#", str(n)) for n in range(times)) + after


def nested(before: str, opening: str, inner: str, closing: str, after: str, levels: int) -> str:
    return before + opening * levels + inner + closing * levels + after


FOUND = {
    "nested functions": (
        nested("PATTERN A a ; B b WHERE ", "abs(", "a.x", ")", " > b.x WITHIN 5", 60),
        PLANNED,
    ),
    "nested CASE": (
        nested("PATTERN A a WHERE a.x > ", "CASE WHEN TRUE THEN ", "a.x", " ELSE 2 END", "", 40),
        PLANNED,
    ),
    "nested NOT and AND": (
        nested("PATTERN A a ; B b HAVING ", "NOT (a.x > b.x AND ", "TRUE", ")", " WITHIN 5", 45),
        PLANNED,
    ),
    "conditions without end": (
        nested("PATTERN A a ; B b WHERE ", "", "a.x > 1", " AND a.x > b.x", " WITHIN 5", 500),
        PLANNED,
    ),
    "alternatives without end": (
        repeated("PATTERN A a ; B b WHERE ", "a.x > #", " OR ", " WITHIN 5", 700),
        PLANNED,
    ),
    "different conditions": (
        repeated("PATTERN A a ; B b WHERE ", "a.x = b.y#", " AND ", " WITHIN 5", 150),
        PLANNED,
    ),
    "equal conditions": (
        nested("PATTERN A a ; B b WHERE a.x ", "", "= b.x", " = a.x", " WITHIN 5", 150),
        PLANNED,
    ),
    "many equalities": (
        repeated("PATTERN A a ; B b WHERE ", "a.x = b.y#", " AND ", " WITHIN 5", 700),
        PLANNED,
    ),
    "many alternatives": (nested("PATTERN ", "A ; (B | ", "C", ")", " WITHIN 5", 8), PLANNED),
    "many exceptions": (nested("PATTERN ", "", "A a", " \\ B", " WITHIN 5", 90), PLANNED),
    "many streams that aren't there": (
        repeated("PATTERN A a FROM ", "S#", ", ", "", 3000),
        PLANNED,
    ),
    "many columns": (
        repeated("PATTERN A a ; B b WITHIN 5 RETURN ", "a.x#", ", ", "", 1000),
        PLANNED,
    ),
    "a long name": (f"PATTERN {'A' * 10**6} a ; B b WHERE a.zz() > 1", REFUSED),
    "many mistakes": (
        repeated("PATTERN A a WHERE ", "nosuch(b.y#)", " AND ", "", 1800),
        UNBOUND,
    ),
    "a long string": (f"PATTERN A a WHERE a.name = '{'x' * 10**6}'", PLANNED),
    "a long string of quotes": (f"PATTERN A a WHERE a.name = '{chr(39) * 10**6}'", PLANNED),
    "a long comment": (f"PATTERN A /*{'*' * 10**6}*/ a", PLANNED),
    "a name that is never closed": ("PATTERN A a WHERE `" + "ab``" * 10**6, REFUSED),
    "a comment in a quantifier": ("PATTERN a{--}b c", REFUSED),
    "half a character": ("PATTERN A a WHERE a.x = '\ud800'", REFUSED),
    "characters that move the cursor": ("PATTERN A a WHERE a.x = \x1b[2J", REFUSED),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found(name: str) -> None:
    text, became = FOUND[name]
    assert outcome(text, PATIENT) == became


def test_a_few_texts_of_every_kind() -> None:
    texts = [make(0, number) for number in range(700)]
    assert {"derived", "mutated", "soup", "nested", "numbers", "unicode", "long", "statement"} == {
        text.kind for text in texts
    }
    became = Counter[str]()
    for text in texts:
        found = outcome(text.text)
        if isinstance(found, Finding) and found.kind.startswith("slow"):
            found = outcome(text.text, PATIENT)
        assert isinstance(found, str), (text, found)
        became[found] += 1
    assert min(became[PLANNED], became[UNBOUND], became[REFUSED]) > 40


def test_a_text_is_made_by_its_number() -> None:
    assert make(3, 17) == make(3, 17)
    assert make(3, 17) != make(4, 17)


def test_there_is_something_to_change() -> None:
    assert len(queries()) > 400
    unknown = [name for name, words in terminals().items() if not words]
    assert unknown == ["COMMENT", "__IGNORE_1"], "known.py needs samples of new terminals"


def test_a_finding_is_made_smaller() -> None:
    text = "PATTERN A a ; B b WHERE a.x = 77 AND b.y > 3 WITHIN 5"
    assert smaller(text, lambda t: "77" in t and "A" in t) == "77A"
