from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from importlib.metadata import entry_points, version
from itertools import pairwise
from typing import get_args

import pytest
from typer.main import get_command

from cepheid.algebra.functions import NAMES
from cepheid.cli import main
from cepheid.cli.app import app
from cepheid.cli.arguments import EngineName, NegationMode, Propagation
from cepheid.cli.output.command_words import in_command_words
from cepheid.cli.output.failure import exit_cleanly, message
from cepheid.errors import CepheidError, DataError, PlanError, QueryError, UnsupportedError
from cepheid.language.ast import Span
from cepheid.language.diagnostics import Diagnostic, Source
from cepheid.language.names import RESERVED
from cepheid.options import EngineChoice, NegationChoice, Options, PropagationChoice

WRONG_QUERY = QueryError(
    [Diagnostic("CEP101", "the query is empty", Span(0, 1), Source("?", "a.cep"), "write PATTERN")]
)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["--version"])
    assert exit.value.code == 0
    assert capsys.readouterr().out == f"cepheid {version('cepheid')}\n"


def test_the_language_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """All that can be called, and every keyword."""
    with pytest.raises(SystemExit) as exit:
        main(["help", "language"])
    assert exit.value.code == 0
    told = capsys.readouterr().out
    assert set(re.findall(r"\w+", told.lower())) >= {*NAMES, *(word.lower() for word in RESERVED)}
    assert "  round(x [, y])         to d decimals, halves away from zero; d is 0\n" in told
    with pytest.raises(SystemExit) as exit:
        main(["help", "langage"])
    assert exit.value.code == 2


def test_the_console_script_runs_main(capsys: pytest.CaptureFixture[str]) -> None:
    (script,) = entry_points(group="console_scripts", name="cepheid")
    with pytest.raises(SystemExit), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["cepheid", "--version"])
        script.load()()
    assert capsys.readouterr().out.startswith("cepheid ")


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["generate", "fraud", "--help"])
    assert exit.value.code == 0
    text = capsys.readouterr().out
    assert "cepheid generate fraud --rows 1_000_000 --output fraud.parquet" in text
    assert "Columns: id, ts, card, kind, amount" in text


def test_help_is_broken_where_the_terminal_ends(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not once more where the docstring was."""
    monkeypatch.setenv("COLUMNS", "80")
    commands = [[], *([name] for name in get_command(app).commands)]
    workloads = ("stocks", "rfid", "fraud", "weblog")
    for words in [*commands, *(["generate", workload] for workload in workloads)]:
        with pytest.raises(SystemExit):
            main([*words, "--help"])
        lines = capsys.readouterr().out.partition("╭")[0].splitlines()
        for line, following in pairwise(lines):
            goes_on = following[1:2].strip() and line[1:2].strip()
            if goes_on and not line.rstrip().endswith((".", ":")):
                assert len(line.rstrip()) + 1 + len(following.split()[0]) > 70, (words, line)


def test_an_unknown_command_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["generat"])
    assert exit.value.code == 2
    assert "No such command" in capsys.readouterr().err


def test_the_command_starts_without_spark() -> None:
    """Help should come at once, and pyspark takes its time."""
    program = "import sys, cepheid.cli; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_options_are_called_as_in_python() -> None:
    """And take the same values."""
    parameters = {p.name for p in get_command(app).commands["run"].params}
    assert parameters & {option.name for option in fields(Options)} == {
        "time", "type", "tie", "start", "unit", "engine", "plan", "negation", "propagation",
        "stats", "limit", "until", "buckets", "future", "idle", "heartbeat", "threads",
    }  # fmt: skip
    assert tuple(EngineName) == get_args(EngineChoice)
    assert tuple(NegationMode) == get_args(NegationChoice)
    assert tuple(Propagation) == get_args(PropagationChoice)
    for name in ("engine", "plan", "stats", "buckets", "until"):
        assert in_command_words(f"{name}=") == f"--{name}"


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (WRONG_QUERY, 2, f"{WRONG_QUERY}\n"),
        (PlanError("no such class"), 2, "error: no such class\n"),
        (UnsupportedError("not yet"), 2, "error: not yet\n"),
        (DataError("no column `ts`"), 1, "error: no column `ts`\n"),
        (CepheidError("no Java"), 1, "error: no Java\n"),
        (FileNotFoundError(2, "No such file", "x.csv"), 2, "error: x.csv: No such file\n"),
        (
            ValueError("one\n  at org.apache.spark"),
            1,
            "error: ValueError: one\n(CEPHEID_DEBUG=1 in the environment shows the traceback)\n",
        ),
        (
            ValueError(),
            1,
            "error: ValueError\n(CEPHEID_DEBUG=1 in the environment shows the traceback)\n",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_errors_end_cleanly(
    error: Exception,
    code: int,
    text: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CEPHEID_DEBUG", raising=False)
    with pytest.raises(SystemExit) as exit, exit_cleanly():
        raise error
    assert exit.value.code == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", text)


def test_debugging_shows_the_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CEPHEID_DEBUG", "1")
    with pytest.raises(DataError, match="no column"), exit_cleanly():
        raise DataError("no column")


def test_java_that_has_ended_is_told() -> None:
    """py4j raises errors of its own, or lets that of the socket through."""
    from py4j.protocol import Py4JError, Py4JNetworkError

    told = "error: Spark's Java process has ended"
    assert message(Py4JNetworkError("Answer from Java side is empty")).startswith(told)
    assert message(Py4JError("An error occurred while calling o54.isActive")).startswith(told)
    refused = "raise ConnectionRefusedError(111, 'Connection refused')"
    for file, lost in (("site-packages/py4j/clientserver.py", True), ("s3.py", False)):
        with pytest.raises(ConnectionRefusedError) as raised:
            exec(compile(refused, file, "exec"))
        assert message(raised.value).startswith(told) == lost
