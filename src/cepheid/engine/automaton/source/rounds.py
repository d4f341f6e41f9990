"""Rounds of closures over a pattern, `(A ; B)+` (docs/language.md, Repeated groups).

From its left neighbor on, the earliest-ending match of the pattern, then the earliest-ending one
after it, and so on: a chain of rounds, among which the modes choose as they do among events.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cepheid.algebra.patterns import positive, sizes
from cepheid.engine.automaton.closures import first_variable
from cepheid.engine.automaton.elements import RoundChain
from cepheid.engine.automaton.instructions import ChooseRounds
from cepheid.engine.automaton.points import Path
from cepheid.engine.automaton.source.histories import write_history
from cepheid.engine.automaton.source.places import FIELDS, Env, Extent, Limits, Rounds
from cepheid.engine.automaton.source.sweeps import awaiting, candidates, limits_of, starts
from cepheid.engine.automaton.source.writer import SourceWriter, Then, Within
from cepheid.engine.lowering import Event, GroupPlace, Place
from cepheid.language.ast import Exactly, Mode, Optional


@dataclass(frozen=True)
class Chained:
    """Rounds one after the other, see `Rounds`."""

    chain: RoundChain
    rows: dict[str, str]
    offsets: dict[str, str]
    bounds: tuple[str, ...]
    branches: dict[Path, str]
    count: str

    @property
    def names(self) -> tuple[str, ...]:
        return positive(self.chain.closure.item)


@dataclass(frozen=True)
class FirstRound:
    """The first round found so far: its history and its rows, in the order of the variables and
    variable by variable; how large the history is (0: there is none); where the round lies. `rows`
    are the rows of the one at hand."""

    best: str
    best_rows: str
    rows: str
    kept: dict[str, tuple[str, str]]
    size: str
    bounds: list[str]


def _arrays(w: SourceWriter, chain: RoundChain) -> Chained:
    names = positive(chain.closure.item)
    return Chained(
        chain,
        {v: w.scratch("g") for v in names},
        {v: w.scratch("o") for v in names},
        tuple(w.scratch("q") for _ in range(FIELDS)),
        {at: w.scratch("d") for at in chain.branches},
        w.code.let("q", "0"),
    )


def write_chain(
    w: SourceWriter,
    chain: RoundChain,
    env: Env,
    limits: Limits,
    touch: str | None,
    search: Within,
    anchor: str | None = None,
) -> Chained:
    """Write the loop that finds all rounds in the limits; with an anchor, the first of them starts
    with that event."""
    code, closure = w.code, chain.closure
    chained = _arrays(w, chain)
    for v in chained.names:
        code.line(f"{chained.offsets[v]}[0] = 0")
    best, best_rows, rows = w.scratch("h"), w.scratch("h"), w.scratch("h")
    kept = {v: (w.scratch("g"), code.let("m", "0")) for v in chained.names}
    lower = code.let("l", "-FAR" if limits.lower is None else limits.lower)
    ended = None if closure.until is None else code.let("y", "False")
    following = None
    if touch is not None or chain.strict:
        following = code.let("x", "FAR" if touch is None else touch)  # FAR: anywhere
    size = code.let("n", "0")
    bounds = [code.let("z", "0") for _ in range(FIELDS)]
    candidate = FirstRound(best, best_rows, rows, kept, size, bounds)
    with code.block("while True:"):
        code.line(f"{size} = 0")

        def consider(bound: Env) -> None:
            tests = _tests(w, chained, bound, limits, following, anchor)
            with code.block(f"if {' and '.join(tests) or 'True'}:"):
                _consider(w, chained, candidate, bound, ended)

        search(replace(_inside(chained, env), origin=lower, upper=limits.upper), consider)
        if chain.awaits:
            code.line(f"if {size} == 0: more = 1")
        code.line(f"if {size} == 0: break")
        if ended is not None:
            code.line(f"if {ended}: break")
        _append(w, chained, candidate)
        code.line(f"{lower} = {bounds[1]}")
        if following is not None:
            again = w.following(bounds[1]) if chain.strict else "FAR"
            code.line(f"{following} = {again}")
            if chain.strict:
                with code.block(f"if {following} == -FAR:"):
                    if chain.awaits:
                        code.line("more = 1")
                    code.line("break")
        if isinstance(closure.quantifier, Optional):
            code.line("break")
    return chained


def _inside(chained: Chained, env: Env) -> Env:
    """Inside a round: the elements of the rounds before."""
    before = {
        f"{v}…": GroupPlace(chained.rows[v], "0", f"{chained.offsets[v]}[u({chained.count})]")
        for v in chained.names
    }
    return replace(env, scope={**env.scope, **before})


def _tests(
    w: SourceWriter,
    chained: Chained,
    bound: Env,
    limits: Limits,
    following: str | None,
    anchor: str | None,
) -> list[str]:
    """Whether the round at hand counts."""
    extent = w.certain_extent((*chained.chain.path, 0), bound)
    tests: list[str] = []
    if limits.upper is not None:
        tests.append(f"{extent.end} < {limits.upper}")
    if limits.earliest is not None:
        tests.append(f"{extent.clock_start} > {limits.earliest}")
    if limits.latest is not None:
        tests.append(f"{extent.clock_end} < {limits.latest}")
    if w.program.delayed:
        tests.append(f"{extent.end} < horizon")
    if following is not None:
        tests.append(f"({following} == FAR or {following} == {extent.first})")
    if anchor is not None:
        place = bound.scope[first_variable(chained.chain.closure.item)]
        assert isinstance(place, Event)
        tests.append(f"({chained.count} > 0 or {place.row} == {anchor})")
    return tests


def _consider(
    w: SourceWriter, chained: Chained, candidate: FirstRound, bound: Env, ended: str | None
) -> None:
    """Remember the round at hand if it is the first so far."""
    code, size = w.code, candidate.size
    extent = w.certain_extent((*chained.chain.path, 0), bound)
    _keep(w, chained, candidate, bound)
    with code.block(f"if {size} < 0:"):
        for target, source in zip(candidate.bounds, extent.fields, strict=True):
            code.line(f"{target} = {source}")
        for at, array in chained.branches.items():
            code.line(f"{array}[u({chained.count})] = {bound.choices.get(at, -1)}")
        if ended is not None:
            assert bound.until is not None
            truth = w.truth(bound.until, bound)
            code.line(f"{ended} = {truth}")
        code.line(f"{size} = -{size}")


def _keep(w: SourceWriter, chained: Chained, candidate: FirstRound, bound: Env) -> None:
    """By its complete history, then by input order. The size becomes minus that of the round at
    hand, if it is the first."""
    code, size, rows = w.code, candidate.size, candidate.rows
    history = w.scratch("h")
    n = write_history(w, (*chained.chain.path, 0), bound, history)
    members = code.let("n", "0")
    for v in chained.names:
        _put_rows(w, bound.scope.get(v), rows, members)
    compared = f"compare({history}, {n}, {candidate.best}, {size}) if {size} else -1"
    order = code.let("order", compared)
    code.line(f"if {order} == 0: {order} = order({rows}, {candidate.best_rows}, {members})")
    with code.block(f"if {order} < 0:"):
        e = code.name("e")
        with code.block(f"for {e} in range({n}):"):
            code.line(f"{candidate.best}[u({e})] = {history}[u({e})]")
        with code.block(f"for {e} in range({members}):"):
            code.line(f"{candidate.best_rows}[u({e})] = {rows}[u({e})]")
        for v, (kept, count) in candidate.kept.items():
            code.line(f"{count} = 0")
            _put_rows(w, bound.scope.get(v), kept, count)
        code.line(f"{size} = -{n}")


def _put_rows(w: SourceWriter, place: Place | None, array: str, count: str) -> None:
    """Append the rows of a variable to an array."""
    code = w.code

    def put(row: str) -> None:
        code.line(f"{array}[u({count})] = {row}")
        code.line(f"{count} += 1")

    match place:
        case Event(row=row):
            put(row)
        case GroupPlace() as group:
            e = code.name("e")
            with code.block(f"for {e} in range({group.count}):"):
                put(f"{group.array}[u({group.start} + {e})]")
        case None:
            pass


def _append(w: SourceWriter, chained: Chained, candidate: FirstRound) -> None:
    """The first round that was found is the next of the chain."""
    code = w.code
    for v in chained.names:
        rows, count = candidate.kept[v]
        at = f"{chained.offsets[v]}[u({chained.count})]"
        e = code.name("e")
        with code.block(f"for {e} in range({count}):"):
            code.line(f"{chained.rows[v]}[u({at} + {e})] = {rows}[u({e})]")
        code.line(f"{chained.offsets[v]}[u({chained.count} + 1)] = {at} + {count}")
    for array, value in zip(chained.bounds, candidate.bounds, strict=True):
        code.line(f"{array}[u({chained.count})] = {value}")
    code.line(f"{chained.count} += 1")


def chain_between(w: SourceWriter, chain: RoundChain, env: Env, search: Within) -> Chained:
    """The rounds between two neighbors."""
    limits = Limits(w.point(chain.lower, env), w.point(chain.upper, env))
    touch = None
    if chain.touch is not None:
        touch = w.code.let("x", w.following(w.end(chain.touch, env)))
    return write_chain(w, chain, env, limits, touch, search)


# ── choosing among rounds ──


def with_rounds(chained: Chained, env: Env, first: str, count: str, some: bool) -> Env:
    """The group of `count` rounds from the `first`-th on; `some`: it isn't empty."""
    low, _ = sizes(chained.chain.closure.quantifier)
    places: dict[str, Place] = {}
    for v in chained.names:
        at = f"{chained.offsets[v]}[u({first})]"
        size = f"({chained.offsets[v]}[u({first} + {count})] - {at})"
        places[v] = GroupPlace(chained.rows[v], at, size)
    sides = [
        f"{array}[u({first})]" if n % 2 == 0 else f"{array}[u({first} + {count} - 1)]"
        for n, array in enumerate(chained.bounds)
    ]
    always = some or low > 0
    extent = replace(Extent(*sides), some=None if always else f"{count} > 0")
    rounds = Rounds(count, first, chained.rows, chained.offsets, chained.bounds, chained.branches)
    path = chained.chain.path
    return replace(
        env,
        scope={**env.scope, **places},
        extents={**env.extents, path: extent},
        rounds={**env.rounds, path: rounds},
        counts={**env.counts, path: chained.count},
    )


def write_choose_rounds(
    w: SourceWriter, step: ChooseRounds, env: Env, search: Within, then: Then
) -> None:
    chain = step.chain
    touch = None
    if chain.touch is not None:
        touch = w.code.let("x", w.following(w.end(chain.touch, env)))
        if step.awaits:
            awaiting(w, env, touch)
    if step.runs:
        noted = (w.scratch("h"), w.code.let("f", "0"))
        env = replace(env, runs={**env.runs, chain.path: noted})

    def choose(env: Env, lower: str | None, anchor: str | None) -> None:
        limits = Limits(lower, w.point(chain.upper, env))
        chained = write_chain(w, chain, env, limits, touch, search, anchor)
        _choices(w, chained, env, step.first, then)

    def from_anchor(row: str) -> None:
        began = replace(env, low=w.events.clock_start(row), high=w.events.clock(row))
        choose(began, f"({w.events.begin(row)} - 1)", row)

    if step.start is not None:
        with starts(w, step.start) as row:
            from_anchor(row)
    elif step.anchors is not None:
        limits = limits_of(w, step.anchors, env)
        with candidates(w, step.anchors, env, limits) as (_, row):
            from_anchor(row)
    else:
        choose(env, w.point(chain.lower, env), None)


def _choices(w: SourceWriter, chained: Chained, env: Env, first: bool, then: Then) -> None:
    """Every choice of rounds that is not empty, as `{n}`, PREFIXES, RUNS or SUBSETS have them.
    `first`: only those that begin with the first round."""
    code, closure = w.code, chained.chain.closure
    low, high = sizes(closure.quantifier)
    most = chained.count if high is None else f"min({chained.count}, {high})"
    exact = isinstance(closure.quantifier, Exactly)
    if closure.mode is Mode.SUBSETS and not exact:
        _subsets(w, chained, env, first, then)
        return
    size = code.name("s")
    if closure.mode is Mode.PREFIXES and not exact:
        with code.block(f"for {size} in range({max(low, 1)}, {most} + 1):"):
            then(with_rounds(chained, env, "0", size, True))
        return
    begin = code.name("b")
    with code.block(f"for {size} in range({max(low, 1)}, {most} + 1):"):
        last = f"{chained.count} - {size} + 1"
        starts_ = f"min(1, {last})" if first else last
        with code.block(f"for {begin} in range({starts_}):"):
            then(with_rounds(chained, env, begin, size, True))


def _subsets(w: SourceWriter, chained: Chained, env: Env, first: bool, then: Then) -> None:
    """Bit b of a number says whether round b is chosen; the chosen ones are copied."""
    code, names = w.code, chained.names
    low, high = sizes(chained.chain.closure.quantifier)
    copied = _arrays(w, chained.chain)
    bits, b = code.name("s"), code.name("b")
    with code.block(f"for {bits} in range(1, 1 << {chained.count}, {'2' if first else '1'}):"):
        code.line(f"{copied.count} = 0")
        for v in names:
            code.line(f"{copied.offsets[v]}[0] = 0")
        with (
            code.block(f"for {b} in range({chained.count}):"),
            code.block(f"if ({bits} >> {b}) & 1:"),
        ):
            for v in names:
                at = f"{copied.offsets[v]}[u({copied.count})]"
                begin = f"{chained.offsets[v]}[u({b})]"
                size = code.let("m", f"{chained.offsets[v]}[u({b} + 1)] - {begin}")
                e = code.name("e")
                with code.block(f"for {e} in range({size}):"):
                    source = f"{chained.rows[v]}[u({begin} + {e})]"
                    code.line(f"{copied.rows[v]}[u({at} + {e})] = {source}")
                code.line(f"{copied.offsets[v]}[u({copied.count} + 1)] = {at} + {size}")
            kept = (*copied.bounds, *copied.branches.values())
            arrays = (*chained.bounds, *chained.branches.values())
            for target, source in zip(kept, arrays, strict=True):
                code.line(f"{target}[u({copied.count})] = {source}[u({b})]")
            code.line(f"{copied.count} += 1")
        upper = "" if high is None else f" <= {high}"
        with code.block(f"if {max(low, 1)} <= {copied.count}{upper}:"):
            then(with_rounds(copied, env, "0", copied.count, True))
