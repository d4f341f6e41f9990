"""`cepheid warm`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import run

QUERY = "PATTERN A a ; B b WHERE a.x + 7 < b.x AND a.x < 2 * b.x WITHIN 10"


@pytest.fixture
def given(tmp_path: Path) -> tuple[str, ...]:
    events = tmp_path / "events.csv"
    events.write_text("t,type,x\n1,A,1\n2,B,9\n")
    return ("-q", QUERY, "--input", str(events), "--time", "t", "--type", "type")


def test_kernels_are_compiled_once(
    given: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CEPHEID_CACHE", str(tmp_path))
    assert run("warm", *given) == 0
    assert capsys.readouterr().out.startswith("compiled 1 kernel in ")
    assert run("warm", *given) == 0
    assert capsys.readouterr().out.startswith("nothing to compile: the kernels are in ")


def test_a_folder_that_can_not_be_written(given: tuple[str, ...], tmp_path: Path) -> None:
    """In a process of its own: another kernel folder isn't looked for twice."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    command = [sys.executable, "-m", "cepheid.cli", "warm", *given]
    done = subprocess.run(
        command, capture_output=True, text=True, env={"CEPHEID_CACHE": str(blocked)}
    )
    assert done.returncode == 1
    assert "set CEPHEID_CACHE to one that can" in done.stderr


def test_wrong_use(given: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("warm", *given, "--engine", "treee") == 2
    assert run("warm", "-q", "PATTERN A a ; B b", *given[2:]) == 2
    assert "WITHIN" in capsys.readouterr().err
