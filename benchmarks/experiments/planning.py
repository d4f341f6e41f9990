"""What a plan promises, and what its operators do: estimates and counted runs."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import cepheid as cep
from benchmarks.cases import Workload
from benchmarks.experiments.experiment import Way
from cepheid.engine.needs import ROUND
from cepheid.engine.run import Engine
from cepheid.plan.nodes import LeafNode
from cepheid.planner.planned import Planned
from cepheid.planner.search import search

FORCIBLE = ("plan", "negation", "propagation")


@dataclass(frozen=True, slots=True)
class Counted:
    """Matches; records that the operators made; the most that those below the roots held at a time,
    and the most bytes that the engine held."""

    matches: int
    records: int
    held: int
    peak: int


def options_of(way: Way, workload: Workload, table: pa.Table) -> dict[str, Any]:
    """The options of a way on these events; statistics are gathered now if it wants them."""
    options: dict[str, Any] = {**workload.columns, **way.options}
    if way.analyzed:
        options["stats"] = cep.analyze(table, workload.query, **workload.columns)
    return options


def planned(workload: Workload, options: dict[str, Any], table: pa.Table) -> Planned:
    """What the planner makes of the query with the statistics that the events were made with."""
    bound = cep.Query(workload.query).bind(table.schema, **workload.columns)
    forced = {name: options[name] for name in FORCIBLE if name in options}
    return search(bound, options.get("stats", workload.statistics), **forced)


def nanoseconds_per_event(found: Planned) -> float:
    """The estimate is for the time of a window; the streams have an event in every unit of it."""
    assert found.plan.window is not None
    return found.winner.cost / found.plan.window.size


def counted(workload: Workload, options: dict[str, Any], table: pa.Table) -> Counted:
    """A run that is watched. Batches are as long as a round, so that what the engine reads ahead
    doesn't hide what its operators hold."""
    plan = planned(workload, options, table).plan
    needed = [name for name in table.schema.names if name in plan.required]
    read = table.select(needed)
    matches = 0
    tracemalloc.start()
    try:
        engine = Engine(plan, read.schema, jit=options.get("jit", True))
        for batch in read.to_batches(max_chunksize=ROUND):
            matches += sum(found.num_rows for found in engine.push(batch))
        matches += sum(found.num_rows for found in engine.finish())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    nodes = engine.profile().nodes
    inner = {node: of for node, of in nodes.items() if not isinstance(node, LeafNode)}
    held = sum(of.peak for node, of in inner.items() if node not in plan.alternatives)
    return Counted(matches, sum(of.rows for of in inner.values()), held, peak)
