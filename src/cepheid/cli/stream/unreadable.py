"""Files that a stream couldn't read, or not to their end.

Such a file must not stop a stream, so Spark is set to skip what it can't read, and it doesn't say
where that was. So after each batch the files that it took (the stream's checkpoint lists them) are
looked at. Cheap checks find those that are in doubt: Parquet files if fewer rows have come than
their ends promise, and compressed files that don't unpack. Spark then reads those again, and this
time it fails. A file of text whose name says another format than those of the others was read as
one of them; it is listed, too, as its first line may have been taken for a header.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet

from cepheid.cli.stream.stream_columns import Folder
from cepheid.cli.stream.stream_target import MATCHES, REJECTED
from cepheid.files.formats import COMPRESSED, Format, fixed_folder, named_format
from cepheid.files.guard import replace_text
from cepheid.files.line_blocks import open_text
from cepheid.spark.streaming.status.reports import status

Ask = Callable[[Folder, str], str | None]
"""Returns the reason why Spark can't read a file to its end; None if it can."""

GONE = "it no longer existed when its batch was checked: its events may be missing"
_UNPACKED = 1 << 20  # bytes
_ANOTHER = (
    "it was read as {0}, which its name doesn't say: move it, or name the format of all files, "
    "--input-format {0}"
)


class Unreadable:
    """The files found so far in the folders, listed in a file. `checked` keeps how far that has
    come, by source: after a crash it resumes from there. The files are those that the streaming
    `query` takes; `log` is its log of sources."""

    def __init__(
        self,
        folders: Iterable[Folder],
        log: Path,
        listed: Path,
        checked: Path,
        ask: Ask,
        query: str = MATCHES,
    ) -> None:
        self.query = query
        self._folders = [(fixed_folder(f.path).resolve(), f) for f in folders if f.is_local]
        self._log, self._listed, self._checked, self._ask = log, listed, checked, ask
        self._done: dict[str, int] = json.loads(checked.read_text()) if checked.exists() else {}
        lines = listed.read_text().splitlines() if listed.exists() else []
        self._names = {json.loads(line)["file"] for line in lines}

    def look(self, progress: Mapping[str, Any]) -> dict[str, str]:
        """The unreadable files and reasons, of the files taken in the batch and since the last
        check."""
        passes = self._passes(progress)
        unread: dict[str, str] = {}
        for number, source in enumerate(progress["sources"]):
            begin, end = _offset(source["startOffset"]), _offset(source["endOffset"])
            read = None if passes is None else source["numInputRows"] // passes
            unread |= self._taken(number, begin, None) | self._taken(number, end, read)
        return self._list(unread)

    def look_back(self, offsets: Iterable[Any]) -> dict[str, str]:
        """The unreadable files of finished batches, up to the offset of each source: a run may have
        ended after a batch, and before the check."""
        unread: dict[str, str] = {}
        for number, offset in enumerate(offsets):
            unread |= self._taken(number, _offset(offset), None)
        return self._list(unread)

    def _taken(self, number: int, end: int, read: int | None) -> dict[str, str]:
        """The unreadable files among those that a source has taken since the last check."""
        done = self._done.get(str(number), -1)
        if end <= done:
            return {}
        self._done[str(number)] = end
        files = ((p, self._folder(p)) for p, _ in entries(self._log / str(number), done, end))
        return self._unread({p: folder for p, folder in files if folder is not None}, read)

    def _list(self, unread: Mapping[str, str]) -> dict[str, str]:
        """Add the files to the list; return those that are new."""
        new = {name: reason for name, reason in unread.items() if name not in self._names}
        if new:
            self._names |= new.keys()
            self._listed.parent.mkdir(parents=True, exist_ok=True)
            known = self._listed.read_text() if self._listed.exists() else ""
            lines = (json.dumps({"file": name, "reason": why}) for name, why in new.items())
            replace_text(self._listed, known + "".join(f"{line}\n" for line in lines))
        replace_text(self._checked, json.dumps(self._done))
        return new

    def _passes(self, progress: Mapping[str, Any]) -> int | None:
        """How often a batch read its files: rules of several keys read them once per key. The table
        of rule versions is also a source, whose rows are no events. None if some files are text:
        their lines are counted, and headers are no events."""
        if any(folder.format is not Format.PARQUET for _, folder in self._folders):
            return None
        if self.query == REJECTED:
            return 1
        events = status(progress).events
        places = [str(place) for place, _ in self._folders]
        reads = [
            source["numInputRows"]
            for source in progress["sources"]
            if any(place in source.get("description", place) for place in places)
        ]
        return max(1, round(sum(reads) / events)) if events else 1

    def _folder(self, path: str) -> Folder | None:
        file = Path(local_path(path))
        folders = [folder for place, folder in self._folders if file.is_relative_to(place)]
        # Two patterns may be of one folder.
        fitting = [folder for folder in folders if folder.format is named_format(file)]
        return next(iter([*fitting, *folders]), None)

    def _unread(self, files: Mapping[str, Folder], read: int | None) -> dict[str, str]:
        """The reasons why files of a source couldn't be read; `read` is the number of rows read of
        all of them, if known."""
        gone = {file: GONE for file in files if not Path(local_path(file)).exists()}
        there = {file: folder for file, folder in files.items() if file not in gone}
        parquet = [file for file, folder in there.items() if folder.format is Format.PARQUET]
        short = missing_rows(parquet, read)
        doubtful = parquet if short else [file for file in parquet if promised_rows(file) is None]
        doubtful += [file for file, folder in there.items() if doubtful_text(folder, file)]
        faults = {file: self._ask(there[file], file) for file in doubtful}
        reasons = {file: reason for file, reason in faults.items() if reason is not None}
        if short and read is not None and not reasons.keys() & set(parquet):
            # Spark can read them now. Which one it couldn't read before isn't known.
            reasons |= {
                file: f"{short} of it or of other files of its batch are missing"
                for file in parquet
            }
        others = {
            file: _ANOTHER.format(folder.format)
            for file, folder in there.items()
            if says_another_format(folder, file)
        }
        return gone | others | reasons


def _offset(offset: Any) -> int:
    """The source's offset: how often it has found new files, from 0; a heartbeat has none."""
    value = json.loads(offset) if isinstance(offset, str) else offset
    return int(value["logOffset"]) if isinstance(value, Mapping) else -1


def entries(log: Path, after: int, until: int) -> Iterator[tuple[str, int]]:
    """The files that a source has taken, and when, from its log; every tenth file of the log
    repeats those before it."""
    for path in log.glob("[0-9]*"):
        if after < int(path.stem) <= until:
            for line in path.read_text().splitlines()[1:]:
                entry = json.loads(line)
                if not isinstance(entry, Mapping):  # of a heartbeat, which reads no files
                    continue
                if after < entry["batchId"] <= until:
                    yield entry["path"], entry["batchId"]


def missing_rows(files: Sequence[str], read: int | None) -> str:
    """How many rows, by their footers, Parquet files have beyond those that were read, as text:
    unknown if that is, empty if all were read."""
    if read is None:
        return "an unknown number of rows" if files else ""
    missing = sum(promised_rows(file) or 0 for file in files) - read
    return f"{missing:,} rows" if missing > 0 else ""


def promised_rows(file: str) -> int | None:
    """The row count in a Parquet file's footer; None if the file is cut off."""
    try:
        rows: int = pa.parquet.read_metadata(local_path(file)).num_rows
    except (pa.ArrowException, OSError):
        return None
    return rows


def doubtful_text(folder: Folder, file: str) -> bool:
    """Whether a text file may not have been read to its end."""
    path = Path(local_path(file))
    if folder.format is Format.PARQUET or path.suffix.lower() not in COMPRESSED:
        return False
    try:
        with open_text(path) as content:
            while content.read(_UNPACKED):
                pass
    except OSError:
        return True
    return False


def says_another_format(folder: Folder, file: str) -> bool:
    """Of a Parquet file Spark sees itself whether it is one."""
    if folder.format is Format.PARQUET or not folder.named:
        return False
    return named_format(local_path(file)) is not folder.format


def local_path(uri: str) -> str:
    return unquote(urlparse(uri).path)
