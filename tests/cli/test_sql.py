"""`cepheid sql`: statements over files."""

from __future__ import annotations

from io import BytesIO, TextIOWrapper
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cepheid.cli import main

TICKER = "symbol,day,price\nX,1,50\nX,2,48\nX,3,45\nX,4,47\nX,5,bad\nX,6,52\n"
V_SHAPE = """SELECT * FROM ticker MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY day
    MEASURES LAST(DOWN.day) AS bottom, LAST(UP.day) AS last PATTERN (DOWN+ UP+)
    DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price))"""


@pytest.fixture
def ticker(tmp_path: Path) -> Path:
    path = tmp_path / "ticker.csv"
    path.write_text(TICKER)
    return path


def run(*arguments: str) -> int | str | None:
    with pytest.raises(SystemExit) as exit:
        main(["sql", *arguments])
    return exit.value.code


def test_rows_and_what_is_rejected(ticker: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(V_SHAPE, "--table", f"ticker={ticker}") == 0
    told = capsys.readouterr()
    assert [line.split() for line in told.out.splitlines() if "X" in line] == [
        ["│", "X", "│", "3", "│", "6", "│"]
    ]
    assert "1 row in" in told.out
    assert f"rejected: {ticker}:6: `price` is 'bad', not an integer" in told.err


def test_a_statement_in_a_file_is_written(ticker: Path, tmp_path: Path) -> None:
    statement, output = tmp_path / "shapes.sql", tmp_path / "found.parquet"
    statement.write_text(f"SELECT symbol, bottom FROM ({V_SHAPE}) WHERE bottom > 1")
    arguments = (str(statement), "--table", f"ticker={ticker}", "--output", str(output))
    assert run(*arguments) == 0
    assert pq.read_table(output).to_pylist() == [{"symbol": "X", "bottom": 3}]
    assert run(*arguments) == 2  # it exists
    assert run(*arguments[:-1], str(ticker), "--overwrite") == 2  # it is read
    assert ticker.read_text() == TICKER


def test_parameters(ticker: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shape = V_SHAPE.replace("< PREV(price)", "< PREV(price) AND price > :least", 1)
    arguments = (f"{shape} WHERE bottom < :last", "--table", f"ticker={ticker}")
    assert run(*arguments, "--param", "least=46", "--param", "last=9") == 0
    assert "0 rows in" in capsys.readouterr().out
    assert run(*arguments, "--param", "least=40", "--param", "last=9") == 0
    assert "1 row in" in capsys.readouterr().out
    assert run(*arguments, "--param", "last=9") == 2
    assert "the parameter `:least` has no value" in capsys.readouterr().err


def test_explain(ticker: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(V_SHAPE, "--table", f"ticker={ticker}", "--explain", "--analyze") == 0
    told = capsys.readouterr().out
    assert told.startswith("MATCH_RECOGNIZE over ticker\n\nprogram\n  0  take DOWN\n")
    assert "  DOWN  once for every row: price < PREV(price)\n" in told
    assert "run\n  rows        5\n  partitions  1\n  matches     1\n" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope.sql", "-t", "t=TICKER"], "there is no file nope.sql"),
        ([" ", "-t", "t=TICKER"], "the statement is empty"),
        (["SELECT 1", "-t", "TICKER"], "a table needs a name: --table ticker=ticker.csv"),
        (["SELECT 1", "-t", "t=TICKER", "--analyze"], "--analyze goes with --explain"),
        (["SELECT 1", "-t", "t=TICKER", "--explain", "-o", "x.csv"], "leave out --output"),
        (["SELECT 1", "-t", "t=TICKER", "--runtime", "local", "--master", "x"], "--master is for"),
        (["SELECT * FROM u MATCH_RECOGNIZE (PATTERN (A))", "-t", "t=TICKER"], "no table `u`"),
        (["SELECT * FROM t MATCH_RECOGNIZE (PATERN (A))", "-t", "t=TICKER"], "CEP603"),
        (["SELECT * FROM tt", "-t", "t=TICKER"], "there is no table `tt`; did you mean `t`?"),
        (["SELEC * FROM t", "-t", "t=TICKER"], 'syntax error at or near "SELEC"'),
        (["SELECT prise FROM t", "-t", "t=TICKER"], 'Referenced column "prise" not found'),
    ],
)
def test_wrong_use(
    arguments: list[str], message: str, ticker: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*(a.replace("TICKER", str(ticker)) for a in arguments)) == 2
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_a_statement_that_fails_is_not_a_wrong_use(
    ticker: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("SELECT CAST(symbol AS INT) FROM t", "-t", f"t={ticker}") == 1
    assert "error: DuckDB: Conversion Error" in capsys.readouterr().err


def test_rejected_rows_of_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its copy has a name that the user doesn't know."""
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(TICKER.encode())))
    kept = tmp_path / "kept.csv"
    options = ("--input-format", "csv", "--rejected", str(kept))
    assert run("SELECT count(*) AS n FROM t", "-t", "t=-", *options) == 0
    assert "rejected: standard input:6: `price` is 'bad'" in capsys.readouterr().err
    assert "standard input" in kept.read_text()
