"""`cepheid explain` of rules. What they share was worked out by hand."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.cli import running
from tests.cli.running import unwrapped

run = partial(running.run, "explain")
BIG = "INTO big PATTERN A a ; B b WHERE [id] AND a.x < 3 AND b.x = :least WITHIN 9 RETURN b.x AS x"
ROWS = "rule,least,severity\nany,0,low\nlarge,8,high\nalso large,8,low\n"
RUN = "PATTERN A a ; B b+ ; C c WITHIN 9 RETURN a.x AS x"
EVENTS = "ts,kind,id,x\n1,A,1,1\n3,B,1,7\n"


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "big.cep").write_text(BIG)
    (folder / "big.csv").write_text(ROWS)
    (folder / "run.cep").write_text(RUN)
    return folder


@pytest.fixture
def events(tmp_path: Path) -> tuple[str, ...]:
    path = tmp_path / "events.csv"
    path.write_text(EVENTS)
    return ("--input", str(path), "--time", "ts", "--type", "kind")


def test_a_folder_says_what_its_rules_share(
    rules: Path, events: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(rules, *events) == 0
    lines = capsys.readouterr().out.splitlines()
    # All three begin alike, and two of them end alike.
    assert lines[0].startswith("pass 1: 3 rules")
    assert "  steps       6 of the rules, 3 when equal ones are merged" in lines
    (first,) = (line for line in lines if line.startswith("  3 rules share step 1: "))
    assert "kind = 'A'" in first and "x <= 2" in first
    (second,) = (line for line in lines if line.startswith("  2 rules share step 2: "))
    assert "kind = 'B'" in second and "x = 8" in second
    assert lines[-1] == f"alone: {rules}/run.cep (1 rule), since closures bind groups"


def test_a_file_with_a_table_beside_it_is_a_set(
    rules: Path, events: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(rules / "big.cep", *events) == 0
    assert capsys.readouterr().out.startswith("pass 1: 3 rules")


def test_a_file_with_a_query_is_explained_as_one(
    rules: Path, events: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--param", "least=8")
    assert run(rules / "big.cep", *events, *given) == 0
    assert "WITHIN 9" in capsys.readouterr().out
    assert run(rules / "run.cep") == 0
    assert "PATTERN A a ; B+ b ; C c" in capsys.readouterr().out


def test_json_to_a_file(rules: Path, events: tuple[str, ...], tmp_path: Path) -> None:
    out = tmp_path / "new" / "plan.json"
    assert run(rules, *events, "--output", out) == 0
    found = json.loads(out.read_text())
    (one,) = found["passes"]
    assert (one["rules"], one["steps"], one["nodes"]) == (3, 6, 3)
    assert [(apart["rules"], apart["reason"]) for apart in found["alone"]] == [
        (1, "closures bind groups")
    ]


def test_several_streams(rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = []
    for name in "ABC":
        (tmp_path / f"{name}.csv").write_text("ts,id,x\n1,1,1\n")
        inputs += ["--input", f"{name}={tmp_path}/{name}.csv"]
    assert run(rules, *inputs, "--time", "ts") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  steps       6 of the rules, 3 when equal ones are merged" in lines


def test_all_that_is_wrong_in_the_files(
    rules: Path, events: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    (rules / "run.cep").write_text("PATTERN A a ;")
    (rules / "big.csv").write_text("rule,leest\nany,0\n")
    assert run(rules, *events) == 2
    captured = capsys.readouterr()
    first, second = captured.err.strip().split("\n\n")
    assert first.startswith("CEP104: the query ends too early") and "run.cep:1:14" in first
    assert second.startswith("CEP206: the parameter `:least` has no column")
    assert "did you mean `leest`?" in second
    assert captured.out == ""


def test_all_that_does_not_fit_the_events(
    rules: Path, events: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    (rules / "big.csv").write_text("rule,least\nany,none\n")
    (rules / "run.cep").write_text(RUN.replace("a.x", "a.y"))
    assert run(rules, *events) == 2
    errors = capsys.readouterr().err.strip().split("\n\n")
    assert [error.split(":")[0] for error in errors] == ["CEP210", "CEP204"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--format", "svg"), "a set of rules is explained as text or json, not as svg"),
    ],
)
def test_what_is_for_queries_alone(
    given: tuple[str, ...],
    told: str,
    rules: Path,
    events: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(rules, *events, *given) == 2
    assert told in unwrapped(capsys.readouterr().err)


def test_events_are_needed(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(rules) == 2
    assert "explained for the columns of events: --input" in unwrapped(capsys.readouterr().err)


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "none") == 2
    assert "does not exist" in unwrapped(capsys.readouterr().err)
