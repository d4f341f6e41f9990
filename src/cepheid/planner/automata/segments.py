"""Mixed plans: automata for the parts of a pattern that need one, joins for the rest.

In `A a ; B b -> C c ; D d` the arrow chooses c by b alone, unless a condition on c reads a. Then
`B b -> C c` can be evaluated by itself: its matches are composite events, and trees join them like
others. What isn't certain to choose the same events is left to one automaton for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

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
    leaves,
    walk,
)
from cepheid.algebra.query import BoundQuery, Conjunct, Kind, Role
from cepheid.language.ast import SequenceOperator
from cepheid.planner.alternatives import Alternative
from cepheid.planner.automata.automaton_needs import beyond_trees, needs_automaton
from cepheid.planner.automata.automaton_plans import segment

_ALONE = (Disjunction, Unless, Delay, Absence)
"""What makes a part's matches more than their events: a choice, or another end."""


def mixed(query: BoundQuery) -> Alternative | None:
    """The pattern with its segments as units, and the conditions that are left to joins."""
    pattern = query.pattern
    if any(isinstance(p, _ALONE) for p in walk(pattern)):
        return None
    divided = _cut(pattern) if isinstance(pattern, Sequence) else pattern
    if not isinstance(divided, Sequence | Conjunction):
        return None
    segments = [item for item in divided.items if needs_automaton(item)]
    if not segments or not all(_is_flat(s) for s in segments):
        return None
    if isinstance(divided, Conjunction) and not _apart(query, divided, segments):
        return None
    shares = _Shares(query, tuple(segments))
    if not all(shares.allows(conjunct) for conjunct in query.where):
        return None
    made = tuple((s, segment(query, s, shares.inside(s))) for s in segments)
    rest = tuple(c for c in query.where if shares.home(c) is None)
    return Alternative(divided, rest, query.having, made)


def _cut(sequence: Sequence) -> Sequence | None:
    """The sequence with each run of items that belong together as one item; `;` between them."""
    items, operators = sequence.items, sequence.operators
    present = [i for i, item in enumerate(items) if not isinstance(item, Negation)]
    begins = [present[0], *(b for a, b in pairwise(present) if not _together(sequence, a, b))]
    ends = [*(present[present.index(b) - 1] for b in begins[1:]), present[-1]]
    runs = dict(zip(begins, ends, strict=True))
    segments: list[Pattern] = []
    at = 0
    while at < len(items):
        end = runs.get(at, at)
        if end > at:
            segments.append(Sequence(items[at : end + 1], operators[at:end]))
        elif isinstance(items[at], Negation) and _is_strict(sequence, at):
            return None
        else:
            segments.append(items[at])
        at = end + 1
    if len(segments) < 2:
        return None
    return Sequence(tuple(segments), (SequenceOperator.ANY,) * (len(segments) - 1))


def _together(sequence: Sequence, left: int, right: int) -> bool:
    """Whether two neighbors must be evaluated by the same automaton: an arrow stands between
    them, or one is a closure whose group needs both its neighbors there."""
    if sequence.operators[right - 1] is not SequenceOperator.ANY:
        return True
    neighbors = sequence.items[left], sequence.items[right]
    return any(isinstance(item, Closure) and beyond_trees(item) for item in neighbors)


def _is_strict(sequence: Sequence, at: int) -> bool:
    return at > 0 and sequence.operators[at - 1] is SequenceOperator.STRICT


def _is_flat(part: Pattern) -> bool:
    """Events at both edges, so that nothing outside bounds a group or a gap inside; and events,
    their groups and negations only, so that a match is known when its last event comes."""
    if not isinstance(part, Sequence):
        return False
    edges = part.items[0], part.items[-1]
    if not all(isinstance(item, Leaf) for item in edges):
        return False
    return all(
        isinstance(item, Leaf | Negation)
        or (isinstance(item, Closure) and isinstance(item.item, Leaf))
        for item in part.items
    )


def _apart(query: BoundQuery, pattern: Conjunction, segments: list[Pattern]) -> bool:
    """Whether no event of one member could be one of another's: what is bound elsewhere neither
    counts as forbidden nor may it be taken twice, and an automaton doesn't know of it."""
    if not all(isinstance(item, Leaf) or item in segments for item in pattern.items):
        return False
    members = [
        [frozenset(query.variables[name].types) for name in leaves(item)] for item in pattern.items
    ]
    return all(
        first and second and not first & second
        for n, mine in enumerate(members)
        for theirs in members[n + 1 :]
        for first in mine
        for second in theirs
    )


@dataclass(frozen=True)
class _Shares:
    """Assigns each conjunct to a segment or to the joins."""

    query: BoundQuery
    segments: tuple[Pattern, ...]

    def home(self, conjunct: Conjunct) -> Pattern | None:
        """The segment that evaluates the conjunct, if one does."""
        read = set(conjunct.variables)
        if not read or conjunct.role is Role.MATCH:
            return None
        return next((s for s in self.segments if read <= set(leaves(s))), None)

    def inside(self, part: Pattern) -> tuple[Conjunct, ...]:
        return tuple(c for c in self.query.where if self.home(c) == part)

    def allows(self, conjunct: Conjunct) -> bool:
        """Whether the conjunct is evaluated inside a segment or decides nothing there.

        One that also reads other events is looked at where its last variable is bound. That may
        be the event with which a segment begins, since any may be; what follows in it is chosen by
        arrows. Groups of a segment, and what is forbidden there, are its own."""
        if self.home(conjunct) is not None or conjunct.role is Role.MATCH:
            return True
        order = leaves(self.query.pattern)
        last = max(conjunct.variables, key=order.index, default=None)
        for part in self.segments:
            shared = set(conjunct.variables) & set(leaves(part))
            if any(self._bars(name) for name in shared):
                return False
            if last in shared and last != leaves(part)[0]:
                return False
        return True

    def _bars(self, name: str) -> bool:
        variable = self.query.variables[name]
        return variable.kind is not Kind.SINGLE or variable.negation is not None
