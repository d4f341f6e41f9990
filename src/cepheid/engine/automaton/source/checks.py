"""What must not be there: exceptions and negations, and events that are bound twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from cepheid.algebra.patterns import positive
from cepheid.engine.automaton.instructions import (
    Check,
    Distinct,
    Forbid,
    ForbidNext,
    ForbidRounds,
    Instructions,
    Interruption,
    PickRound,
    RoundEvent,
    RoundGroup,
    RoundGroups,
)
from cepheid.engine.automaton.points import Beside, Neighbors, Path
from cepheid.engine.automaton.source.groups import group_extent
from cepheid.engine.automaton.source.places import AFTER_ALL, Env, Extent, Limits, around
from cepheid.engine.automaton.source.writer import SourceWriter, Then
from cepheid.engine.lowering import Event, GroupPlace

Write = Callable[[SourceWriter, Instructions, Env, Then], None]
"""The driver: writes instructions, and what comes at their end."""


def write_distinct(w: SourceWriter, step: Distinct, env: Env, then: Then) -> None:
    shared = _shared(step.some, step.others, env)
    if shared is None:
        then(env)
        return
    with w.code.block(f"if not {shared}:"):
        then(env)


def _shared(some: Sequence[str], others: Sequence[str], env: Env) -> str | None:
    """Source of whether variables of both sides bind the same event."""
    tests: list[str] = []
    for name in some:
        for other_name in others:
            match env.scope.get(name), env.scope.get(other_name):
                case Event(row=a), Event(row=b):
                    tests.append(f"{a} == {b}")
                case (Event(row=a), GroupPlace() as g) | (GroupPlace() as g, Event(row=a)):
                    end = f"{g.start} + {g.count}"
                    tests.append(f"holds_row({g.array}, {g.start}, {end}, {a})")
                case GroupPlace() as g, GroupPlace() as h:
                    ends = f"{g.start} + {g.count}", f"{h.start} + {h.count}"
                    tests.append(
                        f"share({g.array}, {g.start}, {ends[0]}, {h.array}, {h.start}, {ends[1]})"
                    )
                case _:
                    pass
    return f"({' or '.join(tests)})" if tests else None


# ── exceptions ──


def write_interruption(w: SourceWriter, step: Interruption, env: Env, write: Write) -> str:
    """Look for an exception; the flag that says whether it is there."""
    code = w.code
    hit = code.let("x", "False")
    during = w.extent(step.during, env)
    if during is None or step.search is None:
        return hit
    begin, end = code.let("a", during.start), code.let("a", during.end)

    def write_hit(bound: Env) -> None:
        at = w.certain_extent(step.path, bound)
        tests = [f"{begin} <= {at.start}", f"{at.end} <= {end}"]
        shared = _shared(step.item_variables, step.exception_variables, bound)
        if shared is not None:
            tests.append(f"not {shared}")
        code.line(f"if {' and '.join(tests)}: {hit} = True")

    looking = replace(env, origin=f"{begin} - 1", upper=f"{end} + 1", stop=hit)
    with code.block("if True:" if during.some is None else f"if {during.some}:"):
        write(w, step.search, looking, write_hit)
    return hit


# ── negations ──


def write_checks(w: SourceWriter, checks: Sequence[Check], env: Env, write: Write) -> None:
    """Set the match's flag if something forbidden is there."""
    for check in checks:
        match check:
            case Forbid():
                _write_forbid(w, check, env, write)
            case ForbidNext():
                _write_forbid_next(w, check, env, write)
            case ForbidRounds():
                _write_forbid_rounds(w, check, env, write)


def _limits(w: SourceWriter, between: Neighbors, env: Env) -> Limits:
    """The clock counts only where there is no neighbor. A part that may be empty decides when the
    kernel runs: then -FAR and FAR are no limits."""
    earliest, latest = env.window
    lower: str | None = None
    for part in between.before:
        extent = _neighbor(w, part, env)
        if extent.some is None:
            lower, earliest = extent.end, None
        else:
            if earliest is not None:
                earliest = f"(-FAR if {extent.some} else {earliest})"
            lower = f"({extent.end} if {extent.some} else {lower or '-FAR'})"
    upper: str | None = None
    for part in between.after:
        extent = _neighbor(w, part, env)
        if extent.some is None:
            upper, latest = extent.start, None
        else:
            if latest is not None:
                latest = f"(FAR if {extent.some} else {latest})"
            upper = f"({extent.start} if {extent.some} else {upper or 'FAR'})"
    return Limits(lower, upper, earliest, latest)


def _in_time(w: SourceWriter, check: Forbid, duration: int, limits: Limits, env: Env) -> Limits:
    """Of a negation with a time of its own, whatever the window."""
    if check.path in env.lapses:
        return Limits(limits.lower, f"({env.lapses[check.path]} + 1)")
    start = AFTER_ALL
    for part in check.between.after:
        extent = _neighbor(w, part, env)
        timed = extent.clock_start
        start = timed if extent.some is None else f"({timed} if {extent.some} else {start})"
    return Limits(None, limits.upper, f"({start} - {duration})")


def _neighbor(w: SourceWriter, part: Path | Beside, env: Env) -> Extent:
    if not isinstance(part, Beside):
        return w.certain_extent(part, env, absences=False)
    rounds, turn = env.rounds[part.closure], env.turns[part.closure]
    at = f"({rounds.first} + {turn})"
    if part.after:
        return replace(rounds.extent(f"{at} + 1"), some=f"{turn} + 1 < {rounds.count}")
    return replace(rounds.extent(f"{at} - 1"), some=f"{turn} > 0")


def _write_forbid(w: SourceWriter, check: Forbid, env: Env, write: Write) -> None:
    code, hit = w.code, env.hit
    limits = _limits(w, check.between, env)
    if check.duration is not None:
        limits = _in_time(w, check, check.duration, limits, env)
    lower = None if limits.lower is None else code.let("a", limits.lower)
    upper = None if limits.upper is None else code.let("a", limits.upper)
    earliest = None if limits.earliest is None else code.let("a", limits.earliest)
    latest = None if limits.latest is None else code.let("a", limits.latest)

    def write_hit(bound: Env) -> None:
        at = w.certain_extent((*check.path, 0), bound)
        tests = [] if upper is None else [f"{at.end} < {upper}"]
        if earliest is not None:
            tests.append(f"{at.clock_start} > {earliest}")
        if latest is not None:
            tests.append(f"{at.clock_end} < {latest}")
        # A negation binds nothing itself: its variables are not the match's.
        shared = _shared(positive(w.program.pattern), check.variables, bound)
        if shared is not None:
            tests.append(f"not {shared}")
        code.line(f"if {' and '.join(tests) or 'True'}: {hit} = True")

    looking = replace(env, origin=lower, upper=upper, stop=hit, window=(earliest, latest))
    with code.block(f"if not {hit}:"):
        write(w, check.search, looking, write_hit)


def _write_forbid_next(w: SourceWriter, check: ForbidNext, env: Env, write: Write) -> None:
    code = w.code
    lower = _limits(w, check.between, env).lower
    assert lower is not None
    after = code.let("a", lower)
    with code.block(f"if {after} > -FAR:"):
        _write_next(w, check, after, env, write)
    if check.otherwise:
        with code.block("else:"):
            write_checks(w, check.otherwise, env, write)


def _write_next(w: SourceWriter, check: ForbidNext, after: str, env: Env, write: Write) -> None:
    """`P => !Q`: none at the next position of the stream, whatever the window."""
    code, hit = w.code, env.hit
    position = code.let("x", w.following(after))
    # Unknown as long as there is no next position and one may come; then the match waits.
    code.line(f"if {position} == -FAR and horizon < FAR: unknown = 1")
    code.line(f"if {position} == -FAR or {position} >= known: fresh = 1")

    def write_hit(bound: Env) -> None:
        at = w.certain_extent((*check.path, 0), bound)
        code.line(f"if {at.first} == {position}: {hit} = True")

    with code.block(f"if not {hit}:"):
        write(w, check.search, replace(env, origin=after, upper=None, stop=hit), write_hit)


# ── in the rounds of a closure ──


def _write_forbid_rounds(w: SourceWriter, check: ForbidRounds, env: Env, write: Write) -> None:
    turn = w.code.name("q")
    with w.code.block(f"for {turn} in range({env.rounds[check.path].count}):"):
        here = replace(env, turns={**env.turns, check.path: turn})
        write(w, check.rounds, here, lambda bound: None)


def _at(closure: Path, env: Env) -> str:
    return f"({env.rounds[closure].first} + {env.turns[closure]})"


def round_event(w: SourceWriter, step: RoundEvent, env: Env) -> Env:
    rounds, v = env.rounds[step.closure], step.variable
    row = f"{rounds.rows[v]}[u({rounds.offsets[v]}[u({_at(step.closure, env)})])]"
    return env.bind(v, row, step.path, w.events.extent(row))


def round_group(w: SourceWriter, step: RoundGroup, env: Env) -> Env:
    place = _place(step.closure, step.variable, env)
    extent = group_extent(w, place, f"{place.count} > 0" if step.least == 0 else None)
    return replace(
        env,
        scope={**env.scope, step.variable: place},
        extents={**env.extents, step.path: extent},
    )


def round_groups(w: SourceWriter, step: RoundGroups, env: Env) -> Env:
    """The rounds of the closure inside follow each other, so the first that a variable binds is in
    the first round that binds it, and the last in the last."""
    places = {v: _place(step.closure, v, env) for v in step.variables}
    whole = around([group_extent(w, p, f"{p.count} > 0") for p in places.values()], False)
    assert whole is not None, "a round binds something"
    return replace(env, scope={**env.scope, **places}, extents={**env.extents, step.path: whole})


def _place(closure: Path, variable: str, env: Env) -> GroupPlace:
    """What a variable binds in the round at hand."""
    rounds, at = env.rounds[closure], _at(closure, env)
    begin = f"{rounds.offsets[variable]}[u({at})]"
    size = f"({rounds.offsets[variable]}[u({at} + 1)] - {begin})"
    return GroupPlace(rounds.rows[variable], begin, size)


def write_pick_round(w: SourceWriter, step: PickRound, env: Env, then: Then) -> None:
    chosen = replace(
        env,
        choices={**env.choices, step.path: step.branch},
        scope={v: p for v, p in env.scope.items() if v not in step.others},
    )
    branches = env.rounds[step.closure].branches[step.path]
    with w.code.block(f"if {branches}[u({_at(step.closure, env)})] == {step.branch}:"):
        then(chosen)
