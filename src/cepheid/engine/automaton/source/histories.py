"""Complete histories: which of several composites is the first (docs/language.md, Next)."""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.patterns import positive
from cepheid.engine.automaton.instructions import Earliest, Equal, Remember, Unbeaten
from cepheid.engine.automaton.points import Path, part_at
from cepheid.engine.automaton.source.places import Composite, Env
from cepheid.engine.automaton.source.writer import SourceWriter, Then, Within
from cepheid.engine.lowering import Event, GroupPlace


def write_history(w: SourceWriter, path: Path, env: Env, into: str) -> str:
    """Write the complete history of a composite to an array: its end, then the positions of its
    members from the last backwards. The number of entries."""
    code = w.code
    code.line(f"{into}[0] = {w.certain_extent(path, env).end}")
    n = code.let("n", "1")
    for variable in positive(part_at(w.program.pattern, path)):
        match env.scope.get(variable):
            case Event(row=row):
                code.line(f"{n} = put({into}, {n}, {w.events.position(row)})")
            case GroupPlace() as group:
                e = code.name("e")
                with code.block(f"for {e} in range({group.count}):"):
                    row = f"{group.array}[u({group.start} + {e})]"
                    code.line(f"{n} = put({into}, {n}, {w.events.position(row)})")
            case None:
                pass
    return n


def write_earliest(w: SourceWriter, step: Earliest, env: Env, search: Within, then: Then) -> None:
    """Two passes: this one finds the earliest history, then all that have it are bound."""
    code, delayed = w.code, w.program.delayed
    best, compared = w.scratch("h"), w.scratch("h")
    size = code.let("n", "0")
    kept = code.let("o", "more") if step.awaits else None

    def measure(bound: Env) -> None:
        end = w.certain_extent(step.path, bound).end
        with code.block(f"if {end} < horizon:" if delayed else "if True:"):
            n = write_history(w, step.path, bound, compared)
            with code.block(f"if {size} == 0 or compare({compared}, {n}, {best}, {size}) < 0:"):
                e = code.name("e")
                with code.block(f"for {e} in range({n}):"):
                    code.line(f"{best}[u({e})] = {compared}[u({e})]")
                code.line(f"{size} = {n}")
        if delayed and step.awaits:
            with code.block("else:"):
                code.line("more = 1")

    search(env, measure)
    with code.block(f"if {size} > 0:"):
        if kept is not None:
            # More may come where one has been found that isn't before the horizon.
            with code.block(f"if {best}[0] < horizon:" if w.program.prompt else "if True:"):
                code.line(f"more = {kept}")
        composite = Composite(best, compared, size, env.upper)
        then(replace(env, upper=None, composites={**env.composites, step.path: composite}))


def write_equal(w: SourceWriter, step: Equal, env: Env, then: Then) -> None:
    composite = env.composites[step.path]
    n = write_history(w, step.path, env, composite.compared)
    test = f"compare({composite.compared}, {n}, {composite.best}, {composite.size}) == 0"
    with w.code.block(f"if {test}:"):
        then(replace(env, upper=composite.upper))


def remember(step: Remember, env: Env) -> Env:
    return replace(env, remembered={**env.remembered, step.path: env})


def write_unbeaten(w: SourceWriter, step: Unbeaten, env: Env, rivals: Within, then: Then) -> None:
    code = w.code
    mine = w.scratch("h")
    n = write_history(w, step.path, env, mine)
    beaten = code.let("x", "False")

    def compare(other: Env) -> None:
        theirs = w.scratch("h")
        m = write_history(w, step.path, other, theirs)
        alike = [f"compare({theirs}, {m}, {mine}, {n}) < 0"]
        for v in step.groups:
            a, b = env.scope[v], other.scope[v]
            assert isinstance(a, GroupPlace) and isinstance(b, GroupPlace)
            alike.append(f"{a.count} == {b.count}")
            alike.append(f"same({a.array}[{a.start}:], {b.array}[{b.start}:], {a.count})")
        code.line(f"if {' and '.join(alike)}: {beaten} = True")

    rivals(replace(env.remembered[step.path], stop=beaten), compare)
    with code.block(f"if not {beaten}:"):
        then(env)
