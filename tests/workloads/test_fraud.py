from __future__ import annotations

from collections import Counter, defaultdict
from datetime import timedelta
from typing import Any

import pytest

from cepheid.errors import DataError
from cepheid.workloads import fraud

ROWS = 300_000


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    return fraud.generate(ROWS, 1, fraud=0.001).to_pylist()


@pytest.fixture(scope="module")
def triples(events: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    by_number = defaultdict(list)
    for event in events:
        if event["planted"] is not None:
            by_number[event["planted"]].append(event)
    return list(by_number.values())


def test_planted_triples_are_what_a_thief_does(triples: list[list[dict[str, Any]]]) -> None:
    # 300 on average are drawn; a few overlap and are left out.
    assert 200 < len(triples) < 360
    for first, second, last in triples:
        assert first["card"] == second["card"] == last["card"]
        assert first["country"] == second["country"] == last["country"]
        assert first["ts"] < second["ts"] < last["ts"] <= first["ts"] + timedelta(hours=3)
        assert first["amount"] < 100 and second["amount"] < 100 and last["amount"] > 250
        assert {e["kind"] for e in (first, second, last)} == {"purchase"}


def test_planted_triples_are_abroad(
    events: list[dict[str, Any]], triples: list[list[dict[str, Any]]]
) -> None:
    countries: dict[int, Counter[str]] = defaultdict(Counter)
    for event in events:
        if event["planted"] is None:
            countries[event["card"]][event["country"]] += 1
    for first, _, _ in triples:
        home, _ = countries[first["card"]].most_common(1)[0]
        assert first["country"] != home


def test_a_card_is_used_once_a_day(events: list[dict[str, Any]]) -> None:
    cards = Counter(event["card"] for event in events)
    assert len(cards) == ROWS // 30
    assert events[-1]["ts"] - events[0]["ts"] == pytest.approx(
        timedelta(days=30), abs=timedelta(minutes=1)
    )


def test_amounts_are_null_where_no_money_moves(events: list[dict[str, Any]]) -> None:
    kinds = Counter(event["kind"] for event in events)
    assert set(kinds) == {"purchase", "login", "decline", "pin_change"}
    assert kinds["purchase"] / ROWS == pytest.approx(0.78, abs=0.01)
    for event in events:
        assert (event["amount"] is None) == (event["kind"] in ("login", "pin_change"))
        assert event["amount"] is None or event["amount"] > 0


def test_knobs() -> None:
    honest = fraud.generate(10_000, 1, fraud=0.0, abroad=0.0, cards=7, days=2.0)
    assert honest["planted"].null_count == 10_000
    assert set(honest["card"].to_pylist()) == set(range(7))
    home = defaultdict(set)
    for card, country in zip(*(honest[c].to_pylist() for c in ("card", "country")), strict=True):
        home[card].add(country)
    assert all(len(countries) == 1 for countries in home.values())
    assert honest["ts"][-1].as_py() - honest["ts"][0].as_py() <= timedelta(days=2)


@pytest.mark.parametrize("bad", [{"fraud": 2.0}, {"abroad": -0.1}, {"cards": 0}, {"days": 0.0}])
def test_bad_knobs(bad: dict[str, float]) -> None:
    with pytest.raises(DataError):
        fraud.generate(10, **bad)
