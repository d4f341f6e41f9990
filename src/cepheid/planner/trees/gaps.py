"""Where negations and closures stand: the bound parts nearest before and after them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

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
    positive,
)
from cepheid.language.ast import Between, Exactly, Optional
from cepheid.plan.nodes import Gap
from cepheid.planner.automata.automaton_needs import beyond_trees

Items = tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class GapItem:
    """A negation or closure of the pattern, and its gap."""

    item: Negation | Closure
    gap: Gap


def is_segment(pattern: Pattern) -> bool:
    """Whether an automaton evaluates this part of a pattern that trees join (see `segments`)."""
    if not isinstance(pattern, Sequence):
        return False
    groups = [item for item in pattern.items if isinstance(item, Closure)]
    return beyond_trees(pattern) is not None or any(beyond_trees(group) for group in groups)


def core(pattern: Pattern) -> tuple[str, ...]:
    """Variables that every match binds to one event: what the join tree is over. Those of a
    segment, groups too, come together."""
    match pattern:
        case Sequence() if is_segment(pattern):
            return positive(pattern)
        case Leaf():
            return (pattern.variable,)
        case Negation() | Closure():
            return ()
        case Sequence() | Conjunction():
            return tuple(v for item in pattern.items for v in core(item))
        case Disjunction() | Unless() | Delay() | Absence():
            raise AssertionError(f"no tree plan for {type(pattern).__name__}")
        case _:
            assert_never(pattern)


def between(pattern: Pattern) -> tuple[GapItem, ...]:
    """All negations and closures, in the order of the pattern."""
    return tuple(_visit(pattern, (), ()))


def _visit(pattern: Pattern, before: Items, after: Items) -> Iterator[GapItem]:
    """`before` and `after`: the items around, in all enclosing sequences, nearest first."""
    match pattern:
        case Sequence() if is_segment(pattern):
            pass  # what is inside belongs to its automaton
        case Sequence():
            for i, item in enumerate(pattern.items):
                left = tuple(reversed(pattern.items[:i])) + before
                yield from _visit(item, left, pattern.items[i + 1 :] + after)
        case Conjunction():
            for item in pattern.items:
                yield from _visit(item, before, after)
        case Negation():
            yield GapItem(pattern, _gap(_parts(before), _parts(after)))
        case Closure():
            yield GapItem(pattern, _closure_gap(pattern, before, after))
        case _:
            pass


def _closure_gap(closure: Closure, before: Items, after: Items) -> Gap:
    """Runs (`{n}`) are chosen first, left to right; a maximal group lies between what is chosen."""
    exact = isinstance(closure.quantifier, Exactly)
    left = [p for p in before if not isinstance(p, Closure) or _exact(p)]
    right = [p for p in after if not isinstance(p, Closure) or (_exact(p) and not exact)]
    return _gap(_parts(tuple(left)), _parts(tuple(right)))


def _exact(closure: Closure) -> bool:
    return isinstance(closure.quantifier, Exactly)


def _parts(items: Items) -> tuple[tuple[str, ...], bool]:
    """Variables of the nearest part, and of further ones while it may be empty; and whether even
    the last of them may be."""
    names: list[str] = []
    for item in items:
        names.extend(positive(item))
        if _always_bound(item):
            return tuple(names), False
    return tuple(names), True


def _gap(before: tuple[tuple[str, ...], bool], after: tuple[tuple[str, ...], bool]) -> Gap:
    return Gap(before[0], after[0], before[1], after[1])


def _always_bound(item: Pattern) -> bool:
    match item:
        case Leaf():
            return True
        case Closure(quantifier=Between(low=low)):
            return low > 0
        case Closure(quantifier=Exactly()):
            return True
        case Closure(quantifier=Optional()) | Negation():
            return False
        case Sequence() | Conjunction():
            return any(_always_bound(i) for i in item.items)
        case _:
            raise AssertionError(f"no tree plan for {type(item).__name__}")
