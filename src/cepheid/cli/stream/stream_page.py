"""What a run writes down for the page beside it, and `--page`, which serves that page."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cepheid.cli.queries import WatchedRules
from cepheid.cli.stream.stream_status import Totals
from cepheid.errors import OptionError
from cepheid.lab.journal import Journal
from cepheid.query import Query
from cepheid.spark.streaming.clock.time import Watermark
from cepheid.spark.streaming.status.reports import milliseconds, status

if TYPE_CHECKING:
    from cepheid.cli.stream.stream_target import StreamTarget

ADDRESS = "page.json"
"""The port and the token of `--page`, in the checkpoint: a restart keeps the address."""


@contextmanager
def journal_of(target: StreamTarget, query: Query | WatchedRules) -> Iterator[Journal]:
    """The journal of a run, for the length of the block."""
    text = str(query) if isinstance(query, Query) else f"the rules of {query.path}"
    journal = Journal(
        target.checkpoint,
        {"output": str(target.output.resolve()), "query": text, "process": os.getpid()},
    )
    try:
        yield journal
    finally:
        journal.end()


def batch_figures(report: Mapping[str, Any], totals: Totals) -> dict[str, Any]:
    """The figures of a batch, from Spark's report on it and the totals with it."""
    done = status(report)
    newest = milliseconds((report.get("eventTime") or {}).get("max"))
    names = ("batch", "events", "matches", "late", "rejected", "future", "shed", "seconds")
    return {
        **{name: getattr(done, name) for name in names},
        "held": totals.rows,
        "size": totals.size,
        "waiting": totals.waiting,
        "totals": {
            name: getattr(totals, name)
            for name in ("batches", "events", "matches", "late", "rejected", "future", "shed")
        },
        "watermark": _moment(totals.watermark, totals.integers),
        "newest": _moment(newest, totals.integers),
        "integers": totals.integers,
    }


def _moment(spark: int | None, integers: bool) -> int | None:
    """In milliseconds since 1970, or as the integer that the time column has."""
    if spark is None:
        return None
    return Watermark(True, False).ticks(spark) if integers else spark


@contextmanager
def page_beside(checkpoint: Path, wanted: bool) -> Iterator[None]:
    """Serve the page for the length of the block."""
    if not wanted:
        yield
        return
    from cepheid.lab.live import Live
    from cepheid.lab.pages import live_app
    from cepheid.lab.server import address, listening, new_token, serving

    known = _known(checkpoint / ADDRESS)
    token = known.get("token") or new_token()
    try:
        at = listening(known.get("port", 0))
    except OptionError:  # another program has taken the port meanwhile
        at = listening(0)
    _keep(checkpoint / ADDRESS, {"port": at.getsockname()[1], "token": token})
    with serving(live_app(Live(checkpoint), token), at):
        print(f"page: {address(at, token)}", file=sys.stderr, flush=True)
        yield


def _known(file: Path) -> dict[str, Any]:
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    fits = isinstance(known, dict) and isinstance(known.get("port"), int)
    return known if fits and isinstance(known.get("token"), str) else {}


def _keep(file: Path, address: Mapping[str, Any]) -> None:
    """Readable by its owner alone: who knows the token sees the matches."""
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as kept:
        json.dump(address, kept)
