"""Parquet files that a stream had to leave out.

A file that was cut off must not stop a stream, so Spark is told to skip what it can't read, and it
doesn't say what that was. So after each batch the files that it took (the stream's checkpoint lists
them) are looked at: one without its end has no rows at all, and if fewer rows were read than the
files' ends promise, one is damaged inside.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet


class Unreadable:
    """The files found so far in the folders, listed in a file. `checked` keeps how far that has
    come, by source: after a crash it goes on from there."""

    def __init__(self, folders: Sequence[Path], log: Path, listed: Path, checked: Path) -> None:
        self._folders = [folder.resolve() for folder in folders]
        self._log, self._listed, self._checked = log, listed, checked
        self._done: dict[str, int] = json.loads(checked.read_text()) if checked.exists() else {}
        lines = listed.read_text().splitlines() if listed.exists() else []
        self._names = {json.loads(line)["file"] for line in lines}

    def look(self, progress: Mapping[str, Any]) -> int:
        """How many of the files are bad that were taken in the batch, and since the last look."""
        found: dict[str, str] = {}
        for number, source in enumerate(progress["sources"]):
            end = _offset(source["endOffset"])
            done = self._done.get(str(number), -1)
            if end <= done:
                continue
            taken = {
                path: batch
                for path, batch in entries(self._log / str(number), done, end)
                if any(Path(local_path(path)).is_relative_to(f) for f in self._folders)
            }
            begin = _offset(source["startOffset"])
            now = [path for path, batch in taken.items() if batch > begin]
            before = [path for path, batch in taken.items() if batch <= begin]
            found |= damaged(now, source["numInputRows"]) | damaged(before, 0)
            self._done[str(number)] = end
        new = {name: reason for name, reason in found.items() if name not in self._names}
        if new:
            self._names |= new.keys()
            self._listed.parent.mkdir(parents=True, exist_ok=True)
            with self._listed.open("a", encoding="utf-8") as file:
                for name, reason in new.items():
                    file.write(json.dumps({"file": name, "reason": reason}) + "\n")
        self._checked.write_text(json.dumps(self._done))
        return len(new)


def _offset(offset: Any) -> int:
    """How many times the source has found new files, counted from 0."""
    value = json.loads(offset) if isinstance(offset, str) else offset
    return -1 if value is None else int(value["logOffset"])


def entries(log: Path, after: int, until: int) -> Iterator[tuple[str, int]]:
    """The files that a source has taken, and when, from the log that it keeps; every tenth file of
    it repeats those before it."""
    for path in log.glob("[0-9]*"):
        if after < int(path.stem) <= until:
            for line in path.read_text().splitlines()[1:]:
                entry = json.loads(line)
                if after < entry["batchId"] <= until:
                    yield entry["path"], entry["batchId"]


def damaged(files: Sequence[str], read: int) -> dict[str, str]:
    """Those that can't be read, and why; `read` rows were read of all of them."""
    found, rows = {}, 0
    for file in files:
        try:
            rows += pa.parquet.read_metadata(local_path(file)).num_rows
        except (pa.ArrowException, OSError) as error:
            found[file] = f"not read: {_first_line(error)}"
    if read < rows:
        for file in set(files) - found.keys():
            try:
                pa.parquet.read_table(local_path(file))
            except (pa.ArrowException, OSError) as error:
                found[file] = f"read in part: {_first_line(error)}"
    return found


def local_path(uri: str) -> str:
    return unquote(urlparse(uri).path)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
