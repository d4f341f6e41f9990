"""Prepares a bound query for a runtime: rewritten, planned, ready to adapt."""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass, replace

import pyarrow as pa

from cepheid.algebra.query import BoundQuery
from cepheid.algebra.types import Schema
from cepheid.answers.counted.counting_engine import CountedQuery
from cepheid.engine.rows.order import in_order
from cepheid.engine.run import Engine
from cepheid.engine.state import LoadedRows
from cepheid.options import Options
from cepheid.plan.nodes import Plan, has_automaton, waits
from cepheid.planner.adapt import Adapter, Adaptive
from cepheid.planner.aggregation import Aggregation, aggregate
from cepheid.planner.cost.figures import check
from cepheid.planner.cost.plan_cost import cost_of
from cepheid.planner.planned import Planned
from cepheid.planner.search import AUTO, search
from cepheid.planner.trees.shapes import LEFT_DEEP, RIGHT_DEEP
from cepheid.rewrites import Rewritten, rewrite
from cepheid.statistics import Statistics

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Prepared:
    """A query that is ready to run, here or on a worker. `adaptive` is None where the plan stays
    as it is: the caller chose it, or there is no other. `aggregation` is how answers are made, if
    the query returns some, and `prompt_aggregation`, where each is wanted as time passes."""

    rewritten: Rewritten
    planned: Planned
    adaptive: Adaptive | None = None
    aggregation: Aggregation | None = None
    prompt_aggregation: Aggregation | None = None

    @property
    def query(self) -> BoundQuery:
        return self.rewritten.query

    @property
    def plan(self) -> Plan:
        return self.planned.plan

    @property
    def schema(self) -> Schema:
        return self.plan.schema

    @property
    def settled(self) -> bool:
        """Whether every match is known with its last event: none waits for what comes."""
        waiting = has_automaton(self.plan) or any(waits(root) for root in self.plan.alternatives)
        return not waiting and self.plan.selection is None

    def counted(self, *, prompt: bool) -> CountedQuery | None:
        """The query without the search for its matches, if its answers are counted. `prompt`: they
        are wanted as time passes."""
        aggregation = self.prompt_aggregation if prompt else self.aggregation
        if aggregation is None or aggregation.way is None:
            return None
        return CountedQuery(self.query, self.plan, aggregation.way, prompt)

    def answers_text(self, prompt: bool | None) -> str | None:
        """How answers are made, if the query returns some; with None, in both cases."""
        whole, as_time_passes = self.aggregation, self.prompt_aggregation
        if whole is None or as_time_passes is None:
            return None
        if prompt is not None:
            return (as_time_passes if prompt else whole).text()
        if as_time_passes.way is whole.way:
            return whole.text()
        return f"{whole.text()}; of events as they come: {as_time_passes.text()}"

    def warn(self) -> None:
        """Warn the query's author, for example that it can match nothing."""
        for text in self.query.warnings:
            warnings.warn(text, stacklevel=4)

    def engine(
        self, schema: pa.Schema, jit: bool = True, journal: list[LoadedRows] | None = None
    ) -> Engine:
        """A new engine, for one ordered stream of events; with a journal, its state can be
        saved."""
        advisor = None if self.adaptive is None else Adapter(self.adaptive)
        return Engine(self.plan, schema, jit=jit, advisor=advisor, journal=journal)

    def in_order(self, table: pa.Table) -> pa.Table:
        """The events in the order that an engine needs."""
        return in_order(self.plan, table)

    def replanned(self, statistics: str) -> Prepared:
        """The same query with the plan for these statistics, to which a run had changed."""
        if self.adaptive is None:
            return self
        planned = self.adaptive.search(Statistics.from_json(statistics))
        return replace(self, planned=planned, adaptive=replace(self.adaptive, planned=planned))


def prepare(query: BoundQuery, options: Options) -> Prepared:
    """Rewrite the query and find its plan."""
    statistics = options.stats or Statistics()
    without = set(options.without)
    if options.plan not in (AUTO, LEFT_DEEP, RIGHT_DEEP):
        without.add("factoring")  # a tree is over the variables as they were written

    def cost(candidate: BoundQuery) -> float:
        return cost_of(search(candidate, statistics, engine=options.engine).plan, statistics)

    rewritten = rewrite(query, statistics, without, cost)
    if options.stats is not None:
        check(statistics, query, rewritten.query, analyzed(query))
    planned = search(
        rewritten.query,
        statistics,
        engine=options.engine,
        plan=options.plan,
        negation=options.negation,
        propagation=options.propagation,
        limit=options.limit,
    )
    winner = planned.winner
    logger.info("plan: %s, estimated cost %.2g ns per window", winner.name, winner.cost)
    adaptive = None
    # What automata hold can't be handed to another plan.
    free = options.plan == AUTO and planned.losers and not has_automaton(planned.plan)
    if options.adapt is not None and free:
        adaptive = Adaptive(
            rewritten.query,
            planned,
            options.adapt,
            options.negation,
            options.propagation,
            options.engine,
        )
    if rewritten.query.answers is None:
        return Prepared(rewritten, planned, adaptive)
    whole, prompt = (aggregate(rewritten.query, planned, prompt=prompt) for prompt in (False, True))
    return Prepared(rewritten, planned, adaptive, whole, prompt)


def analyzed(query: BoundQuery) -> BoundQuery:
    """The rewritten query for which statistics are gathered, before any are known."""
    return rewrite(query).query
