"""The cost model: figures worked out by hand, and streams drawn at random."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, fields
from importlib.resources import files

import numpy as np
import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.algebra.query import BoundQuery
from cepheid.errors import PlanError
from cepheid.plan.nodes import LeafNode, Node, Plan, children
from cepheid.plan.text import node_lines
from cepheid.planner import make_plan
from cepheid.planner.choice import Propagation
from cepheid.planner.cost.figures import check, figures_of
from cepheid.planner.cost.flows import Edge, clear, forest
from cepheid.planner.cost.plan_cost import cost_of, estimate
from cepheid.planner.cost.weights import Weights, calibrated
from cepheid.planner.planned import Estimate
from cepheid.planner.trees.propagation import propagate
from cepheid.statistics import Statistics
from tests.planner.drawing import bind

TEN = {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0}  # per unit; windows are of 10


def top(plan: Plan, statistics: Statistics) -> Estimate:
    return estimate(plan, statistics)[plan.alternatives[0]]


def rows(text: str, statistics: Statistics | None = None, shape: str = "left-deep") -> float:
    query = bind(f"PATTERN {text}")
    return top(make_plan(query, shape), statistics or Statistics(TEN)).rows


# ── how many records ──


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A a ; B b WITHIN 10", 100),
        ("A a ; B b ; C c WITHIN 10", 1000 / 2),
        ("A a ; B b ; C c ; D d WITHIN 10", 10_000 / 6),
        ("A a & B b WITHIN 10", 200),
        ("A a & B b & C c WITHIN 10", 1000 * 6 / 2),
        ("A a ; (B b & C c) WITHIN 10", 1000 * 2 / 2),
        ("(A a ; B b) & C c WITHIN 10", 1000 * 3 / 2),
        ("A a ; B b WHERE a.x < b.x WITHIN 10", 50),
        ("A a ; B b WHERE a.k = b.k WITHIN 10", 1),
        ("A a ; B b WHERE a.x > 1 WITHIN 10", 50),
        ("A a ; !B b ; C c WITHIN 10", 100 * (1 - math.exp(-10)) / 10),
        ("A a ; B b? ; C c WITHIN 10", 100),
        ("A a ; B b* ; C c WITHIN 10", 100),
        ("A a ; B b+ ; C c WITHIN 10", 100 * (1 - math.exp(-5))),
    ],
)
def test_records_per_window(text: str, expected: float) -> None:
    assert rows(text) == pytest.approx(expected)


def test_every_shape_makes_the_same_records() -> None:
    text = "A a ; !B b ; C c ; D d WHERE a.x < d.x AND b.x < c.x AND a.k = c.k WITHIN 10"
    assert rows(text) == pytest.approx(rows(text, shape="right-deep"))


def test_a_key_counts_once_less_than_its_variables() -> None:
    distinct = {f"{v}.m": 5.0 for v in "abc"}
    statistics = Statistics(TEN, distinct=distinct)
    assert rows("A a ; B b ; C c WHERE [m] WITHIN 10", statistics) == pytest.approx(500 / 25)
    # The values of the others are among those of the variable that has most.
    more = Statistics(TEN, distinct={**distinct, "b.m": 50.0})
    for shape in ("left-deep", "right-deep"):
        found = rows("A a ; B b ; C c WHERE [m] WITHIN 10", more, shape)
        assert found == pytest.approx(500 / 250)


def test_an_equality_that_follows_from_others_counts_nothing() -> None:
    chain = "A a ; B b ; C c ; D d WHERE a.k = b.k AND b.k = c.k"
    assert rows(f"{chain} AND a.k = c.k WITHIN 10") == pytest.approx(rows(f"{chain} WITHIN 10"))
    edges = [Edge(-3.0, ("a", "k"), ("b", "k")), Edge(-1.0, ("b", "k"), ("c", "k"))]
    assert forest([*edges, Edge(-2.0, ("a", "k"), ("c", "k"))]) == -5.0


def test_given_selectivities_win_in_either_direction() -> None:
    for text in ("a.k = b.k", "b.k = a.k"):
        statistics = Statistics(TEN, {text: 0.25}, {"a.k": 1000.0})
        assert rows("A a ; B b WHERE a.k = b.k WITHIN 10", statistics) == pytest.approx(25)
        three = "A a ; B b ; C c WHERE a.k = b.k WITHIN 10"  # here it isn't the key
        assert rows(three, statistics) == pytest.approx(500 / 4)


STREAM = np.random.default_rng(2009)
SPAN, WINDOW = 3000.0, 3.0


def drawn(rate: float) -> np.ndarray:
    return np.sort(STREAM.uniform(0, SPAN, STREAM.poisson(rate * SPAN)))


def test_streams_drawn_at_random_have_as_many_matches() -> None:
    """Counted one by one: A ; B ; C, A ; !B ; C and A & C."""
    a, b, c = drawn(1.5), drawn(0.6), drawn(1.0)
    triples = clean = both = 0
    for end in c:
        starts = a[(a > end - WINDOW) & (a < end)]
        for start in starts:
            between = np.count_nonzero((b > start) & (b < end))
            triples += between
            clean += between == 0
    for time in a:
        both += np.count_nonzero(np.abs(c - time) < WINDOW)
    statistics = Statistics({"a": 1.5, "b": 0.6, "c": 1.0})
    windows = SPAN / WINDOW
    for text, counted in (
        ("A a ; B b ; C c", triples),
        ("A a ; !B b ; C c", clean),
        ("A a & C c", both),
    ):
        assert windows * rows(f"{text} WITHIN 3", statistics) == pytest.approx(counted, rel=0.05)


@pytest.mark.parametrize("events", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("load", [0.0, 1e-6, 0.5, 5.0, 31.0, 42.0, 70.1, 1000.0])
def test_clear_gaps_against_the_integral(events: int, load: float) -> None:
    """E[exp(-load g)] with g ~ Beta(1, k - 1), by the midpoint rule."""
    if events == 1:
        expected = math.exp(-load)
    else:
        g = (np.arange(2_000_000) + 0.5) / 2_000_000
        expected = float(np.mean((events - 1) * (1 - g) ** (events - 2) * np.exp(-load * g)))
    assert clear(load, events) == pytest.approx(max(expected, 1e-9), rel=1e-4, abs=1e-9)


# ── what it costs ──

UNIT = Weights(**dict.fromkeys((f.name for f in fields(Weights)), 0.0))


def counted(name: str, plan: Plan, statistics: Statistics) -> float:
    """How often a plan does what one weight is for."""
    return cost_of(plan, statistics, Weights(**{**asdict(UNIT), name: 1.0}))


def sequence_plan(shape: str, where: str = "") -> Plan:
    return make_plan(bind(f"PATTERN A a ; B b ; C c {where} WITHIN 10"), shape)


def test_combinations_that_are_tried() -> None:
    """Left-deep: 10 b with 10 a, then 10 c with 100 pairs. Right-deep: 10 c with 10 b, then each
    of 100 pairs with the a before it, which is half a window on average."""
    statistics = Statistics(TEN)
    assert counted("access", sequence_plan("left-deep"), statistics) == pytest.approx(100 + 1000)
    assert counted("access", sequence_plan("right-deep"), statistics) == pytest.approx(100 + 500)
    assert counted("probe", sequence_plan("right-deep"), statistics) == pytest.approx(10 + 100)
    assert counted("output", sequence_plan("right-deep"), statistics) == pytest.approx(100)
    assert counted("emit", sequence_plan("right-deep"), statistics) == pytest.approx(500)
    assert counted("event", sequence_plan("right-deep"), statistics) == pytest.approx(30)


def test_predicates_are_tested_on_what_is_tried() -> None:
    plan = sequence_plan("left-deep", "WHERE a.x < b.x AND a.y < b.y")
    assert counted("test", plan, Statistics(TEN)) == pytest.approx(2 * 100)


def test_chains_have_the_records_of_one_hash() -> None:
    plan = make_plan(bind("PATTERN A a ; B b WHERE a.k = b.k WITHIN 10"))
    statistics = Statistics(TEN, distinct={"a.k": 4.0, "b.k": 4.0})
    assert counted("chain", plan, statistics) == pytest.approx(100 / 4)
    assert counted("hash", plan, statistics) == pytest.approx(20)
    assert counted("access", plan, statistics) == counted("probe", plan, statistics) == 0


def test_a_floor_narrows_the_search() -> None:
    """NSEQ: 10 c look for the b before them; SEQ tries the a after it alone, which all match."""
    plan = make_plan(bind("PATTERN A a ; !B b ; C c WITHIN 10"))
    kept = 100 * (1 - math.exp(-10)) / 10
    assert counted("access", plan, Statistics(TEN)) == pytest.approx(10 + kept)
    over = make_plan(bind("PATTERN A a ; !B b ; C c WITHIN 10"), push_negation=False)
    assert counted("access", over, Statistics(TEN)) == pytest.approx(100 + 100)


def test_groups_cost_by_their_elements() -> None:
    """100 pairs with half a window of b between them."""
    plan = make_plan(bind("PATTERN A a ; B b* ; C c WITHIN 10"))
    assert counted("access", plan, Statistics(TEN)) == pytest.approx(100 + 100 * 5)
    assert counted("element", plan, Statistics(TEN)) == pytest.approx(100 * 5)


def test_what_alternatives_share_counts_once() -> None:
    query = bind("PATTERN (A a | B b) ; C c ; D d WITHIN 10")
    plan = make_plan(query, "right-deep")
    shared = [n for n in estimate(plan, Statistics(TEN)) if not isinstance(n, LeafNode)]
    assert len(shared) == 3  # c ; d once, and a SEQ for each branch
    assert counted("access", plan, Statistics(TEN)) == pytest.approx(100 + 2 * 500)


def test_every_node_has_an_estimate() -> None:
    query = bind("PATTERN A a ; !(B b ; C c) ; D d+ ; E e HAVING a.x < e.x WITHIN 10")
    plan = make_plan(query)
    found = estimate(plan, Statistics())

    def visit(node: Node) -> int:
        assert node in found, node_lines(node, plan.variables)
        return 1 + sum(visit(child) for child in children(node))

    assert visit(plan.alternatives[0]) == len(found)


def test_pull_and_pass_down_make_less_when_triggers_are_rare() -> None:
    query = bind("PATTERN A a ; B b ; C c ; D d WHERE a.x < d.x WITHIN 10")
    plan = make_plan(query)
    rare = Statistics({**TEN, "d": 0.001}, {"a.x < d.x": 0.1})
    often = Statistics(TEN, {"a.x < d.x": 0.1})
    modes: tuple[Propagation, ...] = ("lazy", "pull", "pass-down")
    costs = {
        name: [cost_of(propagate(plan, mode), s) for mode in modes]
        for name, s in (("rare", rare), ("often", often))
    }
    assert costs["rare"][0] > 2 * costs["rare"][1] > 2 * costs["rare"][2]
    assert costs["often"][1] > 0.9 * costs["often"][0]


# ── figures ──


def test_missing_rates_are_the_mean_of_those_given() -> None:
    assert rows("A a ; B b ; C c WITHIN 10", Statistics({"a": 1.0, "b": 3.0})) == pytest.approx(
        10 * 30 * 20 / 2
    )
    assert rows("A a ; B b WITHIN 10", Statistics()) == pytest.approx(100 * 100)


def test_rates_are_per_second_for_timestamps_and_per_event_for_events() -> None:
    columns = pa.schema({"ts": pa.timestamp("us"), "type": pa.string()})
    text = cep.Query("PATTERN A a ; B b WITHIN 10 seconds")
    query = text.bind(columns, time="ts", type="type")
    assert top(make_plan(query), Statistics({"a": 1.0, "b": 1.0})).rows == pytest.approx(100)
    assert rows("A a ; B b WITHIN 10 EVENTS", Statistics()) == pytest.approx(5 * 5)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a.x = 1", 1 / 100),
        ("a.k <> 1", 3 / 4),
        ("a.k = 1", 1 / 4),
        ("a.k IN (1, 2)", 1 / 2),
        ("a.x > 1", 1 / 2),
        ("a.x > 1 OR a.x < 0", 3 / 4),
        ("NOT (a.k = 1)", 3 / 4),
        ("a.type LIKE 'x%'", 1 / 4),
        ("a.x IS NULL", 1 / 10),
    ],
)
def test_assumed_selectivities(condition: str, expected: float) -> None:
    query = bind(f"PATTERN A a ; B b WHERE {condition} WITHIN 10")
    figures = figures_of(query, Statistics(distinct={"a.k": 4.0}))
    total = sum(figures.chance(c.expression) for c in query.where)
    assert math.exp(total) == pytest.approx(expected)


def test_zero_is_never_quite_zero() -> None:
    nothing = Statistics({"a": 0.0, "b": 1.0}, {"a.x < b.x": 0.0})
    found = rows("A a ; B b WHERE a.x < b.x WITHIN 10", nothing)
    assert 0 < found < 1e-12


QUERY: BoundQuery = bind("PATTERN A a ; B b ; C c WHERE [m] AND a.x < b.x WITHIN 10")


@pytest.mark.parametrize(
    ("statistics", "message"),
    [
        (Statistics({"aa": 1.0}), r"\(rates\) name `aa`.*did you mean `a`\?"),
        (Statistics({}, {"a.x < b.y": 0.5}), r"`a.x < b.y`.*did you mean `a.x < b.x`\?"),
        (Statistics({}, {}, {"a.kk": 2.0}), r"\(distinct\) name `a.kk`.*did you mean `a.k`\?"),
    ],
)
def test_statistics_of_something_else_are_refused(statistics: Statistics, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        check(statistics, QUERY)


def test_statistics_of_the_query_and_its_key_are_accepted() -> None:
    rates = {v: 1.0 for v in "abc"}
    check(Statistics(rates, {"a.x < b.x": 0.5, "c.m = a.m": 0.1}, {"a.m": 5.0}), QUERY)


# ── weights ──


def test_the_weights_say_where_they_come_from() -> None:
    text = files("cepheid.planner.cost").joinpath("weights.json").read_text(encoding="utf-8")
    assert json.loads(text)["provenance"]
    assert all(value >= 0 for value in asdict(calibrated()).values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"acess": 1.0}, "unknown acess"),
        ({"test": -1.0}, "`test` is -1.0"),
        ({"test": math.nan}, "`test` is nan"),
        ({"test": "1"}, "`test` is 1"),
    ],
)
def test_wrong_weights_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Weights.of({**asdict(UNIT), **change})


def test_costs_are_linear_in_the_weights() -> None:
    plan = make_plan(bind("PATTERN A a ; B b+ ; !C c ; D d WHERE [m] AND a.x < d.x WITHIN 10"))
    statistics = Statistics(TEN)
    weights = asdict(calibrated())
    parts = sum(value * counted(name, plan, statistics) for name, value in weights.items())
    assert cost_of(plan, statistics) == pytest.approx(parts)
