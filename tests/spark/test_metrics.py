"""What a stream tells of itself: by Spark's reports, and to Prometheus."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import cepheid as cep
from cepheid.spark.streaming.status.sums import Sums
from tests.spark.streaming_harness import Course, run

READ = {"events": 10, "rejected": 1, "future": 2}
FOUND = {"events": 7, "late": 3, "shed": 4, "matches": 5, "rows": 20, "size": 300, "replans": 0}


def report(
    batch: int, *buckets: Mapping[str, Any], name: str | None = "alarms", **more: Any
) -> dict[str, Any]:
    own = [{"refused": 0, **bucket} for bucket in buckets]
    observed = {"cepheid read x": READ, "cepheid found x": {**FOUND, "buckets": own}}
    return {
        "id": "1-2-3",
        "runId": "4-5-6",
        "name": name,
        "batchId": batch,
        "batchDuration": 1500,
        "observedMetrics": observed,
        **more,
    }


def progress(found: dict[str, Any]) -> Any:
    return SimpleNamespace(progress=SimpleNamespace(json=json.dumps(found)))


BUCKETS = (
    {"bucket": "0", "rows": 8, "size": 100},
    {"bucket": "1", "rows": 12, "size": 200},
)


@pytest.mark.parametrize(
    ("sources", "backlog"),
    [
        ([], None),
        ([{"endOffset": {"logOffset": 3}, "latestOffset": None}], None),
        ([{"endOffset": 10, "latestOffset": 25}], 15),
        ([{"endOffset": None, "latestOffset": 25}], None),
        ([{"endOffset": 10, "latestOffset": 25, "description": "RateStreamV2[…]"}], None),
        (
            [
                {
                    "endOffset": {"clicks": {"0": 5, "1": 9}},
                    "latestOffset": {"clicks": {"0": 8, "1": 9, "2": 4}},
                },
                {"endOffset": '{"orders":{"0":1}}', "latestOffset": '{"orders":{"0":3}}'},
                {"endOffset": {"logOffset": 3}, "latestOffset": None},
            ],
            5,
        ),
    ],
)
def test_the_backlog_is_what_sources_tell(sources: list[Any], backlog: int | None) -> None:
    assert cep.status(report(0, sources=sources)).backlog == backlog


def test_a_query_is_followed() -> None:
    """Batches add up, and buckets that take no part in one stay as they were."""
    empty = {**report(1), "observedMetrics": {"cepheid read x": {"events": 0}}}
    later = {"bucket": "1", "rows": 2, "size": 20}
    reports = [report(0, *BUCKETS), empty, {**empty, "durationMs": {}}, report(2, later)]
    for second, one in enumerate(reports):
        one["timestamp"] = f"2026-01-31T12:00:0{second}Z"
        one.setdefault("durationMs", {"addBatch": 1000})

    def query(run: str, count: int) -> Any:
        recent = [SimpleNamespace(json=json.dumps(one)) for one in reports[:count]]
        last = reports[count - 1] if count else None
        return SimpleNamespace(runId=run, recentProgress=recent, lastProgress=last)

    assert cep.status(query("a", 0)).totals == Sums()
    for _ in range(2):  # each report counts once
        done = cep.status(query("a", 3))
        assert (done.batch, done.events, done.rows, done.size) == (1, 0, 20, 300)
        assert done.totals is not None
        assert (done.totals.batches, done.totals.events, done.totals.matches) == (2, 10, 5)
    # Spark has forgotten the first two.
    forgotten = query("a", 4)
    forgotten.recentProgress = forgotten.recentProgress[2:]
    last = cep.status(forgotten)
    assert (last.batch, last.rows, last.size) == (2, 10, 120) and last.totals is not None
    assert (last.totals.batches, last.totals.events, last.totals.late) == (3, 20, 6)
    assert done.totals.batches == 2  # what was handed out stays as it was
    assert cep.status(query("b", 1)).totals != last.totals


def test_figures_as_prometheus_reads_them(tmp_path: Path) -> None:
    metrics = cep.Metrics(tmp_path / "cepheid.prom")
    started = SimpleNamespace(id="1-2-3", runId="4-5-6", name="alarms")
    metrics.onQueryStarted(started)
    watermark = {"watermark": "2026-01-31T12:00:00.500Z"}
    metrics.onQueryProgress(progress(report(0, *BUCKETS, eventTime=watermark)))
    sources = [{"endOffset": 1, "latestOffset": 9}]
    later = {"bucket": "1", "rows": 2, "size": 20}
    metrics.onQueryProgress(progress(report(1, later, eventTime=watermark, sources=sources)))
    other = report(0, *BUCKETS, name='say "hi"')
    metrics.onQueryProgress(progress({**other, "id": "7"}))
    metrics.onQueryTerminated(SimpleNamespace(id="1-2-3", runId="4-5-6"))
    text = (tmp_path / "cepheid.prom").read_text()
    assert text == metrics.text()
    lines = text.splitlines()
    # Counters add up; of the state, a bucket that took no part in a batch stays as it was.
    for line in (
        "# TYPE cepheid_events_total counter",
        'cepheid_batches_total{query="alarms"} 2',
        'cepheid_events_total{query="alarms"} 20',
        'cepheid_events_total{query="say \\"hi\\""} 10',
        'cepheid_rejected_total{query="alarms"} 2',
        'cepheid_future_total{query="alarms"} 4',
        'cepheid_relevant_total{query="alarms"} 14',
        'cepheid_late_total{query="alarms"} 6',
        'cepheid_shed_total{query="alarms"} 8',
        'cepheid_matches_total{query="alarms"} 10',
        "# TYPE cepheid_state_rows gauge",
        'cepheid_state_rows{query="alarms"} 10',
        'cepheid_state_bytes{query="alarms"} 120',
        'cepheid_batch_seconds{query="alarms"} 1.5',
        'cepheid_backlog{query="alarms"} 8',
        'cepheid_watermark_seconds{query="alarms"} 1769860800.5',
        'cepheid_active{query="alarms"} 0',
        'cepheid_active{query="say \\"hi\\""} 1',
    ):
        assert line in lines
    assert sum(line.startswith("# HELP cepheid_events_total ") for line in lines) == 1


def test_reports_of_others_and_of_nothing_are_passed_over() -> None:
    metrics = cep.Metrics()
    metrics.onQueryProgress(progress({**report(0), "observedMetrics": {"rows": {"n": 1}}}))
    metrics.onQueryTerminated(SimpleNamespace(id="1-2-3", runId="4-5-6"))
    assert metrics.text() == ""


def test_a_stream_is_served(spark: SparkSession, tmp_path: Path) -> None:
    """Two of three events pair; all of it is reported under the name of the query."""
    events = pa.table({"ts": [1, 2, 3], "kind": ["A", "B", "C"], "id": [7, 7, 7]})
    course = Course(
        "pairs",
        "PATTERN A a ; B b WHERE [id] WITHIN 5",
        [events.slice(0, 1), events.slice(1)],
        {"time": "ts", "type": "kind"},
    )
    metrics = cep.Metrics(port=0)
    spark.streams.addListener(metrics)
    try:
        outcome = run(spark, tmp_path, [course])
        _wait_for(metrics, "cepheid_active", "0")
        with urlopen(f"http://127.0.0.1:{metrics.port}/metrics") as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            text = answer.read().decode()
        with pytest.raises(HTTPError, match="404"):
            urlopen(f"http://127.0.0.1:{metrics.port}/")
    finally:
        spark.streams.removeListener(metrics)
        metrics.close()
    figures = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    values = {name.partition("{")[0]: float(value) for name, value in figures.items()}
    assert values["cepheid_events_total"] == 3
    assert values["cepheid_matches_total"] == 1 == len(outcome.matches["pairs"])
    assert values["cepheid_batches_total"] == len(outcome.batches)
    assert values["cepheid_state_rows"] >= 2


def _wait_for(metrics: cep.Metrics, name: str, value: str) -> None:
    """Spark tells listeners a little later."""
    for _ in range(600):
        if any(
            line.startswith(name) and line.endswith(f" {value}")
            for line in metrics.text().splitlines()
        ):
            return
        time.sleep(0.1)
    raise AssertionError(metrics.text())


def test_refused_rules_of_several_passes_add_up() -> None:
    """The buckets of a pass tell of the same rules."""
    buckets = [("card 0", 2), ("card 1", 2), ("0", 1)]
    found = {"buckets": [{"bucket": name, "refused": refused} for name, refused in buckets]}
    report = {"batchId": 1, "observedMetrics": {"cepheid found r": found}}
    assert cep.status(report).refused == 3
