"""Partial matches that expire, in cases by hand: the oracle finds what a person finds."""

from __future__ import annotations

import pytest

from tests.corpus.reader import Case, bound, case_of, fields_of, show
from tests.oracle.timeouts import timeouts

CASES = {
    "each length": """
query    PATTERN A a ; B b ; C c WITHIN 10
events   A@1 B@2 A@5 C@14
timeouts a1 b2 | a5
""",
    "the next event continues": """
query    PATTERN A a -> B b -> C c WITHIN 10
events   A@1 B@2 B@3 C@4 A@12 B@13 B@14 A@30
timeouts a12 b13 | a30
""",
    "next events and any": """
query    PATTERN A a -> B b ; C c WITHIN 10
events   A@1 B@2 B@3 C@4 C@5 A@20 B@21 B@22
timeouts a20 b21
""",
    "the next event that a condition takes": """
query    PATTERN A a -> B b -> C c WHERE b.x > a.x AND c.x > b.x WITHIN 10
events   A@1(x=1) B@2(x=1) B@3(x=5) C@4(x=2) B@5(x=1)
timeouts a1 b3
""",
    "a group before the next event": """
query    PATTERN A a -> B+ b -> C c WITHIN 5
events   A@1 B@2 B@3 A@10 B@11 C@12 A@20
timeouts a1 b2,3 | a20
""",
    "a match is none": """
query    PATTERN A a ; B b ; C c WITHIN 10
events   A@1 B@2 C@3
timeouts none
""",
    "every partial match is one of its own": """
query    PATTERN A a ; B b ; C c WITHIN 10
events   A@1 B@2 C@3 B@4
timeouts a1 b4
""",
    "the window is exclusive": """
query    PATTERN A a ; B b WITHIN 5
events   A@1 B@6 A@10 B@14
timeouts a1
""",
    "the window is that of the start": """
query    PATTERN A a ; B b ; C c WITHIN 5
events   A@1 B@5 C@6
timeouts a1 b5
""",
    "simultaneous is not after": """
query    PATTERN A a ; B b WITHIN 5
events   A@1 B@1
timeouts a#0
""",
    "a tie-break orders": """
query    PATTERN A a ; B b WITHIN 5
tie      n
events   A@1(n=1) A@1(n=3) B@1(n=2)
timeouts a#1
""",
    "events that last": """
query    PATTERN A a ; B b WITHIN 9
events   A@1..5 B@4..6 A@7..8 B@9..10
timeouts a5
""",
    "events that can't be placed": """
query    PATTERN A a ; B b WITHIN 5
events   A@1 A@null B@null
timeouts a#0
""",
    "a condition says what continues": """
query    PATTERN A a ; B b WHERE b.x > a.x WITHIN 10
events   A@1(x=5) B@2(x=3) A@3(x=1) B@4(x=2)
timeouts a1
""",
    "a condition on what was reached": """
query    PATTERN A a ; B b ; C c WHERE a.x > 1 AND a.x = b.x + 1 WITHIN 10
events   A@1(x=1) A@2(x=2) A@3(x=3) B@4(x=1)
timeouts a3 | a2 b4
""",
    "a condition that reads more isn't looked at": """
query    PATTERN A a ; B b ; C c WHERE a.x < c.x AND b.x = c.x WITHIN 10
events   A@1(x=1) B@2(x=2) C@3(x=3)
timeouts a1 b2
""",
    "a condition on no event": """
query    PATTERN A a ; B b WHERE :on WITHIN 5
params   on=false
events   A@1
timeouts none
""",
    "a key": """
query    PATTERN A a ; B b WHERE [id] WITHIN 10
events   A@1(id=1) B@2(id=2) A@3(id=2) B@4(id=1)
timeouts a3
""",
    "a key that a later variable makes": """
query    PATTERN A a ; B b ; C c WHERE a.id = c.id AND b.id = c.id WITHIN 10
events   A@1(id=1) B@2(id=2)
timeouts a1
""",
    "no part in a key, none in a partial match": """
query    PATTERN A a ; B b WHERE a.id = b.id WITHIN 10
events   A@1(id=null) A@2(id=1)
timeouts a2
""",
    "NULL in an equality that is no key": """
query    PATTERN A a ; B b ; C c WHERE a.id = b.id WITHIN 10
events   A@1(id=null) B@2(id=null) A@3(id=1) B@4(id=1) C@5(id=1)
timeouts a1
""",
    "a number of events": """
query    PATTERN A a ; B b WITHIN 3 EVENTS
events   A@1 X@2 X@3 B@4 A@5 B@6
timeouts a1
""",
    "a number of events of the whole stream, since only some are connected": """
query    PATTERN A a ; B b ; C c WHERE a.id = b.id WITHIN 3 EVENTS
events   A@1(id=1) A@2(id=2) A@3(id=2) B@4(id=1) C@5(id=1)
timeouts a1 | a2 | a3
""",
    "a closure is missing if its first event is": """
query    PATTERN A a ; B+ b ; C c WHERE b.x > a.x AND count(b) >= 2 WITHIN 10
events   A@1(x=5) B@2(x=3) A@4(x=1) B@5(x=2)
timeouts a1
""",
    "conditions between the events of a group": """
query    PATTERN A a ; B+ b ; C c WHERE b.x > PREV(b.x) WITHIN 10
events   A@1 B@2(x=3) B@3(x=1) B@4(x=5)
timeouts a1 b2,4
""",
    "ALL holds for the first event": """
query    PATTERN A a ; B+ b ; C c WHERE ALL(b.x) > a.x WITHIN 10
events   A@1(x=5) B@2(x=3)
timeouts a1
""",
    "a group takes all of the window": """
query    PATTERN A a ; B+ b ; C c WITHIN 10
events   A@1 B@2 C@3 B@4 B@11
timeouts a1 b2,4
""",
    "a condition on a group and what would follow holds for every element": """
query    PATTERN A a ; B+ b ; C c WHERE b.x < c.x WITHIN 10
events   A@1 B@2(x=1) B@3(x=5) C@4(x=3)
timeouts a1 b2,3
""",
    "what may be empty is never missing": """
query    PATTERN A a ; B* b ; C c WITHIN 5
events   A@1 A@7 B@8
timeouts a1 b() | a7 b8
""",
    "also at the end": """
query    PATTERN A a ; B b ; C? c WITHIN 5
events   A@1 B@2 A@6
timeouts a6
""",
    "every choice of a group": """
query    PATTERN A a ; B+ b PREFIXES ; C c WITHIN 10
events   A@1 B@2 C@3 B@4
timeouts a1 b2,4
""",
    "what is about complete matches isn't looked at": """
query    PATTERN A a ; B b WHERE duration() > 3 HAVING b.x > 1 WITHIN 10
events   A@1 B@2(x=0) A@3
timeouts a3
""",
    "nor is AFTER MATCH": """
query    PATTERN A a ; B b ; C c WITHIN 10 AFTER MATCH SKIP PAST LAST EVENT
events   A@1 A@2 B@3
timeouts a1 b3 | a2 b3
""",
    "several streams": """
query    PATTERN Order o ; Payment p WHERE [id] WITHIN 10
streams  Order(id, price) Payment(id)
events   Order@1(id=1, price=9) Order@2(id=2, price=8) Payment@3(id=1)
timeouts o2
""",
}


def written(name: str, text: str) -> Case:
    """A case as written: `timeouts` are matches that aren't complete."""
    fields = {"name": name, **fields_of(text, name)}
    fields["matches"] = fields.pop("timeouts")
    return case_of(fields, name)


@pytest.mark.parametrize("name", CASES)
def test_what_a_person_finds(name: str) -> None:
    case = written(name, CASES[name].strip())
    found = timeouts(bound(case), case.events)
    assert sorted(show(case, [e.match.bindings]) for e in found) == sorted(
        show(case, [e]) for e in case.expected
    )
    for one in found:
        reached = list(one.match.bindings.values())[: one.step]
        assert None not in reached and not any(list(one.match.bindings.values())[one.step :])
