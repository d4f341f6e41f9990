from __future__ import annotations

from collections import Counter, defaultdict
from datetime import timedelta
from typing import Any

import pytest

from cepheid.errors import DataError
from cepheid.workloads import rfid

SHELF, COUNTER, EXIT = rfid.TYPES
ROWS = 200_000  # two days of the shop


@pytest.fixture(scope="module")
def lives() -> list[list[dict[str, Any]]]:
    """Each product's readings, in time order."""
    by_tag = defaultdict(list)
    for row in rfid.generate(ROWS, 1, stolen=0.02, misplaced=0.03, bought=0.5).to_pylist():
        by_tag[row["id"]].append(row)
    return list(by_tag.values())


def test_the_fates_of_products(lives: list[list[dict[str, Any]]]) -> None:
    fates = Counter(tuple(row["type"] for row in life) for life in lives)
    shares = {fate: count / len(lives) for fate, count in fates.items()}
    # (SHELF, COUNTER) is a product that was cut off at the end of a chunk.
    assert fates.pop((SHELF, COUNTER), 0) <= 2
    assert shares[(SHELF, EXIT)] == pytest.approx(0.02, abs=0.003)
    assert shares[(SHELF, SHELF)] == pytest.approx(0.03, abs=0.003)
    assert shares[(SHELF, COUNTER, EXIT)] == pytest.approx(0.5, abs=0.01)
    assert shares[(SHELF,)] == pytest.approx(0.45, abs=0.01)
    assert len(fates) == 4


def test_a_life_is_shorter_than_the_window(lives: list[list[dict[str, Any]]]) -> None:
    for life in lives:
        assert life[-1]["ts"] - life[0]["ts"] < timedelta(hours=2)
        assert len({row["ts"] for row in life}) == len(life)


def test_a_product_is_the_same_wherever_it_is_read(lives: list[list[dict[str, Any]]]) -> None:
    for life in lives:
        assert len({(row["category"], row["mid"]) for row in life}) == 1
        shelves = [row["shelf_id"] for row in life if row["type"] == SHELF]
        assert None not in shelves and len(set(shelves)) == len(shelves)
        assert all(row["shelf_id"] is None for row in life if row["type"] != SHELF)


def test_the_shop_is_open_in_the_daytime() -> None:
    times = rfid.generate(ROWS, 2)["ts"].to_pylist()
    assert {t.date().isoformat() for t in times} == {"2026-03-02", "2026-03-03"}
    assert all(9 <= t.hour < 21 for t in times)


def test_without_thieves() -> None:
    table = rfid.generate(1000, 1, stolen=0.0, misplaced=0.0, bought=1.0)
    kinds = Counter(table["type"].to_pylist())
    # 1000 readings are 333 products and the first reading of another.
    assert kinds == {SHELF: 334, COUNTER: 333, EXIT: 333}


@pytest.mark.parametrize("bad", [{"stolen": -0.1}, {"bought": 1.1}, {"bought": 0.9, "stolen": 0.2}])
def test_bad_knobs(bad: dict[str, float]) -> None:
    with pytest.raises(DataError):
        rfid.generate(10, **bad)
