"""`cepheid analyze`, on a stream whose figures can be counted on paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cepheid.query.analysis import ROWS
from cepheid.statistics import Statistics
from tests.cli.running import run

# From 0 to 99, an A at every even and a B at every odd time; x is the time, id always 7.
LINES = [f"{t},{'AB'[t % 2]},{t},7" for t in range(100)]
QUERY = "PATTERN A a ; B b WHERE a.x < :most AND a.x < b.x AND a.id = b.id WITHIN 10 RETURN a.x"
FOUND = {
    "rates": {"a": 0.5, "b": 0.5},  # 50 of each in 100 units
    "selectivities": {"a.x < 24": 0.24, "a.x < b.x": 1.0},  # 0, 2, .., 22 of 0, 2, .., 98
    "distinct": {"a.id": 1.0, "b.id": 1.0},
    "heavy": {"a.id": {"7": 1.0}, "b.id": {"7": 1.0}},
}


@pytest.fixture
def given(tmp_path: Path) -> tuple[str, ...]:
    query, events = tmp_path / "q.cep", tmp_path / "events.csv"
    query.write_text(QUERY)
    events.write_text("\n".join(["t,type,x,id", *LINES]))
    return (str(query), "--input", str(events), "--time", "t", "--type", "type")


MOST = ("--param", "most=24")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run("analyze", *arguments) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_statistics_are_printed(given: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, *given, *MOST) == FOUND


def test_what_is_written_can_be_planned_with(
    given: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stats = tmp_path / "new folder" / "stats.json"
    assert run("analyze", *given, *MOST, "--output", str(stats)) == 0
    assert capsys.readouterr().out == ""
    assert json.loads(stats.read_text()) == FOUND
    assert run("explain", *given, *MOST, "--stats", str(stats), "--format", "json") == 0
    explained = json.loads(capsys.readouterr().out)
    assert explained["statistics"]["rates"] == FOUND["rates"]
    # In a window of 10 there are five of each; of the five A, 0.24 are below 24.
    left, right = explained["plan"]["tree"]["inputs"]
    assert left["estimate"]["rows"] == pytest.approx(5 * 0.24)
    assert right["estimate"]["rows"] == pytest.approx(5)
    found = tmp_path / "found.csv"
    assert run("run", *given, *MOST, "--stats", str(stats), "-o", str(found)) == 0
    # An A is followed by the Bs 1, 3, 5, 7 and 9 later, all within 10.
    assert len(found.read_text().splitlines()) == 1 + 12 * 5


def test_a_limit_of_rows(given: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """Of 100 rows, ranges of at least two windows with 10 are thinned out; they count as all."""
    few = printed(capsys, *given, *MOST, "--rows", "10")
    assert few != FOUND
    assert few["rates"]["a"] + few["rates"]["b"] == pytest.approx(1.0, rel=0.3)
    assert few == printed(capsys, *given, *MOST, "--rows", "10")


def test_several_streams(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.cep").write_text("PATTERN A a ; B b WHERE b.y > 1 WITHIN 5")
    (tmp_path / "a.csv").write_text("ts,x\n0,1\n1,2\n2,2\n")
    (tmp_path / "b.csv").write_text("ts,y\n3,1\n9,2\n")
    inputs = ("--input", f"A={tmp_path / 'a.csv'}", "--input", f"B={tmp_path / 'b.csv'}")
    found = printed(capsys, str(tmp_path / "q.cep"), *inputs, "--time", "ts")
    assert found["rates"] == {"a": 0.3, "b": 0.2}
    assert found["selectivities"] == {"b.y > 1": 0.5}


def test_no_events_say_nothing(
    given: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "events.csv").write_text("t,type,x,id\n5,C,1,1\n")
    found = Statistics(**printed(capsys, *given, *MOST))
    assert found.rates == {"a": 0.0, "b": 0.0}
    assert found.selectivities == {}


def test_help_names_the_default_and_the_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("analyze", "--help") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"{ROWS:,}" in text
    assert "cepheid run theft.cep" in text and "--stats stats.json" in text


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        (("--rows", "0"), 2, "'--rows'"),
        (("--time", "x", "--input", "missing.csv"), 2, "with several inputs each needs a name"),
        (("--time", "tt"), 2, "error: there is no column `tt` (--time); did you mean `t`?"),
        (("--param", "most"), 2, "'most' isn't like --param limit=5"),
        ((), 2, "`:most`"),
    ],
)
def test_errors(
    change: tuple[str, ...],
    code: int,
    text: str,
    given: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("analyze", *given, *(MOST if change else ()), *change) == code
    error = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert text in error and "Traceback" not in error
