"""Loops over the events of a class: starts, searches, and when they wait for what is to come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from cepheid.engine.automaton.elements import EventGroup, Sweep, TimeBound
from cepheid.engine.automaton.instructions import Grow, Search, Start, Unbroken
from cepheid.engine.automaton.points import Opening
from cepheid.engine.automaton.source.groups import consider, take
from cepheid.engine.automaton.source.numbered import before_start
from cepheid.engine.automaton.source.places import Env, Growth, Limits
from cepheid.engine.automaton.source.writer import SourceWriter, Then
from cepheid.engine.lowering import Event
from cepheid.kernels.templates.automaton import AutomatonState


def limits_of(w: SourceWriter, sweep: Sweep, env: Env) -> Limits:
    opening = env.window[0] if isinstance(sweep.lower, Opening) else None
    return Limits(w.point(sweep.lower, env), w.point(sweep.upper, env), opening)


@contextmanager
def candidates(
    w: SourceWriter, sweep: Sweep, env: Env, limits: Limits
) -> Iterator[tuple[str, str]]:
    """A loop over the events of a sweep: their number in the list, and their row."""
    code, n = w.code, w.classes[sweep.variable]
    i, row = code.name("i"), code.name("r")
    begin = f"lo{n}"
    if limits.lower is not None:
        begin = w.first_after(n, limits.lower)
    elif limits.earliest is not None:
        begin = f"first_later(clock, rows{n}, lo{n}, hi{n}, {limits.earliest})"
    if sweep.near:
        far = f"first_later(clock, rows{n}, lo{n}, hi{n}, {env.high} - window)"
        begin = f"max({begin}, {far})"
    with code.block(f"for {i} in range({begin}, hi{n}):"):
        code.line(f"{row} = {w.events.row(n, i)}")
        within(w, sweep, i, row, env, limits)
        yield i, row


def within(w: SourceWriter, sweep: Sweep, i: str, row: str, env: Env, limits: Limits) -> None:
    """Leave the loop behind the limits, pass over what lies before them."""
    line, n = w.code.line, w.classes[sweep.variable]
    for upper in dict.fromkeys((limits.upper, env.upper)):
        if upper is not None:
            line(f"if {w.events.listed(n, i)} >= {upper}: break")
    if limits.latest is not None:
        line(f"if {w.events.clock(row)} >= {limits.latest}: break")
    if sweep.inside:
        line(f"if {w.events.clock(row)} - {env.low} >= window: break")
    for bound in sweep.bounds:
        line(f"if {w.events.clock(row)} - {_since(w, bound, env)} >= {bound.ticks}: break")
    if limits.earliest is not None and (limits.lower is not None or w.program.lasting):
        line(f"if {w.events.clock_start(row)} <= {limits.earliest}: continue")
    if w.program.lasting and limits.lower is not None:
        line(f"if {w.events.begin(row)} <= {limits.lower}: continue")


def horizon(w: SourceWriter, sweep: Sweep, env: Env, test: str | None = None) -> None:
    """After a loop that was not left before its end: events to come may matter."""
    if not sweep.awaits:
        return
    tests = [] if test is None else [test]
    if w.program.windowed and env.low is not None:
        tests.append(f"frontier - {env.low} < window")
    tests += [f"frontier - {_since(w, bound, env)} < {bound.ticks}" for bound in sweep.bounds]
    with w.code.block("else:"):
        w.code.line(f"if {' and '.join(tests) or 'True'}: more = 1")


def _since(w: SourceWriter, bound: TimeBound, env: Env) -> str:
    """The clock from which a bound counts."""
    places = [env.scope[v] for v in bound.others]
    begins = [w.events.clock_start(place.row) for place in places if isinstance(place, Event)]
    return begins[0] if len(begins) == 1 else f"min({', '.join(begins)})"


def stopping(w: SourceWriter, env: Env) -> None:
    """The end of a loop's body: leave if what was looked for has been found."""
    if env.stop is not None:
        w.code.line(f"if {env.stop}: break")


def awaiting(w: SourceWriter, env: Env, position: str) -> None:
    """The next position of the stream is not known yet, or more may come there."""
    inside = ""
    if w.program.windowed and env.low is not None:
        inside = f" and frontier - {env.low} < window"
    w.code.line(f"if ({position} == -FAR or {position} >= horizon){inside}: more = 1")


@contextmanager
def starts(w: SourceWriter, entry: int) -> Iterator[str]:
    """The loop over the events that a match can start with."""
    code, n = w.code, w.classes[w.program.starts[entry]]
    i, row = code.name("i"), code.name("r")
    later = f"(hi{n} if entry > {entry} else lo{n})"
    begin = code.let("b", f"at_start if entry == {entry} else {later}")
    with code.block(f"for {i} in range({begin}, hi{n}):"):
        code.line(f"{row} = {w.events.row(n, i)}")
        for text in before_start(row) if w.chooses else ():
            code.line(text)
        with code.block(f"if alive[{entry}, u({row})]:"):
            code.line("more = 0")
            code.line(f"state[{AutomatonState.ENTRY}] = {entry}")
            code.line(f"state[{AutomatonState.AT}] = {i}")
            code.line("k0 = k")
            for pool in range(len(w.pools)):
                code.line(f"pooled{pool}_0 = pooled{pool}")
            before = w.start, w.start_row
            w.start, w.start_row = (f"{i} - lo{n}", f"hi{n} - lo{n}"), row
            yield row
            w.start, w.start_row = before
            code.line(f"alive[{entry}, u({row})] = more")


def write_start(w: SourceWriter, step: Start, env: Env, then: Then) -> None:
    with starts(w, step.entry) as row:
        bound = env.bind(step.variable, row, step.path, w.events.extent(row))
        then(replace(bound, low=w.events.clock_start(row), high=w.events.clock(row)))


def write_search(w: SourceWriter, step: Search, env: Env, then: Then) -> None:
    code, sweep = w.code, step.sweep
    limits = limits_of(w, sweep, env)
    exact = None
    if step.exact is not None:
        exact = code.let("x", w.following(w.end(step.exact, env)))
        if sweep.awaits:
            awaiting(w, env, exact)
    first = code.let("f", "FAR") if step.first else None
    growing = {group.path: _growth(w, group, env) for group in step.growing}
    with candidates(w, sweep, env, limits) as (i, row):
        at = w.events.listed(w.classes[sweep.variable], i)
        if exact is not None:
            code.line(f"if {at} > {exact}: break")
        if first is not None:
            code.line(f"if {at} > {first}: break")
        bound = _bound(w, step, env, row)
        then(
            replace(
                bound,
                growing={**bound.growing, **growing},
                anchors={**bound.anchors, step.path: (at, first)},
            )
        )
        stopping(w, env)
    if exact is not None:
        return
    if step.unbroken is not None and sweep.awaits:
        # Once the run is broken no later event can touch it.
        growth = growing[step.unbroken]
        with code.block("else:"):
            _grow(w, growth, "FAR")
            end = _end_of(w, growth, limits.lower)
            awaiting(w, env, code.let("x", w.following(end)))
    else:
        # More may come where one has been found that isn't before the horizon.
        horizon(w, sweep, env, None if first is None else f"{first} >= horizon")


def _bound(w: SourceWriter, step: Search, env: Env, row: str) -> Env:
    bound = env.bind(step.sweep.variable, row, step.path, w.events.extent(row))
    if not step.member:
        return bound
    low, high = w.events.clock_start(row), w.events.clock(row)
    unordered = step.sweep.unordered
    if env.low is not None:
        low = w.code.let("w", f"min({env.low}, {low})") if unordered else env.low
    if env.high is not None and unordered:
        high = w.code.let("w", f"max({env.high}, {high})")
    return replace(bound, low=low, high=high)


# ── groups that grow with the anchor ──


def _growth(w: SourceWriter, group: EventGroup, env: Env) -> Growth:
    limits = limits_of(w, group.sweep, env)
    touch = None
    if group.touch is not None:
        touch = w.code.let("x", w.following(w.end(group.touch, env)))
    taken = take(w, group, limits, touch)
    c = w.classes[group.variable]
    index = w.code.let("j", w.first_after(c, str(limits.lower)))
    return Growth(taken, index, w.code.let("y", "0"), env)


def write_grow(w: SourceWriter, step: Grow, env: Env) -> None:
    anchor = env.scope[step.anchor]
    assert isinstance(anchor, Event)
    _grow(w, env.growing[step.group], w.events.begin(anchor.row))


def _grow(w: SourceWriter, growth: Growth, before: str) -> None:
    """Take what qualifies before a position."""
    code, taken, index, ended = w.code, growth.taken, growth.index, growth.ended
    c = w.classes[taken.group.variable]
    more = f"{index} < hi{c} and {w.events.listed(c, index)} < {before}"
    with code.block(f"while {ended} == 0 and {more}:"):
        row = code.let("r", w.events.row(c, index))
        at = code.let("a", w.events.listed(c, index))
        code.line(f"{ended} = 1")
        if taken.group.sweep.inside:
            code.line(f"if {w.events.clock(row)} - {growth.outside.low} >= window: break")
        if w.program.lasting:
            with code.block(f"if {w.events.begin(row)} <= {taken.limits.lower}:"):
                code.line(f"{ended} = 0")
                code.line(f"{index} += 1")
                code.line("continue")
        consider(w, taken, growth.outside, at, row)
        code.line(f"{ended} = 0")
        code.line(f"{index} += 1")


def write_unbroken(w: SourceWriter, step: Unbroken, env: Env) -> None:
    at, _ = env.anchors[step.anchor]
    end = _end_of(w, env.growing[step.group], w.end(step.left, env))
    w.code.line(f"if {w.following(end)} != {at}: break")


def _end_of(w: SourceWriter, growth: Growth, left: str | None) -> str:
    rows, count = growth.taken.rows, growth.taken.count
    last = w.events.position(f"{rows}[u({count} - 1)]")
    return f"({last} if {count} > 0 else {left})"
