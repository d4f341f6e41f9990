"""Which matches are known with their last event, although simultaneous ones may still come."""

from __future__ import annotations

from cepheid.algebra.patterns import (
    Closure,
    Disjunction,
    Leaf,
    Pattern,
    Sequence,
    moves_end,
    positive,
    sizes,
)
from cepheid.engine.automaton.forbidden import next_negations
from cepheid.engine.automaton.knowledge import Known
from cepheid.engine.automaton.points import Path
from cepheid.language.ast import Exactly, Mode


def is_prompt(pattern: Pattern, lasting: bool) -> bool:
    """Whether all matches are. They end with a single event, or with a group that is a choice, and
    everything else lies before it: what comes at its position later can only make further matches.

    Not so where something is checked at that position (`P => !Q`, an exception around the pattern),
    where the end of the match is moved, where composites that end there have to be compared, where
    a group is known only when its window has passed, and where events last.
    """
    return (
        not lasting
        and not moves_end(pattern)
        and not next_negations(pattern)
        and _ends_with_events(pattern)
    )


def _ends_with_events(pattern: Pattern) -> bool:
    match pattern:
        case Leaf():
            return True
        case Closure(Leaf(), quantifier):
            chosen = isinstance(quantifier, Exactly) or pattern.mode is not Mode.MAXIMAL
            return chosen and sizes(quantifier)[0] > 0
        case Sequence():
            return _is_last(pattern.items[-1])
        case Disjunction():
            return all(_ends_with_events(item) for item in pattern.items)
        case _:
            return False


def _is_last(item: Pattern) -> bool:
    """Of alternatives that are single events, all that tie at the first position are taken; one
    that is longer would come before them (`a -> (b | c ; d)`)."""
    match item:
        case Disjunction():
            return all(isinstance(branch, Leaf) for branch in item.items)
        case _:
            return isinstance(item, Leaf | Closure) and _ends_with_events(item)


def last_variable(pattern: Pattern, known: Known, path: Path = ()) -> str:
    """What a match of a prompt pattern ends with, given the branches that it took."""
    match pattern:
        case Sequence():
            n = len(pattern.items) - 1
            return last_variable(pattern.items[n], known, (*path, n))
        case Disjunction():
            n = known.choices[path]
            return last_variable(pattern.items[n], known, (*path, n))
        case _:
            (variable,) = positive(pattern)
            return variable
