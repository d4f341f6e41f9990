"""What bounds the events that a query holds, and how far from itself a match depends on events.

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
    binds_always,
    moves_end,
    walk,
)
from cepheid.algebra.query import BoundQuery, Clock
from cepheid.algebra.values import integer_time
from cepheid.errors import QueryError
from cepheid.language.ast import Exactly, Mode, SequenceOperator, Span
from cepheid.language.diagnostics import Diagnostic, Source
from cepheid.options import Limit
from cepheid.rewrites.conditions.windows import is_bounded


def require_bounds(query: BoundQuery, limit: Limit | None, written: Span, source: Source) -> None:
    """Refuse a query that could need unbounded memory on data that may never end.

    Only what stands in a sequence waits for events to come; a match of one event doesn't, and
    `!P FOR d` after it waits for time alone. What else needs no window (`=>` on its own is mostly
    broken soon) depends on the data, so there must be a window, a condition that is one, or a
    limit. `written` is the place of the pattern in the text.
    """
    if query.schema.tie is not None and moves_end(query.pattern):
        delayed = any(isinstance(part, Delay) for part in walk(query.pattern))
        what, named = ("delays", "the delay") if delayed else ("times after FOR", "FOR")
        message = (
            f"with a tie-break column {what} are decided at the end of the data, which may never "
            "come"
        )
        hint = f"leave {named} or the tie-break column out"
        raise QueryError([Diagnostic("CEP407", message, written, source, hint)])
    if query.answers is not None and query.answers.window is None:
        message = "on data that may never end, a group without a window is never complete"
        plain = integer_time(query.schema) and query.schema.unit is None
        hint = f"add a window to GROUP BY, as in `TUMBLE({'10 units' if plain else '1 hour'})`"
        raise QueryError([Diagnostic("CEP346", message, written, source, hint)])
    declared = limit is not None and (limit.per_key is not None or limit.total is not None)
    waiting = any(isinstance(part, Sequence) and _awaits(part) for part in walk(query.pattern))
    if is_bounded(query) or declared or not waiting:
        return
    plain = integer_time(query.schema) and query.schema.unit is None
    window = f"WITHIN 10 {'units' if plain else 'minutes'}"
    message = "on data that may never end, a pattern without a window could hold ever more events"
    hint = f"add {window}, or pass limit=Limit(total=100_000) for the run"
    raise QueryError([Diagnostic("CEP407", message, written, source, hint)])


def _awaits(sequence: Sequence) -> bool:
    """Whether later events may continue a partial match."""
    binding = [i for i in sequence.items if not isinstance(i, Negation | Absence)]
    return len(binding) > 1 or not all(isinstance(item, Leaf) for item in binding)


def uncut(query: BoundQuery, keyed: bool = False) -> str | None:
    """Why the data of the query can't be cut in time, so that each match is found from the rows
    less than a window before its end and less than a window after its start; None if it can.

    What `->`, `=>` and closures choose lies between start and end of the match, what negations and
    groups at an edge look at is bounded by the window, and an end that `@` has moved counts for it.
    A negation FOR a time before the match looks back as far from its start (`lookback`). With
    `keyed`, the data are the events of a key.
    """
    if counts_all(query):
        return "LIMIT counts all matches"
    if query.window is None:
        return "there is no window"
    if query.window.clock is Clock.EVENTS:
        return f"the window counts events of the {'key' if keyed else 'whole stream'}"
    if skips(query):
        if keyed:
            return "AFTER MATCH and LIMIT choose among all matches of a key"
        return "AFTER MATCH chooses among all matches, and no key partitions them"
    if _looks_ahead(query.pattern):
        return "a strict negation depends on the next event, however late it is"
    return None


def known_after(query: BoundQuery) -> int | None:
    """How far time has to pass the end of a match until it is known; None if that depends on the
    events to come. What is open at its end waits for the window of its start."""
    if _looks_ahead(query.pattern):
        return None
    if not _open_at_end(query.pattern):
        return 0
    window = query.window
    return None if window is None or window.clock is Clock.EVENTS else window.size


def _open_at_end(pattern: Pattern) -> bool:
    """Whether events after its last one may decide on a match."""
    match pattern:
        case Leaf() | Absence():
            return False
        case Negation():
            return True
        case Closure():
            chosen = isinstance(pattern.quantifier, Exactly) or pattern.mode is not Mode.MAXIMAL
            return not chosen or _open_at_end(pattern.item)
        case Conjunction() | Disjunction():
            return any(map(_open_at_end, pattern.items))
        case Unless() | Delay():
            return _open_at_end(pattern.item)
        case Sequence():
            for item in reversed(pattern.items):
                if _open_at_end(item):
                    return True
                if binds_always(item):
                    return False
            return False


def counts_all(query: BoundQuery) -> bool:
    """Whether the matches of all keys must be counted in one place."""
    return query.selection is not None and query.selection.counts_all


def skips(query: BoundQuery) -> bool:
    """Whether the choice of matches depends on other matches (of the same key)."""
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
            if strict and not any(binds_always(item) for item in part.items[n + 2 :]):
                return True
    return False
