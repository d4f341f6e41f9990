"""A negation with a time of its own before a single event is one that looks back a window.

!B FOR d ; A = !B ; A WITHIN d

Both look at the time d before the event, exclusive at both ends: a negation with nothing before it
looks back a window from the match's end, which is the event's. The window itself holds for every
match, because an event has no duration; so it must not have one here (a match read by another query
has), and there must be no window yet.

It pays where there is a key. A negation with a time of its own is run by an automaton, which goes
through the events key by key, and has to put what it finds in order again.
"""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.patterns import Absence, Leaf, Negation, Sequence
from cepheid.algebra.query import BoundQuery, Window
from cepheid.language.ast import SequenceOperator
from cepheid.rewrites.law import Facts, Rewrite


def apply(query: BoundQuery, facts: Facts) -> BoundQuery | None:
    if query.window is not None or query.schema.start is not None or not query.key:
        return None
    match query.pattern:
        case Sequence(
            (Absence(Leaf() as forbidden, index, duration), Leaf() as event),
            (SequenceOperator.ANY,),
        ):
            pattern = Sequence((Negation(forbidden, index), event), (SequenceOperator.ANY,))
            return replace(query, pattern=pattern, window=Window(duration))
        case _:
            return None


REWRITE = Rewrite("absences", "!B FOR d ; A = !B ; A WITHIN d", apply)
