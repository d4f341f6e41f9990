"""`cepheid check` of rules: every error of every file in one go."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.cli import running

run = partial(running.run, "check")
PAIR = "PATTERN A a ; B b WITHIN 5 minutes"
BIG = """\
INTO big
PATTERN A a ; B b
WHERE b.x > :low AND (:country IS NULL OR a.country = :country)
WITHIN :w minutes
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "pair.cep").write_text(PAIR)
    (folder / "others.cep").write_text(f"INTO first {PAIR}\n\n{BIG}")
    (folder / "big.csv").write_text("rule,low,country,w,severity\nde,10,DE,5,high\nany,20,,7,low")
    return folder


def test_a_folder_of_right_rules(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(rules) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == (f"{rules}: 4 rules OK\n", "")


def test_a_file_with_its_table(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(rules / "others.cep", rules / "pair.cep") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"{rules}/others.cep: 3 rules OK", f"{rules}/pair.cep: OK"]


def test_every_finding_of_every_file(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (rules / "big.csv").write_text("rule,low,country,w\na,1,DE,5\nb,2,,0\na,3,,-1\nd,4,,5\n")
    (rules / "bad.cep").write_text(f"INTO wrong PATTERN A a ;\nINTO right {PAIR}\nINTO c PATTERN")
    (rules / "pair.cep").write_text("PATTERN A a ; B b WHERE a.x > 'y' AND length(a.x) = 'z'")
    (rules / "lost.parquet").write_bytes(b"")
    other = rules.parent / "other.cep"
    other.write_text("PATTERN")
    assert run(rules, other) == 2
    captured = capsys.readouterr()
    blocks = [block.replace(f"{rules}/", "") for block in captured.err.strip().split("\n\n")]
    assert [block.splitlines()[0] for block in blocks] == [
        "CEP104: the query ends too early",
        "CEP104: the query ends too early",
        "lost.parquet: no query is called `lost`",
        "big.csv, row 3: the name `a` is taken: row 1 has it",
        "CEP402: the window is empty: it must be longer than 0",
        "CEP401: a pattern with `;` needs a window",
        "CEP210: can't compare `length(a.x)` (integer) with `'z'` (string)",
    ]
    assert f"{other}:1:8" in blocks[-1]
    assert blocks[0].splitlines()[1] == "  bad.cep:1:25"
    assert blocks[1].splitlines()[1] == "  bad.cep:3:15"
    assert blocks[4].splitlines()[-1] == "  with the values of big.csv, rows 2 and 3"
    # `right`, `first`, and rows 1 and 4 of the table.
    assert captured.out == f"{rules}: 4 of 7 rules OK\n"


def test_columns_are_those_of_the_input(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = {"at": pa.array([0], pa.timestamp("us")), "kind": ["A"], "x": [1.0], "country": [1]}
    events = rules.parent / "events.parquet"
    pa.parquet.write_table(pa.table(columns), events)
    assert run(rules, "--input", events, "--time", "at", "--type", "kind") == 2
    captured = capsys.readouterr()
    assert captured.out == f"{rules}: 3 of 4 rules OK\n"
    assert "others.cep: no event is of type `B`; `kind` has `A`" in captured.err
    told = captured.err.splitlines()
    assert "CEP210: can't compare `a.country` (integer) with `:country` (string)" in told
    assert told[-1] == f"  with the values of {rules}/big.csv, row 1"
    assert run(rules, "--input", events, "--time", "when") == 2
    assert "no column `when` (--time)" in capsys.readouterr().err


def test_parameters_may_be_given_where_there_is_no_table(
    rules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (rules / "big.csv").unlink()
    assert run(rules) == 2
    assert "give it a table: `big.csv`, with a column `low`" in capsys.readouterr().err
    given = ("--param", "low=5", "--param", "country=DE", "--param", "w=3")
    assert run(rules, *given) == 0
    assert capsys.readouterr().out == f"{rules}: 3 rules OK\n"


def test_a_single_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pair.cep").write_text(PAIR)
    assert run(tmp_path) == 0
    assert capsys.readouterr().out == f"{tmp_path}: 1 rule OK\n"


def test_rules_that_match_nothing_are_warned_of(
    rules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By what their queries say, or by the values of their rows."""
    (rules / "others.cep").write_text(
        "INTO never PATTERN A a WHERE a.x > 5 AND a.x < 3\n\n"
        "INTO big PATTERN A a ; B b WHERE a.x > :low AND a.x < :high WITHIN 5 minutes"
    )
    (rules / "big.csv").write_text("rule,low,high\nright,1,3\nwrong,5,2\n")
    events = tmp_path / "events.parquet"
    columns = {"ts": pa.array([0], pa.timestamp("us")), "type": ["A"], "x": [1]}
    pa.parquet.write_table(pa.table(columns), events)
    assert run(rules, "--input", events, "--time", "ts", "--type", "type") == 0
    captured = capsys.readouterr()
    assert captured.out == f"{rules}: 4 rules OK\n"
    warnings = [line for line in captured.err.splitlines() if "matches nothing" in line]
    assert warnings == [
        "warning: wrong: the rule matches nothing: no event can fulfill all conditions of one of "
        "its steps",
        "warning: never: the rule matches nothing: `a.x > 5` and `a.x < 3` can't both be true",
    ]
