"""Rows that aren't what their columns say, on the command line; matches by hand."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from tests.cli.running import run

# As numbers, 10 is above 9; as words it isn't.
EVENTS = "t,x\n" + "".join(f"{n},{x}\n" for n, x in enumerate((9, 10, 100, 99))) + "4,n.n.\n"
RISE = "PATTERN a ; b WHERE b.x > a.x WITHIN 10 RETURN a.x AS low, b.x AS high"
BY_NUMBER = [(9, 10), (9, 99), (9, 100), (10, 99), (10, 100)]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.csv").write_text(EVENTS)
    (tmp_path / "q.cep").write_text(RISE)
    return tmp_path


COMMON = ("run", "q.cep", "-i", "e.csv", "--time", "t", "-o", "found.jsonl", "--overwrite")


def found() -> list[tuple[object, object]]:
    rows = [json.loads(line) for line in Path("found.jsonl").read_text().splitlines()]
    return sorted((row["low"], row["high"]) for row in rows)


def test_a_bad_cell_does_not_make_words_of_numbers(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*COMMON) == 0
    assert found() == BY_NUMBER
    printed = capsys.readouterr()
    lines = [line.split() for line in printed.out.splitlines()]
    assert ["events", "5"] in lines and ["rejected", "1"] in lines
    assert printed.err.splitlines()[-2:] == [
        "rejected: e.csv:6: `x` is 'n.n.', not an integer",
        "--rejected FILE keeps them; --schema and --bad-rows change this",
    ]


def test_many_are_counted_and_a_few_shown(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"{n},{n}\n" for n in range(200)) + "".join(f"{n},?\n" for n in range(200, 208))
    (place / "e.csv").write_text("t,x\n" + rows)
    assert run(*COMMON, "--rejected", "bad.csv") == 0
    error = capsys.readouterr().err.splitlines()
    assert [line[:19] for line in error[-6:-1]] == [f"rejected: e.csv:{n}" for n in range(202, 207)]
    assert error[-1] == "and 3 more; all are in bad.csv; --schema and --bad-rows change this"
    assert len((place / "bad.csv").read_text().splitlines()) == 9


def test_keep(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert run(*COMMON, "--bad-rows", "keep") == 0
    # As words: 10 < 100 < 9 < 99 < n.n.
    assert ("100", "99") in found() and ("9", "10") not in found()
    warning = capsys.readouterr().err
    assert "`b.x > a.x` compares texts" in warning and "--schema 'x double'" in warning


def test_null(place: Path) -> None:
    assert run(*COMMON, "--bad-rows", "null") == 0
    assert found() == BY_NUMBER


def test_fail(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*COMMON, "--bad-rows", "fail") == 1
    assert "error: e.csv:6: `x` is 'n.n.', not an integer. --bad-rows" in capsys.readouterr().err
    assert not (place / "found.jsonl").exists()


def test_schema(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert run(*COMMON, "--schema", "x string") == 0
    assert "warning: `b.x > a.x` compares texts" in capsys.readouterr().err
    assert ("9", "n.n.") in found()
    assert run(*COMMON, "--schema", "x double") == 0
    assert found() == BY_NUMBER


@pytest.mark.parametrize(
    ("given", "code", "text"),
    [
        (("--schema", "x number"), 2, "--schema 'x number' isn't like 'ts timestamp, user long'"),
        (("--schema", "y=x long"), 2, "--schema y=... is for no --input of that name"),
        (("--time-format", "%d.%m"), 2, "--time-format '%d.%m': one of %Y, %y is needed"),
        (("--encoding", "klingon"), 2, "--encoding klingon isn't known"),
        (("--bad-rows", "drop"), 2, "'drop' is not one of 'reject', 'keep', 'fail', 'null'"),
    ],
)
def test_options_that_make_no_sense(
    given: tuple[str, ...], code: int, text: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*COMMON, *given) == code
    assert text in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_a_header_alone(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "e.csv").write_text("t,x\n")
    assert run(*COMMON[:-3], "--show", "5") == 0
    printed = capsys.readouterr()
    assert "no matches" in printed.out and ["events", "0"] in [
        line.split() for line in printed.out.splitlines()
    ]
    assert "e.csv has no events" in printed.err


def test_times_in_another_form_and_other_letters(place: Path) -> None:
    rows = "t;x\n".replace(";", ",") + "31.01.2026 12:00,Müller\n31.01.2026 12:01,Möller\n"
    (place / "e.csv").write_bytes(rows.encode("latin-1"))
    (place / "q.cep").write_text("PATTERN a ; b WITHIN 2 minutes RETURN a.x AS low, b.x AS high")
    assert run(*COMMON, "--time-format", "%d.%m.%Y %H:%M", "--encoding", "latin-1") == 0
    assert found() == [("Müller", "Möller")]


@pytest.mark.parametrize("command", ["check", "explain", "analyze"])
def test_other_commands_read_files_alike(
    command: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "q.cep").write_text("PATTERN a ; b WHERE b.x > a.x + 1 WITHIN 10 RETURN a.x")
    common = (command, "q.cep", "-i", "e.csv", "--time", "t")
    assert run(*common) == 0
    assert run(*common, "--bad-rows", "keep") == 2
    assert "CEP210" in capsys.readouterr().err
