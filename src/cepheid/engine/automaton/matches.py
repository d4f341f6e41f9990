"""A complete match: closures that waited for it, when it is known, what is checked of it."""

from __future__ import annotations

from dataclasses import replace

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
    sizes,
)
from cepheid.algebra.query import Role
from cepheid.engine.automaton.closures import event_group, round_chain, with_group
from cepheid.engine.automaton.elements import EventGroup, RoundChain, element
from cepheid.engine.automaton.forbidden import checks, interruption, negating, next_negations
from cepheid.engine.automaton.instructions import (
    Decide,
    Emit,
    GatherEdge,
    Instructions,
    Passed,
    Require,
    Unforbidden,
)
from cepheid.engine.automaton.knowledge import (
    STRICT,
    Compilation,
    Fringe,
    Known,
    binds,
    conditions,
    hold,
    owner,
)
from cepheid.engine.automaton.points import Begin, End, Neighbors, Path
from cepheid.engine.automaton.promptness import last_variable
from cepheid.language.ast import Mode, Optional


def complete(c: Compilation, known: Known) -> Instructions:
    """All is bound but the closures at the edges."""
    trailing = any(f.upper is None for f in known.fringes)
    waits = trailing or _open_after(c.node.pattern, (), known, False)
    c.waits = c.waits or waits or next_negations(c.node.pattern)
    steps: Instructions = (Passed(),) if trailing else ()
    for fringe in known.fringes:
        step = _gather(c, fringe, known)
        held, known = hold(c, with_group(step.group, known))
        steps = (*steps, step, held)
    return (*steps, *_checked(c, known, waits))


def _gather(c: Compilation, fringe: Fringe, known: Known) -> GatherEdge:
    """Bind a closure that waited for the whole match's start or end."""
    closure = fringe.closure
    lower = None if fringe.lower is None else End(fringe.lower, fringe.beside)
    upper = None if fringe.upper is None else Begin(fringe.upper)
    c.looks_back = c.looks_back or lower is None
    leading = lower is None and fringe.after is STRICT
    strict = leading or fringe.before is STRICT
    touch = lower if fringe.before is STRICT else None
    # The group may lie outside of what is known to be the window's; its limits say where.
    unbounded = replace(known, timed=False, control=replace(known.control, quiet=True))
    group: EventGroup | RoundChain
    if isinstance(closure.item, Leaf):
        sweep = c.sweep(element(closure), unbounded, lower, upper)
        group = event_group(c, closure, fringe.path, unbounded, sweep, strict, touch)
    else:
        limits = (lower, upper)
        group = round_chain(c, closure, fringe.path, unbounded, limits, strict, touch)
    low, high = sizes(closure.quantifier)
    prefixes = closure.mode is Mode.PREFIXES and not isinstance(closure.quantifier, Optional)
    return GatherEdge(group, low, high, prefixes, leading and upper is not None, fringe.beside)


def _checked(c: Compilation, known: Known, waits: bool) -> Instructions:
    """The checks on a complete match, HAVING last."""
    pattern = c.node.pattern
    whole = (
        conjunct.expression
        for conjunct in c.node.where
        if owner(c, conjunct) is None and (conjunct.role is Role.MATCH or not conjunct.variables)
    )
    strict = next_negations(pattern)
    return (
        Decide(waits, strict, last_variable(pattern, known) if c.prompt else None),
        Require(conditions(c, known, whole)),
        Unforbidden(
            tuple(interruption(c, exception, path, known) for path, exception in known.exceptions),
            checks(c, pattern, (), known, Neighbors((), (), c.windowed)),
            negating(pattern),
            strict,
        ),
        Require(conditions(c, known, c.node.checks)),
        Emit(),
    )


def _open_after(pattern: Pattern, path: Path, known: Known, after: bool) -> bool:
    """Whether some negation may have nothing bound after it. `after`: the pattern has."""
    match pattern:
        case Leaf() | Absence():
            return False
        case Negation():
            return not after
        case Sequence():
            certain = [
                binds(p, (*path, n), known, False) is True for n, p in enumerate(pattern.items)
            ]
            for n, item in enumerate(pattern.items):
                strict = n > 0 and pattern.operators[n - 1] is STRICT and any(certain[:n])
                if isinstance(item, Negation) and strict:
                    continue
                if _open_after(item, (*path, n), known, after or any(certain[n + 1 :])):
                    return True
            return False
        case Conjunction():
            return any(
                _open_after(item, (*path, n), known, after) for n, item in enumerate(pattern.items)
            )
        case Disjunction():
            n = known.choices[path]
            return _open_after(pattern.items[n], (*path, n), known, after)
        case Closure():
            return _open_round(pattern.item, after)
        case Unless() | Delay():
            return _open_after(pattern.item, (*path, 0), known, after)


def _open_round(pattern: Pattern, after: bool) -> bool:
    """The same in the last round of a closure; which branches it takes isn't known here."""
    match pattern:
        case Leaf() | Absence():
            return False
        case Negation():
            return not after
        case Sequence():
            certain = [binds_always(item) for item in pattern.items]
            return any(
                _open_round(item, after or any(certain[n + 1 :]))
                for n, item in enumerate(pattern.items)
            )
        case Conjunction() | Disjunction():
            return any(_open_round(item, after) for item in pattern.items)
        case Closure() | Unless() | Delay():
            return _open_round(pattern.item, after)
