"""The examples run, and find what a person finds in their events."""

from __future__ import annotations

import runpy
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from cepheid.cli import main
from cepheid.workloads import fraud, rfid

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / name))


def test_every_example_is_tested() -> None:
    assert sorted(p.name for p in EXAMPLES.glob("*.py")) == [
        "card_fraud.py",
        "left_carts.py",
        "shoplifting.py",
        "stocks.py",
    ]


def test_shoplifting(capsys: pytest.CaptureFixture[str]) -> None:
    found = example("shoplifting.py")["main"](5000)
    readings = rfid.generate(5000).to_pylist()
    paid = {r["id"] for r in readings if r["type"] == "COUNTER_READING"}
    gone = {r["id"] for r in readings if r["type"] == "EXIT_READING"}
    assert sorted(found["tag"].to_pylist()) == sorted(gone - paid)
    assert f"{len(gone - paid)} products left the shop unpaid" in capsys.readouterr().out


def test_stocks(capsys: pytest.CaptureFixture[str]) -> None:
    found = {name: frame.to_dict("list") for name, frame in example("stocks.py")["main"]().items()}
    first = found["stocks_1_sequence.cep"]
    # IBM at 100 is 20% above Google at 80, 81 and 82, and IBM at 60 is 20% below each.
    assert (first["name"], first["high"], first["low"]) == (["IBM"] * 3, [100.0] * 3, [60.0] * 3)
    assert sorted(first["google"]) == [80.0, 81.0, 82.0]
    # IBM goes from 100 to 95, but by way of 60; Sun from 72 to 90 within 4 seconds.
    second = found["stocks_2_negation.cep"]
    assert (second["name"], second["before"], second["after"]) == (["Sun"], [72.0], [90.0])
    third = found["stocks_3_closure.cep"]
    assert (third["name"], third["before"], third["after"]) == (["Sun"], [50.0], [72.0])
    assert third["volume"] == [4000 + 3000 + 5000 + 2000 + 6000]
    assert [list(group) for group in third["google"]] == [[80.0, 82.0, 81.0, 79.0, 80.0]]


def test_card_fraud(capsys: pytest.CaptureFixture[str]) -> None:
    found = example("card_fraud.py")["main"](20_000)
    events = fraud.generate(20_000)
    planted = events.filter(pc.field("planted").is_valid() & (pc.field("amount") > fraud.LARGE))
    assert planted.num_rows > 3
    assert set(planted["id"].to_pylist()) <= set(found["id"].to_pylist())
    assert max(found["took"].to_pylist()) < timedelta(hours=3)
    assert max(found["first"].to_pylist()) < 100 and min(found["third"].to_pylist()) > 250


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.cep")), ids=lambda p: p.stem)
def test_the_queries_pass_the_check(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [f"--param={name}=1" for name in "xyv"]
    with pytest.raises(SystemExit) as exit:
        main(["check", str(path), *given])
    assert exit.value.code in (0, None)
    assert capsys.readouterr().out == f"{path}: OK\n"


def test_left_carts(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        '{"ts": 0, "type": "ADD", "cart": 7}',
        '{"ts": 10, "type": "ADD", "cart": 8}',
        '{"ts": 20, "type": "PAY", "cart": 8}',
        '{"ts": 1800}',
        '{"ts": 1900, "type": "ADD", "cart": 9}',
    ]
    status = example("left_carts.py")["main"](lines)
    assert (status.events, status.matches, status.undecided) == (4, 1, 1)
    assert capsys.readouterr().out == "cart 7 was left at 0 s\n"
