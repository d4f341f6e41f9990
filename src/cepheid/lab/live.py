"""What the page beside a stream shows: the figures of its batches, and its newest matches.

Everything is read from the checkpoint and the output. So the page continues when the stream is
started again, and may be opened in another process.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from cepheid.errors import OptionError
from cepheid.lab.journal import FILE, lines

BATCHES = 400
"""Batches that are shown."""

MATCHES = 100
"""Matches that are shown, the newest first."""

_FILES = 200
"""Files of matches that are read at first, and at most at once."""

_LONGEST = 200
RULE = "rule"
"""The column of the rule in the matches of a set."""


class Live:
    """A stream by its checkpoint."""

    def __init__(self, checkpoint: Path) -> None:
        if not checkpoint.is_dir():
            raise OptionError(f"there is no checkpoint {checkpoint}")
        self._checkpoint = checkpoint
        self._newest: list[dict[str, Any]] = []
        self._seen: set[str] = set()
        self._rules: Counter[str] = Counter()
        self._output: Path | None = None

    def state(self, after: int = 0) -> dict[str, Any]:
        """The batches since a time, the totals of the run, and the newest matches."""
        written = lines(self._checkpoint)
        begins = [n for n, line in enumerate(written) if line["kind"] == "run"]
        if not begins:
            return {"waiting": f"no batch yet: {self._checkpoint / FILE} doesn't exist"}
        run = written[begins[-1]]
        self._look(Path(str(run.get("output", ""))))
        batches = [line for line in written if line["kind"] == "batch"][-BATCHES:]
        return {
            "run": run,
            "runs": run.get("number", 1),
            "ended": written[-1]["kind"] == "end",
            "batches": [b for b in batches if b["at"] > after],
            "matches": self._newest,
            "rules": [{"name": n, "matches": m} for n, m in self._rules.most_common(50)],
        }

    def _look(self, output: Path) -> None:
        """Read the files of matches that have been committed since the last look."""
        if output != self._output:
            self._output, self._newest, self._seen = output, [], set()
            self._rules.clear()
        new = [path for path in committed(output) if str(path) not in self._seen]
        self._seen.update(map(str, new))
        for path in new[-_FILES:]:
            table = _table(path)
            if table is None:
                continue
            if RULE in table.column_names:
                self._rules.update(str(v) for v in table[RULE].to_pylist())
            rows = table.slice(max(0, table.num_rows - MATCHES)).to_pylist()
            shown = [{name: _text(value) for name, value in row.items()} for row in rows]
            self._newest = [*reversed(shown), *self._newest][:MATCHES]


def committed(output: Path) -> Iterator[Path]:
    """The files of an output of Spark's that belong to finished batches, in their order."""
    logs = [p for p in (output / "_spark_metadata").glob("[0-9]*") if _number(p) is not None]
    seen = set()
    for log in sorted(logs, key=lambda p: (_number(p), not p.name.endswith(".compact"))):
        for line in log.read_text(encoding="utf-8").splitlines()[1:]:  # the first is a version
            try:
                path = unquote(urlparse(json.loads(line)["path"]).path)
            except (ValueError, KeyError):
                continue
            if path not in seen:
                seen.add(path)
                yield Path(path)


def _number(path: Path) -> int | None:
    name = path.name.removesuffix(".compact")
    return int(name) if name.isdecimal() else None


def _table(path: Path) -> pa.Table | None:
    """The matches of a file; none if it has gone, or has no rows."""
    name = path.name
    try:
        if name.endswith(".parquet"):
            return pa.parquet.read_table(path)
        if ".csv" in name:
            return pa.csv.read_csv(path)
        return pa.json.read_json(path) if ".json" in name else None
    except (OSError, pa.ArrowException):
        return None


def _text(value: Any) -> str:
    text = "" if value is None else value if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
