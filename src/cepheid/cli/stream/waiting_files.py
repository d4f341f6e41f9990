"""Counts files that a stream hasn't taken yet: how far it is behind."""

from __future__ import annotations

from collections.abc import Iterable
from os.path import abspath
from pathlib import Path

from cepheid.cli.stream.stream_columns import Folder
from cepheid.cli.stream.unreadable import entries, local_path
from cepheid.files.formats import data_files

_ALL = 1 << 62


class WaitingFiles:
    """Compares the folders with the files listed in the stream's checkpoint, reading only new
    entries. A folder of which no file was taken may be one that the query doesn't read."""

    def __init__(self, folders: Iterable[Folder], log: Path) -> None:
        self._paths = [folder.path for folder in folders if folder.is_local]
        self._log = log
        self._read: dict[str, int] = {}
        self._taken: set[str] = set()

    def count(self) -> int:
        for source in self._log.glob("[0-9]*"):
            for path, batch in entries(source, self._read.get(source.name, -1), _ALL):
                self._taken.add(local_path(path))
                self._read[source.name] = max(batch, self._read.get(source.name, -1))
        folders = [{abspath(file) for file in data_files(path)} for path in self._paths]
        read = [files for files in folders if files & self._taken]
        there = set[str]().union(*(read or folders))
        self._taken &= there
        return len(there) - len(self._taken)
