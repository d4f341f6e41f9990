"""SASE's plans of a chain that no option asks for: every strategy of section 4, built by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from time import process_time
from typing import Any

import pyarrow as pa

import cepheid as cep
from benchmarks.cases import Workload
from benchmarks.experiments.experiment import Found, Program
from cepheid.algebra.expressions import Call, Expr
from cepheid.algebra.types import Type
from cepheid.engine.operators.stacks import StacksOperator
from cepheid.engine.run import Engine
from cepheid.plan.nodes import Equivalence, Filter, Neg, Node, Stacks
from cepheid.planner.search import search
from cepheid.statistics import Statistics

Change = Callable[[Stacks], Node]


def strategy(chosen: Equivalence, scan_window: bool = True) -> Change:
    """Equivalence tests as said, and the window in the scan, too, or in the construction alone."""
    return lambda node: replace(node, strategy=chosen, scan_window=scan_window)


def selection(
    equivalences: int | None = None, comparisons: bool = True, filters: bool = True
) -> Change:
    """A selection above SSC: inside are only so many of the equivalence tests (None: all), the
    comparisons between events, and the filters of single events, if said so.

    The selection is one condition that reads the first and the last event, so it is tested when a
    sequence is complete, and not before; no sequence is stored for it.
    """

    def change(node: Stacks) -> Node:
        inside = node.equivalences if equivalences is None else node.equivalences[:equivalences]
        first, *_, last = node.equivalences[0]
        outside: list[Expr] = [
            Call("=", (first, last), Type.BOOLEAN),
            *(
                Call("=", (attribute, part[-1]), Type.BOOLEAN)
                for part in node.equivalences[len(inside) :]
                for attribute in part[:-1]
            ),
        ]
        classes, predicates = node.classes, node.predicates
        if not comparisons:
            outside += predicates
            predicates = ()
        if not filters:
            outside += [f for leaf in classes for f in leaf.filters]
            classes = tuple(replace(leaf, filters=()) for leaf in classes)
        selected = reduce(lambda a, b: Call("and", (a, b), Type.BOOLEAN), outside)
        return Stacks(classes, inside, (*predicates, selected))

    return change


def stacks(change: Change) -> Program:
    """Run the planner's stacks, changed. Negations stay above them."""

    def program(
        workload: Workload,
        options: Mapping[str, Any],
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
    ) -> Found:
        bound = cep.Query(workload.query).bind(schema, **workload.columns)
        plan = search(bound, Statistics(), engine="nfa").plan
        (root,) = plan.alternatives
        plan = replace(plan, alternatives=(_changed(root, change),))
        needed = [name for name in schema.names if name in plan.required]
        read = pa.schema([schema.field(name) for name in needed])
        engine = Engine(plan, read, jit=options.get("jit", True))
        watch = Watch()
        for operator in engine.tree.operators:
            if isinstance(operator, StacksOperator):
                watch.put_on(operator)
        matches = 0
        for batch in batches:
            matches += sum(found.num_rows for found in engine.push(batch.select(needed)))
        matches += sum(found.num_rows for found in engine.finish())
        return Found(matches, watch.seconds)

    return program


class Watch:
    """Processor time that scan and construction take."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def put_on(self, operator: StacksOperator) -> None:
        step = operator.step

        def watched() -> bool:
            began = process_time()
            done = step()
            self.seconds += process_time() - began
            return done

        vars(operator).update(step=watched)


def _changed(node: Node, change: Change) -> Node:
    if isinstance(node, Neg | Filter):
        return replace(node, input=_changed(node.input, change))
    assert isinstance(node, Stacks), f"not a chain: {type(node).__name__}"
    return change(node)
