"""Ctrl-C: one line, exit code 130, and no file that wasn't there before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import cepheid.cli
from cepheid.workloads import stocks

# All pairs of events: it goes on for many minutes.
ALL_PAIRS = ("-q", "PATTERN a ; b WITHIN 1000000 RETURN a.id AS a, b.id AS b", "--time", "ts")


def interrupted(folder: Path, *arguments: str, when: Callable[[], object]) -> tuple[int, str]:
    """The exit code and what was printed by a command that gets Ctrl-C, as all of its processes do,
    once something has happened."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cepheid.cli", *arguments],
        cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    begin = time.monotonic()
    while not when() and process.poll() is None and time.monotonic() - begin < 120:
        time.sleep(0.05)
    assert process.poll() is None, process.stderr and process.stderr.read()
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=60)
    return process.returncode, told


@pytest.mark.parametrize(
    ("command", "begun"),
    [
        (("generate", "stocks", "--rows", "900_000_000", "-o", "new/x.csv"), "new/.x.csv.partial*"),
        (("run", *ALL_PAIRS, "-i", "s.csv", "-o", "new/x.csv"), "new/.x.csv.partial*"),
    ],
)
def test_ctrl_c(command: tuple[str, ...], begun: str, tmp_path: Path) -> None:
    with (tmp_path / "s.csv").open("w") as file:
        file.writelines(["ts,id\n", *(f"{n},{n}\n" for n in range(200_000))])
    told = interrupted(tmp_path, *command, when=lambda: list(tmp_path.glob(begun)))
    assert told == (130, "interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == ["s.csv"]


def test_ctrl_c_while_modules_are_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted:
        @staticmethod
        def find_spec(name: str, *more: object) -> None:
            if name == "cepheid.cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "cepheid.cli.app", raising=False)
    monkeypatch.delattr(cepheid.cli, "app", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted, *sys.meta_path])
    with pytest.raises(SystemExit) as exit:
        cepheid.cli.main(["--version"])
    assert (exit.value.code, capsys.readouterr().err) == (130, "interrupted\n")


@pytest.mark.slow
def test_ctrl_c_on_spark(tmp_path: Path) -> None:
    pa.parquet.write_table(stocks.generate(200_000), tmp_path / "s.parquet")
    command = ("run", *ALL_PAIRS, "-i", "s.parquet", "-o", "found", "--master", "local[1]")
    begin = time.monotonic()
    told = interrupted(tmp_path, *command, when=lambda: time.monotonic() - begin > 40)
    assert told == (130, "interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == ["s.parquet"]


def test_sigterm_leaves_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "cepheid.cli", "generate", "stocks", "--rows", "900_000_000",
         "-o", "x.csv"],
        cwd=tmp_path, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while not list(tmp_path.iterdir()) and process.poll() is None:
        time.sleep(0.05)
    process.terminate()
    assert process.wait(timeout=60) == 143
    assert list(tmp_path.iterdir()) == []
