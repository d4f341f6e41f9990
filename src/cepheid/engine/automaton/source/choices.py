"""Groups of events that are bound: maximal ones, and each one of those that are choices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import assert_never

from cepheid.algebra.patterns import sizes
from cepheid.engine.automaton.elements import EventGroup
from cepheid.engine.automaton.instructions import Choose, FirstRun
from cepheid.engine.automaton.source.groups import (
    at_hand,
    connects,
    consider,
    ends,
    group_extent,
    push,
    take,
    with_taken,
)
from cepheid.engine.automaton.source.places import Env, GroupInProgress
from cepheid.engine.automaton.source.sweeps import (
    awaiting,
    candidates,
    horizon,
    limits_of,
    starts,
    stopping,
    within,
)
from cepheid.engine.automaton.source.writer import SourceWriter, Then
from cepheid.engine.lowering import GroupPlace
from cepheid.kernels.templates.automaton import AutomatonState
from cepheid.language.ast import Exactly, Mode

# ── maximal groups ──


def gather_between(w: SourceWriter, group: EventGroup, env: Env) -> GroupInProgress:
    """The maximal group between two neighbors."""
    limits = limits_of(w, group.sweep, env)
    touch = None
    if group.touch is not None:
        touch = w.code.let("x", w.following(w.end(group.touch, env)))
    taken = take(w, group, limits, touch)
    gather(w, taken, env)
    return taken


def gather(w: SourceWriter, taken: GroupInProgress, env: Env, begin: str | None = None) -> None:
    """All qualifying events, up to UNTIL and, if STRICT, the first break."""
    code, sweep = w.code, taken.group.sweep
    code.line(f"{taken.count} = 0")
    with candidates(w, sweep, env, taken.limits) as (i, row):
        if begin is not None:
            code.line(f"if {i} < {begin}: continue")
        consider(w, taken, env, w.events.listed(w.classes[sweep.variable], i), row)


def gather_before(w: SourceWriter, taken: GroupInProgress, env: Env, touching: str) -> None:
    """Leading, before `=>`: the longest run that touches that neighbor."""
    code = w.code
    flag = code.let("f", "0")
    with candidates(w, taken.group.sweep, env, taken.limits) as (begin, _):
        gather(w, taken, env, begin)
        last = w.events.position(f"{taken.rows}[u({taken.count} - 1)]")
        with code.block(f"if {taken.count} > 0 and {w.following(last)} == {touching}:"):
            code.line(f"{flag} = 1")
            code.line("break")
    code.line(f"if {flag} == 0: {taken.count} = 0")


# ── groups that are choices ──


def write_choose(w: SourceWriter, step: Choose, env: Env, then: Then) -> None:
    """Every group that is not empty; behind it, the group is in range."""
    limits = limits_of(w, step.group.sweep, env)
    touch = None
    if step.group.touch is not None:
        touch = w.code.let("x", w.following(w.end(step.group.touch, env)))
        if step.awaits:
            awaiting(w, env, touch)
    if step.runs:
        noted = (w.scratch("h"), w.code.let("f", "0"))
        env = replace(env, runs={**env.runs, step.group.path: noted})
    taken = take(w, step.group, limits, touch)
    closure = step.group.closure
    if isinstance(closure.quantifier, Exactly):
        _runs_of(w, closure.quantifier.count, step, taken, env, then)
        return
    match closure.mode:
        case Mode.PREFIXES:
            _prefixes(w, step, taken, env, then)
        case Mode.SUBSETS:
            _subsets(w, step, taken, env, then)
        case Mode.RUNS:
            _runs(w, step, taken, env, then)
        case Mode.MAXIMAL:
            raise AssertionError("a maximal group follows from its neighbors")
        case _:
            assert_never(closure.mode)


def _complete(w: SourceWriter, taken: GroupInProgress, env: Env) -> Env:
    """A group that is not empty."""
    env = with_taken(w, taken, env)
    extent = group_extent(w, taken.place, None)
    return replace(env, extents={**env.extents, taken.group.path: extent})


def _in_range(taken: GroupInProgress) -> str:
    low, high = sizes(taken.group.closure.quantifier)
    upper = "" if high is None else f" <= {high}"
    return f"{max(low, 1)} <= {taken.count}{upper}"


def _prefixes(w: SourceWriter, step: Choose, taken: GroupInProgress, env: Env, then: Then) -> None:
    code, sweep = w.code, step.group.sweep
    _, high = sizes(step.group.closure.quantifier)
    code.line(f"{taken.count} = 0")
    with candidates(w, sweep, env, taken.limits) as (i, row):
        if high is not None:
            code.line(f"if {taken.count} == {high}: break")
        before = code.let("m", taken.count)
        consider(w, taken, env, w.events.listed(w.classes[sweep.variable], i), row)
        with code.block(f"if {taken.count} > {before} and {_in_range(taken)}:"):
            then(_complete(w, taken, env))
        stopping(w, env)
    horizon(w, sweep, env)


@contextmanager
def _beginnings(
    w: SourceWriter, step: Choose, taken: GroupInProgress, env: Env
) -> Iterator[tuple[str, str]]:
    """A loop over the events that a group can begin with; those before which it ends are none. The
    number in the list, and the row."""
    if step.start is not None:
        with starts(w, step.start) as row:
            yield f"state[{AutomatonState.AT}]", row
        return
    with candidates(w, step.group.sweep, env, taken.limits) as (i, row):
        yield i, row
        stopping(w, env)
    horizon(w, step.group.sweep, env)


def _take_first(w: SourceWriter, taken: GroupInProgress, env: Env, at: str, row: str) -> str:
    """Take the element that a group begins with; whether it can be."""
    code = w.code
    done = code.let("x", "0")
    code.line(f"{taken.count} = 0")
    hand = at_hand(taken, env, row)
    ended = ends(w, taken, hand)
    tests = [] if ended is None else [f"not ({ended})"]
    connected = connects(w, taken, at, row)
    if connected is not None:
        tests.append(connected)
    with (
        code.block(f"if {' and '.join(tests) or 'True'}:"),
        w.holding(hand, taken.group.criteria),
    ):
        push(w, taken, hand)
        code.line(f"{done} = 1")
    return done


@contextmanager
def _rest(
    w: SourceWriter, step: Choose, taken: GroupInProgress, began: Env, begin: str
) -> Iterator[tuple[str, str]]:
    """A loop over the events after the one that the group begins with."""
    code, n = w.code, w.classes[step.rest.variable]
    i, row = code.name("i"), code.name("r")
    with code.block(f"for {i} in range({begin}, hi{n}):"):
        code.line(f"{row} = {w.events.row(n, i)}")
        within(w, step.rest, i, row, began, taken.limits)
        yield i, row
    horizon(w, step.rest, began)


def _began(w: SourceWriter, step: Choose, taken: GroupInProgress, env: Env) -> Env:
    """The first element is taken: the window counts from it, if it is the match's first event."""
    if env.low is not None or not step.member:
        return env
    first = f"{taken.rows}[0]"
    return replace(env, low=w.events.clock_start(first), high=w.events.clock(first))


@contextmanager
def _begun(
    w: SourceWriter, step: Choose, taken: GroupInProgress, env: Env
) -> Iterator[tuple[str, str, Env, str | None]]:
    """Inside: a group of one element, for each event that may begin one. Its number in the list,
    its position, the group's surroundings, and if only the first groups are wanted, the variable
    with the position at which they begin."""
    code = w.code
    beginning = code.let("f", "FAR") if step.first else None
    began = _began(w, step, taken, env)
    with _beginnings(w, step, taken, env) as (i, row):
        at = w.events.position(row)
        if beginning is not None:
            code.line(f"if {at} > {beginning}: break")
        done = _take_first(w, taken, env, at, row)
        with code.block(f"if {done}:"):
            yield i, at, began, beginning


def _try_group(
    w: SourceWriter,
    taken: GroupInProgress,
    began: Env,
    beginning: str | None,
    at: str,
    grown: str,
    then: Then,
) -> None:
    """Continue with the current group, if it has grown and its size is right."""
    code = w.code
    with code.block(f"if {grown} and {_in_range(taken)}:"):
        if beginning is not None:
            code.line(f"{beginning} = {at}")
        then(_complete(w, taken, began))
    code.line(f"{grown} = 0")


def _runs(w: SourceWriter, step: Choose, taken: GroupInProgress, env: Env, then: Then) -> None:
    """As PREFIXES, but from every qualifying event on."""
    code, n = w.code, w.classes[step.rest.variable]
    _, high = sizes(step.group.closure.quantifier)
    with _begun(w, step, taken, env) as (i, at, began, beginning):
        place = code.let("j", f"{i} + 1")
        grown = code.let("y", "1")
        # The group at hand is tried, then grown by the next element.
        with code.block("while True:"):
            _try_group(w, taken, began, beginning, at, grown, then)
            if high is not None:
                code.line(f"if {taken.count} == {high}: break")
            over = code.let("z", "1")
            with _rest(w, step, taken, began, place) as (j, other):
                code.line(f"{place} = {j} + 1")
                before = code.let("m", taken.count)
                consider(w, taken, began, w.events.listed(n, j), other)
                with code.block(f"if {taken.count} > {before}:"):
                    code.line(f"{grown} = 1")
                    code.line(f"{over} = 0")
                    code.line("break")
            code.line(f"if {over}: break")


def _runs_of(
    w: SourceWriter, count: int, step: Choose, taken: GroupInProgress, env: Env, then: Then
) -> None:
    """Events that are consecutive among the qualifying ones; running conditions are checked inside
    each run, and UNTIL counts from its start."""
    code, n = w.code, w.classes[step.rest.variable]
    began = _began(w, step, taken, env)
    filters = [c for c in step.group.criteria if c.running is None]
    running = [c for c in step.group.criteria if c.running is not None]
    with _beginnings(w, step, taken, env) as (i, row):
        done = _take_first(w, taken, env, w.events.position(row), row)
        with code.block(f"if {done}:"):
            if count > 1:
                with _rest(w, step, taken, began, f"{i} + 1") as (j, other):
                    hand = at_hand(taken, began, other)
                    ended = ends(w, taken, hand)
                    if ended is not None:
                        code.line(f"if {ended}: break")
                    with w.holding(hand, filters):
                        fine = code.let("x", "0")
                        connected = connects(w, taken, w.events.listed(n, j), other)
                        with (
                            code.block(f"if {connected or 'True'}:"),
                            w.holding(hand, running),
                        ):
                            code.line(f"{fine} = 1")
                        code.line(f"if {fine} == 0: break")
                        push(w, taken, hand)
                        code.line(f"if {taken.count} == {count}: break")
            with code.block(f"if {taken.count} == {count}:"):
                then(_complete(w, taken, began))


def _subsets(w: SourceWriter, step: Choose, taken: GroupInProgress, env: Env, then: Then) -> None:
    """Depth first: each subset, then those that add a later event to it."""
    code, n = w.code, w.classes[step.rest.variable]
    _, high = sizes(step.group.closure.quantifier)
    places = w.scratch("s")  # the number in the list of each element
    with _begun(w, step, taken, env) as (i, at, began, beginning):
        code.line(f"{places}[0] = {i}")
        place = code.let("j", f"{i} + 1")
        grown = code.let("y", "1")
        with code.block("while True:"):
            _try_group(w, taken, began, beginning, at, grown, then)
            more = "True" if high is None else f"{taken.count} < {high}"
            with (
                code.block(f"if {more}:"),
                _rest(w, step, taken, began, place) as (j, other),
            ):
                before = code.let("m", taken.count)
                _extend(w, taken, began, w.events.listed(n, j), other)
                with code.block(f"if {taken.count} > {before}:"):
                    code.line(f"{places}[u({before})] = {j}")
                    code.line(f"{place} = {j} + 1")
                    code.line(f"{grown} = 1")
                    code.line("break")
            with code.block(f"if {grown} == 0:"):
                code.line(f"if {taken.count} == 1: break")
                code.line(f"{taken.count} -= 1")
                code.line(f"{place} = {places}[u({taken.count})] + 1")


def _extend(w: SourceWriter, taken: GroupInProgress, env: Env, at: str, row: str) -> None:
    """Take the event into a subset if it qualifies; one that UNTIL names ends it, one that doesn't
    connect is passed over."""
    code = w.code
    hand = at_hand(taken, env, row)
    ended = ends(w, taken, hand)
    if ended is not None:
        code.line(f"if {ended}: break")
    with (
        code.block(f"if {connects(w, taken, at, row) or 'True'}:"),
        w.holding(hand, taken.group.criteria),
    ):
        push(w, taken, hand)


def write_first_run(w: SourceWriter, step: FirstRun, env: Env, then: Then) -> None:
    """After `->`, only the first run (all that are simultaneous with it)."""
    code = w.code
    array, flag = env.runs[step.path]
    place = env.scope[step.variable]
    assert isinstance(place, GroupPlace)
    e = code.name("e")
    at = w.events.position(f"{place.array}[u({place.start} + {e})]")
    fine = code.let("x", "1")
    with code.block(f"if {flag}:"), code.block(f"for {e} in range({place.count}):"):
        code.line(f"if {array}[u({e})] != {at}: {fine} = 0")
    with code.block(f"if {fine}:"):
        with code.block(f"for {e} in range({place.count}):"):
            code.line(f"{array}[u({e})] = {at}")
        code.line(f"{flag} = 1")
        then(env)
