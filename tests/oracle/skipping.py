"""AFTER MATCH."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cepheid.algebra.patterns import positive
from cepheid.language.ast import Skip

from .conditions import Search, span
from .state import State, events_of


def skip(search: Search, considered: Sequence[State]) -> Iterator[State]:
    """Which of the matches of one key are kept. "A match is dropped whole"."""
    selection = search.query.selection
    how = Skip.NONE if selection is None else selection.skip
    last: State | None = None
    started: set[int] = set()
    for state in considered:
        match how:
            case Skip.NONE:
                dropped = False
            case Skip.TO_NEXT_EVENT:
                dropped = first_event(search, state) in started
            case Skip.PAST_LAST_EVENT:
                # "drops a match that doesn't start after the end of the last one kept"
                dropped = last is not None and not (
                    span(search, state).start > span(search, last).end
                )
            case Skip.TO_FIRST | Skip.TO_LAST:
                dropped = last is not None and starts_before(search, state, last, how)
            case Skip.FOR:
                # "drops a match that ends less than d after the end of the last one kept"
                assert selection is not None
                dropped = last is not None and (
                    span(search, state).end[0] - span(search, last).end[0] < selection.pause
                )
        if not dropped:
            yield state
            last = state
            started.add(first_event(search, state))


def first_event(search: Search, state: State) -> int:
    """ "keeps one match per first event"; of simultaneous ones the first of the input."""
    bound = [i for v in positive(search.query.pattern) for i in events_of(state.env[v])]
    return min(bound, key=lambda i: (search.begin(i), search.position(i), i))


def starts_before(search: Search, state: State, last: State, how: Skip) -> bool:
    """ "one that starts before that event of the last one kept. If x is not bound, nothing is
    dropped"."""
    assert search.query.selection is not None
    bound = events_of(last.env[search.query.selection.variable or ""])
    if not bound:
        return False
    event = bound[0] if how is Skip.TO_FIRST else bound[-1]
    return span(search, state).start < search.begin(event)
