"""`cepheid run --stream`, or another program, as a process that can be killed in parts, and what it
leaves on disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from tests.processes import Process, descendants, marked, python_daemons, python_workers

ROOT = Path(__file__).parents[2]
POLL = 0.05
_MARK = "CEPHEID_CAMPAIGN"


@dataclass
class Driver:
    """One start of the command, a module and its arguments. Its processes are known by a variable
    of their environment: the numbers of those that have ended may belong to others by now."""

    command: Sequence[str]
    place: Path
    log: Path
    mark: str = field(default_factory=lambda: uuid4().hex)
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *self.command],
                cwd=self.place,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, _MARK: self.mark, "PYTHONPATH": str(ROOT)},
            )

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    @property
    def said(self) -> str:
        """What it has printed."""
        with self.log.open("rb") as log:
            log.seek(self.started)
            return log.read().decode(errors="replace")

    def kill_all(self) -> None:
        """The command, its JVM, workers and executors, at once, and what they leave behind."""
        while found := marked(_MARK, self.mark):
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    def wait(self, seconds: float) -> int | None:
        """The exit code, None if it hasn't ended by then."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def parts(self, kind: str) -> list[Process]:
        """Its processes of a kind."""
        pid = self.process.pid
        match kind:
            case "jvm":
                return [p for p in descendants(pid) if "SparkSubmit" in p.command]
            case "executor":
                return [p for p in descendants(pid) if "CoarseGrainedExecutor" in p.command]
            case "daemon":
                return python_daemons(pid)
            case _:
                return python_workers(pid)


@dataclass(frozen=True)
class Checkpoint:
    """What a stream has written down of its batches."""

    folder: Path

    @property
    def matches(self) -> Path:
        return self.folder / "queries" / "matches"

    def begun(self) -> int:
        return _last(self.matches / "offsets")

    def done(self) -> int:
        return _last(self.matches / "commits")

    def watermark(self) -> int | None:
        """Milliseconds since 1970 that no later batch stays behind."""
        offsets = self.matches / "offsets" / str(self.done())
        if not offsets.exists():
            return None
        lines = offsets.read_text().splitlines()
        return int(json.loads(lines[1])["batchWatermarkMs"]) if len(lines) > 1 else None


def _last(folder: Path) -> int:
    """The number of the last batch, from 0; -1 if there is none."""
    return max((int(p.name) for p in folder.glob("[0-9]*") if p.name.isdigit()), default=-1)


def committed(folder: Path) -> Iterator[Path]:
    """The files of a sink that count: those that Spark's log lists. A file of the log whose number
    is the last of ten has all before it."""
    log = folder / "_spark_metadata"
    entries = sorted(
        (p for p in log.glob("[0-9]*") if not p.name.startswith(".")), key=lambda p: int(p.stem)
    )
    compact = max((n for n, p in enumerate(entries) if p.suffix == ".compact"), default=0)
    for entry in entries[compact:]:
        for line in entry.read_text().splitlines()[1:]:
            written = json.loads(line)
            if written["action"] == "add":
                yield folder / Path(written["path"]).name


def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether it has become true in that time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(POLL)
    return True
