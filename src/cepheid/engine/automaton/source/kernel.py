"""The kernel of a program: for each key and each start, all matches, depth first.

A match is written in the round in which it becomes known: its end is before the horizon, and what
it waits for has passed. What was known in the round before has been written then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import assert_never

from cepheid.engine.automaton.elements import EventGroup, RoundChain
from cepheid.engine.automaton.instructions import (
    Binding,
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
    Fork,
    Gate,
    Gather,
    GatherEdge,
    Grow,
    Grown,
    Hold,
    Instructions,
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
    Unbeaten,
    Unbroken,
    Unforbidden,
    Uninterrupted,
    Wait,
)
from cepheid.engine.automaton.program import Program
from cepheid.engine.automaton.source.checks import (
    round_event,
    round_group,
    round_groups,
    write_checks,
    write_distinct,
    write_interruption,
    write_pick_round,
)
from cepheid.engine.automaton.source.choices import (
    gather_between,
    write_choose,
    write_first_run,
)
from cepheid.engine.automaton.source.completion import (
    defer,
    write_decide,
    write_emit,
    write_gather_edge,
    write_passed,
    write_touch,
    write_unforbidden,
    write_wait,
)
from cepheid.engine.automaton.source.groups import with_taken
from cepheid.engine.automaton.source.histories import (
    remember,
    write_earliest,
    write_equal,
    write_unbeaten,
)
from cepheid.engine.automaton.source.numbered import END, HEAD, choosing
from cepheid.engine.automaton.source.places import Env
from cepheid.engine.automaton.source.rounds import (
    chain_between,
    with_rounds,
    write_choose_rounds,
)
from cepheid.engine.automaton.source.sweeps import (
    write_grow,
    write_search,
    write_start,
    write_unbroken,
)
from cepheid.engine.automaton.source.writer import SourceWriter, Then
from cepheid.engine.lowering import GroupPlace, Inputs
from cepheid.kernels.templates import automaton as templates
from cepheid.kernels.templates.automaton import FUNCTIONS, NUMBERED, SEARCHES, AutomatonState


@dataclass(frozen=True)
class KernelSource:
    """The source of a kernel, and how many arrays it needs to work in: of whole numbers, and of
    others."""

    text: str
    scratches: int
    sums: int


def write_kernel(
    program: Program, inputs: Inputs, whole: bool = False, chooses: bool = False
) -> KernelSource:
    """`whole`: for all events at once, whose rows are numbered key by key; then it may choose among
    matches, too."""
    w = SourceWriter(program, inputs, whole, chooses)
    w.code.level = 2
    _write(w, program.instructions, Env(), lambda env: None)
    classes, pools = range(len(program.classes)), range(len(w.pools))
    head = [
        f"{name} = scratch[{n}:{n + 3}].reshape(-1)"
        if name in w.tables
        else f"{name} = scratch[{n}]"
        for n, name in enumerate(w.scratches)
    ]
    head += [f"{name} = sums[{n}]" for n, name in enumerate(w.sums)]
    head += inputs.unpack(0)
    head += [f"rows{n}, at{n}, from{n}, to{n} = lists[{n}]" for n in classes]
    for n in pools:
        head += [f"pool{n} = pools[{n}]", f"pooled{n} = state[{AutomatonState.POOLS + n}]"]
        head += [f"pool_base{n} = state[{AutomatonState.POOLS + len(pools) + n}]"]
    head += [f"entry = state[{AutomatonState.ENTRY}]", f"at_start = state[{AutomatonState.AT}]"]
    head += [f"{gap} = 0" for gap in w.gaps]
    loop = [
        f"for key in range(state[{AutomatonState.KEY}], state[{AutomatonState.KEYS}]):",
        f"    state[{AutomatonState.KEY}] = key",
    ]
    for n in classes:
        loop += [f"    lo{n} = from{n}[u(key)]", f"    hi{n} = to{n}[u(key)]"]
    head += HEAD if chooses else []
    end = END if chooses else []
    end = [*end, f"state[{AutomatonState.COUNT}] = k", f"state[{AutomatonState.DONE}] = 1"]
    end += [f"state[{AutomatonState.POOLS + n}] = pooled{n}" for n in pools]
    lines = [f"    {text}" for text in (*head, *loop)]
    lines += [*w.code.lines, "        entry = -1", *(f"    {text}" for text in end)]
    functions = (NUMBERED if whole else SEARCHES) + FUNCTIONS
    functions += choosing(program) if chooses else ""
    text = functions + templates.HEAD + "\n".join(lines) + "\n"
    return KernelSource(text, len(w.scratches), len(w.sums))


def _write(w: SourceWriter, instructions: Instructions, env: Env, done: Then) -> None:
    """Write the instructions, each inside those before it, and at their end what comes then."""
    if not instructions:
        done(env)
        return
    step, rest = instructions[0], instructions[1:]

    def then(env: Env) -> None:
        _write(w, rest, env, done)

    if isinstance(step, Note):
        then(_noted(w, step, env))
    elif isinstance(step, Gate):
        _write_gate(w, step, env, then)
    elif isinstance(step, Binding):
        _write_binding(w, step, env, then)
    else:
        _write_last(w, step, env, done)


def _write_binding(w: SourceWriter, step: Binding, env: Env, then: Then) -> None:
    match step:
        case Start():
            write_start(w, step, env, then)
        case Search():
            write_search(w, step, env, then)
        case Choose():
            write_choose(w, step, env, then)
        case ChooseRounds(chain=chain):
            write_choose_rounds(w, step, env, partial(_write, w, chain.search), then)
        case Gather():
            _write_gather(w, step, env, then)
        case Grown(group=group, least=least):
            taken = env.growing[group.path].taken
            with w.code.block(f"if {taken.count} >= {least}:"):
                then(with_taken(w, taken, env))
        case GatherEdge(group=group):
            search = group.search if isinstance(group, RoundChain) else ()
            write_gather_edge(w, step, env, partial(_write, w, search), then)
        case Earliest(search=search):
            write_earliest(w, step, env, partial(_write, w, search), then)
        case Unbeaten(rivals=rivals):
            write_unbeaten(w, step, env, partial(_write, w, rivals), then)
        case _:
            assert_never(step)


def _write_gate(w: SourceWriter, step: Gate, env: Env, then: Then) -> None:
    match step:
        case Hold(criteria=criteria):
            with w.holding(env, criteria):
                then(env)
        case Require(conditions=conditions):
            with w.satisfying(env, conditions):
                then(env)
        case Distinct():
            write_distinct(w, step, env, then)
        case Touch():
            write_touch(w, step, env, then)
        case Wait():
            write_wait(w, step, env, then)
        case Fit(most=most):
            tests = [f"{env.counts[path]} <= {high}" for path, high in most]
            with w.code.block(f"if {' and '.join(tests)}:"):
                then(env)
        case FirstRun():
            write_first_run(w, step, env, then)
        case Grow():
            write_grow(w, step, env)
            then(env)
        case Unbroken():
            write_unbroken(w, step, env)
            then(env)
        case TakeFirst(path=path):
            at, first = env.anchors[path]
            w.code.line(f"{first} = {at}")
            then(env)
        case Equal():
            write_equal(w, step, env, then)
        case Uninterrupted(exception=exception):
            hit = write_interruption(w, exception, env, _write)
            with w.code.block(f"if not {hit}:"):
                then(env)
        case PickRound():
            write_pick_round(w, step, env, then)
        case Passed():
            write_passed(w, env, then)
        case Decide():
            write_decide(w, step, env, then)
        case Unforbidden():
            write_unforbidden(w, step, env, _write, then)
        case _:
            assert_never(step)


def _noted(w: SourceWriter, step: Note, env: Env) -> Env:
    match step:
        case Empty(variables=variables):
            places = dict.fromkeys(variables, GroupPlace("rows0", "0", "0"))
            return replace(env, scope={**env.scope, **places})
        case Defer():
            return defer(w, step, env)
        case Pick(path=path, branch=branch):
            return replace(env, choices={**env.choices, path: branch})
        case Remember():
            return remember(step, env)
        case RoundEvent():
            return round_event(w, step, env)
        case RoundGroup():
            return round_group(w, step, env)
        case RoundGroups():
            return round_groups(w, step, env)
        case _:
            assert_never(step)


def _write_last(w: SourceWriter, step: Last, env: Env, done: Then) -> None:
    match step:
        case Fork(ways=ways):
            for way in ways:
                _write(w, way, env, done)
        case Complete(until=until):
            done(replace(env, until=until))
        case CheckRound(checks=checks):
            write_checks(w, checks, env, _write)
        case Emit():
            write_emit(w, env)
        case _:
            assert_never(step)


def _write_gather(w: SourceWriter, step: Gather, env: Env, then: Then) -> None:
    group = step.group
    if isinstance(group, EventGroup):
        taken = gather_between(w, group, env)
        count, bound = taken.count, with_taken(w, taken, env)
    else:
        chained = chain_between(w, group, env, partial(_write, w, group.search))
        count, bound = chained.count, with_rounds(chained, env, "0", chained.count, False)
    with w.code.block(f"if {count} >= {step.least}:"):
        then(bound)
