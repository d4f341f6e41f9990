"""What a run finds that forgets its oldest events (docs/language.md, Windows).

It may lose matches, but it finds no others; and of the newest seven eighths of what it may hold,
none is forgotten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from cepheid.algebra.patterns import (
    Closure,
    Conjunction,
    Delay,
    Disjunction,
    Leaf,
    Negation,
    Pattern,
    Unless,
)
from cepheid.algebra.patterns import Sequence as SequencePattern
from cepheid.algebra.query import BoundQuery, Clock
from cepheid.options import Limit

from .events import Event, Match, rank
from .match import is_a, key_of, matches, placed
from .state import events_of


def candidates(query: BoundQuery, events: Sequence[Event]) -> list[Match]:
    """All that a match may be. AFTER MATCH chooses among what is found, so that it may keep one
    that a lost match would have ruled out."""
    return matches(replace(query, selection=None), events)


def certain(
    query: BoundQuery, events: Sequence[Event], limit: Limit, known: Sequence[int]
) -> list[Match]:
    """The matches that no run may lose. `known[n]` is how many events have come when everything up
    to the time `n` is decided; the last of them is when all is."""
    if query.selection is not None:
        return []
    return [m for m in candidates(query, events) if is_certain(query, events, limit, known, m)]


def is_certain(
    query: BoundQuery, events: Sequence[Event], limit: Limit, known: Sequence[int], match: Match
) -> bool:
    begin, decided = match.start, match.end
    window = query.window
    if window is not None and window.clock is Clock.TIME:
        decided = max(match.end, match.start + window.size)
        if looks_back(query.pattern):
            begin = min(begin, match.end - window.size + 1)
    elif window is not None:
        decided = len(known)
        if looks_back(query.pattern):
            return False  # how far back is counted in events: not told here
    come = known[min(decided, len(known) - 1)]
    held = [e for e in events[:come] if placed(query, e) and e.time >= begin]
    if limit.total is not None and len(held) > room(limit.total):
        return False
    if limit.per_key is None:
        return True
    own = own_key(query, events, match)
    return all(
        count <= room(limit.per_key)
        for (_, key), count in by_class(query, held).items()
        if key == own or not keys_apart(query)
    )


def room(allowed: int) -> int:
    return max(1, allowed * 7 // 8)


def by_class(query: BoundQuery, events: Iterable[Event]) -> Counter[tuple[str, object]]:
    """How many events there are of every class and key."""
    return Counter(
        (name, key_of(query, name, e))
        for name in query.variables
        for e in events
        if is_a(query, name, e)
    )


def own_key(query: BoundQuery, events: Sequence[Event], match: Match) -> object:
    found = {e.index: e for e in events}
    some = next((v, i) for v, b in match.bindings.items() for i in events_of(b))
    values = [found[some[1]].values.get(part.columns[some[0]]) for part in query.key]
    return tuple(rank(value) for value in values)


def keys_apart(query: BoundQuery) -> bool:
    """ "Past `per_key`, only that key gives up matches; all keys do if matches are judged by what
    lies before their start, [or] if events have a duration"."""
    return bool(query.key) and query.schema.start is None and not looks_back(query.pattern)


def looks_back(pattern: Pattern) -> bool:
    """ "With nothing before it: after `end - window`"."""
    match pattern:
        case Leaf():
            return False
        case Negation() | Closure():
            return True
        case SequencePattern():
            return looks_back(pattern.items[0])
        case Conjunction() | Disjunction():
            return any(looks_back(item) for item in pattern.items)
        case Unless() | Delay():
            return looks_back(pattern.item)
