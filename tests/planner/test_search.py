"""The plan search: it finds the cheapest of all trees, and what the caller chose is kept."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from random import Random
from time import process_time

import pytest

from cepheid.algebra.patterns import Leaf, Sequence
from cepheid.algebra.query import BoundQuery
from cepheid.errors import PlanError
from cepheid.plan.nodes import Neg, Nseq, Plan, Seq, walk
from cepheid.planner.alternatives import MOST_ALTERNATIVES, alternatives
from cepheid.planner.choice import Choice, Propagation
from cepheid.planner.cost.cube import Spans
from cepheid.planner.cost.figures import figures_of
from cepheid.planner.cost.plan_cost import Costing, cost_of
from cepheid.planner.cost.weights import calibrated
from cepheid.planner.plan import assemble
from cepheid.planner.search import MOST_JOINED, propagation_of, search
from cepheid.planner.trees.cheapest_tree import intervals
from cepheid.planner.trees.lookups import with_lookups
from cepheid.planner.trees.parts import Parts
from cepheid.planner.trees.shapes import ShapePair
from cepheid.statistics import Statistics
from tests.planner.drawing import Draw, bind, trees


def every_choice(query: BoundQuery) -> list[Choice]:
    """All trees, with all subsets of the negations that could be NSEQ on top."""
    (alternative,) = alternatives(query)
    negated = Parts(query, alternative, frozenset()).negated
    free = list(dict.fromkeys(n.index for n in negated if n.simple))
    tops = [frozenset(t) for size in range(len(free) + 1) for t in combinations(free, size)]
    return [Choice(shape, top) for shape in trees(alternative.pattern) for top in tops]


def pattern(draw: Draw, kind: str, n: int) -> str:
    match kind:
        case "conjunction":
            return draw.conjunction(n, nest=draw.random.choice([0, 0.3]))
        case "nested":
            return draw.sequence(n, hang=0.2, nest=0.4)
        case _:
            return draw.sequence(n, hang=draw.random.choice([0, 0.15, 0.4]))


CASES = [
    *(("sequence", n, seed) for n in range(1, 7) for seed in range(8)),
    *(("sequence", 7, seed) for seed in range(3)),
    *(("conjunction", n, seed) for n in range(2, 5) for seed in range(6)),
    *(("conjunction", 5, seed) for seed in range(2)),
    *(("nested", n, seed) for n in range(2, 5) for seed in range(6)),
]


def looked_up(query: BoundQuery, statistics: Statistics, choice: Choice) -> Plan:
    """The plan of a choice, in which every SEQ finds its candidates in the cheaper way."""
    costing = Costing(figures_of(query, statistics), calibrated())
    return with_lookups(assemble(query, alternatives(query), [choice]), costing)


@pytest.mark.parametrize("distinct", [2.0, 3.0, 10.0, 1000.0])
@pytest.mark.parametrize("rate", [0.1, 1.0, 10.0])
def test_lookups_are_the_cheapest_of_all(distinct: float, rate: float) -> None:
    query = bind("PATTERN A a ; B b ; C c ; D d WHERE a.x = c.x AND b.x = d.x WITHIN 100")
    values = {f"{v}.x": distinct for v in "abcd"}
    statistics = Statistics(dict.fromkeys("abcd", rate), {}, values)
    choice = Choice(ShapePair(ShapePair("a", "b"), ShapePair("c", "d")))
    (hashed,) = assemble(query, alternatives(query), [choice]).alternatives
    assert isinstance(hashed, Seq) and len(hashed.equalities) == 2
    plan = looked_up(query, statistics, choice)
    both = [replace(plan, alternatives=(replace(hashed, scan=scan),)) for scan in (False, True)]
    assert plan in both
    assert cost_of(plan, statistics) == min(cost_of(p, statistics) for p in both)


def test_few_values_are_scanned_and_many_hashed() -> None:
    query = bind("PATTERN A a ; B b WHERE a.x = b.x AND a.m < b.m WITHIN 100")
    for distinct, scan in ((1.0, True), (1e6, False)):
        statistics = Statistics({"a": 1.0, "b": 1.0}, {}, {"a.x": distinct, "b.x": distinct})
        (root,) = search(query, statistics, engine="tree").plan.alternatives
        assert isinstance(root, Seq) and root.scan is scan


USUAL = 3
"""Of each kind and length; all others are for the long run."""


@pytest.mark.parametrize(
    ("kind", "n", "seed"),
    [pytest.param(*c, marks=() if c[-1] < USUAL else pytest.mark.slow) for c in CASES],
)
def test_finds_the_cheapest_of_all_trees(kind: str, n: int, seed: int) -> None:
    random = Random(f"{kind} {n} {seed}")
    draw = Draw(random, same=random.random() < 0.2)
    query = draw.query(pattern(draw, kind, n))
    statistics = draw.statistics(query)
    choices = every_choice(query)
    if len(choices) > 1500:
        choices = [c for c in choices if not c.top]
        planned = search(query, statistics, engine="tree", negation="push", propagation="lazy")
    else:
        planned = search(query, statistics, engine="tree", propagation="lazy")
    plans = {c: looked_up(query, statistics, c) for c in choices}
    costs = {c: cost_of(plan, statistics) for c, plan in plans.items()}
    assert planned.winner.cost == pytest.approx(min(costs.values()), rel=1e-9)
    (chosen,) = planned.winner.choices
    assert costs[chosen] == pytest.approx(planned.winner.cost, rel=1e-9)
    assert planned.plan.alternatives == plans[chosen].alternatives


@pytest.mark.slow
def test_the_cases_are_worth_searching() -> None:
    """In most of them the worst tree costs at least a tenth more than the best."""
    spread = 0
    for seed in range(20):
        draw = Draw(Random(seed))
        query = draw.query(draw.sequence(5))
        statistics = draw.statistics(query)
        plans = [looked_up(query, statistics, c) for c in every_choice(query)]
        costs = [cost_of(plan, statistics) for plan in plans]
        spread += max(costs) > 1.1 * min(costs)
    assert spread > 14


# Query 6 and its settings: figure 12 says which tree is best in each.
QUERY_6 = bind(
    "PATTERN IBM ; Sun ; Oracle ; Google WHERE Oracle.x > Sun.x AND Oracle.x > Google.x WITHIN 100"
)
EVEN = {"IBM": 0.25, "Sun": 0.25, "Oracle": 0.25, "Google": 0.25}
FIRST, SECOND = "Oracle.x > Sun.x", "Oracle.x > Google.x"


@pytest.mark.parametrize(
    ("statistics", "best"),
    [
        (
            Statistics(
                {"IBM": 0.0033, "Sun": 0.33, "Oracle": 0.33, "Google": 0.33},
                {FIRST: 1.0, SECOND: 1.0},
            ),
            "left-deep",
        ),
        (Statistics(EVEN, {FIRST: 0.02, SECOND: 1.0}), "(IBM ((Sun Oracle) Google))"),
        (Statistics(EVEN, {FIRST: 1.0, SECOND: 0.02}), "right-deep"),
    ],
)
def test_query_6_has_the_plan_of_figure_12(statistics: Statistics, best: str) -> None:
    planned = search(QUERY_6, statistics, engine="tree", propagation="lazy")
    assert planned.winner.name == best
    assert not planned.losers[0].cost < planned.winner.cost
    assert {"left-deep", "right-deep"} <= {planned.winner.name, *(p.name for p in planned.losers)}


def test_losers_are_other_plans_cheapest_first() -> None:
    planned = search(QUERY_6, Statistics(EVEN))
    costs = [loser.cost for loser in planned.losers]
    assert 2 <= len(costs) <= 5
    assert costs == sorted(costs)
    assert planned.winner.choices not in [loser.choices for loser in planned.losers]
    assert not planned.forced
    assert sum(e.cost for e in planned.estimates.values()) == pytest.approx(planned.winner.cost)


def test_a_rare_class_is_joined_first() -> None:
    query = bind("PATTERN A a ; B b ; C c WITHIN 100")
    rates = {"a": 1.0, "b": 1.0, "c": 1.0}
    for rare, first in (("a", "left-deep"), ("c", "right-deep")):
        planned = search(query, Statistics({**rates, rare: 0.01}), engine="tree")
        assert planned.winner.name.startswith(first)


# ── what the caller chooses ──


def test_a_forced_tree_is_kept_and_compared() -> None:
    statistics = Statistics(EVEN, {FIRST: 0.02, SECOND: 1.0})
    planned = search(QUERY_6, statistics, plan="((IBM Sun) (Oracle Google))", propagation="lazy")
    assert planned.forced
    assert planned.winner.name == "((IBM Sun) (Oracle Google))"
    assert planned.losers[0].name == "(IBM ((Sun Oracle) Google))"
    assert planned.losers[0].cost < planned.winner.cost


def test_a_forced_style_goes_for_all_alternatives() -> None:
    query = bind("PATTERN (A a | B b) ; C c ; D d WITHIN 10")
    planned = search(query, Statistics(), plan="right-deep")
    one, other = planned.plan.alternatives
    assert isinstance(one, Seq) and isinstance(other, Seq)
    assert one.right == other.right


def test_a_wrong_tree_is_refused() -> None:
    with pytest.raises(PlanError, match="leaves out `Google`"):
        search(QUERY_6, Statistics(), plan="((IBM Sun) Oracle)")


def kinds(plan: Plan) -> set[type]:
    return {type(n) for root in plan.alternatives for n in walk(root)}


def test_negations_go_where_they_cost_least_or_where_they_must() -> None:
    query = bind("PATTERN A a ; !B b ; C c WITHIN 100")
    statistics = Statistics({"a": 1.0, "b": 1.0, "c": 1.0})
    assert Nseq in kinds(search(query, statistics).plan)
    assert Neg in kinds(search(query, statistics, negation="top").plan)
    # If no match is left to be checked, NEG has nothing to do, and NSEQ has much.
    slow = bind("PATTERN A a ; !B b ; C c WHERE b.x < c.x AND a.x > c.x WITHIN 100")
    empty = Statistics(statistics.rates, {"a.x > c.x": 0.0, "b.x < c.x": 0.0})
    assert Neg in kinds(search(slow, empty).plan)
    assert Nseq in kinds(search(slow, empty, negation="push").plan)


def test_propagation_can_be_forced() -> None:
    query = bind("PATTERN A a ; B b ; C c WHERE a.x < c.x WITHIN 100")
    statistics = Statistics({"a": 1.0, "b": 1.0, "c": 0.001})
    pushed = search(query, statistics, plan="left-deep", propagation="push")
    assert pushed.plan.eager
    expected: dict[Propagation, tuple[bool, int]] = {
        "lazy": (False, 0),
        "pull": (True, 0),
        "pass-down": (True, 1),
    }
    for mode, flags in expected.items():
        root = search(query, statistics, plan="left-deep", propagation=mode).plan.alternatives[0]
        assert isinstance(root, Seq)
        assert (root.pull, len(root.passed)) == flags


@pytest.mark.parametrize(
    ("rate", "selectivity", "expected"),
    [(1.0, 0.5, "lazy"), (0.0005, 1.0, "pull"), (0.0005, 0.01, "pass-down"), (1.0, 0.01, "lazy")],
)
def test_rare_triggers_pull_and_selective_ones_pass_down(
    rate: float, selectivity: float, expected: str
) -> None:
    query = bind("PATTERN A a ; B b ; C c ; D d WHERE a.x < d.x WITHIN 100")
    rates = {"a": 1.0, "b": 1.0, "c": 1.0, "d": rate}
    statistics = Statistics(rates, {"a.x < d.x": selectivity})
    left = Choice(ShapePair(ShapePair(ShapePair("a", "b"), "c"), "d"))
    plan = assemble(query, alternatives(query), [left])
    assert propagation_of(plan, plan.alternatives[0], statistics) == expected


# ── size ──


def test_twenty_classes_take_less_than_ten_milliseconds() -> None:
    draw = Draw(Random(20))
    query = draw.query(draw.sequence(20, hang=0), share=1.0)
    assert len(query.where) >= 19
    statistics = draw.statistics(query)
    (alternative,) = alternatives(query)
    costing = Costing(figures_of(query, statistics), calibrated())
    spans = Spans(Parts(query, alternative, frozenset()), costing)
    assert isinstance(alternative.pattern, Sequence)
    items = [spans.leaf(leaf) for leaf in alternative.pattern.items if isinstance(leaf, Leaf)]
    assert len(items) == 20
    _, joins = spans.intervals(items)
    took = []
    for _ in range(5):
        began = process_time()
        intervals([0.0] * 20, joins)
        took.append(process_time() - began)
    assert min(took) < 0.010


@pytest.mark.parametrize(("n", "hang"), [(1, 0.0), (40, 0.0), (40, 0.1)])
def test_patterns_of_any_length_have_a_plan(n: int, hang: float) -> None:
    draw = Draw(Random(n))
    query = draw.query(draw.sequence(n, hang), share=1.0)
    began = process_time()
    planned = search(query, draw.statistics(query))
    assert process_time() - began < 10
    assert math.isfinite(planned.winner.cost)


@pytest.mark.parametrize("operator", [" ; ", " & "])
def test_over_too_many_events_no_tree_is_searched_for(operator: str) -> None:
    rare = Statistics(dict.fromkeys(["a7", "a20"], 0.001))
    few, many = (
        search(bind(f"PATTERN {operator.join(f'A a{k}' for k in range(n))} WITHIN 100"), rare)
        for n in (MOST_JOINED, MOST_JOINED + 1)
    )
    plain = {"left-deep", "right-deep", "stacks"}
    assert {candidate.name for candidate in (many.winner, *many.losers)} <= plain
    assert not {candidate.name for candidate in (few.winner, *few.losers)} <= plain


def test_absurd_statistics_give_finite_costs() -> None:
    names = [f"v{i}" for i in range(40)]
    query = bind(f"PATTERN {' ; '.join(f'{n.upper()} {n}' for n in names)} WITHIN 1000000")
    for rate in (0.0, 1e300):
        planned = search(query, Statistics(dict.fromkeys(names, rate)))
        assert all(
            math.isfinite(x) and x >= 0
            for e in planned.estimates.values()
            for x in (e.rows, e.tried, e.cost)
        )


@pytest.mark.parametrize("n", [12, 13, 30])
def test_wide_conjunctions_have_a_plan(n: int) -> None:
    draw = Draw(Random(n))
    query = draw.query(draw.conjunction(n), share=1.0)
    planned = search(query, draw.statistics(query))
    deep = [c for c in planned.losers if c.name in ("left-deep", "right-deep")]
    assert deep
    assert all(planned.winner.cost <= c.cost for c in deep)


def test_many_alternatives_are_planned_soon() -> None:
    branches = [f"(A a{i} | B b{i} | C c{i} | D d{i})" for i in range(3)]
    items = " ; ".join([*branches, "(A a3 | B b3)", "E e", "F f"])
    query = bind(f"PATTERN {items} WHERE a0.x < f.x WITHIN 100")
    began = process_time()
    planned = search(query, Statistics())
    assert len(planned.plan.alternatives) == MOST_ALTERNATIVES
    assert process_time() - began < 10
    # Trees that share their operators cost less than the best tree of each branch by itself.
    assert planned.winner.cost <= min(loser.cost for loser in planned.losers)


def test_patterns_of_groups_alone_have_a_plan() -> None:
    planned = search(bind("PATTERN A{3} a WITHIN 10"), Statistics())
    assert planned.winner.cost > 0


def test_no_scan_on_a_guess() -> None:
    query = bind("PATTERN A a ; B b WHERE a.x = b.x AND a.m < b.m WITHIN 100")
    (root,) = search(query, Statistics({"a": 0.001, "b": 0.001}), engine="tree").plan.alternatives
    assert isinstance(root, Seq) and not root.scan


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN A a ; B b ; C c ; D d WHERE a.x < d.x WITHIN 100",
        "PATTERN A a ; !B b ; C c WHERE a.x = c.x WITHIN 100",
        "PATTERN (A a ; B b) | (C c & D d) WHERE a.x < b.x WITHIN 50",
    ],
)
@pytest.mark.parametrize("rare", "abcd")
def test_a_brief_search_finds_the_same_plan(text: str, rare: str) -> None:
    """It costs fewer of those that lose."""
    query = bind(text)
    rates = {v: 0.001 if v == rare else 0.3 for v in query.variables}
    whole, brief = (search(query, Statistics(rates), brief=brief) for brief in (False, True))
    assert brief.plan == whole.plan
    assert len(brief.losers) <= len(whole.losers)
