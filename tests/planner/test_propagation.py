"""What propagation sets on a plan, and which predicate is passed down."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cepheid.algebra.expressions import Expr, variables
from cepheid.algebra.text import expression_text
from cepheid.options import Options
from cepheid.plan.nodes import Plan, Seq, walk
from cepheid.planner import make_plan
from cepheid.planner.trees.propagation import Selectivity, eligible, propagate
from cepheid.query import Query

COLUMNS = pa.schema({"ts": pa.int64(), "type": pa.string(), "x": pa.int64(), "id": pa.int64()})


def plan(query: str, shape: str = "left-deep") -> Plan:
    bound = Query(f"PATTERN {query} WITHIN 9").bind(COLUMNS, Options(time="ts", type="type"))
    return make_plan(bound, shape)


def seqs(plan: Plan) -> list[Seq]:
    """From the bottom."""
    return [n for root in plan.alternatives for n in walk(root) if isinstance(n, Seq)]


def passed(plan: Plan, selectivity: Selectivity | None = None) -> list[list[str]]:
    found = propagate(plan, "pass-down", selectivity)
    return [[expression_text(p) for p in seq.passed] for seq in seqs(found)]


def candidates(plan: Plan) -> list[tuple[str, str, int]]:
    (root,) = plan.alternatives
    found = eligible(root, plan.variables)
    return [(c.variable, expression_text(c.predicate), c.levels) for c in found]


def test_push_runs_in_every_round_and_lazy_leaves_the_plan_as_it_is() -> None:
    built = plan("A a ; B b ; C c")
    assert propagate(built, "lazy") == built
    pushed = propagate(built, "push")
    assert pushed.eager and pushed.alternatives == built.alternatives


def test_every_seq_pulls_from_an_operator_none_from_a_leaf() -> None:
    assert [s.pull for s in seqs(propagate(plan("A a ; B b ; C c"), "pull"))] == [False, True]
    right = propagate(plan("A a ; B b ; C c", "right-deep"), "pull")
    assert [s.pull for s in seqs(right)] == [False, False]


def test_a_negation_beside_the_left_leaf_is_pulled() -> None:
    built = propagate(plan("A a ; !B b ; C c WHERE b.x < a.x"), "pull")
    assert [s.pull for s in seqs(built)] == [True]


def test_a_later_propagation_replaces_an_earlier_one() -> None:
    built = plan("A a ; B b ; C c WHERE a.x < c.x")
    assert propagate(propagate(built, "pass-down"), "lazy") == built
    assert propagate(propagate(built, "pass-down"), "pull") == propagate(built, "pull")
    assert propagate(propagate(built, "push"), "pull") == propagate(built, "pull")


def test_the_deepest_event_s_predicate_is_passed_down() -> None:
    built = plan("A a ; B b ; C c ; D d WHERE c.x < d.x AND b.x < d.x")
    assert candidates(built) == [("c", "c.x < d.x", 2), ("b", "b.x < d.x", 3)]
    assert passed(built) == [[], [], ["b.x < d.x"]]


def test_a_selective_predicate_is_worth_more_than_a_deep_one() -> None:
    built = plan("A a ; B b ; C c ; D d WHERE c.x < d.x AND b.x < d.x")

    def selectivity(predicate: Expr) -> float:
        return 0.01 if "c" in variables(predicate) else 0.9

    assert passed(built, selectivity) == [[], [], ["c.x < d.x"]]


def test_a_predicate_that_always_holds_is_not_passed_down() -> None:
    built = plan("A a ; B b ; C c WHERE a.x < c.x")
    assert passed(built, lambda predicate: 1.0) == [[], []]


def test_equalities_of_the_key_can_be_passed_down() -> None:
    assert passed(plan("A a ; B b ; C c WHERE [id]")) == [[], ["a.id = c.id"]]


@pytest.mark.parametrize(
    ("query", "shape"),
    [
        ("A a ; B b ; C c WHERE b.x < c.x", "right-deep"),  # the left is a leaf
        ("A a ; B b ; C c WHERE a.x + b.x < c.x", "left-deep"),  # two events of the left
        ("A a ; B b ; C c ; D d WHERE a.x < b.x", "left-deep"),  # nothing of the trigger
        ("A a ; B+ k ; C c ; D d WHERE sum(k.x) < d.x", "left-deep"),  # a group
        ("A a ; B b ; C c ; D d WHERE a.x < c.x", "left-deep"),  # not on the rightmost path
        ("(A a ; B b ; C c) & D d WHERE a.x < c.x", "left-deep"),  # no SEQ ends the match
    ],
)
def test_not_eligible(query: str, shape: str) -> None:
    assert candidates(plan(query, shape)) == []


def test_below_filters_and_negations_on_top() -> None:
    built = plan("A a ; B b ; C c ; !D d WHERE a.x < c.x AND d.x > b.x")
    assert candidates(built) == [("a", "a.x < c.x", 2)]
