"""Rules compiled and matched in this process, on one thread, and what that takes.

Rates are of processor time, matching alone: the set is compiled before, and a first run on a few
events has loaded the kernels.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from math import inf
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.measure import WrongAnswer
from benchmarks.rules.answers import EVENTS, FOUND, Answers, planted
from cepheid.engine.arrays.columns import kernel_values
from cepheid.engine.arrays.interner import Interner
from cepheid.engine.arrays.ordered_codes import ordered
from cepheid.engine.merged.dag import ROOT, Graph, Ragged
from cepheid.engine.merged.machine import Machine
from cepheid.engine.merged.merge import Merged
from cepheid.engine.rows.store import evaluated
from cepheid.options import Options
from cepheid.rules import RuleSet
from cepheid.rules.compile.compiled_rules import compile_rules
from cepheid.workloads import cayuga
from cepheid.workloads.cayuga import Parameters

BATCH = 1 << 14
WARM_UP = 200
PLANTED = 1_000
SEED = 1
OPTIONS = Options("ts")

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class Point:
    """`levels` are the nodes of the graph by their depth; `predicates` are those that an event
    satisfies, on average; `instances` are the most that were held after a batch; `compiling` is in
    seconds of processor time."""

    rules: int
    events: int
    seconds: float
    matches: int
    levels: tuple[int, ...]
    predicates: float
    instances: int
    compiling: float

    @property
    def rate(self) -> float:
        return self.events / self.seconds


@dataclass(frozen=True)
class Load:
    """Rules and events, with their answers: for all of the rules, or for the first ones."""

    rules: pa.Table
    events: pa.Table
    planted: pa.Table
    answered: int
    answers: Answers
    planted_answers: Answers


@contextmanager
def load(
    rules: int, events: int, parameters: Parameters, answered: int | None = None
) -> Iterator[Load]:
    table, stream = cayuga.rules(rules, SEED, parameters), cayuga.generate(events, SEED)
    some = rules if answered is None else min(rules, answered)
    first = table.slice(0, some)
    seeded = planted(stream, first, max(1, min(PLANTED, events // 50)))
    with closing(Answers(first, stream)) as answers, closing(Answers(first, seeded)) as other:
        yield Load(table, stream, seeded, some, answers, other)


def compiled(template: str, rules: pa.Table) -> Merged:
    """All rules in one automaton."""
    named = RuleSet.from_template(template, cayuga.TEMPLATES[template], rules)
    found = compile_rules(named.templates, cayuga.SCHEMA, OPTIONS)
    if found.alone or len(found.groups) != 1:
        raise AssertionError(f"{template} rules are not merged: {found.alone[0].reason}")
    return found.groups[0].merged


def run(merged: Merged, events: pa.Table) -> tuple[pa.Table, int]:
    """The matches, as the answers have them; and how many instances were held at most."""
    machine = Machine(merged, events.schema)
    none = pa.table({name: pa.array([], pa.int64()) for name in FOUND})
    parts, instances = [none], 0
    for batch in events.to_batches(max_chunksize=BATCH):
        for found in machine.push(batch):
            times = {name: found.matches.column(name) for name in EVENTS}
            parts.append(pa.table({"rule": pa.array(found.rules), **times}))
        instances = max(instances, machine.instances)
    return pa.concat_tables(parts), instances


@dataclass(frozen=True)
class Run:
    """Rules of a template over a load; with `apart`, no nodes are shared."""

    template: str
    given: Load
    apart: bool = False


def measure(runs: Mapping[T, Run], repeats: int) -> dict[T, Point]:
    """All runs in turns, since what else the machine does slows down all that run meanwhile; of
    each, the fastest turn counts."""
    ready, compiling = {}, {}
    for key, case in runs.items():
        begin = time.process_time()
        merged = compiled(case.template, case.given.rules)
        compiling[key] = time.process_time() - begin
        ready[key] = replace(merged, graph=unmerged(merged.graph)) if case.apart else merged
        run(ready[key], case.given.events.slice(0, WARM_UP))
    best = dict.fromkeys(runs, inf)
    for _ in range(repeats):
        for key, case in runs.items():
            begin = time.process_time()
            run(ready[key], case.given.events)
            best[key] = min(best[key], time.process_time() - begin)
    return {key: _point(case, ready[key], best[key], compiling[key]) for key, case in runs.items()}


def _point(case: Run, merged: Merged, seconds: float, compiling: float) -> Point:
    """The figures, of right answers alone."""
    given = case.given
    found, instances = run(merged, given.events)
    check(found, given.answers.found(case.template), given.answered, case.template)
    seeded, _ = run(merged, given.planted)
    check(seeded, given.planted_answers.found(case.template), given.answered, case.template)
    return Point(
        given.rules.num_rows,
        given.events.num_rows,
        seconds,
        found.num_rows,
        tuple(np.bincount(merged.graph.depth[1:]).tolist()),
        satisfied(merged, given.events),
        instances,
        compiling,
    )


def check(found: pa.Table, expected: pa.Table, answered: int, who: str) -> None:
    """Whether these are the matches of the rules that have an answer."""
    rows = sorted(row for row in zip(*_columns(found), strict=True) if row[0] < answered)
    answer = list(zip(*_columns(expected), strict=True))
    if rows != answer:
        raise WrongAnswer(f"{who} finds {len(rows):,} matches where there are {len(answer):,}")


def _columns(table: pa.Table) -> list[list[int]]:
    return [table[name].to_pylist() for name in FOUND]


def satisfied(merged: Merged, events: pa.Table) -> float:
    """How many predicates an event satisfies."""
    found = 0
    for batch in events.to_batches(max_chunksize=BATCH):
        cells = cells_of(merged, batch)
        _, predicates = merged.index.satisfied(cells, np.ones(cells.shape, np.bool_), True)
        found += len(predicates)
    return float(found / events.num_rows)


def cells_of(merged: Merged, batch: pa.RecordBatch) -> NDArray[np.int64]:
    """The values of a batch as the index compares them."""
    columns = [
        ordered(kernel_values(evaluated(column, batch), column.type, Interner())[0])
        for column in merged.columns
    ]
    return np.ascontiguousarray(np.column_stack(columns))


def unmerged(graph: Graph) -> Graph:
    """The same paths, each with nodes of its own: Cayuga without state merging. All indexes stay:
    an event finds the nodes that its predicates enter, and those that are active."""
    ended = graph.rules.values.astype(np.int64)
    rules, depth = len(ended), int(graph.depth.max())
    path = np.repeat(np.arange(graph.nodes), np.diff(graph.rules.begins))
    old = [path]
    for _ in range(depth):
        old.append(graph.parent[old[-1]].astype(np.int64))
    path_nodes = np.concatenate([[ROOT], *reversed(old)])
    ends = graph.enders
    count = np.diff(ends.begins)[path_nodes]
    again = np.repeat(np.arange(len(path_nodes)), count)
    within = np.arange(len(again)) - np.repeat(np.cumsum(count) - count, count)
    inner = np.arange(1, len(path_nodes))
    before = np.concatenate([np.full(1 + rules, ROOT), inner[: depth * rules]])
    return replace(
        graph,
        parent=before.astype(np.int32),
        depth=graph.depth[path_nodes],
        predicate=graph.predicate[path_nodes],
        links=graph.links[path_nodes],
        probe=graph.probe[path_nodes],
        key=graph.key[path_nodes],
        strict=graph.strict[path_nodes],
        reach=graph.reach[path_nodes],
        restless=graph.restless[path_nodes],
        rules=Ragged.grouped(1 + depth * rules + np.arange(rules), ended, len(path_nodes)),
        edges=Ragged.grouped(graph.predicate[path_nodes][1:], inner, len(graph.edges.begins) - 1),
        enders=Ragged.grouped(
            again, ends.values[ends.begins[path_nodes][again] + within], len(path_nodes)
        ),
    )
