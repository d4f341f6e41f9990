"""From a pattern to the program of its automaton.

A part is bound by the instructions that bind it, with whatever comes then behind them
(continuation-passing style): what is known grows from left to right, and each condition is checked
at the first place where all that it reads is known.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from cepheid.algebra.expressions import MatchDuration, TimeSpan, walk
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
    positive,
)
from cepheid.engine.automaton.early import checked_early
from cepheid.engine.automaton.forbidden import unless, wait
from cepheid.engine.automaton.instructions import Distinct, Fork, Instructions, Pick, Search, Start
from cepheid.engine.automaton.knowledge import Compilation, Known, Then, hold
from cepheid.engine.automaton.matches import complete
from cepheid.engine.automaton.points import Path, Point
from cepheid.engine.automaton.program import Program
from cepheid.engine.automaton.promptness import is_prompt
from cepheid.engine.automaton.sequences import sequence_of
from cepheid.plan.nodes import Automaton


def compile_pattern(node: Automaton, *, windowed: bool, in_time: bool, lasting: bool) -> Program:
    """`windowed`: matches have a window; `in_time`: its clock is time. `lasting`: events may."""
    prompt = is_prompt(node.pattern, lasting)
    c = Compilation(node, bind, prompt, windowed=windowed, in_time=in_time, lasting=lasting)
    written = bind(c, node.pattern, (), Known(), None, lambda known: complete(c, known))
    instructions = checked_early(written, timed=in_time and not moves_end(node.pattern))
    assert not (c.prompt and c.waits)
    return Program(
        node.pattern,
        instructions,
        tuple(leaf.variable for leaf in node.leaves),
        tuple(c.starts),
        c.grouped,
        windowed,
        in_time,
        windowed or _reads_durations(node),
        lasting,
        moves_end(node.pattern),
        c.waits,
        c.looks_back,
        c.back,
        c.prompt,
    )


def _reads_durations(node: Automaton) -> bool:
    conditions = (*(conjunct.expression for conjunct in node.where), *node.checks)
    parts = (part for condition in conditions for part in walk(condition))
    return any(isinstance(part, MatchDuration | TimeSpan) for part in parts)


def bind(
    c: Compilation, pattern: Pattern, path: Path, known: Known, after: Point | None, then: Then
) -> Instructions:
    match pattern:
        case Leaf():
            return _leaf(c, pattern, path, known, after, then)
        case Sequence() | Closure():
            return sequence_of(c, pattern, path, known, after, then)
        case Conjunction():
            return _conjunction(c, pattern, path, known, after, then)
        case Disjunction():
            return _disjunction(c, pattern, path, known, after, then)
        case Unless():
            return unless(c, pattern, path, known, after, then)
        case Delay():
            return bind(c, pattern.item, (*path, 0), known, after, then)
        case Negation():
            return then(known)
        case Absence():
            return wait(c, pattern, path, known, then)
        case _:
            assert_never(pattern)


def _leaf(
    c: Compilation, leaf: Leaf, path: Path, known: Known, after: Point | None, then: Then
) -> Instructions:
    v = leaf.variable
    step = (
        Search(c.sweep(v, known, after), path, known.control.negation is None)
        if known.started
        else Start(c.start(v), v, path)
    )
    held, inside = hold(c, known.bind(v, path))
    return (step, held, *then(inside))


def _conjunction(
    c: Compilation,
    pattern: Conjunction,
    path: Path,
    known: Known,
    after: Point | None,
    then: Then,
) -> Instructions:
    """Members in any order, of distinct events."""
    control = known.control
    unordered = replace(control, unordered=True)
    c.looks_back = True

    def member(n: int, known: Known) -> Instructions:
        if n == len(pattern.items):
            return then(known.under(control))
        item = pattern.items[n]
        others = tuple(v for p in pattern.items[:n] for v in positive(p))

        def bound(known: Known) -> Instructions:
            rest = member(n + 1, known.under(unordered))
            return (Distinct(others, positive(item)), *rest) if others else rest

        return bind(c, item, (*path, n), known, after, bound)

    return member(0, known.under(unordered) if known.timed else known)


def _disjunction(
    c: Compilation,
    pattern: Disjunction,
    path: Path,
    known: Known,
    after: Point | None,
    then: Then,
) -> Instructions:
    """Each branch in turn; variables of the others are absent."""
    ways: list[Instructions] = []
    for n, branch in enumerate(pattern.items):
        others = [v for m, o in enumerate(pattern.items) if m != n for v in positive(o)]
        chosen = replace(
            known,
            choices={**known.choices, path: n},
            decided=known.decided.union(others),
            absent=known.absent.union(others),
        )
        held, inside = hold(c, chosen)
        ways.append((Pick(path, n), held, *bind(c, branch, (*path, n), inside, after, then)))
    return (Fork(tuple(ways)),)
