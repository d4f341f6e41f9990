"""Exceptions and negations: what must not be there, and between what."""

from __future__ import annotations

from dataclasses import replace
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
    items,
    moves_end,
    positive,
    sizes,
    walk,
)
from cepheid.engine.automaton.instructions import (
    Check,
    CheckRound,
    Forbid,
    ForbidNext,
    ForbidRounds,
    Fork,
    Instructions,
    Interruption,
    PickRound,
    RoundEvent,
    RoundGroup,
    RoundGroups,
    Search,
    Uninterrupted,
    Wait,
)
from cepheid.engine.automaton.knowledge import (
    STRICT,
    Compilation,
    Known,
    Then,
    binds,
    hold,
    owner,
)
from cepheid.engine.automaton.points import Beside, Neighbors, Opening, Origin, Path, Point
from cepheid.errors import UnsupportedError

_Part = tuple[Path | Beside, bool | None]

# ── exceptions ──


def unless(
    c: Compilation, pattern: Unless, path: Path, known: Known, after: Point | None, then: Then
) -> Instructions:
    """An exception decides which composite is first, so it is checked as soon as it can be: at
    once, unless it reads what is bound later, or a closure waits for its edge."""
    read = {
        v
        for conjunct in c.node.where
        if owner(c, conjunct) == pattern.index
        for v in conjunct.variables
        if c.negations[v] is None
    }

    def check(bound: Known) -> Instructions:
        if read <= bound.decided and bound.fringes == known.fringes:
            return (Uninterrupted(interruption(c, pattern, path, bound)), *then(bound))
        return then(replace(bound, exceptions=(*bound.exceptions, (path, pattern))))

    return c.bind(pattern.item, (*path, 0), known, after, check)


def interruption(c: Compilation, pattern: Unless, path: Path, known: Known) -> Interruption:
    """Look for the exception from the part's start to its end, inclusive."""
    # What lies inside an event that lasts ends before it.
    c.looks_back = c.looks_back or c.lasting
    during, at = (*path, 0), (*path, 1)
    search = None
    if binds(pattern.item, during, known) is not None:
        looking = _looking(known, pattern.index, bounded=True)
        search = c.bind(pattern.exception, at, looking, Origin(), lambda bound: ())
    return Interruption(during, at, positive(pattern.item), positive(pattern.exception), search)


def _looking(known: Known, index: int, bounded: bool, far: bool = False) -> Known:
    control = replace(known.control, negation=index, bounded=bounded, unordered=False, far=far)
    return known.under(control)


# ── negations ──


def wait(c: Compilation, pattern: Absence, path: Path, known: Known, then: Then) -> Instructions:
    """`!P FOR d`: what comes behind it comes after its time, which counts from the nearest bound
    part before it. With nothing before it there is only something to check."""
    before: tuple[Path, ...] = ()
    beside: tuple[Path, ...] = ()
    around: Pattern = c.node.pattern
    for depth, n in enumerate(path):
        for m, item in enumerate(items(around)[:n] if isinstance(around, Sequence) else ()):
            item_path = (*path[:depth], m)
            certain = binds(item, item_path, known, absences=False)
            if certain:
                before, beside = (item_path,), ()
            elif certain is not None:
                before = (*before, item_path)
            if binds(item, item_path, known) and any(isinstance(p, Absence) for p in walk(item)):
                beside = (*beside, item_path)  # its time may be over later than its events are
        around = items(around)[n]
    if not before:
        return then(known)
    bound = replace(known, parts={**known.parts, path: True})
    return (Wait(path, before, pattern.duration, beside), *then(bound))


def checks(
    c: Compilation, pattern: Pattern, path: Path, known: Known, between: Neighbors
) -> tuple[Check, ...]:
    """What the negations below forbid. The neighbors are the nearest bound parts around the
    pattern, or the window's edges."""
    match pattern:
        case Leaf():
            return ()
        case Negation() | Absence():
            return (_occurs(c, pattern, path, known, between),)
        case Sequence():
            below = (
                _negated_item(c, pattern, n, path, known, between)
                for n in range(len(pattern.items))
            )
            return tuple(check for below_item in below for check in below_item)
        case Conjunction():
            below = (
                checks(c, item, (*path, n), known, between) for n, item in enumerate(pattern.items)
            )
            return tuple(check for below_item in below for check in below_item)
        case Disjunction():
            branch = known.choices[path]
            return checks(c, pattern.items[branch], (*path, branch), known, between)
        case Unless() | Delay():
            return checks(c, pattern.item, (*path, 0), known, between)
        case Closure():
            return _negated_rounds(c, pattern, path, known, between)
        case _:
            assert_never(pattern)


def _negated_item(
    c: Compilation, sequence: Sequence, n: int, path: Path, known: Known, between: Neighbors
) -> tuple[Check, ...]:
    item, item_path = sequence.items[n], (*path, n)
    if not negating(item):
        return ()
    bound = [binds(p, (*path, m), known, False) for m, p in enumerate(sequence.items)]
    parts: list[_Part] = [((*path, m), certain) for m, certain in enumerate(bound)]
    strict = n > 0 and sequence.operators[n - 1] is STRICT
    inside = _narrowed(between, parts[:n], parts[n + 1 :])
    if not (isinstance(item, Negation) and strict and inside.before):
        return checks(c, item, item_path, known, inside)
    search = c.bind(
        item.item, (*item_path, 0), _looking(known, item.index, False), Origin(), lambda bound: ()
    )
    # Where all before it may be empty, it can turn out that nothing stands there.
    otherwise: tuple[Check, ...] = ()
    if not between.before and True not in bound[:n]:
        otherwise = checks(c, item, item_path, known, inside)
    return (ForbidNext(item_path, inside, search, otherwise),)


def _narrowed(between: Neighbors, before: list[_Part], after: list[_Part]) -> Neighbors:
    """Between the nearest bound parts, each with whether it always binds something; one that may be
    empty decides when the kernel runs."""
    left, right, opened = between.before, between.after, between.opened
    for part, certain in before:
        if certain:
            left, opened = (part,), False
        elif certain is not None:
            left = (*left, part)
    for part, certain in reversed(after):
        if certain:
            right = (part,)
        elif certain is not None:
            right = (*right, part)
    return Neighbors(left, right, opened)


def _occurs(
    c: Compilation, negation: Negation | Absence, path: Path, known: Known, between: Neighbors
) -> Forbid:
    inner = (*path, 0)
    opened, bounded, duration, far = between.opened, bool(between.after), None, False
    if isinstance(negation, Absence):
        opened, bounded, duration = not between.before, True, negation.duration
        far = opened  # the window bounds the match, of which the time before it is no part
        c.back = max(c.back, duration if opened else 0)
        c.looks_back = c.looks_back or (opened and c.lasting)
    else:
        c.looks_back = c.looks_back or opened
    looking = _looking(known, negation.index, bounded, far)
    if not between.before and opened and isinstance(negation.item, Leaf):
        # The window's edge bounds the search, not only its results.
        v = negation.item.variable
        held, _ = hold(c, looking.bind(v, inner))
        search: Instructions = (
            Search(c.sweep(v, looking, Opening()), inner, member=False),
            held,
        )
    else:
        after = Origin() if between.before else None
        search = c.bind(negation.item, inner, looking, after, lambda bound: ())
    return Forbid(path, between, positive(negation.item), search, duration)


# ── in the rounds of a closure ──


def _negated_rounds(
    c: Compilation, closure: Closure, path: Path, known: Known, between: Neighbors
) -> tuple[Check, ...]:
    """In a closure over a pattern, the rounds before and after are the nearest parts."""
    if not negating(closure.item) or path not in known.rounds:
        return ()
    inside = _narrowed(
        between, [(Beside(path, after=False), False)], [(Beside(path, after=True), False)]
    )
    inner = (*path, 0)
    rounds = _round(
        closure.item,
        inner,
        known,
        path,
        lambda here: (CheckRound(checks(c, closure.item, inner, here, inside)),),
    )
    return (ForbidRounds(path, rounds),)


def _round(pattern: Pattern, path: Path, known: Known, closure: Path, then: Then) -> Instructions:
    """Continue with the events of the current round."""
    match pattern:
        case Leaf(variable=v):
            bound = known.bind(v, path)
            bound = replace(bound, hand=bound.hand | {v}, timed=known.timed)
            return (RoundEvent(closure, v, path), *then(bound))
        case Negation() | Absence():
            return then(known)
        case Sequence() | Conjunction():
            return _round_items(pattern.items, 0, path, known, closure, then)
        case Disjunction():
            ways: list[Instructions] = []
            for n, branch in enumerate(pattern.items):
                others = tuple(v for o in pattern.items if o is not branch for v in positive(o))
                chosen = replace(
                    known,
                    choices={**known.choices, path: n},
                    absent=known.absent.union(others),
                )
                rest = _round(branch, (*path, n), chosen, closure, then)
                ways.append((PickRound(closure, path, n, others), *rest))
            return (Fork(tuple(ways)),)
        case Unless() | Delay():
            return _round(pattern.item, (*path, 0), known, closure, then)
        case Closure(item=Leaf(variable=v)):
            least, _ = sizes(pattern.quantifier)
            bound = replace(known, parts={**known.parts, path: least > 0})
            return (RoundGroup(closure, v, path, least), *then(bound))
        case Closure(item=item) if negating(item):
            raise UnsupportedError(
                "a negation in a repeated group inside another one can't run; write an exception, "
                "`((B b ; C c) \\ N n)+`, which leaves out the rounds that have one"
            )
        case Closure(item=item) if moves_end(item):
            raise UnsupportedError(
                "a negation beside a repeated group with a delay, in another one, can't run; leave "
                "out the delay, or forbid the event with an exception, `\\`"
            )
        case Closure(item=item):
            least, _ = sizes(pattern.quantifier)
            bound = replace(known, parts={**known.parts, path: least > 0})
            return (RoundGroups(closure, positive(item), path), *then(bound))
        case _:
            assert_never(pattern)


def _round_items(
    items: tuple[Pattern, ...], n: int, path: Path, known: Known, closure: Path, then: Then
) -> Instructions:
    if n == len(items):
        return then(known)

    def rest(bound: Known) -> Instructions:
        return _round_items(items, n + 1, path, bound, closure, then)

    return _round(items[n], (*path, n), known, closure, rest)


def negating(pattern: Pattern) -> bool:
    """Whether there is a negation to be checked in the pattern."""
    match pattern:
        case Negation() | Absence():
            return True
        case Leaf():
            return False
        case Sequence() | Conjunction() | Disjunction():
            return any(negating(item) for item in pattern.items)
        case Unless() | Closure() | Delay():
            return negating(pattern.item)
        case _:
            assert_never(pattern)


def next_negations(pattern: Pattern) -> bool:
    """Whether there is a strict negation, `P => !Q`."""
    return any(
        isinstance(p, Sequence)
        and any(
            isinstance(item, Negation) and operator is STRICT
            for item, operator in zip(p.items[1:], p.operators, strict=True)
        )
        for p in walk(pattern)
    )
