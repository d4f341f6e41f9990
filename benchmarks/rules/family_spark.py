"""Rules of all families on Spark, against one thread in this process.

Both read the same file and have to find as many matches for each rule. Seconds are those on the
wall; of each, the faster of a few turns counts. Planning is what happens before the first task:
compiling the set, and Spark's own planning. A set keeps what it compiled, so each turn has a new
one.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.measure import WrongAnswer
from benchmarks.pipeline import event_file
from benchmarks.report import Record, Verdict, provenance, short
from benchmarks.rules.families import all_families
from benchmarks.rules.family_runs import OPTIONS, SEED, counted
from cepheid.engine.attribution.json_rows import RULE
from cepheid.rules import RuleSet

Say = Callable[[str], None]

RULES, SIZES, WARM_UP, TURNS, CORES = 300, (1_000_000, 10_000_000), 50_000, 2, 2
MOST_TIMES, MOST_PLANNING, MOST_SHUFFLES = 1.5, 3.0, 2


@dataclass(frozen=True)
class SparkPoint:
    """Seconds on Spark and in process; `shuffles` are in Spark's plan."""

    events: int
    matches: int
    spark: float
    process: float
    planning: float
    scans: int
    shuffles: int


def rule_set() -> RuleSet:
    return all_families("mixed", RULES, SEED)


def measure(quick: bool, say: Say) -> Record:
    from cepheid.spark.start.session import PANDAS_NOTICE, local_session

    warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
    spark = local_session(f"local[{CORES}]", app="cepheid benchmarks")
    try:
        say("warming up")
        on_spark(spark, event_file(WARM_UP))
        in_process(event_file(WARM_UP))
        sizes = [WARM_UP] if quick else SIZES
        points = [point_of(spark, rows, 1 if quick else TURNS, say) for rows in sizes]
    finally:
        spark.stop()
    return record(points, quick)


def point_of(spark: Any, rows: int, turns: int, say: Say) -> SparkPoint:
    say(f"{rows:,} events: making them")
    path = event_file(rows)
    there, here = list[tuple[float, float]](), list[float]()
    for turn in range(turns):
        say(f"{rows:,} events, turn {turn + 1}: in process")
        begin = time.perf_counter()
        found = in_process(path)
        here.append(time.perf_counter() - begin)
        say(f"{rows:,} events, turn {turn + 1}: on Spark")
        counts, plan, planning, seconds = on_spark(spark, path)
        there.append((seconds, planning))
        if counts != found:
            wrong = {r for r in counts.keys() | found if counts.get(r) != found.get(r)}
            raise WrongAnswer(f"{len(wrong)} rules find other matches, {min(wrong)} among them")
    scans, shuffles = plan.count("FileScan"), plan.count("Exchange hashpartitioning")
    planning = min(planning for _, planning in there)
    fastest = min(seconds for seconds, _ in there)
    return SparkPoint(rows, sum(found.values()), fastest, min(here), planning, scans, shuffles)


def in_process(path: Path) -> dict[str, int]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dict(counted(rule_set().match(pq.read_table(path), OPTIONS, threads=1)))


def on_spark(spark: Any, path: Path) -> tuple[dict[str, int], str, float, float]:
    """The matches by rule, Spark's plan, and the seconds of planning and of all."""
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alerts = rule_set().match(spark.read.parquet(str(path)), OPTIONS)
    with redirect_stdout(StringIO()) as plan:
        alerts.explain()
    planning = time.perf_counter() - begin
    counts = {row[RULE]: row["count"] for row in alerts.groupBy(RULE).count().collect()}
    return counts, plan.getvalue(), planning, time.perf_counter() - begin


# ── to keep ──


def verdicts(points: list[SparkPoint]) -> Iterator[Verdict]:
    for point in points:
        most = 1.0 if point.events >= SIZES[-1] else MOST_TIMES
        text = f"{short(point.events)} events: Spark takes at most {most:g} times one thread here"
        reached = point.spark / point.process
        yield Verdict(text, reached <= most, f"{reached:.2f} ×")
    worst = max(point.planning for point in points)
    yield Verdict(f"planning below {MOST_PLANNING:g} s", worst < MOST_PLANNING, f"{worst:.1f} s")
    shuffles = max(point.shuffles for point in points)
    text = "one shuffle for all rules of the key, and one for what has none"
    yield Verdict(text, shuffles <= MOST_SHUFFLES, f"{shuffles} shuffles")


def record(points: list[SparkPoint], quick: bool) -> Record:
    head = ["events", "matches", "Spark, s", "one thread, s", "×", "planning, s"]
    head += ["scans", "shuffles"]
    rows = [
        [
            f"{point.events:,}",
            f"{point.matches:,}",
            f"{point.spark:.1f}",
            f"{point.process:.1f}",
            f"{point.spark / point.process:.2f}",
            f"{point.planning:.1f}",
            str(point.scans),
            str(point.shuffles),
        ]
        for point in points
    ]
    return {
        **provenance(quick),
        "name": "family_spark",
        "title": "Families of rules on Spark",
        "tables": [
            {"title": f"{RULES} mixed rules, local[{CORES}]", "head": head, "rows": rows},
        ],
        "claims": [asdict(verdict) for verdict in verdicts(points)],
        "points": [asdict(point) for point in points],
    }
