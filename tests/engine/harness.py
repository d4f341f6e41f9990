"""Runs the engine on a case and shows its matches as the oracle does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.expressions import Whole
from cepheid.algebra.patterns import Negation, positive, walk
from cepheid.algebra.query import BoundQuery, Clock, Kind, Output
from cepheid.algebra.types import Type
from cepheid.engine.rows.order import in_order
from cepheid.engine.run import Advisor, Engine
from cepheid.options import Options
from cepheid.plan.nodes import Plan
from cepheid.plan.profile import Replan
from cepheid.planner import make_plan, prepare
from cepheid.planner.automata.automaton_plans import automaton_plan
from cepheid.planner.automata.segments import mixed
from cepheid.planner.choice import Choice, Propagation
from cepheid.planner.plan import assemble
from cepheid.planner.trees.propagation import propagate
from tests.corpus.reader import table
from tests.oracle.events import Event, Match

INDEX = "#"
"""A column with each event's place in the input, by which matches are compared."""


@dataclass(frozen=True)
class Setup:
    """One way to run a query. `cuts`: rows of each batch, repeated; `round_size`: of a round, 0: as
    the engine chooses; `compile_at`: from how many rows on `jit` also compiles the kernels that are
    the query's own.

    `engine`: joins (`tree`, with a shape), one automaton for the whole pattern (`automaton`),
    automata for parts of it below joins (`mixed`; if nothing can be separated, one for all), or
    what the planner makes of the rewritten query if automata are forced (`nfa`) or not (`auto`).
    """

    shape: str = "left-deep"
    push: bool = True
    jit: bool = False
    cuts: tuple[int, ...] = (1 << 20,)
    round_size: int = 4096
    compile_at: int = 0
    propagation: Propagation = "lazy"
    engine: Literal["tree", "automaton", "mixed", "nfa", "auto"] = "tree"

    def __str__(self) -> str:
        tree = [self.shape, "push" if self.push else "top"]
        parts = [*tree] if self.engine == "tree" else [str(self.engine)]
        parts += [f"cuts {self.cuts[0]}", f"rounds {self.round_size}"]
        parts += ["jit" if self.jit else "plain"]
        return ", ".join([*parts, *([self.propagation] if self.propagation != "lazy" else [])])


def indexed(query: BoundQuery) -> BoundQuery:
    """The query, returning the places of the events that each variable binds."""
    schema = replace(query.schema, columns={**query.schema.columns, INDEX: Type.INTEGER})
    outputs = tuple(Output(v, Whole(v, (INDEX,))) for v in positive(query.pattern))
    required = (*query.required, INDEX)
    return replace(query, outputs=outputs, schema=schema, required=required, answers=None)


def plan_of(query: BoundQuery, setup: Setup) -> Plan:
    match setup.engine:
        case "tree":
            return propagate(make_plan(query, setup.shape, setup.push), setup.propagation)
        case "automaton":
            return automaton_plan(query)
        case "mixed":
            return mixed_plan(query, setup) or automaton_plan(query)
        case "nfa" | "auto":
            options = Options(query.schema.time, engine=setup.engine, adapt=None)
            return prepare(query, options).plan


def mixed_plan(query: BoundQuery, setup: Setup) -> Plan | None:
    """Automata below joins, where the pattern has parts that can be evaluated by themselves."""
    separated = mixed(query)
    if separated is None:
        return None
    negations = (p.index for p in walk(query.pattern) if isinstance(p, Negation))
    top = frozenset() if setup.push else frozenset(negations)
    return assemble(query, (separated,), (Choice(setup.shape, top),))


class Switching:
    """An advisor that has another of its plans ready after every round."""

    replans: tuple[Replan, ...] = ()
    seconds = 0.0

    def __init__(self, plans: Sequence[Plan]) -> None:
        self.plans = cycle(plans)

    def advise(self, engine: Engine) -> Plan:
        return next(self.plans)


def run(
    query: BoundQuery,
    events: Sequence[Event],
    setup: Setup = Setup(),
    others: Sequence[Setup] = (),
) -> list[Match]:
    """The engine's matches; with other setups, their plans take turns, round by round."""
    returning = indexed(query)
    plan = plan_of(returning, setup)
    advisor = Switching([plan_of(returning, other) for other in others]) if others else None
    return run_plan(query, events, plan, setup, advisor)


def increments(
    query: BoundQuery, events: Sequence[Event], setup: Setup = Setup()
) -> dict[int, list[Match]]:
    """The matches that come out at each time, when all events of that time are known: a row of no
    class moves time on by one tick."""
    plan = plan_of(indexed(query), setup)
    data = with_index(query, events)
    engine = _engine(plan, data.schema, setup)
    time = query.schema.time
    found: dict[int, list[Match]] = {}
    for at in sorted({e.time for e in events}):
        tick = pa.table(
            {c: [at + 1 if c == time else None] for c in data.column_names}, data.schema
        )
        rows: list[dict[str, Any]] = []
        for part in (data.filter(pc.equal(data[time], at)), tick):
            for batch in part.combine_chunks().to_batches():
                rows += [row for matches in engine.push(batch) for row in matches.to_pylist()]
        found[at] = [match_of(query, row) for row in rows]
    return found


def returned(
    query: BoundQuery, events: Sequence[Event], setup: Setup = Setup()
) -> list[dict[str, Any]]:
    """The RETURN columns of the engine's matches."""
    rows = _rows(plan_of(query, setup), table(query.schema, events), setup)
    return [{o.name: row[o.name] for o in query.outputs} for row in rows]


def run_plan(
    query: BoundQuery,
    events: Sequence[Event],
    plan: Plan,
    setup: Setup = Setup(),
    advisor: Advisor | None = None,
) -> list[Match]:
    """The matches that an engine finds with a plan of the indexed query."""
    rows = _rows(plan, with_index(query, events), setup, advisor)
    return [match_of(query, row) for row in rows]


def _rows(
    plan: Plan, data: pa.Table, setup: Setup, advisor: Advisor | None = None
) -> list[dict[str, Any]]:
    engine = _engine(plan, data.schema, setup, advisor)
    rows: list[dict[str, Any]] = []
    for batch in cut(in_order(plan, data), setup.cuts):
        for matches in engine.push(batch):
            rows += matches.to_pylist()
    for matches in engine.finish():
        rows += matches.to_pylist()
    assert engine.counts.matches == len(rows)
    return rows


def _engine(plan: Plan, schema: pa.Schema, setup: Setup, advisor: Advisor | None = None) -> Engine:
    return Engine(
        plan,
        schema,
        jit=setup.jit,
        round_size=setup.round_size,
        compile_at=setup.compile_at,
        advisor=advisor,
    )


def with_index(query: BoundQuery, events: Sequence[Event]) -> pa.Table:
    data = table(query.schema, events)
    return data.append_column(INDEX, pa.array(np.arange(len(events))))


def cut(data: pa.Table, cuts: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
    begin, turn = 0, 0
    while begin < data.num_rows:
        yield from data.slice(begin, cuts[turn % len(cuts)]).combine_chunks().to_batches()
        begin, turn = begin + cuts[turn % len(cuts)], turn + 1


def match_of(query: BoundQuery, row: dict[str, Any]) -> Match:
    bindings: dict[str, Any] = {}
    for name in positive(query.pattern):
        value, kind = row[name], query.variables[name].kind
        match value:
            case None:
                # An optional event that is absent looks like one of a branch not taken.
                bindings[name] = None
            case list():
                bindings[name] = tuple(element[INDEX] for element in value)
            case _:
                one = value[INDEX]
                bindings[name] = one if kind is Kind.SINGLE else (one,)
    return Match(bindings, row["match_start"], row["match_end"])


def multiset(query: BoundQuery, matches: Iterable[Match]) -> Counter[tuple[Any, ...]]:
    """Matches without their order; an absent optional event is told apart from nothing."""
    return Counter(
        (
            tuple(
                (v, None if query.variables[v].kind is Kind.OPTIONAL and b == () else b)
                for v, b in sorted(m.bindings.items())
            ),
            m.start,
            m.end,
        )
        for m in matches
    )


def in_order_of_ends(query: BoundQuery, matches: Sequence[Match]) -> bool:
    """Also true of a keyed window of n EVENTS, which goes key by key."""
    ends = [m.end for m in matches]
    by_key = query.key and query.window is not None and query.window.clock is Clock.EVENTS
    return bool(by_key) or ends == sorted(ends)
