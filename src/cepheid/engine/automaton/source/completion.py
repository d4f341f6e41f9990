"""A complete match: closures at its edges, when it is known, how it is written."""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.patterns import positive
from cepheid.engine.automaton.elements import EventGroup
from cepheid.engine.automaton.instructions import (
    Decide,
    Defer,
    GatherEdge,
    Touch,
    Touching,
    Unforbidden,
    Wait,
)
from cepheid.engine.automaton.source.checks import Write, write_checks, write_interruption
from cepheid.engine.automaton.source.choices import gather, gather_before
from cepheid.engine.automaton.source.groups import take, with_taken
from cepheid.engine.automaton.source.numbered import FULL, may_be_kept, noted
from cepheid.engine.automaton.source.places import AFTER_ALL, BEFORE_ALL, Env, Extent, Limits
from cepheid.engine.automaton.source.rounds import with_rounds, write_chain
from cepheid.engine.automaton.source.writer import SourceWriter, Then, Within
from cepheid.engine.lowering import Event, GroupPlace
from cepheid.kernels.templates.automaton import AutomatonState


def write_touch(w: SourceWriter, step: Touch, env: Env, then: Then) -> None:
    tests = [_touches(w, part, env) for part in step.parts]
    with w.code.block(f"if {' and '.join(tests) or 'True'}:"):
        then(env)


def _touches(w: SourceWriter, part: Touching, env: Env) -> str:
    end, extent = w.end(part.end, env), w.certain_extent(part.part, env)
    if extent.first == AFTER_ALL:
        return "True"  # time that passes: there is no event that could touch
    touches = f"{w.following(end)} == {extent.first}"
    if part.anchor:
        return f"({end} == -FAR or {touches})"
    return touches if extent.some is None else f"(not ({extent.some}) or {touches})"


# ── time that passes ──


def write_wait(w: SourceWriter, step: Wait, env: Env, then: Then) -> None:
    """Continue if the time is over inside the window; where it isn't over by now, what comes behind
    finds that out."""
    code = w.code
    since = BEFORE_ALL
    for path in step.before:
        part = w.certain_extent(path, env, absences=False)
        since = (
            part.time_end if part.some is None else f"({part.time_end} if {part.some} else {since})"
        )
    time = code.let("a", f"{since} + {step.duration}")
    lapse = end = code.let("a", w.instant(time))
    beside = [w.certain_extent(path, env) for path in step.beside]
    if beside:
        time = code.let("a", f"max({', '.join([time, *(e.time_end for e in beside)])})")
        end = code.let("a", f"max({', '.join([lapse, *(e.end for e in beside)])})")
    # It begins nothing, so it is in the way of no part's start.
    far = AFTER_ALL
    extent = Extent(far, end, far, time, far, time, far)
    waited = replace(
        env,
        extents={**env.extents, step.path: extent},
        lapses={**env.lapses, step.path: lapse},
    )
    inside = w.program.windowed and env.low is not None
    with code.block(f"if {time} - {env.low} < window:" if inside else "if True:"):
        then(waited)


# ── closures at the edges ──


def defer(w: SourceWriter, step: Defer, env: Env) -> Env:
    lower = None if step.lower is None else w.extent(step.lower, env)
    upper = None if step.upper is None else w.extent(step.upper, env)
    return replace(env, fringes={**env.fringes, step.path: (lower, upper)})


def write_passed(w: SourceWriter, env: Env, then: Then) -> None:
    whole = w.certain_extent((), env)
    with w.code.block(f"if {whole.clock_start} + window > frontier:"):
        w.code.line("more = 1")
    with w.code.block("else:"):
        then(env)


def write_gather_edge(
    w: SourceWriter, step: GatherEdge, env: Env, search: Within, then: Then
) -> None:
    code, group = w.code, step.group
    whole = w.certain_extent((), env)
    before, behind = env.fringes[group.path]
    lower = None if before is None else code.let("a", _end_beside(w, step, before.end, env))
    upper = None if behind is None else code.let("a", behind.start)
    limits = Limits(
        lower,
        upper,
        code.let("a", f"{whole.clock_end} - window") if lower is None else None,
        code.let("a", f"{whole.clock_start} + window") if upper is None else None,
    )
    touch = None
    if group.touch is not None:
        assert lower is not None
        touch = code.let("x", w.following(lower))
    # The group may lie outside of what is known to be the window's; its limits say where.
    unbounded = replace(env, low=None, high=None)
    if isinstance(group, EventGroup):
        taken = take(w, group, limits, touch)
        if step.leading:
            assert behind is not None
            gather_before(w, taken, unbounded, behind.first)
        else:
            gather(w, taken, unbounded)
        count, size = taken.count, code.name("s")
        all_of, some_of = with_taken(w, taken, env), with_taken(w, taken, env, size)
    else:
        chained = write_chain(w, group, unbounded, limits, touch, search)
        count, size = chained.count, code.name("s")
        all_of = with_rounds(chained, env, "0", count, False)
        some_of = with_rounds(chained, env, "0", size, False)
    if step.prefixes:
        most = count if step.most is None else f"min({count}, {step.most})"
        with code.block(f"for {size} in range({step.least}, {most} + 1):"):
            then(some_of)
    else:
        top = "" if step.most is None else f" <= {step.most}"
        with code.block(f"if {step.least} <= {count}{top}:"):
            then(all_of)


def _end_beside(w: SourceWriter, step: GatherEdge, end: str, env: Env) -> str:
    """The end of the last closure beside it that isn't empty."""
    for path in step.beside:
        group = w.certain_extent(path, env)
        end = group.end if group.some is None else f"({group.end} if {group.some} else {end})"
    return end


# ── what is known ──


def write_decide(w: SourceWriter, step: Decide, env: Env, then: Then) -> None:
    code = w.code
    whole = w.certain_extent((), env)
    whole = Extent(*(code.let("a", field) for field in whole.fields))
    known_now = [f"{whole.end} < horizon"] if w.program.delayed else []
    before = [f"{whole.end} < known"]
    if step.last is not None:
        before = [f"{_last_row(env, step.last)} < seen"]
    if step.waits:
        known_now.append(f"{whole.clock_start} + window <= frontier")
        before.append(f"{whole.clock_start} + window <= reached")
    length = f"{whole.clock_end} - {whole.clock_start}"
    inside = f"{length} < window" if w.program.windowed else "True"
    with code.block(f"if {inside}:"):
        head = "if True:"
        if known_now:
            with code.block(f"if not ({' and '.join(known_now)}):"):
                code.line("more = 1")
            head = "else:"
        with code.block(head):
            if step.strict:
                code.line("unknown = 0")
                code.line("fresh = 0")
            with code.block("if True:" if step.strict else f"if not ({' and '.join(before)}):"):
                then(replace(env, whole=whole, known_before=" and ".join(before)))


def _last_row(env: Env, variable: str) -> str:
    match env.scope[variable]:
        case Event(row=row):
            return row
        case GroupPlace() as group:
            return f"{group.array}[u({group.start} + {group.count} - 1)]"


def write_unforbidden(
    w: SourceWriter, step: Unforbidden, env: Env, write: Write, then: Then
) -> None:
    code, whole = w.code, env.whole
    assert whole is not None
    hit = code.let("x", "False")
    for exception in step.exceptions:
        interrupted = write_interruption(w, exception, env, write)
        code.line(f"if {interrupted}: {hit} = True")
    if step.negating:
        window: tuple[str | None, str | None] = (None, None)
        if w.program.windowed:
            earliest = code.let("a", f"{whole.clock_end} - window")
            window = (earliest, code.let("a", f"{whole.clock_start} + window"))
        write_checks(w, step.checks, replace(env, hit=hit, window=window), write)
    tests = [f"not {hit}"]
    if step.strict:
        code.line("if unknown: more = 1")
        tests += ["unknown == 0", f"(fresh == 1 or not ({env.known_before}))"]
    with code.block(f"if {' and '.join(tests)}:"):
        then(env)


# ── writing it ──


def write_emit(w: SourceWriter, env: Env) -> None:
    whole = env.whole
    assert whole is not None
    if not w.chooses:
        _write_record(w, env, whole)
        return
    with w.code.block(f"if {may_be_kept(whole.start, whole.end)}:"):
        _write_record(w, env, whole)


def _write_record(w: SourceWriter, env: Env, whole: Extent) -> None:
    code = w.code
    counts: dict[int, str] = {}
    for n, v in enumerate(w.pools):
        place = env.scope.get(v)
        if isinstance(place, GroupPlace):
            counts[n] = code.let("m", place.count)
    full = ["k == room", *(f"pooled{n} + {m} > pool{n}.shape[0]" for n, m in counts.items())]
    with code.block(f"if {' or '.join(full)}:"):
        code.line(f"state[{AutomatonState.COUNT}] = k0")
        for n in range(len(w.pools)):
            code.line(f"state[{AutomatonState.POOLS + n}] = pooled{n}_0")
        for text in FULL if w.chooses else ():
            code.line(text)
        code.line(f"state[{AutomatonState.DONE}] = 0 if k == room else -1")
        code.line("return")
    slot = 0
    for v in positive(w.program.pattern):
        place = env.scope.get(v)
        if v not in w.program.groups:
            row = f"{place.row} + store_base" if isinstance(place, Event) else "-1"
            code.line(f"out_slots[{slot}, u(k)] = {row}")
            slot += 1
            continue
        n = w.pools.index(v)
        if isinstance(place, GroupPlace):
            e = code.name("e")
            with code.block(f"for {e} in range({counts[n]}):"):
                row = f"{place.array}[u({place.start} + {e})]"
                code.line(f"pool{n}[u(pooled{n} + {e})] = {row} + store_base")
            code.line(f"out_slots[{slot}, u(k)] = pool_base{n} + pooled{n}")
            code.line(f"out_slots[{slot + 1}, u(k)] = {counts[n]}")
            code.line(f"pooled{n} += {counts[n]}")
        else:
            code.line(f"out_slots[{slot}, u(k)] = pool_base{n}")
            code.line(f"out_slots[{slot + 1}, u(k)] = -1")
        slot += 2
    code.line(f"out_first[u(k)] = {whole.start}")
    code.line(f"out_last[u(k)] = {whole.end}")
    if w.chooses:  # the rows of both tell their times
        code.add(noted(whole.start, whole.end))
    else:
        code.line(f"out_start[u(k)] = {whole.clock_start}")
        code.line(f"out_end[u(k)] = {whole.clock_end}")
        code.line(f"out_slots[{slot}, u(k)] = {whole.time_start}")
        code.line(f"out_slots[{slot + 1}, u(k)] = {whole.time_end}")
    code.line("k += 1")
