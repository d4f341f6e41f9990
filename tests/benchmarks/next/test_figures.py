"""NEXT's cost model: the rows of Table 1 and the costs of 4.2, computed by hand."""

from __future__ import annotations

import pytest

from benchmarks.next.operators import (
    Delay,
    Filter,
    Iteration,
    Next,
    Operator,
    Source,
    Union,
    Unless,
    canonical,
    text,
)
from benchmarks.next.rates import Figures, cost, cpu, figures, next_cost, next_figures
from cepheid.errors import PlanError, UnsupportedError

pytestmark = pytest.mark.slow

A, B, C = Source("a"), Source("b"), Source("c")
RATES = {"a": 8.0, "b": 2.0, "c": 4.0}


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (A, Figures(8, 1 / 8, 1, 8)),
        (Filter(A, "x > 1"), Figures(8, 1 / 8, 1, 8)),
        (Unless(A, B), Figures(8, 1 / 8, 1, 8)),
        (Delay(A, 3.0), Figures(8, 3.125, 1, 8)),
        # 10 bursts of one event each per second.
        (Union(A, B), Figures(10, 1 / 10, 1, 10)),
        # Four a's wait for a b, which comes twice per second.
        (Next(A, B), Figures(8, 5 / 8, 4, 2)),
        # A b waits an eighth of a second; a quarter of one is there when an a comes.
        (Next(B, A), Figures(2, 5 / 8, 1 / 4, 2)),
        # 2 bursts of 4 and 4 bursts of 1: 12 events in 6 bursts.
        (Union(Next(A, B), C), Figures(12, 1 / 6, 2, 6)),
        # 8 a's per second wait for a c, a quarter of a second after (a ; b) took 5 / 8.
        (Next(Next(A, B), C), Figures(8, 7 / 8, 2, 8 / 5)),
        # 8 a's per second wait for (b ; c), 3 / 4 of a second.
        (Next(A, Next(B, C)), Figures(8, 7 / 8, 6, 4 / 3)),
    ],
    ids=lambda value: "" if isinstance(value, Figures) else text(value),
)
def test_figures_of_table_1(operator: Operator, expected: Figures) -> None:
    found = figures(operator, RATES)
    assert found.rate == pytest.approx(expected.rate)
    assert found.detection == pytest.approx(expected.detection)
    assert found.burst_size == pytest.approx(expected.burst_size)
    assert found.burst_rate == pytest.approx(expected.burst_rate)


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (A, 0),
        (Filter(A, "x > 1"), 8),
        (Unless(A, B), 10),
        (Delay(A, 3.0), 8),
        (Union(A, B), 10),
        # 8 first events; 4 instances look at each of 2 b's per second; no b in vain.
        (Next(A, B), 8 + 8 + 0),
        # 2 first events; a quarter of an instance looks at 8 a's; 6 of those in vain.
        (Next(B, A), 2 + 2 + 6),
        # (a ; b) comes in 2 bursts of 4: 2 / 5 of a burst, 1.6 events, look at 4 c's; 2 in vain.
        (Next(Next(A, B), C), 8 + 6.4 + 2),
        # b ; c comes in bursts of 1 / 2, twice per second; 6 a's look at each.
        (Next(A, Next(B, C)), 8 + 6 + 0),
    ],
    ids=lambda value: "" if isinstance(value, int | float) else text(value),
)
def test_an_operator_costs_what_it_processes(operator: Operator, expected: float) -> None:
    assert cpu(operator, RATES) == pytest.approx(expected)


def test_a_burst_meets_every_instance() -> None:
    """12 first events wait when a burst of 5 comes, 3 times in a second: 180 looks. Bursts of the
    second that are more than those of the first, one per second, find nobody: 2 bursts of 5."""
    first = Figures(rate=40.0, detection=0.25, burst_size=6.0, burst_rate=1.0)
    second = Figures(rate=15.0, detection=0.5, burst_size=5.0, burst_rate=3.0)
    assert next_cost(first, second) == pytest.approx(40 + 180 + 10)
    made = next_figures(first, second)
    assert made == Figures(rate=40.0, detection=0.75, burst_size=3.0, burst_rate=2.0)


def test_a_tree_costs_the_sum_of_its_operators() -> None:
    tree = Unless(Next(A, Union(B, C)), Filter(B, "x > 1"))
    # b | c: 6. a ; (b | c): 8 a's, 8 / 6 of which look at each of 6, none in vain. b[...]: 2.
    # The exception looks at 8 + 2.
    assert cost(tree, RATES) == pytest.approx(6 + (8 + 8) + 2 + 10)
    assert cost(Union(Union(A, B), Union(A, B)), RATES) == pytest.approx(20 + 10 + 10)


def test_an_iteration_is_refused() -> None:
    for tree in (Iteration(A), Next(A, Iteration(B))):
        with pytest.raises(UnsupportedError, match="an iteration has no bounded rate or cost"):
            cost(tree, RATES)
        with pytest.raises(UnsupportedError, match="place its input"):
            figures(Union(A, tree), RATES)


def test_rates_that_are_missing_or_no_rates_are_refused() -> None:
    with pytest.raises(PlanError, match="the rate of `d` is not given; there are rates of: `a`"):
        figures(Source("d"), {"a": 1.0})
    for rate in (0.0, -1.0, float("nan")):
        with pytest.raises(PlanError, match="give a positive number"):
            figures(A, {"a": rate})


# ── equal operators ──


def test_unions_are_equal_in_any_order_of_their_sides() -> None:
    one = Next(Union(A, Union(B, C)), Unless(Delay(Union(B, A), 1.0), Iteration(Union(C, A))))
    other = Next(Union(Union(C, B), A), Unless(Delay(Union(A, B), 1.0), Iteration(Union(A, C))))
    assert one != other
    assert canonical(one) == canonical(other) == canonical(canonical(one))
    assert hash(canonical(one)) == hash(canonical(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Next(A, B), Next(B, A)),
        (Unless(A, B), Unless(B, A)),
        (Union(A, Union(B, C)), Union(Union(A, B), C)),
        (Filter(A, "x > 1"), Filter(A, "x > 2")),
        (Delay(A, 1.0), Delay(A, 2.0)),
        (A, Iteration(A)),
    ],
)
def test_other_operators_stay_other(one: Operator, other: Operator) -> None:
    assert canonical(one) != canonical(other)
    assert text(one) != text(other)
