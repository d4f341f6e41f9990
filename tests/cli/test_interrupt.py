"""Ctrl-C: one line, exit code 130, and no file that wasn't there before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from cepheid.workloads import stocks

ROOT = Path(__file__).parents[2]

# All pairs of events: it goes on for many minutes.
ALL_PAIRS = ("-q", "PATTERN a ; b WITHIN 1000000 RETURN a.id AS a, b.id AS b", "--time", "ts")


def handled() -> None:
    """Ctrl-C isn't ignored, even if the tests run in the background of a shell script."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def interrupted(folder: Path, *arguments: str, when: Callable[[], object]) -> tuple[int, str]:
    """The exit code and what was printed by a command that gets Ctrl-C, as all of its processes do,
    once something has happened."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cepheid.cli", *arguments],
        cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=handled,
    )  # fmt: skip
    begin = time.monotonic()
    while not when() and process.poll() is None and time.monotonic() - begin < 120:
        time.sleep(0.05)
    assert process.poll() is None, process.stderr and process.stderr.read()
    os.killpg(process.pid, signal.SIGINT)
    try:
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
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


def test_ctrl_c_in_the_lab(tmp_path: Path) -> None:
    """While the process that answers its questions loads, which the terminal signals, too."""
    (tmp_path / "s.csv").write_text("ts,id\n1,1\n2,2\n")
    command = ("lab", *ALL_PAIRS, "-i", "s.csv", "--no-browser")
    code, told = interrupted(tmp_path, *command, when=lambda: answering_processes(tmp_path))
    assert (code, told.splitlines()[1:]) == (130, ["interrupted"])


def answering_processes(folder: Path) -> list[Path]:
    """Those that the lab has started in a folder and that load Arrow, on Linux."""
    return [
        path
        for path in Path("/proc").glob("[0-9]*")
        if b"answers_process" in read(path / "cmdline")
        and (path / "cwd").resolve() == folder.resolve()
        and b"libarrow" in read(path / "maps")
    ]


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended
        return b""


LOADING = """
import os, signal, sys

class Interrupting:
    @staticmethod
    def find_spec(name, *more):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting)
sys.argv = ["cepheid", "--help"]
{program}
"""


def interrupted_while_loading(
    name: str, program: str, signals: Callable[[], None] = handled
) -> tuple[int, str]:
    """The exit code and what was printed by a program that gets Ctrl-C when it loads a module."""
    done = subprocess.run(
        [sys.executable, "-c", LOADING.format(name=name, program=program)],
        capture_output=True, text=True,
        preexec_fn=signals,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


SCRIPT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["cepheid"]
RUN_SCRIPT = "from {} import {} as run; run()".format(*SCRIPT.split(":"))


@pytest.mark.parametrize(
    "name", ["cepheid", "cepheid.extras", "typer", "cepheid.cli.app", "typer.rich_utils"]
)
def test_ctrl_c_while_modules_are_loaded(name: str) -> None:
    """From the first module on, to those that are loaded while options are read."""
    assert interrupted_while_loading(name, RUN_SCRIPT) == (130, "interrupted\n")


@pytest.mark.parametrize("module", ["cepheid.cli", "cepheid.cli.demo"])
def test_ctrl_c_while_python_m_loads(module: str) -> None:
    program = f"import runpy; runpy.run_module({module!r}, run_name='__main__')"
    assert interrupted_while_loading("rich", program) == (130, "interrupted\n")


def test_ctrl_c_that_is_ignored_stays_so() -> None:
    """As in the background of a shell script."""
    code, printed = interrupted_while_loading("typer", RUN_SCRIPT, ignored)
    assert (code, "Usage: cepheid" in printed) == (0, True)


IN_A_CALLBACK = """
import ctypes, os, signal, sys, time
from cepheid.cli.output.failure import ended_by_signals, exit_cleanly

@ctypes.CFUNCTYPE(None)
def called_from_c():
    os.kill(os.getpid(), signal.{name})
    time.sleep(0)

with ended_by_signals(), exit_cleanly():
    called_from_c()
    {after}
"""


@pytest.mark.parametrize("after", ["time.sleep(60)", "raise RuntimeError('no compiled object')"])
@pytest.mark.parametrize(
    ("name", "code", "printed"),
    [("SIGINT", 130, "interrupted\n"), ("SIGTERM", 143, "terminated\n")],
)
def test_a_signal_that_comes_while_c_calls_python(
    after: str, name: str, code: int, printed: str
) -> None:
    """As when a kernel is compiled: C drops what is raised, and may fail for the lack of a
    result."""
    done = subprocess.run(
        [sys.executable, "-c", IN_A_CALLBACK.format(name=name, after=after)],
        capture_output=True, text=True, preexec_fn=handled, timeout=50,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (code, printed)


def test_other_errors_in_callbacks_are_printed() -> None:
    program = IN_A_CALLBACK.format(name="SIGINT", after="pass")
    program = program.replace("os.kill(os.getpid(), signal.SIGINT)", "1 / 0")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0 and "ZeroDivisionError" in done.stderr


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
