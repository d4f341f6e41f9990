"""What `cepheid run --stream` writes down of each batch, in its checkpoint, for the page beside it.

Lines of JSON: one when a run begins, one for each batch, one when the run ends. Only the newest are
kept, so the file stays small however long the stream runs.
"""

from __future__ import annotations

import json
import time as clock
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE = "batches.jsonl"

KEPT = 2000
"""Lines that stay when there are twice as many."""


class Journal:
    """Writes the lines of a run."""

    def __init__(self, checkpoint: Path, run: Mapping[str, Any]) -> None:
        self._path = checkpoint / FILE
        known = lines(checkpoint)
        number = 1 + max((line.get("number", 0) for line in known), default=0)
        self._count = 0
        self._rewrite(known)
        self._write("run", {"number": number, **run})

    def add(self, batch: Mapping[str, Any]) -> None:
        self._write("batch", batch)

    def end(self) -> None:
        self._write("end", {})

    def _write(self, kind: str, figures: Mapping[str, Any]) -> None:
        if self._count >= 2 * KEPT:
            self._rewrite(lines(self._path.parent))
        line = {"kind": kind, "at": round(clock.time() * 1000), **figures}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self._count += 1

    def _rewrite(self, known: list[dict[str, Any]]) -> None:
        """Keep the newest lines, and that of the run; not one that a kill has cut."""
        runs = [line for line in known[:-KEPT] if line["kind"] == "run"][-1:]
        kept = [*runs, *known[-KEPT:]]
        whole = self._path.with_suffix(".new")
        whole.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
        whole.replace(self._path)
        self._count = len(kept)


def lines(checkpoint: Path) -> list[dict[str, Any]]:
    """What was written, without a last line that isn't complete yet."""
    try:
        text = (checkpoint / FILE).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    written = []
    for line in text.splitlines():
        try:
            known = json.loads(line)
        except ValueError:
            continue
        if isinstance(known, dict) and "kind" in known and "at" in known:
            written.append(known)
    return written
