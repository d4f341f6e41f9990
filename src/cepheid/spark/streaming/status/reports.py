"""Figures of a stream, in Spark's own progress reports.

Every bucket hands out a report with each batch, beside its matches; Spark observes them
(`observedMetrics` of a query's progress, in classic sessions and under Connect).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cepheid.algebra.types import STREAM_COLUMN
from cepheid.spark.columns.column_names import named
from cepheid.spark.streaming.clock.ahead import AHEAD
from cepheid.spark.streaming.stateful.packed_rows import BUCKET, DATA
from cepheid.spark.streaming.status.sums import Sums
from cepheid.streaming.report import Report
from cepheid.streaming.rule_figures import FiguresOfRules, RuleFigures, RunFigures

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

COUNTS = tuple(f.name for f in fields(Report))
RULES = "rules"
NO_REPORT = {BUCKET: [None], **{name: [0] for name in COUNTS}, RULES: [None]}
"""The report columns of rows that carry matches and no report."""

RESULT = f"{DATA} binary, {BUCKET} string, " + ", ".join(f"{name} long" for name in COUNTS)
RESULT += f", {RULES} string"
"""The rows that leave the stateful operator."""

_READ, _FOUND, _PASSED = "cepheid read ", "cepheid found ", "cepheid passed "


def report_row(number: object, report: Report, rules: str | None = None) -> pd.DataFrame:
    values = {name: [value] for name, value in asdict(report).items()}
    return pd.DataFrame({DATA: [None], BUCKET: [str(number)], **values, RULES: [rules]})


def observe_read(
    rows: DataFrame, run: str, placed: Any, results: Sequence[str] = (), counted: bool = True
) -> DataFrame:
    """Count the events, but not `results` of other queries, and those that can't be placed in time.
    What isn't `counted` is observed all the same: Spark then pushes no filter below it."""
    if results:
        event = ~named(STREAM_COLUMN).isin(*results)
    else:
        event = F.lit(True)
    ahead = named(AHEAD).isNotNull() if AHEAD in rows.columns else F.lit(False)
    return rows.observe(
        (_READ if counted else _PASSED) + run,
        F.count_if(event).alias("events"),
        F.count_if(F.coalesce(~placed, F.lit(True)) & ~ahead).alias("rejected"),
        F.count_if(ahead).alias("future"),
    )


def observe_results(
    rows: DataFrame, run: str, each: bool = True, left_out: Sequence[str] = ()
) -> DataFrame:
    """Sum the buckets' reports. `each`: also list each bucket's report, unless there are as many
    buckets as keys. Some figures may be `left_out`: another operator tells them."""
    sums = [F.sum(name).alias(name) for name in COUNTS if name not in left_out]
    if each:
        bucket = F.when(F.col(BUCKET).isNotNull(), F.struct(BUCKET, *COUNTS))
        sums.append(F.collect_list(bucket).alias("buckets"))
        sums.append(F.collect_list(RULES).alias(RULES))
    return rows.observe(_FOUND + run, *sums)


def observe_each(matches: DataFrame, run: str) -> DataFrame:
    """Count matches that no bucket reports on."""
    return matches.observe(_FOUND + run, F.count(F.lit(1)).alias("matches"))


@dataclass(frozen=True)
class Status:
    """What a batch of a streaming query did, by all of Cepheid's operators in it.

    batch      its number
    events     rows that were read
    rejected   of those, the ones without a time (or that end before they start)
    future     of those, the ones too far ahead of the clock (the option `future`)
    relevant   of those, the ones that some variable can take: only they are shuffled and matched
    late       of the relevant, the ones that the watermark had passed before they came
    shed       events dropped because of `Limit(..., policy="drop-oldest")`
    matches    matches found
    rows       events held, since a match may need them or the watermark has not passed them, and
               open groups, if the query returns answers; of a report alone, those in the buckets
               that took part in the batch
    size       bytes of these in the state store
    replans    how often these buckets have changed their plan since the stream began
    ties       events that came with another of the same time and key, if the query or a rule
               depends on their order and no `tie` says what it is
    refused    rules that can't be run over these events, and are left out
    suppressed alerts that `throttle=` left out
    buckets    the same figures for each of these buckets; none where every key is a bucket (with a
               key and WITHIN n EVENTS): `rows` and `size` are always those of the batch
    backlog    how much waits in the sources, in their offsets (messages, of Kafka); None if none of
               them reports it, as files don't
    watermark  the time up to which all events are assumed to have arrived, as Spark writes it
    seconds    how long the batch took
    rules      of a set of rules: the template, the matches and the suppressed ones of each rule
               that had any, by name; of the first 1,000 in each bucket
    runs       of a set of rules: for what some of them share, named after one of them, how many
               they are, the seconds it took, and the partial matches it held
    totals     the sums of these figures over the batches of the run; None of a report alone
    """

    batch: int
    events: int
    rejected: int
    future: int
    relevant: int
    late: int
    shed: int
    matches: int
    rows: int
    size: int
    replans: int
    ties: int
    refused: int
    suppressed: int
    buckets: tuple[Mapping[str, Any], ...]
    backlog: int | None
    watermark: str | None
    seconds: float
    rules: Mapping[str, RuleFigures] = field(default_factory=dict)
    runs: Mapping[str, RunFigures] = field(default_factory=dict)
    totals: Sums | None = None


def status(progress: Any) -> Status:
    """How a streaming query stands, or what a batch did.

    progress  the query itself, or Spark's report of a batch: an element of the query's
              `recentProgress`, its `lastProgress`, or the `progress` of a listener's event

    Of a query, the figures are those of its last batch, `rows` and `size` those of all buckets, and
    `totals` the sums since it was started. Spark keeps the reports of 100 batches
    (`spark.sql.streaming.numRecentProgressUpdates`): of a query with more, call it now and then.
    """
    if hasattr(progress, "recentProgress"):
        return _followed(str(progress.runId)).status(progress)
    given = json.loads(progress) if isinstance(progress, str) else progress
    report = given if isinstance(given, Mapping) else json.loads(given.json)
    observed = {name: _plain(row) for name, row in (report.get("observedMetrics") or {}).items()}
    read = [row for name, row in observed.items() if name.startswith(_READ)]
    rows = [row for name, row in observed.items() if name.startswith(_FOUND)]
    of_rules = FiguresOfRules.of_json(text for row in rows for text in row.get(RULES) or ())
    buckets = tuple(_plain(b) for row in rows for b in row.get("buckets") or ())
    return Status(
        batch=report["batchId"],
        events=_sum(read, "events"),
        rejected=_sum(read, "rejected"),
        future=_sum(read, "future"),
        relevant=_sum(rows, "events"),
        late=_sum(rows, "late"),
        shed=_sum(rows, "shed"),
        matches=_sum(rows, "matches"),
        rows=_sum(rows, "rows"),
        size=_sum(rows, "size"),
        replans=_sum(rows, "replans"),
        ties=_sum(rows, "ties"),
        refused=_refused(buckets),
        suppressed=_sum(rows, "suppressed"),
        buckets=buckets,
        backlog=_backlog(report.get("sources") or ()),
        watermark=(report.get("eventTime") or {}).get("watermark"),
        seconds=report.get("batchDuration", 0) / 1000,
        rules=of_rules.rules,
        runs=of_rules.runs,
    )


def _refused(buckets: Iterable[Mapping[str, Any]]) -> int:
    """Every bucket of a pass tells of the same rules; what none of the passes can run is told by
    the first."""
    passes: dict[str, int] = {}
    for bucket in buckets:
        key = bucket["bucket"].rpartition(" ")[0]
        passes[key] = max(passes.get(key, 0), bucket["refused"])
    return sum(passes.values())


class NewReports:
    """Spark's reports on the batches of a query, each once."""

    def __init__(self) -> None:
        self._seen = ""

    def of(self, query: StreamingQuery) -> list[Mapping[str, Any]]:
        last = query.lastProgress
        if last is None or last["timestamp"] <= self._seen:
            return []
        reports = [json.loads(p.json) for p in query.recentProgress]
        reports = [p for p in reports if p["timestamp"] > self._seen]
        self._seen = reports[-1]["timestamp"] if reports else self._seen
        # Spark also reports that nothing has happened.
        return [p for p in reports if "addBatch" in p["durationMs"]]


@dataclass
class Followed:
    """The totals of a query's run, from the reports read so far."""

    reports: NewReports = field(default_factory=NewReports)
    sums: Sums = field(default_factory=Sums)
    last: Status | None = None

    def status(self, query: StreamingQuery) -> Status:
        for report in self.reports.of(query):
            self.last = status(report)
            self.sums.add(self.last)
        if self.last is None:
            return replace(status({"batchId": -1}), totals=Sums())
        totals = replace(self.sums, held=dict(self.sums.held))
        if not totals.held:
            return replace(self.last, totals=totals)
        return replace(self.last, rows=totals.rows, size=totals.size, totals=totals)


_RUNS: dict[str, Followed] = {}
"""Runs by query id: several objects may stand for one query (`spark.streams.active`)."""

_MOST_RUNS = 100


def _followed(run: str) -> Followed:
    if run not in _RUNS and len(_RUNS) >= _MOST_RUNS:
        del _RUNS[next(iter(_RUNS))]
    return _RUNS.setdefault(run, Followed())


def is_observed(report: Mapping[str, Any]) -> bool:
    """Whether a report is on a batch that a query of Cepheid's ran."""
    names = report.get("observedMetrics") or {}
    return any(name.startswith((_READ, _FOUND)) for name in names)


def milliseconds(watermark: str | None) -> int | None:
    """A watermark as Spark writes it, also one of a year beyond 9999; none before the first."""
    value = 0 if watermark is None else int(np.datetime64(watermark.rstrip("Z"), "ms").astype(int))
    return value if value > 0 else None


def _backlog(sources: Iterable[Mapping[str, Any]]) -> int | None:
    """How far the sources are behind, as far as they report it; a heartbeat never is."""
    inputs = (s for s in sources if not str(s.get("description", "")).startswith("RateStream"))
    waiting = [_distance(s.get("endOffset"), s.get("latestOffset")) for s in inputs]
    known = [count for count in waiting if count is not None]
    return sum(known) if known else None


def _distance(end: Any, latest: Any) -> int | None:
    """The distance of two offsets: numbers, or JSON with numbers, as Kafka's by topic and
    partition.

    >>> _distance('{"topic": {"0": 5, "1": 7}}', {"topic": {"0": 8, "1": 7}})
    3
    """
    end, latest = (json.loads(o) if isinstance(o, str) else o for o in (end, latest))
    match end, latest:
        case int(), int():
            return max(0, latest - end)
        case Mapping(), Mapping():
            known = [_distance(end[name], latest[name]) for name in end if name in latest]
            parts = [part for part in known if part is not None]
            return sum(parts) if parts else None
        case _:
            return None


def _plain(row: Any) -> Mapping[str, Any]:
    """The figures as a dict, from a dict or a Row; under Connect a Row holds values and the schema
    that names them."""
    values: Mapping[str, Any] = row if isinstance(row, Mapping) else row.asDict(True)
    if values.keys() == {"values", "schema"}:
        names = (field["name"] for field in values["schema"]["fields"])
        return dict(zip(names, values["values"], strict=True))
    return values


def _sum(rows: Iterable[Mapping[str, Any]], name: str) -> int:
    return sum(row.get(name) or 0 for row in rows)
