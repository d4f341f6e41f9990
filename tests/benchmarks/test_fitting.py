"""Least squares without negative weights, rank correlation, and what is made of them."""

from __future__ import annotations

import numpy as np
import pytest

import cepheid as cep
from benchmarks import calibrate, correlation
from benchmarks.calibrate import NANOSECONDS, SCANS, Measured, Micro
from benchmarks.correlation import Pair
from benchmarks.fitting import nonnegative, ranks, spearman
from cepheid.planner.cost.weights import Weights


def test_exact_weights_are_found_again() -> None:
    matrix = np.random.default_rng(1).random((20, 5))
    weights = np.array([0.0, 2.0, 0.5, 0.0, 7.0])
    assert nonnegative(matrix, matrix @ weights) == pytest.approx(weights, abs=1e-8)


def test_what_would_be_negative_is_zero_and_the_rest_makes_up_for_it() -> None:
    # Without bounds: 3 and -1. With the second at zero, the mean of 3 and 2 is best.
    matrix = np.array([[1.0, 0.0], [1.0, 1.0]])
    assert nonnegative(matrix, np.array([3.0, 2.0])) == pytest.approx([2.5, 0.0])


def test_equal_values_share_their_rank() -> None:
    assert ranks([5.0, 1.0, 5.0, 5.0]).tolist() == [3.0, 1.0, 3.0, 3.0]


def test_one_swap_of_neighbors_costs_little() -> None:
    # Of n = 5, with a sum of squared differences of 2: 1 - 6 * 2 / (5 * 24).
    assert spearman([1, 2, 3, 4, 5], [10, 30, 20, 40, 50]) == pytest.approx(0.9)


def test_counts_are_per_event() -> None:
    """Every second event is a B, and each of them meets the 50 As of the 100 units before it."""
    micro = Micro("PATTERN A ; B WITHIN 100 RETURN A.price AS a", {"A": 1, "B": 1})
    table = micro.events(10)
    found = calibrate.counts(micro, cep.Query(micro.query), table.schema)
    assert found["event"] == pytest.approx(1.0)
    assert found["emit"] == pytest.approx(0.5 * 50)
    assert found["probe"] == pytest.approx(0.5)
    assert found["hash"] == found["element"] == 0


def test_a_fit_finds_the_weights_that_times_were_made_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calibrate, "TRUST", 0.0)
    random = np.random.default_rng(7)
    true = {name: float(number + 1) for number, name in enumerate(NANOSECONDS)}
    micro = Micro("PATTERN A ; B WITHIN 2", {"A": 1, "B": 1})
    measured = []
    for _ in range(40):
        counts = {name: float(random.exponential()) for name in NANOSECONDS}
        measured.append(Measured(micro, sum(true[n] * counts[n] for n in NANOSECONDS), counts))
    weights, factors = calibrate.fit(measured)
    assert weights == pytest.approx(true, abs=0.01)
    found = calibrate.document(weights, measured, factors)
    assert found["provenance"]["fit"]["worst_factor"] == pytest.approx(1.0, abs=0.02)
    assert {"commit", "machine", "versions", "date"} <= set(found["provenance"])
    assert Weights.of(found["weights"]).access == weights["access"]


def test_stacks_and_automata_are_fitted_beside_what_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calibrate, "TRUST", 0.0)
    random = np.random.default_rng(7)
    known = {name: 3.0 for name in NANOSECONDS}
    true = {name: float(number + 1) for number, name in enumerate(SCANS)}
    micro = Micro("PATTERN A ; B WITHIN 2", {"A": 1, "B": 1})
    measured = []
    for _ in range(40):
        counts = {name: float(random.exponential()) for name in (*NANOSECONDS, *SCANS)}
        time = sum((known | true)[name] * count for name, count in counts.items())
        measured.append(Measured(micro, time, counts))
    before = {"weights": {**known, **dict.fromkeys(SCANS, 9.0), "pass_down": 1.0}}
    found = calibrate.with_scans(before, measured)
    assert {name: found["weights"][name] for name in SCANS} == pytest.approx(true, abs=0.01)
    assert {name: found["weights"][name] for name in NANOSECONDS} == known
    assert found["scans"]["fit"]["worst_factor"] == pytest.approx(1.0, abs=0.02)


def test_workloads_of_scans_have_stacks_and_automata() -> None:
    kinds = set()
    for micro in calibrate.scan_micros():
        found = calibrate.counts(micro, cep.Query(micro.query), micro.events(10).schema)
        kinds |= {name for name in SCANS if found[name] > 0}
        assert (found["push"] > 0) != (found["start"] > 0), micro.name
    assert kinds == set(SCANS)


def test_what_no_workload_shows_stays_at_the_guess() -> None:
    micro = Micro("PATTERN A ; B WITHIN 2", {"A": 1, "B": 1})
    counts = dict.fromkeys(NANOSECONDS, 0.0) | {"event": 1.0}
    weights, _ = calibrate.fit([Measured(micro, 200.0, counts)] * 50)
    assert weights["event"] == pytest.approx(200.0, rel=0.02)
    assert weights["hash"] == pytest.approx(calibrate.GUESS["hash"])


def test_estimates_in_another_order_than_the_clock_fail() -> None:
    good = [Pair("query 4", f"{n}", "left-deep", float(n), 2.0 * n) for n in range(1, 6)]
    bad = [Pair("query 4", f"{n}", "left-deep", float(n), 10.0 - n) for n in range(1, 6)]
    assert correlation.document(good, quick=True)["holds"] is True
    assert correlation.document(bad, quick=True)["holds"] is False
    assert correlation.document(bad, quick=True)["by_query"] == {"query 4": -1.0}
