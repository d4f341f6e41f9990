"""`cepheid run` with sets of rules, on matches that were worked out by hand."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cepheid.cli.batch.run_rules import columns_read
from cepheid.cli.output.show import MOST_FREQUENT, PerRule, console
from cepheid.options import Options
from cepheid.rules import RuleSet
from tests.cli import running
from tests.cli.running import unwrapped

run = partial(running.run, "run")
PAIR = "PATTERN A a ; B b WHERE [id] WITHIN 10 RETURN a.x AS low, b.x AS high"
BIG = "INTO big PATTERN A a ; B b WHERE [id] AND b.x > :least WITHIN :w RETURN b.x AS x"
ROWS = "rule,least,w,severity\nany,0,10,low\nsoon,0,3,high\nlarge,8,10,high\n"
# Of id 1, B comes 2 and 6 after A; of id 2, 4 after it. One C has no time.
EVENTS = "ts,kind,id,x\n1,A,1,1\n3,B,1,7\n4,A,2,2\n7,B,1,5\n8,B,2,9\n,C,1,0\n"
IN_1, LATER_1, IN_2 = (1, 3), (1, 7), (4, 8)
FOUND = {
    ("pair", *IN_1, '{"low":1,"high":7}', None),
    ("pair", *LATER_1, '{"low":1,"high":5}', None),
    ("pair", *IN_2, '{"low":2,"high":9}', None),
    ("any", *IN_1, '{"x":7}', "low"),
    ("any", *LATER_1, '{"x":5}', "low"),
    ("any", *IN_2, '{"x":9}', "low"),
    ("soon", *IN_1, '{"x":7}', "high"),
    ("large", *IN_2, '{"x":9}', "high"),
}
COMMON = ("--time", "ts", "--type", "kind")


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "pair.cep").write_text(PAIR)
    (folder / "others.cep").write_text(BIG)
    (folder / "big.csv").write_text(ROWS)
    return folder


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "events.csv"
    path.write_text(EVENTS)
    return path


def matches(path: Path) -> list[tuple[Any, ...]]:
    table = pq.read_table(path)
    names = ["rule", "match_start", "match_end", "match", "severity"]
    assert table.column_names == [*names[:4], "key", "template", *names[4:]]
    return [tuple(row.values()) for row in table.select(names).to_pylist()]


def test_the_rules_of_a_folder_have_one_table(rules: Path, events: Path, tmp_path: Path) -> None:
    found = tmp_path / "found.parquet"
    assert run(rules, "--input", events, *COMMON, "--output", found) == 0
    rows = matches(found)
    assert len(rows) == len(FOUND)
    assert {*rows} == FOUND
    assert [row[2] for row in rows] == sorted(row[2] for row in rows)


def test_a_file_with_several_queries(rules: Path, events: Path, tmp_path: Path) -> None:
    file, found = tmp_path / "all.cep", tmp_path / "found.parquet"
    file.write_text(f"INTO pair {PAIR}\n\n{BIG}\n")
    (tmp_path / "big.csv").write_text(ROWS)
    assert run(file, "--input", events, *COMMON, "--output", found) == 0
    assert {*matches(found)} == FOUND


def test_a_file_with_a_table_beside_it(rules: Path, events: Path, tmp_path: Path) -> None:
    found = tmp_path / "found.parquet"
    assert run(rules / "others.cep", "--input", events, *COMMON, "--output", found) == 0
    assert {*matches(found)} == {row for row in FOUND if row[0] != "pair"}


def test_a_query_whose_parameters_are_given_is_no_set(
    rules: Path, events: Path, tmp_path: Path
) -> None:
    found = tmp_path / "found.parquet"
    given = ("--param", "least=8", "--param", "w=10")
    assert run(rules / "others.cep", "--input", events, *COMMON, *given, "-o", found) == 0
    assert pq.read_table(found).to_pylist() == [{"x": 9, "match_start": 4, "match_end": 8}]


def test_parameters_for_all_rules(rules: Path, events: Path, tmp_path: Path) -> None:
    found = tmp_path / "found.parquet"
    (rules / "big.csv").write_text("rule,least,severity\nany,0,low\n")
    assert run(rules, "--input", events, *COMMON, "--param", "w=3", "-o", found) == 0
    assert [row[:3] for row in matches(found) if row[0] != "pair"] == [("any", 1, 3)]


def test_several_streams(rules: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,id,x\n1,1,1\n4,2,2\n")
    (tmp_path / "b.csv").write_text("ts,id,x\n3,1,7\n7,1,5\n8,2,9\n")
    found = tmp_path / "found.parquet"
    inputs = (f"--input=A={tmp_path / 'a.csv'}", f"--input=B={tmp_path / 'b.csv'}")
    assert run(rules, *inputs, "--time", "ts", "--output", found) == 0
    assert {*matches(found)} == FOUND


@pytest.mark.parametrize("format", ["csv", "json"])
def test_output_formats(format: str, rules: Path, events: Path, tmp_path: Path) -> None:
    found = tmp_path / "found"
    assert run(rules, "-i", events, *COMMON, "-o", found, "--format", format) == 0
    lines = found.read_text().splitlines()
    if format == "csv":
        rows: list[dict[str, Any]] = list(csv.DictReader(lines))
    else:
        rows = [json.loads(line) for line in lines]
    (large,) = (row for row in rows if row["rule"] == "large")
    assert json.loads(large["match"]) == {"x": 9}
    assert (str(large["match_end"]), large["severity"]) == ("8", "high")


def test_csv_holds_no_groups_that_are_carried(
    rules: Path, events: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (rules / "big.csv").unlink()
    pq.write_table(pa.table({"least": [1], "w": [5], "tags": [["a", "b"]]}), rules / "big.parquet")
    assert run(rules, "-i", events, *COMMON, "-o", tmp_path / "found.csv") == 2
    assert f"leave it out of {rules}/big.parquet, or write" in capsys.readouterr().err
    assert run(rules, "-i", events, *COMMON, "-o", tmp_path / "found.jsonl") == 0


def test_rows_without_a_time(rules: Path, events: Path, tmp_path: Path) -> None:
    dead = tmp_path / "dead.csv"
    assert run(rules, "-i", events, *COMMON, "--rejected", dead) == 0
    (letter,) = csv.DictReader(dead.read_text().splitlines())
    assert (letter["line"], letter["reason"]) == (",C,1,0", "`ts` is empty")


# ── what is printed ──────────────────────────────────────────────────────────


def test_a_sample_the_figures_and_those_of_each_rule(
    rules: Path, events: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (rules / "big.csv").write_text(ROWS + "never,99,10,low\n")
    assert run(rules, "-i", events, *COMMON, "--show", "1") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert sum(line[:1] == ["│"] for line in lines) == 1
    assert ["events", "6"] in lines
    assert ["matches", "8"] in lines
    assert ["rejected", "1"] in lines
    assert ["rules", "5,", "4", "of", "them", "with", "matches"] in lines
    counted = lines[lines.index(["rule", "matches"]) + 1 :]
    assert counted == [["any", "3"], ["pair", "3"], ["large", "1"], ["soon", "1"]]


def test_no_matches(rules: Path, events: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events.write_text("ts,kind,id,x\n1,A,1,1\n")
    assert run(rules, "-i", events, *COMMON) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("no matches\n")
    assert printed.rstrip().endswith("4, 0 of them with matches")


def test_only_the_most_frequent_rules_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    counts = {f"r{n}": n for n in range(1, MOST_FREQUENT + 3)}
    console().print(PerRule(1000, counts).table())
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1] == [f"r{MOST_FREQUENT + 2}", str(MOST_FREQUENT + 2)]
    assert lines[-2:] == [["r3", "3"], ["2", "others", "3"]]
    assert len(lines) == MOST_FREQUENT + 2


# ── what is wrong ────────────────────────────────────────────────────────────


def test_every_finding_of_every_file(
    rules: Path, events: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (rules / "pair.cep").write_text("PATTERN A a ;")
    (rules / "big.csv").write_text("rule,least,w\na,0,5\na,1,5\n")
    assert run(rules, "-i", events, *COMMON) == 2
    error = capsys.readouterr().err
    assert error.startswith("CEP104: the query ends too early")
    assert "big.csv, row 2: the name `a` is taken: row 1 has it" in error


def test_every_finding_over_these_events(
    rules: Path, events: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (rules / "pair.cep").write_text(PAIR.replace("a.x", "a.y"))
    (rules / "big.csv").write_text("rule,least,w\na,0,5\nb,1,0\n")
    found = tmp_path / "found.parquet"
    assert run(rules, "-i", events, *COMMON, "-o", found) == 2
    error = capsys.readouterr().err
    assert "A has no attribute `y`" in error
    assert f"with the values of {rules}/big.csv, row 2" in error
    assert not found.exists()


def test_rules_that_read_each_other(
    rules: Path, events: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (rules / "later.cep").write_text("INTO later PATTERN big b ; again a WITHIN 5")
    (rules / "again.cep").write_text("INTO again PATTERN later a ; B b WITHIN 5")
    assert run(rules, "-i", events, *COMMON) == 2
    assert "rules read each other in a circle: `again` reads `later`" in capsys.readouterr().err


def test_rules_are_run_by_themselves(
    rules: Path, events: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(rules, rules / "pair.cep", "-i", events, *COMMON) == 2
    assert "is a folder of rules" in unwrapped(capsys.readouterr().err)
    file = tmp_path / "two.cep"
    file.write_text(f"INTO a {PAIR}\nINTO b {PAIR}")
    assert run(file, rules / "pair.cep", "-i", events, *COMMON) == 2
    assert "has several queries: run it alone" in unwrapped(capsys.readouterr().err)


# ── which columns are read ───────────────────────────────────────────────────

COLUMNS = pa.schema({n: pa.int64() for n in ("ts", "kind", "id", "X", "y", "z", "tie")})


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("PATTERN A a ; B b WHERE [id] WITHIN 5 RETURN a.x", "ts kind id X"),
        ("PATTERN A a ; B b WHERE [y = 3] HAVING b.z > 1 WITHIN 5 RETURN a.id", "ts kind id y z"),
        ("PATTERN A a ; B+ b UNTIL (b.z > 1) ; C c WITHIN 5 RETURN count(b) AS n", "ts kind z"),
        ("PATTERN A a WHERE y > 1 RETURN x", "ts kind id X y z tie"),
        ("PATTERN A a ; B b WITHIN 5", "ts kind id X y z tie"),
        ("PATTERN A a ; B b WITHIN 5 RETURN a", "ts kind id X y z tie"),
        ("PATTERN A a ; B b WITHIN 5 RETURN a.*", "ts kind id X y z tie"),
    ],
)
def test_columns_that_no_query_reads_are_left_out(query: str, columns: str) -> None:
    templates = RuleSet.of({"t": query}).templates
    assert columns_read(templates, COLUMNS, Options("ts", type="kind")) == columns.split()


def test_columns_of_all_rules_are_read() -> None:
    first = "PATTERN A a ; B b WITHIN 5 RETURN a.y"
    rules = RuleSet.of({"y": first, "z": first.replace("y", "z")})
    read = columns_read(rules.templates, COLUMNS, Options("ts", tie="tie"))
    assert read == ["ts", "y", "z", "tie"]


# ── on Spark ─────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_spark_gives_the_same(rules: Path, events: Path, tmp_path: Path) -> None:
    """In a process of its own: a run stops its session, and other tests need theirs."""
    found = tmp_path / "found"
    done = subprocess.run(
        [sys.executable, "-m", "cepheid.cli", "run", str(rules), "-i", str(events), *COMMON,
         "--master", "local[1]", "-o", str(found)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = matches(found)
    assert len(rows) == len(FOUND)
    assert {*rows} == FOUND
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["matches", "8"] in lines and ["rejected", "1"] in lines
    counted = lines[lines.index(["rule", "matches"]) + 1 :]
    assert counted == [["any", "3"], ["pair", "3"], ["large", "1"], ["soon", "1"]]
