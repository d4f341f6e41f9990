"""What the page completes: keywords, functions, types and columns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from cepheid.algebra.aggregates import AGGREGATES
from cepheid.algebra.functions import FUNCTIONS
from cepheid.engine.rows.event_types import types_in
from cepheid.files.declared import type_name
from cepheid.lab.situations.notation import read_events
from cepheid.lab.situations.situation import Situation

KEYWORDS = {
    "PATTERN": "the events that are looked for",
    "WHERE": "which events are taken",
    "HAVING": "which complete matches are taken",
    "WITHIN": "how long a match may be",
    "RETURN": "the columns of a match",
    "AFTER MATCH SKIP PAST LAST EVENT": "matches that don't overlap",
    "AFTER MATCH SKIP TO NEXT EVENT": "one match for each first event",
    "LIMIT": "the first matches",
    "PER KEY": "after LIMIT: of each key",
    "GROUP BY": "a row for each group of matches",
    "AS": "the name of a column of RETURN",
    "INTO": "a name for the stream of matches",
    "FROM": "the streams that are read",
    "USING STRICT CONTIGUITY": "no other events between",
    "AND": "both conditions",
    "OR": "one of the conditions",
    "DISTINCT": "different values only, as in count(DISTINCT b.x)",
    "NOT": "not the condition",
    "IN": "one of a list",
    "BETWEEN": "from … to …",
    "LIKE": "a text with % and _",
    "IS NULL": "has no value",
    "IS DISTINCT FROM": "has another value, or one of the two has none",
    "FOR": "after a negation: for how long",
    "UNTIL": "a group ends before such an event",
    "PREFIXES": "each beginning of a group",
    "SUBSETS": "each part of a group",
    "RUNS": "each unbroken part of a group",
    "STRICT": "a group without other events between",
    "PREV": "the element before, as in PREV(b.x)",
    "ANY": "an event of several types, as in ANY(A, B) x",
    "seconds": "a unit of WITHIN",
    "minutes": "a unit of WITHIN",
    "hours": "a unit of WITHIN",
    "days": "a unit of WITHIN",
    "EVENTS": "a window of so many events",
}


def words(situation: Situation) -> dict[str, list[dict[str, str]]]:
    """By kind, each with a line about it."""
    type_ = situation.options.type
    types = [] if type_ is None else sorted(types_in(situation.events[type_]))
    return {
        "keywords": [_word(name, doc) for name, doc in KEYWORDS.items()],
        "functions": [
            *(_word(f"{f.name}()", f.doc) for f in FUNCTIONS.values()),
            *(_word(f"{a.name}()", a.doc) for a in AGGREGATES.values()),
        ],
        "types": [_word(name, "a type of events") for name in types[:500]],
        "columns": [_word(f.name, type_name(f.type)) for f in situation.events.schema],
    }


def _word(name: str, doc: str) -> dict[str, str]:
    return {"name": name, "doc": doc}


@cache
def snippets() -> tuple[dict[str, Any], ...]:
    """The recipes of the cookbook: title, query and events."""
    text = (files("cepheid.lab") / "snippets.txt").read_text(encoding="utf-8")
    return tuple(_snippets(text))


def _snippets(text: str) -> Iterator[dict[str, Any]]:
    for part in text.split("\n== ")[1:]:
        title, _, rest = part.partition("\n")
        query, _, rest = rest.partition("\n-- events")
        without, _, events = rest.partition("\n")
        typed = not without
        yield {"title": title, "query": query, "events": events.strip("\n"), "typed": typed}


def example() -> Situation:
    """What the page shows if nothing is given: the first recipe."""
    first = snippets()[0]
    return Situation(first["query"], read_events(first["events"]))
