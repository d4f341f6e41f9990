"""A program as text: one instruction in a line, without ids, so that it can be compared.

Each line stands inside those above it; an indented line adds to the one before it,
or belongs to its own search. What holds of itself (a check of nothing) is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import assert_never

from cepheid.algebra.patterns import Pattern, leaves, positive
from cepheid.algebra.text import condition_text, expression_text
from cepheid.engine.automaton.elements import Criterion, EventGroup, RoundChain, Sweep
from cepheid.engine.automaton.instructions import (
    Binding,
    Check,
    CheckRound,
    Choose,
    ChooseRounds,
    Complete,
    Decide,
    Defer,
    Distinct,
    Earliest,
    Emit,
    Empty,
    Equal,
    FirstRun,
    Fit,
    Forbid,
    ForbidNext,
    ForbidRounds,
    Fork,
    Gate,
    Gather,
    GatherEdge,
    Grow,
    Grown,
    Hold,
    Instructions,
    Interruption,
    Last,
    Note,
    Passed,
    Pick,
    PickRound,
    Remember,
    Require,
    RoundEvent,
    RoundGroup,
    RoundGroups,
    Search,
    Start,
    TakeFirst,
    Touch,
    Touching,
    Unbeaten,
    Unbroken,
    Unforbidden,
    Uninterrupted,
    Wait,
)
from cepheid.engine.automaton.points import (
    Begin,
    Beside,
    End,
    Neighbors,
    Opening,
    Origin,
    Path,
    Point,
    part_at,
)
from cepheid.language.ast import Exactly, Mode, Optional
from cepheid.language.names import quantifier_text

Lines = Iterator[str]


def listing(pattern: Pattern, instructions: Instructions) -> Lines:
    for step in instructions:
        if isinstance(step, Binding):
            yield from _binding(pattern, step)
        elif isinstance(step, Gate):
            yield from _gate(pattern, step)
        elif isinstance(step, Note):
            yield _note(pattern, step)
        else:
            yield from _last(pattern, step)


def _inside(lines: Iterable[str]) -> Lines:
    return (f"    {line}" for line in lines)


# ── names ──


def _name(pattern: Pattern, path: Path | Beside) -> str:
    """A part by its variables."""
    if isinstance(path, Beside):
        return f"the round {'after' if path.after else 'before'}"
    part = part_at(pattern, path)
    return " ".join(positive(part) or leaves(part))


def _point(pattern: Pattern, point: Point) -> str:
    match point:
        case End(part=part, groups=groups):
            parts = [*(() if part is None else (part,)), *groups]
            return " or ".join(_name(pattern, path) for path in reversed(parts))
        case Begin(part=part):
            return _name(pattern, part)
        case Origin():
            return "where the search begins"
        case Opening():
            return "the window's start"
        case _:
            assert_never(point)


def _range(pattern: Pattern, lower: Point | None, upper: Point | None, word: str = "after") -> str:
    after = "" if lower is None else f" {word} {_point(pattern, lower)}"
    return after + ("" if upper is None else f" before {_point(pattern, upper)}")


def _sweep(pattern: Pattern, sweep: Sweep, word: str = "after") -> str:
    phrases = [_range(pattern, sweep.lower, sweep.upper, word)]
    phrases += [" in the window"] if sweep.inside else []
    phrases += [" in any order"] if sweep.unordered else []
    phrases += [f", less than {s.ticks} after {', '.join(s.others)}" for s in sweep.bounds]
    return "".join(phrases) + ("; may wait" if sweep.awaits else "")


def _group(pattern: Pattern, group: EventGroup | RoundChain) -> str:
    closure = group.closure
    name = _name(pattern, group.path)
    name = f"({name})" if isinstance(group, RoundChain) else name
    choice = not isinstance(closure.quantifier, Exactly | Optional)
    mode = f" {closure.mode.name}" if choice and closure.mode is not Mode.MAXIMAL else ""
    return f"{name}{quantifier_text(closure.quantifier)}{mode}"


def _criteria(criteria: Iterable[Criterion]) -> str:
    return " AND ".join(
        condition_text(c.condition)
        + ("" if c.running is None or c.initial else " (not of the first)")
        for c in criteria
    )


def _taking(pattern: Pattern, group: EventGroup | RoundChain) -> Lines:
    """How a group takes its elements."""
    if group.touch is not None:
        yield f"next to {_point(pattern, group.touch)}"
    if group.strict:
        yield "without a break"
    if isinstance(group, RoundChain):
        yield f"each round{'; may wait' if group.awaits else ''}:"
        yield from _inside(listing(pattern, group.search))
        return
    if group.criteria:
        yield f"each: {_criteria(group.criteria)}"
    if group.until is not None:
        yield f"until {condition_text(group.until)}"
    if group.aggregates:
        carried = map(expression_text, group.aggregates)
        yield f"carries {', '.join(carried)}"


# ── instructions ──


def _binding(pattern: Pattern, step: Binding) -> Lines:
    match step:
        case Start(variable=v):
            yield f"start with {v}"
        case Search(sweep=sweep):
            where = _sweep(pattern, sweep, "after" if step.exact is None else "next to")
            yield f"search {sweep.variable}{', the first' if step.first else ''}{where}"
            for group in step.growing:
                yield f"    while {_group(pattern, group)} grows"
                yield from _inside(_inside(_taking(pattern, group)))
        case Choose(group=group):
            start = step.start is not None
            where = "" if start else _sweep(pattern, group.sweep)
            first = ", the first" if step.first else ""
            yield f"{'start with' if start else 'choose'} {_group(pattern, group)}{first}{where}"
            yield from _inside(_taking(pattern, group))
        case ChooseRounds(chain=chain):
            head = "choose" if step.start is None else "start with"
            where = _range(pattern, chain.lower, chain.upper) if chain.anchor is None else ""
            first = ", the first" if step.first else ""
            yield f"{head} {_group(pattern, chain)}{first}{where}"
            yield from _inside(_taking(pattern, chain))
        case Gather(group=group):
            yield f"gather {_group(pattern, group)}{_limits(pattern, group)}"
            yield from _inside(_taking(pattern, group))
        case Grown(group=group):
            yield f"take {_group(pattern, group)}, as far as it has grown"
        case GatherEdge(group=group):
            yield f"gather {_group(pattern, group)}{_limits(pattern, group)} to the window's edge"
            yield from _inside(_taking(pattern, group))
        case Earliest(path=path, search=search):
            yield f"find the earliest {_name(pattern, path)}{'; may wait' if step.awaits else ''}:"
            yield from _inside(listing(pattern, search))
        case Unbeaten(path=path, groups=groups, rivals=rivals):
            yield f"unless an earlier {_name(pattern, path)} has the same {' '.join(groups)}:"
            yield from _inside(listing(pattern, rivals))
        case _:
            assert_never(step)


def _limits(pattern: Pattern, group: EventGroup | RoundChain) -> str:
    if isinstance(group, EventGroup):
        return _sweep(pattern, group.sweep)
    return _range(pattern, group.lower, group.upper)


def _gate(pattern: Pattern, step: Gate) -> Lines:
    match step:
        case Hold(criteria=()) | Require(conditions=()) | Touch(parts=()):
            pass
        case Hold(criteria=criteria):
            yield f"if {_criteria(criteria)}"
        case Require(conditions=conditions):
            yield f"if {' AND '.join(map(condition_text, conditions))}"
        case Distinct(some=some, others=others):
            yield f"if {', '.join(others)} bind other events than {', '.join(some)}"
        case Touch(parts=parts):
            yield f"if {' and '.join(_touching(pattern, part) for part in parts)}"
        case Wait(before=before, duration=duration):
            since = " or ".join(_name(pattern, part) for part in reversed(before))
            yield f"let {duration} pass after {since}"
        case Fit(most=most):
            yield f"if {' and '.join(f'{_name(pattern, p)} has at most {n}' for p, n in most)}"
        case FirstRun(path=path):
            yield f"if it is the first run of {_name(pattern, path)}"
        case Grow(group=group, anchor=anchor):
            yield f"let {_name(pattern, group)} grow up to {anchor}"
        case Unbroken(group=group, anchor=anchor):
            yield f"leave unless {_name(pattern, anchor)} touches {_name(pattern, group)}"
        case TakeFirst(path=path):
            yield f"this {_name(pattern, path)} is the first"
        case Equal(path=path):
            yield f"if this {_name(pattern, path)} is as early"
        case Uninterrupted(exception=exception):
            yield from _interruption(pattern, exception)
        case PickRound(path=path, branch=branch):
            yield f"if the round took {_name(pattern, (*path, branch))}"
        case Passed():
            yield "if the window has passed; else wait"
        case Decide(waits=waits, strict=strict):
            phrases = ["its window has passed"] if waits else []
            phrases += ["the next position is known"] if strict else []
            yield f"if {' and '.join(phrases or ['it is known'])} now, and wasn't before"
        case Unforbidden(exceptions=exceptions, checks=checks):
            for exception in exceptions:
                yield from _interruption(pattern, exception)
            yield from _checks(pattern, checks)
        case _:
            assert_never(step)


def _touching(pattern: Pattern, part: Touching) -> str:
    return f"{_name(pattern, part.part)} is next to {_point(pattern, part.end)}"


def _note(pattern: Pattern, step: Note) -> str:
    match step:
        case Empty(variables=variables):
            return f"{', '.join(variables)} empty"
        case Defer(path=path, lower=lower, upper=upper):
            after = "" if lower is None else f" after {_name(pattern, lower)}"
            before = "" if upper is None else f" before {_name(pattern, upper)}"
            return f"leave {_name(pattern, path)}{after}{before} for the whole match"
        case Pick(path=path, branch=branch):
            return f"take {_name(pattern, (*path, branch))}"
        case Remember(path=path):
            return f"remember what is bound before {_name(pattern, path)}"
        case RoundEvent(variable=v) | RoundGroup(variable=v):
            return f"{v} of the round"
        case RoundGroups(variables=variables):
            return f"{', '.join(variables)} of the round"
        case _:
            assert_never(step)


def _last(pattern: Pattern, step: Last) -> Lines:
    match step:
        case Fork(ways=ways):
            for n, way in enumerate(ways):
                yield "either:" if n == 0 else "or:"
                yield from _inside(listing(pattern, way))
        case Complete(until=until):
            yield "a round" + ("" if until is None else f", the last if {condition_text(until)}")
        case CheckRound(checks=checks):
            yield from _checks(pattern, checks)
        case Emit():
            yield "match"
        case _:
            assert_never(step)


# ── what must not be there ──


def _interruption(pattern: Pattern, exception: Interruption) -> Lines:
    if exception.search is not None:
        names = _name(pattern, exception.path), _name(pattern, exception.during)
        yield f"unless {names[0]} occurs during {names[1]}:"
        yield from _inside(listing(pattern, exception.search))


def _checks(pattern: Pattern, checks: tuple[Check, ...]) -> Lines:
    for check in checks:
        match check:
            case Forbid(path=path, between=between, search=search, duration=duration):
                where = _between(pattern, between)
                if duration is not None:
                    side = replace(between, after=()) if between.before else between
                    where = f" for {duration}{_between(pattern, side)}"
                yield f"unless {_name(pattern, path)} occurs{where}:"
                yield from _inside(listing(pattern, search))
            case ForbidNext(path=path, between=between, search=search, otherwise=otherwise):
                near = " or ".join(_name(pattern, part) for part in reversed(between.before))
                yield f"unless {_name(pattern, path)} is next to {near}:"
                yield from _inside(listing(pattern, search))
                if otherwise:
                    yield f"if {near} are empty:"
                    yield from _inside(_checks(pattern, otherwise))
            case ForbidRounds(path=path, rounds=rounds):
                yield f"in each round of {_name(pattern, path)}:"
                yield from _inside(listing(pattern, rounds))
            case _:
                assert_never(check)


def _between(pattern: Pattern, between: Neighbors) -> str:
    phrases = [
        f" {word} {' or '.join(_name(pattern, part) for part in reversed(parts))}"
        for word, parts in (("after", between.before), ("before", between.after))
        if parts
    ]
    return "".join(phrases) or " in the window"
