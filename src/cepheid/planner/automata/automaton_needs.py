"""Patterns that only an automaton can run: what is bound decides which event is taken next."""

from __future__ import annotations

from cepheid.algebra.patterns import (
    Absence,
    Closure,
    Delay,
    Leaf,
    Negation,
    Pattern,
    Sequence,
    Unless,
    walk,
)
from cepheid.language.ast import Mode, SequenceOperator


def needs_automaton(pattern: Pattern) -> str | None:
    """The first construct of the pattern that trees of joins can't run, as a person calls it."""
    return next((construct for part in walk(pattern) if (construct := beyond_trees(part))), None)


def beyond_trees(part: Pattern) -> str | None:
    """The same for one node of a pattern, regardless of its children."""
    match part:
        case Sequence(operators=operators) if SequenceOperator.NEXT in operators:
            return "the next sequence `->` (SKIP TILL NEXT MATCH)"
        case Sequence(operators=operators) if SequenceOperator.STRICT in operators:
            return "the strict sequence `=>` (STRICT CONTIGUITY)"
        case Unless():
            return "the exception `\\` (UNLESS)"
        case Delay():
            return "the delay `@`"
        case Absence():
            return "a negation with a time of its own (FOR)"
        case Closure(until=until) if until is not None:
            return "UNTIL"
        case Closure(strict=True):
            return "the closure mode STRICT"
        case Closure(mode=mode) if mode is not Mode.MAXIMAL:
            return f"the closure mode {mode.value}"
        case Closure(item=item) if not isinstance(item, Leaf):
            return "a closure over a group `( .. )+`"
        case Negation(item=item) if any(isinstance(p, Closure) for p in walk(item)):
            return "a closure inside a negation"
        case _:
            return None
