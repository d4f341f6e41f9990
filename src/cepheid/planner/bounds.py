"""What bounds the events that a query has to hold, and how far around itself a match looks.

A window bounds both. Without one, `->` and `=>` still run on finite data; on data that may never
end the caller must say how much may be held. With one, a match depends on nothing further than a
window from its ends, apart from the exceptions below, so that a runtime may cut the data in time.
"""

from __future__ import annotations

from cepheid.algebra.patterns import (
    Absence,
    Closure,
    Conjunction,
    Delay,
    Disjunction,
    Leaf,
    Negation,
    Pattern,
    Sequence,
    Unless,
    moves_end,
    walk,
)
from cepheid.algebra.query import BoundQuery, Clock
from cepheid.algebra.values import integer_time
from cepheid.errors import QueryError
from cepheid.language.ast import Between, Exactly, SequenceOperator, Span
from cepheid.language.diagnostics import Diagnostic, Source
from cepheid.options import Limit


def require_bounds(query: BoundQuery, limit: Limit | None, written: Span, source: Source) -> None:
    """Refuse a query that could hold ever more of data that may never end.

    Only what stands in a sequence waits for events to come; a match of one event doesn't, and
    `!P FOR d` after it waits for time alone. What else needs no window (`=>` on its own is mostly
    broken soon) depends on the data, so there must be a window or a limit. `written` is the place
    of the pattern in the text.
    """
    if query.schema.tie is not None and moves_end(query.pattern):
        delayed = any(isinstance(part, Delay) for part in walk(query.pattern))
        what, one = ("delays", "the delay") if delayed else ("times after FOR", "FOR")
        message = (
            f"with a tie-break column {what} are decided at the end of the data, which may never "
            "come"
        )
        hint = f"leave {one} or the tie-break column out"
        raise QueryError([Diagnostic("CEP407", message, written, source, hint)])
    declared = limit is not None and (limit.per_key is not None or limit.total is not None)
    waiting = any(isinstance(part, Sequence) and _awaits(part) for part in walk(query.pattern))
    if query.window is not None or declared or not waiting:
        return
    plain = integer_time(query.schema) and query.schema.unit is None
    window = f"WITHIN 10 {'units' if plain else 'minutes'}"
    message = "on data that may never end, a pattern without a window could hold ever more events"
    hint = f"add {window}, or pass limit=Limit(total=100_000) for the run"
    raise QueryError([Diagnostic("CEP407", message, written, source, hint)])


def _awaits(sequence: Sequence) -> bool:
    """Whether events to come may continue what has begun."""
    binding = [i for i in sequence.items if not isinstance(i, Negation | Absence)]
    return len(binding) > 1 or not all(isinstance(item, Leaf) for item in binding)


def uncut(query: BoundQuery) -> str | None:
    """Why the data of the query can't be cut in time, so that each match is found from the rows
    less than a window before its end and less than a window after its start; None if it can.

    What `->`, `=>` and closures choose lies between start and end of the match, what negations and
    groups at an edge look at is bounded by the window, and an end that `@` has moved counts for it.
    A negation FOR a time before the match looks back as far from its start (`lookback`).
    """
    if counts_all(query):
        return "LIMIT counts all matches"
    if query.window is None:
        return "there is no window"
    if query.window.clock is Clock.EVENTS:
        return "the window counts events of the whole stream"
    if skips(query):
        return "AFTER MATCH chooses among all matches, and no key partitions them"
    if _looks_ahead(query.pattern):
        return "a strict negation depends on the next event, however late it is"
    return None


def counts_all(query: BoundQuery) -> bool:
    """Whether the matches of all keys must be counted in one place."""
    return query.selection is not None and query.selection.counts_all


def skips(query: BoundQuery) -> bool:
    """Whether which matches are kept depends on other matches (of the same key)."""
    return query.selection is not None


def _looks_ahead(pattern: Pattern) -> bool:
    """Whether there is a `=> !Q` that nothing bound is sure to follow.

    Its event is at the next position of the stream, whatever the window. Something bound further
    right in the same sequence is an event of the stream, too, so then it lies inside the match.
    """
    for part in walk(pattern):
        if not isinstance(part, Sequence):
            continue
        for n, operator in enumerate(part.operators):
            strict = operator is SequenceOperator.STRICT and isinstance(part.items[n + 1], Negation)
            if strict and not any(_binds(item) for item in part.items[n + 2 :]):
                return True
    return False


def _binds(pattern: Pattern) -> bool:
    """Whether a match is sure to have an event for this part."""
    match pattern:
        case Leaf():
            return True
        case Negation() | Absence():
            return False
        case Sequence() | Conjunction():
            return any(_binds(item) for item in pattern.items)
        case Disjunction():
            return all(_binds(item) for item in pattern.items)
        case Unless() | Delay():
            return _binds(pattern.item)
        case Closure():
            match pattern.quantifier:
                case Between(low=low) | Exactly(count=low):
                    return low > 0 and _binds(pattern.item)
                case _:
                    return False
