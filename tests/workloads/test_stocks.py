from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cepheid.errors import DataError
from cepheid.workloads import stocks

ROWS = 300_000


def prices(table: pa.Table, name: str) -> np.ndarray:
    return np.asarray(table.filter(pa.compute.equal(table["name"], name))["price"])


def share_greater(left: np.ndarray, right: np.ndarray) -> float:
    """The share of all pairs with left > right."""
    below = np.searchsorted(np.sort(right), left, side="left")
    return float(below.sum() / (len(left) * len(right)))


@pytest.mark.parametrize("share", [0.0, 1 / 32, 1 / 16, 1 / 4, 0.5, 0.75, 1.0])
def test_query_4_has_its_selectivity(share: float) -> None:
    table = stocks.generate(
        ROWS, 1, rates={"IBM": 1, "Sun": 1, "Oracle": 1}, selectivity={("IBM", "Sun"): share}
    )
    found = share_greater(prices(table, "IBM"), prices(table, "Sun"))
    # 100,000 draws a side: the standard error of the share is below 0.002.
    assert found == pytest.approx(share, abs=0.006)
    if share in (0.0, 1.0):
        assert found == share


@pytest.mark.parametrize(("first", "second"), [(1.0, 1.0), (1 / 50, 1.0), (1.0, 1 / 50)])
def test_query_6_has_both_selectivities(first: float, second: float) -> None:
    table = stocks.generate(
        ROWS, 2, selectivity={("Oracle", "Sun"): first, ("Oracle", "Google"): second}
    )
    oracle = prices(table, "Oracle")
    assert share_greater(oracle, prices(table, "Sun")) == pytest.approx(first, abs=0.006)
    assert share_greater(oracle, prices(table, "Google")) == pytest.approx(second, abs=0.006)


def test_the_price_ranges_follow_from_the_mean() -> None:
    """P(X > Y) = E[X] for Y uniform on [0, 1): by hand, 0.25 is the mean of 0 to 0.5, and so on."""
    assert stocks.price_ranges(("A", "B"), {("A", "B"): 0.25}) == {"A": (0, 50), "B": (0, 100)}
    assert stocks.price_ranges(("A", "B"), {("A", "B"): 0.75}) == {"A": (50, 100), "B": (0, 100)}
    assert stocks.price_ranges(("A", "B", "C"), {("B", "A"): 0.25, ("B", "C"): 1.0}) == {
        "A": (50, 100),
        "B": (0, 100),
        "C": (0, 0),
    }


@pytest.mark.parametrize(
    ("selectivity", "message"),
    [
        ({("IBM", "Sun"): 1.5}, "can't have the selectivity 1.5"),
        ({("IBM", "IBM"): 0.5}, "can't have the selectivity 0.5"),
        ({("IBM", "SAP"): 0.5}, "`SAP` has a selectivity but no rate"),
        (
            {("IBM", "Sun"): 0.5, ("Sun", "Oracle"): 0.5, ("Oracle", "IBM"): 0.5},
            "one stock must occur in no other",
        ),
    ],
)
def test_impossible_selectivities(selectivity: dict[tuple[str, str], float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        stocks.generate(10, selectivity=selectivity)


@pytest.mark.parametrize("rates", [{}, {"IBM": -1, "Sun": 2}, {"IBM": 0}])
def test_impossible_rates(rates: dict[str, float]) -> None:
    with pytest.raises(DataError, match="rates"):
        stocks.generate(10, rates=rates)


def test_rates_are_relative() -> None:
    table = stocks.generate(
        ROWS, 3, rates={"IBM": 1, "Sun": 100, "Oracle": 100, "Google": 100, "SAP": 0}
    )
    names = np.asarray(table["name"])
    # 300,000/301 = 997 expected, a standard deviation of 32.
    assert 860 < (names == "IBM").sum() < 1130
    for name in ("Sun", "Oracle", "Google"):
        assert (names == name).mean() == pytest.approx(100 / 301, abs=0.005)
    assert "SAP" not in names


def test_one_event_per_time_unit() -> None:
    table = stocks.generate(1000, 3, first=500)
    assert table["ts"].to_pylist() == list(range(500, 1500))
    assert table["id"].to_pylist() == list(range(500, 1500))


def test_timestamps_by_interval() -> None:
    table = stocks.generate(3, 3, interval=250_000)
    assert table.schema == stocks.TIMESTAMP_SCHEMA
    assert [str(t) for t in table["ts"].to_pylist()] == [
        "2009-01-05 14:30:00+00:00",
        "2009-01-05 14:30:00.250000+00:00",
        "2009-01-05 14:30:00.500000+00:00",
    ]


def test_prices_and_volumes_are_in_range() -> None:
    table = stocks.generate(ROWS, 4)
    price, volume = np.asarray(table["price"]), np.asarray(table["volume"])
    assert price.min() >= 0 and price.max() < stocks.TOP_PRICE
    assert volume.min() == 1 and volume.max() == stocks.TOP_VOLUME
