"""`python -m benchmarks.answers_spark [--quick]`: answers on Spark, and what a user would write.

- Matches of purchases by hour: GROUP BY in the query, which shuffles partial aggregates, against
  `groupBy(window(...))` over the matches of `cep.match`. By card and hour, too, where most groups
  have few matches, so that there is little to gain.
- A windowed join of two streams in any order (the thesis' query 3 with two streams): in a batch
  against a join and `groupBy(window(...))`, and on a stream against Spark's join of streams.

CPU seconds are those of all processes. The answers of both ways are compared.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import cepheid as cep
from benchmarks.experiments.writing import RESULTS
from benchmarks.pipeline import CORES, event_file
from benchmarks.report import provenance, write_json
from benchmarks.row_patterns_spark import SparkFigures, measured
from benchmarks.streaming.running import WARM_UP
from benchmarks.streaming.speed import CONFIG, Setup, Way
from benchmarks.tree import run_arguments
from cepheid.options import GivenOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS = 2_000_000
BATCH, BATCHES = 100_000, WARM_UP + 4
CHAIN = "PATTERN a ; b ; c WHERE [card] AND [kind = 'purchase'] WITHIN 4 days"
COUNTED = "TUMBLE(1 hour) RETURN {0}.card AS card, window_start, count(*) AS n"
ALL_CARDS = f"""{CHAIN} GROUP BY TUMBLE(1 hour) HAVING count(*) > 0
RETURN window_start, count(*) AS n"""
CARDS = f"{CHAIN} GROUP BY c.card, {COUNTED.format('c')}"
NEAR = """
PATTERN s & big
WHERE   s.card = big.card AND s.kind = 'purchase' AND big.kind = 'purchase'
  AND   s.amount < 100 AND big.amount > 250
WITHIN  12 hours
"""
HOURS = f"{NEAR} GROUP BY big.card, {COUNTED.format('big')}"


def by_hour(matches: DataFrame, *columns: str) -> DataFrame:
    from pyspark.sql import functions as F

    groups = matches.groupBy(*columns, F.window("ts", "1 hour"))
    return groups.count().withColumnRenamed("count", "n")


def near_each_other(events: DataFrame) -> DataFrame:
    """Spark's join, in batches and of streams."""
    from pyspark.sql import functions as F

    purchases = events.filter("kind = 'purchase'")
    if events.isStreaming:
        purchases = purchases.withWatermark("ts", "1 millisecond")
    small = purchases.filter("amount < 100").select("card", "ts").alias("s")
    big = purchases.filter("amount > 250").select("card", "ts").alias("b")
    near = """s.card = b.card AND s.ts > b.ts - INTERVAL 12 HOURS
              AND s.ts < b.ts + INTERVAL 12 HOURS"""
    return small.join(big, F.expr(near)).selectExpr("b.card", "greatest(s.ts, b.ts) AS ts")


def total(answers: DataFrame) -> tuple[int, int]:
    """How many answers there are, and how many matches they count."""
    row = answers.selectExpr("count(*)", "sum(n)").collect()[0]
    return int(row[0]), int(row[1])


def agreeing(runs: dict[str, Callable[[], tuple[int, int]]], rows: int) -> list[SparkFigures]:
    """The figures of ways that must have the same answers."""
    found: dict[str, tuple[int, int]] = {}

    def noted(name: str) -> int:
        found[name] = runs[name]()
        return 0

    figures = measured({name: partial(noted, name) for name in runs}, rows)
    if len(set(found.values())) != 1:
        raise SystemExit(f"WRONG ANSWER: {found}")
    return figures


def streamed(setup: Setup) -> list[SparkFigures]:
    """What a batch of the stream takes."""
    stream = setup.stream(BATCH, BATCHES)
    returned = f"{NEAR} RETURN big.card AS card"
    spark = setup.spark.read.parquet(str(stream.files()))
    answer = near_each_other(spark).count()

    def matched(events: DataFrame) -> DataFrame:
        return cep.match(events, returned, time="ts", tie="id")

    ways: dict[str, tuple[Way, int | None]] = {
        "stream: the query": (matched, answer),
        "stream: Spark": (near_each_other, answer),
    }
    costs = setup.take_turns(stream, ways)
    return [
        SparkFigures(name, stream.batch, round(cost.cpu, 2), round(cost.wall, 2))
        for name, cost in costs.items()
    ]


def main() -> int:
    from cepheid.spark.start.session import PANDAS_NOTICE, local_session

    parser = argparse.ArgumentParser(prog="python -m benchmarks.answers_spark", description=__doc__)
    given = run_arguments(parser, quick="a tenth of the events")
    if given is None:
        return 1
    warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
    rows = ROWS // 10 if given.quick else ROWS
    spark = local_session(f"local[{CORES}]", "benchmarks", config=CONFIG)
    options: GivenOptions = {"time": "ts", "tie": "id"}
    try:
        data = spark.read.parquet(str(event_file(rows)))

        def matches() -> DataFrame:
            return cep.match(data, f"{CHAIN} RETURN c.card AS card, c.ts AS ts", **options)

        figures = [
            *agreeing(
                {
                    "by card and hour: GROUP BY": lambda: total(cep.match(data, CARDS, **options)),
                    "by card and hour: over matches": lambda: total(by_hour(matches(), "card")),
                },
                rows,
            ),
            *agreeing(
                {
                    "by hour: GROUP BY": lambda: total(cep.match(data, ALL_CARDS, **options)),
                    "by hour: over matches": lambda: total(by_hour(matches())),
                },
                rows,
            ),
            *agreeing(
                {
                    "join: GROUP BY": lambda: total(cep.match(data, HOURS, **options)),
                    "join: Spark": lambda: total(by_hour(near_each_other(data), "card")),
                },
                rows,
            ),
            *streamed(Setup(spark, turns=1 if given.quick else 2, quick=given.quick)),
        ]
    finally:
        spark.stop()
    for item in figures:
        print(f"{item.name:<32} {item.rows:>11,} rows {item.cpu_seconds:>7.2f} CPU s")
    ratios = {
        own.name.split(":")[0]: round(other.cpu_seconds / own.cpu_seconds, 2)
        for own, other in zip(figures[::2], figures[1::2], strict=True)
    }
    holds = ratios["by hour"] >= 1
    print(
        f"{'✓' if holds else '✗'} by hour, GROUP BY costs no more than grouping matches: {ratios}"
    )
    if given.recording:
        written = {**provenance(False), "holds": holds, "ratios": ratios}
        written["figures"] = [asdict(item) for item in figures]
        write_json(RESULTS.parent / "answers_spark.json", written)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
