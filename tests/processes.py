"""Processes of this machine, and which of them belong to one that a test has started."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    command: str


def processes() -> Iterator[Process]:
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                parent = (path / "stat").read_text().rpartition(")")[2].split()[1]
                command = (path / "cmdline").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended meanwhile
            yield Process(int(path.name), int(parent), command)


def descendants(pid: int) -> list[Process]:
    """The processes that the process has started, and those that they have."""
    found = list(processes())
    below, left = {pid}, True
    while left:
        new = {p.pid for p in found if p.parent in below} - below
        below, left = below | new, bool(new)
    return [p for p in found if p.pid in below and p.pid != pid]


def marked(variable: str, value: str) -> list[int]:
    """The processes that have a variable of this value in their environment, by their numbers."""
    wanted, found = f"{variable}={value}".encode(), []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
                if wanted in (path / "environ").read_bytes().split(b"\0"):
                    found.append(int(path.name))
    return found


def python_workers(pid: int) -> list[Process]:
    """What Spark's Python daemons below a process have forked, and is called as they are."""
    found = _daemons_and_workers(pid)
    return [p for p in found.values() if p.parent in found]


def python_daemons(pid: int) -> list[Process]:
    found = _daemons_and_workers(pid)
    return [p for p in found.values() if p.parent not in found]


def _daemons_and_workers(pid: int) -> dict[int, Process]:
    return {
        p.pid: p
        for p in descendants(pid)
        if "daemon" in p.command and "java" not in p.command.partition("\0")[0]
    }
