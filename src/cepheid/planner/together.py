"""Several queries as one plan, in which what they have in common is one operator.

The plan has the alternatives of all of them, as if the queries were the branches of a disjunction:
over one store of events, with one class for equal leaves, and one operator for equal subtrees. No
condition of one query is checked in another's trees, so each finds what it finds alone. The plan's
`returned` says whose matches an alternative makes: each query has a column that is true in its own.

Subtrees are equal if their variables are called alike, which the caller sees to. Trees that are the
best for each query need have nothing in common, so deep ones for all are looked at, too; what is
shared costs once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from cepheid.algebra.expressions import Constant
from cepheid.algebra.patterns import Disjunction
from cepheid.algebra.query import BoundQuery, KeyPart, Output, Window
from cepheid.algebra.types import Type
from cepheid.engine.sampling import Targets, targets
from cepheid.options import Adaptation
from cepheid.plan.nodes import Node, Plan, waits
from cepheid.planner.adapt import Adaptive
from cepheid.planner.alternatives import alternatives
from cepheid.planner.choice import Choice
from cepheid.planner.cost.figures import figures_of
from cepheid.planner.cost.plan_cost import Costing, estimate
from cepheid.planner.cost.weights import calibrated
from cepheid.planner.plan import assemble
from cepheid.planner.planned import Candidate, Planned
from cepheid.planner.prepare import Prepared
from cepheid.planner.search import AUTO, search
from cepheid.planner.trees.lookups import with_lookups
from cepheid.planner.trees.shapes import LEFT_DEEP, RIGHT_DEEP
from cepheid.rewrites import Rewritten
from cepheid.statistics import Statistics

STYLES: Final = (AUTO, LEFT_DEEP, RIGHT_DEEP)

Ways = tuple[Planned, ...]
"""Plans of one query, one of each style."""


def tag(member: int) -> str:
    """The column that is true in the matches of this query."""
    return f"{member}"


def column(member: int, name: str) -> str:
    """The name of a query's output in the joint plan."""
    return f"{member} {name}"


def ways(query: BoundQuery, statistics: Statistics, negation: str = AUTO) -> Ways:
    """The best plan, and deep ones that have their negations where that has them."""
    best = search(query, statistics, negation=negation)
    return (best, *(_deep(query, best, style, statistics) for style in STYLES[1:]))


def _deep(query: BoundQuery, best: Planned, style: str, statistics: Statistics) -> Planned:
    """The deep tree of a style, lazy: shared operators aren't pulled from."""
    choices = tuple(Choice(style, choice.top) for choice in best.winner.choices)
    costing = Costing(figures_of(query, statistics), calibrated())
    plan = with_lookups(assemble(query, alternatives(query), choices), costing)
    return replace(best, plan=plan, winner=replace(best.winner, choices=choices))


def prepare_together(
    queries: Sequence[BoundQuery], ways_by_query: Sequence[Ways], adaptation: Adaptation | None
) -> Prepared:
    """Queries with the same schema and the same key, and the ways to run each. The window is the
    longest of theirs."""
    query = _joined(queries)
    planned = _cheapest(query, queries, ways_by_query, Statistics())
    if adaptation is None or not any(plans[0].losers for plans in ways_by_query):
        return Prepared(Rewritten(query), planned)
    queries = [replace(member, window=query.window) for member in queries]
    chosen = [plans[STYLES.index(planned.winner.name)] for plans in ways_by_query]
    settled = tuple(map(_settled, chosen))
    adaptive = TogetherAdaptive(
        query, planned, adaptation, queries=tuple(queries), negations=settled
    )
    return Prepared(Rewritten(query), planned, adaptive)


@dataclass(frozen=True)
class TogetherAdaptive(Adaptive):
    """Looks for other plans of the queries, all at once. `negations` says where each of them has
    its negations, if matches wait for those."""

    queries: tuple[BoundQuery, ...] = ()
    negations: tuple[str, ...] = ()

    @property
    def targets(self) -> Targets:
        """The statistics to gather for all of them, each once."""
        target_sets = [targets(query) for query in self.queries]
        leaves = dict.fromkeys(leaf for target in target_sets for leaf in target.plan.alternatives)
        return Targets(
            replace(
                target_sets[0].plan, alternatives=tuple(leaves), variables=self.query.variables
            ),
            {name: texts for target in target_sets for name, texts in target.classes.items()},
            tuple(dict.fromkeys(joint for target in target_sets for joint in target.joints)),
            tuple(
                dict.fromkeys(attribute for target in target_sets for attribute in target.columns)
            ),
        )

    def search(self, statistics: Statistics) -> Planned:
        pairs = zip(self.queries, self.negations, strict=True)
        ways_by_query = [ways(query, statistics, negation) for query, negation in pairs]
        return _cheapest(self.query, self.queries, ways_by_query, statistics)


def _settled(planned: Planned) -> str:
    """What waits must wait for the same in all plans: negations stay where they are."""
    if not any(map(waits, planned.plan.alternatives)):
        return AUTO
    return "top" if any(choice.top for choice in planned.winner.choices) else "push"


def _cheapest(
    query: BoundQuery,
    queries: Sequence[BoundQuery],
    ways_by_query: Sequence[Ways],
    statistics: Statistics,
) -> Planned:
    results: list[Planned] = []
    for style, plans in zip(STYLES, zip(*ways_by_query, strict=True), strict=True):
        plan = _assembled(query, queries, [planned.plan for planned in plans])
        estimates = estimate(plan, statistics)
        choices = tuple(choice for planned in plans for choice in planned.winner.choices)
        cost = sum(e.cost for e in estimates.values())
        results.append(Planned(plan, Candidate(style, choices, cost), estimates, (), statistics))
    results.sort(key=lambda planned: planned.winner.cost)
    return replace(results[0], losers=tuple(planned.winner for planned in results[1:]))


def _assembled(query: BoundQuery, queries: Sequence[BoundQuery], plans: Sequence[Plan]) -> Plan:
    """Alternatives that several queries have make the matches of each."""
    returned: dict[Node, frozenset[int]] = {}
    first = 0
    for query_alone, plan in zip(queries, plans, strict=True):
        last = first + 1 + len(query_alone.outputs)
        for root in plan.alternatives:
            returned[root] = returned.get(root, frozenset()).union(range(first, last))
        first = last
    return Plan(
        alternatives=tuple(returned),
        variables=query.variables,
        outputs=query.outputs,
        window=query.window,
        key=tuple(part.columns for part in query.key),
        schema=query.schema,
        required=query.required,
        renamed=query.renamed,
        returned=tuple(returned.values()),
    )


def _joined(queries: Sequence[BoundQuery]) -> BoundQuery:
    """One query that describes all of them to a runtime."""
    patterns = tuple(dict.fromkeys(query.pattern for query in queries))
    outputs: list[Output] = []
    for n, query in enumerate(queries):
        outputs.append(Output(tag(n), Constant(True, Type.BOOLEAN)))
        outputs += [replace(output, name=column(n, output.name)) for output in query.outputs]
    keys = zip(*(query.key for query in queries), strict=True)
    columns = [{v: c for part in parts for v, c in part.columns.items()} for parts in keys]
    return replace(
        queries[0],
        pattern=patterns[0] if len(patterns) == 1 else Disjunction(patterns),
        variables={name: v for query in queries for name, v in query.variables.items()},
        where=tuple(dict.fromkeys(c for query in queries for c in query.where)),
        having=tuple(dict.fromkeys(h for query in queries for h in query.having)),
        window=longest(queries),
        key=tuple(map(KeyPart, columns)),
        outputs=tuple(outputs),
        required=tuple(dict.fromkeys(name for query in queries for name in query.required)),
        selection=None,
        into=None,
        warnings=tuple(dict.fromkeys(text for query in queries for text in query.warnings)),
        renamed=tuple(renaming for query in queries for renaming in query.renamed),
    )


def longest(queries: Sequence[BoundQuery]) -> Window | None:
    """Their windows are of one clock."""
    windows = [query.window for query in queries if query.window is not None]
    return max(windows, key=lambda window: window.size, default=None)
