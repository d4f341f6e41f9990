"""Cayuga's naive extension of publish and subscribe (section 5.2.1): the index over predicates is
shared, and nothing else. It says for every event whose predicates it satisfies; each rule gets
those events, and runs a query of its own over them.

The index and what it delivers are timed for all rules, queries for some of them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import mean

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.measure import WrongAnswer
from benchmarks.rules.running import BATCH, OPTIONS, WARM_UP, Load, Point, cells_of, compiled
from cepheid.engine.merged.dag import ROOT, Graph, Ragged
from cepheid.engine.merged.merge import Merged
from cepheid.inprocess import execution
from cepheid.inprocess.frames import EventTable
from cepheid.planner import prepare
from cepheid.rules import RuleSet
from cepheid.workloads.cayuga import TEMPLATES

Ints = NDArray[np.int64]


def subscribers(graph: Graph) -> Ragged:
    """For each predicate, the rules that have it: of a step, or of what must not come before it."""
    rules = graph.rules.values.astype(np.int64)
    nodes = np.repeat(np.arange(graph.nodes), np.diff(graph.rules.begins))
    # Each ender has one predicate.
    of_ender = np.zeros(len(graph.endings.values), np.int64)
    owners = np.repeat(np.arange(len(graph.endings.begins) - 1), np.diff(graph.endings.begins))
    of_ender[graph.endings.values] = owners
    pairs: list[Ints] = []
    while len(nodes):
        pairs.append(np.column_stack([graph.predicate[nodes], rules]))
        count = np.diff(graph.enders.begins)[nodes]
        again = np.repeat(np.arange(len(nodes)), count)
        within = np.arange(len(again)) - np.repeat(np.cumsum(count) - count, count)
        enders = graph.enders.values[graph.enders.begins[nodes][again] + within]
        pairs.append(np.column_stack([of_ender[enders], rules[again]]))
        above = graph.parent[nodes] != ROOT
        nodes, rules = graph.parent[nodes][above].astype(np.int64), rules[above]
    every = np.unique(np.concatenate(pairs).astype(np.int64), axis=0)
    return Ragged.grouped(every[:, 0], every[:, 1], len(graph.edges.begins) - 1)


@dataclass(frozen=True)
class Delivered:
    """The rows of the events that each rule gets, batch by batch: rules in order, each with its
    rows in order."""

    rules: Ints
    rows: Ints


def delivered(merged: Merged, of: Ragged, events: pa.Table) -> Iterator[Delivered]:
    """What the index delivers to all rules."""
    first = 0
    for batch in events.to_batches(max_chunksize=BATCH):
        cells = cells_of(merged, batch)
        begins, predicates = merged.index.satisfied(cells, np.ones(cells.shape, np.bool_), True)
        lists = of.chosen(predicates)
        row = np.repeat(first + np.arange(len(cells)), np.diff(begins))
        rows = np.repeat(row, np.diff(lists.begins))
        # A rule may have several of the predicates that an event satisfies.
        pair = np.unique(lists.values.astype(np.int64) * events.num_rows + rows)
        yield Delivered(pair // events.num_rows, pair % events.num_rows)
        first += batch.num_rows


def index_alone(given: Load, sample: int) -> Point:
    """What the rules take if they share the index over predicates alone."""
    begin = time.process_time()
    merged = compiled("Filter", given.rules)
    of = subscribers(merged.graph)
    compiling = time.process_time() - begin
    list(delivered(merged, of, given.events.slice(0, WARM_UP)))
    count = given.rules.num_rows
    numbers = np.arange(0, count, max(1, count // sample))[:sample]
    begin, parts = time.process_time(), dict[int, list[Ints]]()
    for batch in delivered(merged, of, given.events):
        for number in numbers.tolist():
            at = np.searchsorted(batch.rules, [number, number + 1])
            parts.setdefault(number, []).append(batch.rows[slice(*at)])
    indexing = time.process_time() - begin
    seconds, matches = _queries(given, {n: np.concatenate(p) for n, p in parts.items()})
    total = indexing + seconds * count
    steps = tuple(np.bincount(merged.graph.depth[1:]).tolist())
    return Point(count, given.events.num_rows, total, matches, steps, 0.0, 0, compiling)


def _queries(given: Load, rows: dict[int, Ints]) -> tuple[float, int]:
    """The mean of the seconds that a rule takes over the events that it gets, and the matches."""
    rules = RuleSet.from_template("Filter", TEMPLATES["Filter"], given.rules)
    names = list(rules)
    answer = Counter(given.answers.found("Filter")["rule"].to_pylist())
    seconds, matches = [], 0
    for number, own in rows.items():
        rule, events = rules[names[number]], given.events.take(pa.array(own))
        options = replace(OPTIONS, params=rule.params)
        prepared = prepare(rule.query.bind(events.schema, options), options)
        for turn in range(2):  # the first loads the kernels
            begin = time.process_time()
            _, batches = execution.run(prepared, EventTable.of(events), options)
            found = sum(batch.num_rows for batch in batches)
            if turn:
                seconds.append(time.process_time() - begin)
        if found != answer[number]:
            raise WrongAnswer(
                f"{rule.name} over its events finds {found} matches, not {answer[number]}"
            )
        matches += found
    return mean(seconds), matches
