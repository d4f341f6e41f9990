"""Figures of streams for Prometheus, by a listener that the caller attaches to the session."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from cepheid.spark.streaming.status.reports import Status, is_observed, milliseconds, status
from cepheid.spark.streaming.status.sums import COUNTED, Sums

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_COUNTERS = {
    "batches": "Batches that were run",
    "events": "Rows that were read",
    "rejected": "Rows without a time, or that end before they start",
    "future": "Rows too far ahead of the clock",
    "relevant": "Rows that some variable can take",
    "late": "Rows that came too late",
    "shed": "Events dropped because of a limit",
    "ties": "Simultaneous events of a key whose order matters, and isn't known",
    "matches": "Matches found",
    "suppressed": "Alerts of rules that were throttled",
}
_GAUGES = {
    "state_rows": "Events held",
    "state_bytes": "Bytes of state",
    "rules_refused": "Rules that can't be run over these events",
    "batch_seconds": "How long the last batch took",
    "backlog": "Offsets that wait in the sources, if they report them",
    "watermark_seconds": "Seconds since 1970 up to which all events are assumed to have arrived",
    "active": "1 while the query runs",
}


@dataclass
class _Course:
    """The figures of a query since the listener was attached."""

    sums: Sums = field(default_factory=Sums)
    last: Status | None = None
    active: bool = True

    def figures(self) -> Iterator[tuple[str, float]]:
        for name in ("batches", *COUNTED):
            yield f"{name}_total", getattr(self.sums, name)
        yield "active", int(self.active)
        if self.last is None:
            return
        yield "state_rows", self.sums.rows
        yield "state_bytes", self.sums.size
        yield "rules_refused", self.sums.refused
        yield "batch_seconds", self.last.seconds
        if self.last.backlog is not None:
            yield "backlog", self.last.backlog
        if (reached := milliseconds(self.last.watermark)) is not None:
            yield "watermark_seconds", reached / 1000


class Metrics(StreamingQueryListener):
    """Figures of all of Cepheid's queries in a session, as Prometheus reads them. Attach it with
    `spark.streams.addListener(metrics)`, before the queries start.

    path  a file that is written anew after every batch, for a collector that reads files
    port  served at this port, under /metrics; 0 is any that is free (`metrics.port`)
    host  the address that it is served at: by default only to this machine

    Counters begin at 0 with the listener. `text()` has the figures, `close()` ends the serving.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        port: int | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self._courses: dict[str, _Course] = {}
        self._names: dict[str, str] = {}  # of runs
        self._lock = threading.Lock()
        self._path = None if path is None else Path(path)
        self._server = None if port is None else _serve(self, host, port)
        self._write()

    @property
    def port(self) -> int | None:
        return None if self._server is None else int(self._server.server_address[1])

    def text(self) -> str:
        with self._lock:
            figures = {name: dict(course.figures()) for name, course in self._courses.items()}
        lines: list[str] = []
        for name, kind, help_text in _families():
            samples = [(query, values[name]) for query, values in figures.items() if name in values]
            if samples:
                lines += [f"# HELP cepheid_{name} {help_text}", f"# TYPE cepheid_{name} {kind}"]
                lines += [f'cepheid_{name}{{query="{_escaped(q)}"}} {v}' for q, v in samples]
        return "".join(f"{line}\n" for line in lines)

    def close(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    # ── what Spark reports ──

    def onQueryStarted(self, event: Any) -> None:
        self._names[str(event.runId)] = event.name or str(event.id)

    def onQueryProgress(self, event: Any) -> None:
        report = json.loads(event.progress.json)
        if not is_observed(report):
            return
        name = report.get("name") or report["id"]
        done = status(report)
        with self._lock:
            course = self._courses.setdefault(name, _Course())
            course.sums.add(done)
            course.last, course.active = done, True
        self._write()

    def onQueryIdle(self, event: Any) -> None:
        pass

    def onQueryTerminated(self, event: Any) -> None:
        name = self._names.pop(str(event.runId), str(event.id))
        with self._lock:
            if name in self._courses:
                self._courses[name].active = False
        self._write()

    def _write(self) -> None:
        if self._path is not None:
            hidden = self._path.with_name(f".{self._path.name}")
            hidden.write_text(self.text(), encoding="utf-8")
            os.replace(hidden, self._path)  # so that nobody reads half of it


def _families() -> Iterator[tuple[str, str, str]]:
    for name, help_text in _COUNTERS.items():
        yield f"{name}_total", "counter", help_text
    for name, help_text in _GAUGES.items():
        yield name, "gauge", help_text


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _serve(metrics: Metrics, host: str, port: int) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.path.partition("?")[0] == "/metrics"
            data = metrics.text().encode() if known else b"see /metrics\n"
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *values: Any) -> None:
            """Don't log requests."""

    server = ThreadingHTTPServer((host, port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="cepheid metrics", daemon=True).start()
    return server
