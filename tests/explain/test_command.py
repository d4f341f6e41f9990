"""`cepheid explain`: its forms, files and options. What is found was worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from cepheid.cli import main

RISE = """\
PATTERN A a ; B b
WHERE a.id = b.id AND b.x > a.x
WITHIN 10 minutes
RETURN a.id AS id
"""
# Of id 1, B rises once in 10 minutes; of id 2, it falls. C is no part of the query.
EVENTS = """\
ts,type,id,x
2026-01-31T12:00:00Z,A,1,1
2026-01-31T12:01:00Z,A,2,9
2026-01-31T12:02:00Z,B,1,6
2026-01-31T12:03:00Z,C,1,6
2026-01-31T12:04:00Z,B,2,8
2026-01-31T12:11:00Z,B,1,7
"""


@pytest.fixture
def query(tmp_path: Path) -> str:
    path = tmp_path / "rise.cep"
    path.write_text(RISE)
    return str(path)


@pytest.fixture
def events(tmp_path: Path) -> tuple[str, ...]:
    path = tmp_path / "events.csv"
    path.write_text(EVENTS)
    return ("--input", str(path), "--type", "type")


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as exit:
        main(["explain", *arguments])
    return int(exit.value.code or 0)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(*arguments, "--format", "json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_text_to_the_screen(query: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(query, "--engine", "tree") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "key: id" in lines and "window: 10 minutes" in lines
    assert any(line.startswith("SEQ  hash(a.id = b.id), ") for line in lines)
    assert any(line.startswith("└── B b ") for line in lines)
    assert any("there are no statistics" in line for line in lines)


def test_without_a_run_nothing_happened(
    query: str, events: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed(capsys, query, *events)["run"] is None


def test_analyze_runs_it(
    query: str, events: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    found = printed(capsys, query, *events, "--analyze")
    assert (found["run"]["events"], found["run"]["matches"]) == (6, 1)
    tree = found["plan"]["tree"]
    assert tree["actual"]["rows"] == 1
    assert [part["actual"]["rows"] for part in tree["inputs"]] == [2, 3]


def test_analyze_of_several_streams(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.cep").write_text("PATTERN A a ; B b WITHIN 5")
    (tmp_path / "a.csv").write_text("ts,x\n1,1\n2,2\n")
    (tmp_path / "b.csv").write_text("ts,y\n3,1\n9,2\n")
    inputs = ("--input", f"A={tmp_path / 'a.csv'}", "--input", f"B={tmp_path / 'b.csv'}")
    found = printed(capsys, str(tmp_path / "q.cep"), *inputs, "--analyze")
    assert (found["run"]["events"], found["run"]["matches"]) == (4, 2)


def test_analyze_needs_events(query: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(query, "--analyze") == 2
    assert "--input" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "first"), [("p.svg", "<svg "), ("p.html", "<!DOCTYPE html>")])
def test_the_name_of_the_file_says_the_form(
    query: str, tmp_path: Path, name: str, first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "new folder" / name
    assert run(query, "--output", str(target)) == 0
    text = target.read_text("utf-8")
    assert text.startswith(first)
    ET.fromstring(text.removeprefix("<!DOCTYPE html>"))
    assert capsys.readouterr().out == ""


def test_the_form_can_be_said(query: str, tmp_path: Path) -> None:
    target = tmp_path / "plan.out"
    assert run(query, "--output", str(target), "--format", "json") == 0
    assert json.loads(target.read_text("utf-8"))["version"] == 1


def test_a_file_of_an_unknown_form_is_refused(
    query: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "p.png"
    assert run(query, "--output", str(target)) == 2
    assert "--format" in capsys.readouterr().err
    assert not target.exists()


def test_plans_can_be_forced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "q.cep"
    path.write_text("PATTERN A a ; !N n ; B b ; C c WITHIN 5")
    found = printed(
        capsys, str(path), "--plan", "(a (b c))", "--negation", "top", "--propagation", "pull"
    )
    plan = found["plan"]
    assert plan["forced"] is True and plan["propagation"] == ["pull"]
    neg = plan["tree"]
    assert neg["operator"].startswith("NEG ")
    seq = neg["inputs"][0]
    assert [part["leaf"] for part in seq["inputs"]] == [True, False]


def test_statistics_come_from_a_file(
    query: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.json"
    path.write_text('{"rates": {"a": 5, "b": 0.5}}')
    found = printed(capsys, query, "--stats", str(path))
    assert found["statistics"]["rates"] == {"a": 5, "b": 0.5}
    rows = [part["estimate"]["rows"] for part in found["plan"]["tree"]["inputs"]]
    assert rows == pytest.approx([3000, 300])  # in 600 seconds


def test_statistics_that_are_none_are_refused(
    query: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.json"
    path.write_text('{"rates": {"a": -1}}')
    assert run(query, "--stats", str(path)) == 2
    assert f"error: --stats {path}: the rate of `a` is -1" in capsys.readouterr().err
