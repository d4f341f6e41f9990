"""`cepheid run`, `check` and `explain`, on matches that were worked out by hand."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import typer

from cepheid.cli.arguments import InputSource, parse_inputs, parse_parameters
from cepheid.files.formats import Format
from cepheid.files.guard import Guard
from cepheid.options import Options
from cepheid.statistics import Statistics
from tests.cli.running import run

RISE = """\
PATTERN A a ; B b
WHERE a.id = b.id AND b.x > a.x + :step
WITHIN 10 minutes
RETURN a.id AS id, a.x AS low, b.x AS high
"""
# Of id 1, B rises by 5 in 2 minutes, and again after 11; of id 2, it falls.
ROWS = (
    ("2026-01-31T12:00:00Z", "A", 1, 1),
    ("2026-01-31T12:01:00Z", "A", 2, 9),
    ("2026-01-31T12:02:00Z", "B", 1, 6),
    ("2026-01-31T12:03:00Z", "B", 2, 8),
    ("2026-01-31T12:11:00Z", "B", 1, 7),
)
FOUND = {"id": 1, "low": 1, "high": 6}


def write(folder: Path, name: str, rows: Sequence[tuple[object, ...]] = ROWS) -> Path:
    path = folder / name
    columns = ("ts", "type", "id", "x")
    match path.suffix:
        case ".csv":
            with path.open("w", newline="") as file:
                csv.writer(file).writerows([columns, *rows])
        case ".jsonl":
            path.write_text(
                "".join(json.dumps(dict(zip(columns, r, strict=True))) + "\n" for r in rows)
            )
        case _:
            moments = [r[0] and datetime.fromisoformat(str(r[0])) for r in rows]
            table = pa.Table.from_pylist([dict(zip(columns, r, strict=True)) for r in rows])
            pq.write_table(
                table.set_column(0, "ts", pa.array(moments, pa.timestamp("us", "UTC"))), path
            )
    return path


@pytest.fixture
def query(tmp_path: Path) -> str:
    path = tmp_path / "rise.cep"
    path.write_text(RISE)
    return str(path)


COMMON = ("--time", "ts", "--type", "type", "--param", "step=2")


@pytest.mark.parametrize("name", ["e.parquet", "e.csv", "e.jsonl"])
def test_every_format_is_read(name: str, query: str, tmp_path: Path) -> None:
    found = tmp_path / "found.parquet"
    assert run("run", query, "--input", str(write(tmp_path, name)), *COMMON, "-o", str(found)) == 0
    (row,) = pq.read_table(found).to_pylist()
    start, end = row.pop("match_start"), row.pop("match_end")
    assert row == FOUND
    assert start == datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
    assert end == datetime(2026, 1, 31, 12, 2, tzinfo=UTC)


def test_answers_are_written_like_matches(tmp_path: Path) -> None:
    (tmp_path / "q.cep").write_text(
        "PATTERN A a ; B b WHERE [id] WITHIN 20 minutes GROUP BY a.id, TUMBLE(10 minutes) "
        "RETURN a.id AS id, window_end, count(*) AS n"
    )
    found = tmp_path / "found.parquet"
    events = str(write(tmp_path, "e.parquet"))
    assert run("run", str(tmp_path / "q.cep"), "-i", events, *COMMON[:4], "-o", str(found)) == 0
    rows = [(r["id"], r["window_end"].minute, r["n"]) for r in pq.read_table(found).to_pylist()]
    assert rows == [(1, 10, 1), (2, 10, 1), (1, 20, 1)]


@pytest.mark.parametrize(
    "time", ["2026-01-31 12:00:0{}", "2026-01-31T12:00:0{}.250", "2026-01-31T12:00:0{}.5+02:00"]
)
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_times_as_text(time: str, suffix: str, tmp_path: Path) -> None:
    path = write(tmp_path, f"e.{suffix}", [(time.format(n), "A", 1, n) for n in range(3)])
    (tmp_path / "q.cep").write_text("PATTERN a ; b WITHIN 2 seconds RETURN a.x AS a, b.x AS b")
    found = tmp_path / "found.csv"
    assert (
        run("run", str(tmp_path / "q.cep"), "-i", str(path), "--time", "ts", "-o", str(found)) == 0
    )
    rows = [(r["a"], r["b"]) for r in csv.DictReader(found.read_text().splitlines())]
    assert rows == [("0", "1"), ("1", "2")]


@pytest.mark.parametrize("format", ["csv", "json"])
def test_output_formats(format: str, query: str, tmp_path: Path) -> None:
    found = tmp_path / "found"
    events = str(write(tmp_path, "e.parquet"))
    assert run("run", query, "-i", events, *COMMON, "-o", str(found), "--format", format) == 0
    if format == "csv":
        (row,) = csv.DictReader(found.read_text().splitlines())
        assert [row["id"], row["low"], row["high"]] == ["1", "1", "6"]
    else:
        (line,) = found.read_text().splitlines()
        assert json.loads(line) == {
            **FOUND,
            "match_start": "2026-01-31T12:00:00+00:00",
            "match_end": "2026-01-31T12:02:00+00:00",
        }


def test_a_sample_and_the_figures(
    query: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = str(write(tmp_path, "e.csv", [*ROWS, ("", "A", 1, 1)]))
    assert run("run", query, "-i", events, *COMMON) == 0
    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines()]
    assert lines[3][:7] == ["│", "1", "│", "1", "│", "6", "│"]
    assert ["events", "6"] in lines and ["matches", "1"] in lines
    assert ["rejected", "1"] in lines
    assert {"seconds", "events/s"} <= {line[0] for line in lines if line}


def test_the_sample_has_a_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.cep").write_text("PATTERN a WITHIN 1 hour RETURN a.x * 100 AS x")
    common = ("run", str(tmp_path / "q.cep"), "-i", str(write(tmp_path, "e.csv")), "--time", "ts")
    assert run(*common, "--show", "2") == 0
    out = capsys.readouterr().out
    assert "100" in out and "900" in out and "600" not in out
    assert "2 of 5 shown" in out
    assert run(*common, "--show", "0") == 0
    assert "100" not in capsys.readouterr().out


@pytest.mark.filterwarnings("default:.*left out")
def test_time_passes_only_to_the_last_event(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "e.csv").write_text("ts,type\n1,A\n2,B\n9,A\n")
    common = ("-i", str(tmp_path / "e.csv"), "--time", "ts", "--type", "type")
    query = "PATTERN A a ; !B b WITHIN 5 RETURN a.ts AS at"
    assert run("run", "-q", query, *common, "--until", "last event") == 0
    told = capsys.readouterr()
    assert "no matches" in told.out
    assert "warning: 1 match was left out: it was undecided at the time --until" in told.err
    assert run("run", "-q", query, *common, "--until", "13") == 0
    assert "matches   1" in capsys.readouterr().out
    assert run("run", "-q", query, *common, "--until", "soon") == 2
    assert "as in --until 1000, or 'last event'" in " ".join(capsys.readouterr().err.split())


@pytest.mark.filterwarnings("default:no event is of type")
def test_no_matches(query: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = str(write(tmp_path, "e.csv", ROWS[:2]))
    assert run("run", query, "-i", events, *COMMON) == 0
    told = capsys.readouterr()
    assert "no matches" in told.out
    assert "warning: no event is of type `B`" in told.err


def test_dead_letters(query: str, tmp_path: Path) -> None:
    dead = tmp_path / "dead.jsonl"
    events = str(write(tmp_path, "e.jsonl", [*ROWS, (None, "B", 3, 4)]))
    assert run("run", query, "-i", events, *COMMON, "--rejected", str(dead)) == 0
    assert json.loads(dead.read_text()) == {
        "stream": None,
        "file": events,
        "number": 6,
        "line": '{"ts": null, "type": "B", "id": 3, "x": 4}',
        "reason": "`ts` is empty",
    }


def test_several_streams(tmp_path: Path) -> None:
    (tmp_path / "q.cep").write_text(
        "PATTERN buys b ; news n WHERE b.id = n.id WITHIN 1 hour RETURN b.x AS x, n.title AS title"
    )
    buys = write(tmp_path, "buys.csv")
    news = tmp_path / "news.jsonl"
    news.write_text('{"ts": "2026-01-31T12:30:00Z", "id": 2, "title": "a merger"}\n')
    found = tmp_path / "found.jsonl"
    assert (
        run("run", str(tmp_path / "q.cep"), "--input", f"buys={buys}", "--input", f"news={news}",
            "--time", "ts", "-o", str(found)) == 0
    )  # fmt: skip
    rows = [json.loads(line) for line in found.read_text().splitlines()]
    assert sorted((r["x"], r["title"]) for r in rows) == [(8, "a merger"), (9, "a merger")]


def test_integer_time_has_a_unit(tmp_path: Path) -> None:
    (tmp_path / "q.cep").write_text("PATTERN a ; b WITHIN 2 seconds RETURN a.x AS a, b.x AS b")
    (tmp_path / "e.csv").write_text("ms,x\n0,1\n1999,2\n2000,3\n")
    found = tmp_path / "found.parquet"
    assert (
        run("run", str(tmp_path / "q.cep"), "-i", str(tmp_path / "e.csv"), "--time", "ms",
            "--unit", "ms", "-o", str(found)) == 0
    )  # fmt: skip
    assert pq.read_table(found, columns=["a", "b"]).to_pylist() == [
        {"a": 1, "b": 2},
        {"a": 2, "b": 3},
    ]


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        (("--time", "tss"), 2, "error: there is no column `tss` (--time); did you mean `ts`?\n"),
        (
            ("--time", "type", "--type", "id"),
            2,
            "the time column `type` is text, such as 'A'. A time is written as in ISO 8601",
        ),
        (("--input", "missing.csv"), 2, "error: missing.csv: No such file or folder\n"),
        (("--plan", "(a c)"), 2, "error: the plan '(a c)' names `c`"),
        (("--negation", "down"), 2, "'down' is not one of 'auto', 'push', 'top'"),
        (("--propagation", "drag"), 2, "'drag' is not one of 'auto', 'push', 'lazy', 'pull'"),
        (("--stats", "missing.json"), 2, "'missing.json' does not exist"),
        (("--param", "step"), 2, "'step' isn't like --param limit=5"),
        (("--master", "local[2]", "--runtime", "local"), 2, "--master is for --runtime spark"),
        (("--input", "x.csv", "--input", "y.csv"), 2, "with several inputs each needs a name"),
        (("--input", "a=x.csv", "--input", "a=y.csv"), 2, "two inputs have the same name"),
    ],
)
def test_errors(
    change: tuple[str, ...],
    code: int,
    text: str,
    query: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = () if "--input" in change else ("--input", str(write(tmp_path, "e.csv")))
    assert run("run", query, *given, *COMMON, *change) == code
    error = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert " ".join(text.split()) in error and "Traceback" not in error


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ('{"rates": {"a": -1}}', 2, "the rate of `a` is -1; it must be a number from 0 up"),
        ('{"rate": {"a": 1}}', 2, "statistics are an object with rates, selectivities"),
        ("a: 1", 2, "statistics must be JSON"),
        ('{"rates": {"c": 1}}', 2, "`c`"),
    ],
)
def test_statistics_that_do_not_fit(
    text: str,
    code: int,
    message: str,
    query: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stats = tmp_path / "stats.json"
    stats.write_text(text)
    events = str(write(tmp_path, "e.csv"))
    assert run("run", query, "-i", events, *COMMON, "--stats", str(stats)) == code
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error
    assert code == 2 or error.startswith(f"error: {stats}: ")


@pytest.mark.parametrize(
    "chosen",
    [
        (),
        ("--plan", "left-deep", "--negation", "top", "--propagation", "push"),
        ("--plan", "right-deep", "--negation", "push"),
        ("--plan", "(a (b c))", "--propagation", "pull"),
        ("--propagation", "pass-down"),
    ],
    ids=" ".join,
)
def test_how_it_is_run_does_not_change_what_is_found(
    chosen: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "q.cep").write_text(
        "PATTERN A a ; !N n ; B b ; C c WHERE a.x < c.x WITHIN 9 "
        "RETURN a.x AS a, b.x AS b, c.x AS c"
    )
    (tmp_path / "e.csv").write_text("t,type,x\n1,A,1\n2,N,2\n3,A,3\n4,B,4\n5,A,9\n6,B,5\n7,C,6\n")
    stats = tmp_path / "stats.json"
    stats.write_text(
        '{"rates": {"a": 0.4, "b": 0.3, "c": 0.1}, "selectivities": {"a.x < c.x": 0.6}}'
    )
    found = tmp_path / "found.jsonl"
    assert (
        run("run", str(tmp_path / "q.cep"), "-i", str(tmp_path / "e.csv"), "--time", "t",
            "--type", "type", "--stats", str(stats), *chosen, "-o", str(found)) == 0
    )  # fmt: skip
    # Between a at 1 and every b lies n; a at 5 is not below c.
    rows = [json.loads(line) for line in found.read_text().splitlines()]
    assert sorted((r["a"], r["b"], r["c"]) for r in rows) == [(3, 4, 6), (3, 5, 6)]


def test_the_options_reach_the_plan(
    query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Options] = []
    monkeypatch.setattr(
        "cepheid.cli.batch.run_local.prepare", lambda bound, o: given.append(o) or 1 / 0
    )
    stats = tmp_path / "stats.json"
    stats.write_text('{"rates": {"a": 2}}')
    common = ("run", query, "-i", str(write(tmp_path, "e.csv")), *COMMON)
    assert run(*common) == 1
    chosen = ("--negation", "top", "--propagation", "pull", "--plan", "(a b)")
    chosen += ("--engine", "tree")
    assert run(*common, *chosen, "--stats", str(stats)) == 1
    default, forced = given
    assert (default.plan, default.negation, default.propagation) == ("auto", "auto", "auto")
    assert (default.engine, forced.engine) == ("auto", "tree")
    assert default.stats is None
    assert (forced.plan, forced.negation, forced.propagation) == ("(a b)", "top", "pull")
    assert forced.stats == Statistics(rates={"a": 2})


def test_a_query_that_can_match_nothing_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, events = tmp_path / "q.cep", str(write(tmp_path, "e.csv"))
    path.write_text("PATTERN A a ; B b WHERE a.x > 5 AND a.x < 3 WITHIN 1 hour RETURN b.x AS x")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert run("run", str(path), "-i", events, "--time", "ts", "--type", "type") == 0
    captured = capsys.readouterr()
    (warning,) = [line for line in captured.err.splitlines() if line.startswith("warning: ")]
    assert "`a.x > 5` and `a.x < 3` can't both be true" in warning
    assert "no matches" in captured.out
    assert run("check", str(path)) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{path}: OK\n"
    assert captured.err.startswith(f"warning: {path}: ")
    assert "`a.x > 5` and `a.x < 3` can't both be true" in captured.err


def test_a_file_of_another_format(
    query: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = write(tmp_path, "e.csv")
    assert run("run", query, "-i", str(events), *COMMON, "--input-format", "parquet") == 1
    error = capsys.readouterr().err
    assert str(events) in error and "Traceback" not in error


def test_csv_holds_no_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.cep").write_text("PATTERN A a ; B+ b WITHIN 1 hour RETURN b.x AS xs")
    found = tmp_path / "found.csv"
    events = str(write(tmp_path, "e.parquet"))
    common = ("--time", "ts", "--type", "type", "-o", str(found))
    assert run("run", str(tmp_path / "q.cep"), "-i", events, *common) == 2
    assert "CSV can't hold `xs`" in capsys.readouterr().err
    assert not found.exists()


def test_parameters_are_read_as_values() -> None:
    given = ["a=-3", "b=1e3", ":c=True", "d=x=y", 'e="5"', "f = IBM"]
    assert parse_parameters(given) == {
        "a": -3, "b": 1000.0, "c": True, "d": "x=y", "e": "5", "f": "IBM",
    }  # fmt: skip


def test_a_path_with_an_equals_sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "day=3").mkdir()
    assert parse_inputs(["day=3"], Format.CSV) == (InputSource(None, "day=3", Format.CSV),)
    assert parse_inputs(["day=4.csv"], None) == (InputSource("day", "4.csv"),)
    with pytest.raises(typer.BadParameter):
        parse_inputs(["day=3", "a=b.csv"], None)


# ── check and explain ────────────────────────────────────────────────────────


def test_check_prints_every_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad, later = tmp_path / "good.cep", tmp_path / "bad.cep", tmp_path / "later.cep"
    good.write_text("PATTERN A a ; B b WHERE a.name = 'x' WITHIN 5 minutes")
    bad.write_text("PATTERN A a ; B b\nWHERE c.x = 1 AND length(a.x) > 2\nRETURN d.x")
    later.write_text("PATTERN A a -> B b WITHIN 5 seconds")
    assert run("check", str(good), str(bad), str(later)) == 2
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        f"{good}: OK",
        f"{later}: OK",
    ]
    places = [line.strip() for line in captured.err.splitlines() if str(bad) in line]
    assert f"{bad}:2:7" in places and f"{bad}:3:8" in places
    assert run("check", str(good), str(later)) == 0


def test_check_against_real_columns(
    tmp_path: Path, query: str, capsys: pytest.CaptureFixture[str]
) -> None:
    events = str(write(tmp_path, "e.csv"))
    wrong = tmp_path / "wrong.cep"
    wrong.write_text("PATTERN A a ; B b WHERE a.y < b.x WITHIN 5 minutes")
    common = ("--input", events, "--time", "ts", "--type", "type", "--param", "step=1")
    assert run("check", query, *common) == 0
    assert run("check", str(wrong)) == 0
    assert run("check", str(wrong), *common) == 2
    assert "no attribute `y`" in capsys.readouterr().err


def test_explain_draws_the_plan(
    tmp_path: Path, query: str, capsys: pytest.CaptureFixture[str]
) -> None:
    events = str(write(tmp_path, "e.csv"))
    assert run("explain", query, "--input", events, *COMMON) == 0
    drawn = [line.split("   ")[0].rstrip() for line in capsys.readouterr().out.splitlines()]
    begin = drawn.index("key: id")
    assert drawn[begin : begin + 2] == ["key: id", "window: 10 minutes"]
    begin = drawn.index("SEQ  hash(a.id = b.id), b.x > (a.x + 2)")
    assert drawn[begin + 1 : begin + 3] == ["├── A a", "└── B b"]


def test_explain_a_forced_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "q.cep"
    path.write_text("PATTERN A ; B ; C WITHIN 5")
    assert run("explain", str(path), "--plan", "(A (B C))") == 0
    drawn = [
        line.rstrip().removesuffix("%").rstrip(" <0123456789.knµms%")
        for line in capsys.readouterr().out.splitlines()
    ]
    begin = drawn.index("SEQ")
    assert drawn[begin : begin + 5] == ["SEQ", "├── A", "└── SEQ", "    ├── B", "    └── C"]


# ── on Spark ─────────────────────────────────────────────────────────────────


def json_rows(folder: Path) -> list[dict[str, object]]:
    """What Spark has written: a file for each partition."""
    lines = [line for part in folder.glob("part-*") for line in part.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def test_spark_gives_the_same(query: str, tmp_path: Path) -> None:
    """In a process of its own: a run stops its session, and other tests need theirs."""
    rows = [*ROWS, (None, "B", 3, 4), ("2026-01-31T12:04:00Z", "B", 1, "oops")]
    found, dead = tmp_path / "found", tmp_path / "dead.jsonl"
    done = subprocess.run(
        [sys.executable, "-m", "cepheid.cli", "run", query,
         "-i", str(write(tmp_path, "e.jsonl", rows)), *COMMON, "--master", "local[1]",
         "-o", str(found), "--format", "json", "--rejected", str(dead)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    (row,) = json_rows(found)
    assert {name: row[name] for name in FOUND} == FOUND
    # Both are known as outputs, and nothing else was left.
    assert {path.name for path in tmp_path.iterdir()} == {
        "rise.cep", "e.jsonl", "found", "dead.jsonl",
    }  # fmt: skip
    Guard(overwrite=True).check_folder(found, "--output")
    Guard(overwrite=True).check_folder(dead, "--rejected")
    letters = sorted((row["number"], row["line"], row["reason"]) for row in json_rows(dead))
    assert letters == [
        (6, '{"ts": null, "type": "B", "id": 3, "x": 4}', "`ts` is empty"),
        (
            7,
            '{"ts": "2026-01-31T12:04:00Z", "type": "B", "id": 1, "x": "oops"}',
            "`x` is 'oops', not an integer",
        ),
    ]
    figures = [line.split()[:2] for line in done.stdout.splitlines()]
    assert ["events", "7"] in figures and ["matches", "1"] in figures
    assert ["rejected", "2"] in figures
    assert f"rejected: {tmp_path / 'e.jsonl'}:7: `x` is 'oops', not an integer" in done.stderr


@pytest.mark.slow
def test_spark_prints_a_sample_of_several_streams(tmp_path: Path) -> None:
    query = tmp_path / "q.cep"
    query.write_text("PATTERN buys b ; news n WHERE b.id = n.id WITHIN 1 hour RETURN b.x, n.title")
    news = tmp_path / "news.jsonl"
    news.write_text('{"ts": "2026-01-31T12:30:00.5Z", "id": 2, "title": "a merger"}\n')
    done = subprocess.run(
        [sys.executable, "-m", "cepheid.cli", "run", str(query), "--runtime", "spark",
         "-i", f"buys={write(tmp_path, 'buys.csv')}", "-i", f"news={news}", "--time", "ts"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [line.replace("│", " ").split() for line in done.stdout.splitlines()]
    found = [line[:3] for line in lines if "merger" in line]
    assert sorted(found) == [["8", "a", "merger"], ["9", "a", "merger"]]
    assert ["events", "6"] in lines and ["matches", "2"] in lines


@pytest.mark.parametrize("name", ["stays.csv", "stays.parquet"])
def test_events_that_last_have_a_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """The first B begins before A has ended. Of the last two, one has no start, and one starts
    after its end."""
    rows = [
        ("A", "2026-01-31T12:00:00Z", "2026-01-31T12:10:00Z"),
        ("B", "2026-01-31T12:05:00Z", "2026-01-31T12:20:00Z"),
        ("B", "2026-01-31T12:15:00Z", "2026-01-31T12:30:00Z"),
        ("B", None, "2026-01-31T12:40:00Z"),
        ("B", "2026-01-31T12:55:00Z", "2026-01-31T12:50:00Z"),
    ]
    stays, found, lost = tmp_path / name, tmp_path / "found.jsonl", tmp_path / "lost.jsonl"
    columns = ("type", "begin", "ts")
    if stays.suffix == ".csv":
        with stays.open("w", newline="") as file:
            csv.writer(file).writerows([columns, *rows])
    else:
        kinds = [row[0] for row in rows]
        moments = [
            pa.array([c and datetime.fromisoformat(c) for c in column], pa.timestamp("us", "UTC"))
            for column in ([row[1] for row in rows], [row[2] for row in rows])
        ]
        pq.write_table(pa.table(dict(zip(columns, [kinds, *moments], strict=True))), stays)
    query = "PATTERN A a ; B b WITHIN 1 hour RETURN minute(b.ts) AS ended"
    given = ["-i", stays, "--time", "ts", "--type", "type", "--start", "begin"]
    assert run("run", "-q", query, *given, "-o", found, "--rejected", lost) == 0
    assert [json.loads(line)["ended"] for line in found.read_text().splitlines()] == [30]
    reasons = [json.loads(line)["reason"] for line in lost.read_text().splitlines()]
    assert reasons == ["`begin` is empty", "`begin` is after `ts`"]
    assert run("run", "-q", query, *given, "--tie", "type") == 2
    assert "--start and --tie exclude each other" in capsys.readouterr().err
