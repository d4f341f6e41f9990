"""What a start takes: from nothing to the first batch of every query, and after a kill to the next.

Every start is a process of its own (`started`), so that nothing is loaded or compiled yet, except
for what is kept on disk: kernels, and the archive of Java's classes that a session leaves when it
ends. *The first time* there is no such archive. With the sources of another version, both take
turns, and plain Spark with as many stateful queries of its own (`started_plain`), which has the
archive, too: nobody can start faster than that.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.pipeline import processor_seconds
from benchmarks.report import Record, provenance
from benchmarks.streaming.soak import descendants
from cepheid.spark.start.class_archive import create_archive

EVENTS = 10_000
TURNS = 3
KINDS = ("first", "after a kill")
PLAIN, NOW, FIRST_TIME = "plain Spark", "now", "now, the first time"
_PROGRAM = Path(__file__).with_name("started.py")
_PLAIN_PROGRAM = Path(__file__).with_name("started_plain.py")
BUSY = "Python worker failed to connect back"
"""Spark waits 10 seconds for the process that it asks what a query stores, and each query has one:
several that start at once on a machine that is busy may take longer."""

_SHOWN = 5
_BEGIN = 1_700_000_000_000_000


@dataclass(frozen=True)
class Start:
    """Of one start: seconds until there was a session, until all queries were made and started, and
    until each had done a batch, on the wall and of processors; and of those, the longest time that
    Spark took to plan a first batch."""

    session: float
    queries: float
    batches: float
    planning: float
    cpu: float


def measure(
    counts: Sequence[int], versions: Mapping[str, Path], turns: int, tell: Callable[[str], None]
) -> Record:
    """`versions` are folders of sources, by name; the last is this one."""
    tables, claims = [], []
    tell("archiving Java's classes")
    create_archive()
    for count in counts:
        found = list(_starts(count, versions, turns, tell))
        tables.append(_table(count, found))
        if len(versions) > 1:
            claims += _claims(count, found, [*versions])
    return {
        **provenance(),
        "name": "start",
        "title": "From nothing to a first batch",
        "turns": turns,
        "command": command(counts, versions, turns),
        "tables": tables,
        "claims": claims,
    }


def _starts(
    count: int, versions: Mapping[str, Path], turns: int, tell: Callable[[str], None]
) -> Iterator[tuple[str, str, Start]]:
    """The version, `first` or `after a kill`, and what it took."""
    every = {PLAIN: versions[NOW], **versions, FIRST_TIME: versions[NOW]}
    for turn in range(turns):
        for name, source in every.items():
            program = _PLAIN_PROGRAM if name == PLAIN else _PROGRAM
            archive = name != FIRST_TIME
            with tempfile.TemporaryDirectory(prefix="cepheid-start-") as folder:
                for number, kind in enumerate(KINDS):
                    tell(f"turn {turn + 1}, {name}, {count} queries, {kind}")
                    write(Path(folder), number)
                    yield name, kind, start(Path(folder), count, source, program, archive)


def command(counts: Sequence[int], versions: Mapping[str, Path], turns: int) -> str:
    """The command that measured this. Folders differ by machine: other versions are named by their
    commits, in the table."""
    against = " --against SOURCES" if len(versions) > 1 else ""
    numbers = " ".join(map(str, counts))
    return f"python -m benchmarks.streaming start --queries {numbers} --turns {turns}{against}"


def write(folder: Path, number: int) -> None:
    random = np.random.default_rng(number)
    times = _BEGIN + (number * EVENTS + np.arange(EVENTS)) * 1_000_000
    events = pa.table(
        {
            "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
            "kind": np.array(["A", "B", "C"])[random.integers(0, 3, EVENTS)],
            "id": random.integers(0, 1000, EVENTS),
            "x": random.random(EVENTS),
            "y": random.random(EVENTS),
        }
    )
    (folder / "events").mkdir(exist_ok=True)
    pq.write_table(events, folder / "events" / f"{number}.parquet")


def start(
    folder: Path, count: int, source: Path, program: Path, archive: bool, attempts: int = 3
) -> Start:
    """Start the program with the sources of a version, until all queries have done a batch. Where
    the machine was too busy for Spark it is started again. Java reads no `archive` if there is a
    folder of settings, even an empty one."""
    errors = folder / "errors"
    environ = {**os.environ, "PYTHONPATH": str(source)}
    if not archive:
        (folder / "settings").mkdir(exist_ok=True)
        environ["SPARK_CONF_DIR"] = str(folder / "settings")
    try:
        return _start(folder, count, environ, program, errors)
    except RuntimeError:
        output = errors.read_text(errors="replace")
        if BUSY in output and attempts > 1:
            return start(folder, count, source, program, archive, attempts - 1)
        lines = [line for line in output.splitlines() if line.strip()]
        raise RuntimeError("\n".join(["a query has failed:", *lines[-_SHOWN:]])) from None


def _start(
    folder: Path, count: int, environ: Mapping[str, str], script: Path, errors: Path
) -> Start:
    begin = time.perf_counter()
    with errors.open("wb") as output:
        program = subprocess.Popen(
            [sys.executable, str(script), str(folder), str(count)],
            stdout=subprocess.PIPE,
            stderr=output,
            env=environ,
            start_new_session=True,
        )
    assert program.stdout is not None
    reached: dict[str, float] = {}
    planning = cpu = 0.0
    try:
        for line in program.stdout:
            if not line.startswith(b'{"step"'):
                continue
            step = json.loads(line)
            reached[step["step"]] = time.perf_counter() - begin
            if step["step"] == "batches":
                planning, cpu = step["planning"], processor_seconds(program.pid)
                break
        else:
            raise RuntimeError("the program has ended")
    finally:
        kill(program.pid)
        program.wait()
        program.stdout.close()
    return Start(**reached, planning=planning, cpu=cpu)


def kill(process: int) -> None:
    """Everything at once, as when a machine is lost."""
    for started in [process, *descendants(process)]:
        try:
            os.kill(started, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _table(count: int, found: Sequence[tuple[str, str, Start]]) -> Record:
    """The medians of each version and kind."""
    kinds = dict.fromkeys((name, kind) for name, kind, _ in found)
    shown = {"cpu": "processor", "batches": "first batches", "session": "session",
             "queries": "queries", "planning": "planning"}  # fmt: skip
    rows = [
        [name, kind, *(f"{_typical(found, name, kind, field):.1f}" for field in shown)]
        for name, kind in kinds
    ]
    head = ["version", "start", *shown.values()]
    return {"title": f"seconds of a start, {count} queries", "head": head, "rows": rows}


def _typical(found: Sequence[tuple[str, str, Start]], name: str, kind: str, field: str) -> float:
    return float(median(getattr(start, field) for n, k, start in found if (n, k) == (name, kind)))


def _claims(
    count: int, starts: Sequence[tuple[str, str, Start]], versions: Sequence[str]
) -> list[Record]:
    before = versions[0]
    claims = []
    for kind in KINDS:
        for field, text in (("batches", "on the wall"), ("cpu", "of processors")):
            plain, was, has = (_typical(starts, name, kind, field) for name in (PLAIN, before, NOW))
            whole = f"{was:.1f} s then {has:.1f} s, plain Spark {plain:.1f} s"
            added = f"{was - plain:.1f} s then {has - plain:.1f} s"
            what = f"{count} queries, {kind}: "
            claims += [
                claim(f"{what}at most half of before {text}", has <= was / 2, whole),
                claim(
                    f"{what}beyond plain Spark, at most half of before {text}",
                    has - plain <= (was - plain) / 2,
                    added,
                ),
            ]
    return claims


def claim(text: str, holds: bool, detail: str) -> Record:
    return {"text": text, "must": False, "holds": holds, "detail": detail}
