"""`cepheid run` with several queries, on matches that were worked out by hand."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.running import run

PAIR = "INTO Pair PATTERN A a ; B b WITHIN 5 RETURN a.x AS x, b.x AS y"
AFTER = "PATTERN Pair p ; C c WHERE c.x > p.y WITHIN 9 RETURN p.x AS x, c.x AS z"
EVENTS = "ts,type,x\n1,A,1\n3,B,2\n4,C,1\n6,C,5\n,C,9\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    for name, text in (("pair.cep", PAIR), ("after.cep", AFTER), ("events.csv", EVENTS)):
        (tmp_path / name).write_text(text)
    names = ("after.cep", "pair.cep")
    return (*(str(tmp_path / n) for n in names), "--input", str(tmp_path / "events.csv"))


def test_each_query_is_printed(files: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", *files, "--time", "ts", "--type", "type") == 0
    printed = capsys.readouterr().out
    after, pair = printed.index("after:"), printed.index("Pair:")
    assert after < pair
    assert "rejected  1" in printed
    assert "│ 1 │ 5 │           1 │         6 │" in printed[after:pair]


def test_each_query_has_a_file(files: tuple[str, ...], tmp_path: Path) -> None:
    out, dead = tmp_path / "found", tmp_path / "dead.csv"
    options = ("--time", "ts", "--type", "type", "--output", str(out), "--rejected", str(dead))
    assert run("run", *files, *options) == 0
    assert sorted(p.name for p in out.iterdir()) == ["Pair.parquet", "after.parquet"]
    found = pq.read_table(out / "after.parquet").to_pylist()
    assert found == [{"x": 1, "z": 5, "match_start": 1, "match_end": 6}]
    (letter,) = csv.DictReader(dead.read_text().splitlines())
    assert (letter["line"], letter["reason"]) == (",C,9", "`ts` is empty")


def test_a_circle_is_shown_with_its_file(
    files: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pair.cep").write_text("INTO Pair PATTERN Pair p ; A a WITHIN 3")
    assert run("run", *files, "--time", "ts", "--type", "type") == 2
    assert "pair.cep:1:19" in capsys.readouterr().err


def test_only_here(files: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", *files, "--time", "ts", "--master", "local[1]") == 2
    assert "runs several queries in process" in capsys.readouterr().err
