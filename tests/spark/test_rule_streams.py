"""Rules over streaming DataFrames find what they find in a table, and can change on the way."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import cepheid as cep

RISE = "PATTERN A a ; !C c ; B b WHERE [id] AND b.x > a.x + :by WITHIN 20 RETURN a.n, b.n AS last"
RULES = (
    cep.RuleSet.from_template("rise", RISE, {"by": [1, 4], "severity": ["low", "high"]})
    | cep.RuleSet.of({
        "many": "PATTERN A a ; C+ c ; B b WHERE [id] AND sum(c.x) > 4 WITHIN 25 "
        "RETURN a.n, count(c) AS many, b.n AS last",
        "quiet": "PATTERN A a ; !B b WHERE [id] AND a.x > 6 WITHIN 9 RETURN a.n",
        "next": "PATTERN C a => C b WHERE a.x = b.x WITHIN 5 RETURN a.n, b.n AS last",
        "big": "PATTERN A a WHERE a.x > 8 RETURN a.n",
    })
)  # fmt: skip
OPTIONS: dict[str, Any] = {"time": "ts", "type": "type", "jit": False}


def events(count: int) -> pa.Table:
    random = np.random.default_rng(7)
    return pa.table(
        {
            "n": np.arange(count),
            "ts": pa.array(np.arange(count) * 1_000_000).cast(pa.timestamp("us", "UTC")),
            "type": pa.array(random.choice(["A", "B", "C"], count)),
            "id": pa.array([None if k == 4 else int(k) for k in random.integers(0, 5, count)]),
            "x": random.integers(0, 10, count),
        }
    )


def in_seconds(rules: cep.RuleSet) -> cep.RuleSet:
    """The same rules over timestamps."""
    templates = (
        (template, template.query.text.replace(" RETURN", " seconds RETURN"))
        for template in rules.templates
    )
    found = cep.RuleSet()
    for template, text in templates:
        text = text if "WITHIN" in text else text.replace(" seconds RETURN", " RETURN")
        rows = template.rows
        one = (
            cep.RuleSet.of({template.name: text})
            if rows is None
            else cep.RuleSet.from_template(template.name, text, rows)
        )
        found = found | one
    return found


class Folder:
    """Events as files, and what is found in them, batch after batch."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark, self.path = spark, path
        self.count = 0

    def add(self, table: pa.Table) -> None:
        (self.path / "in").mkdir(exist_ok=True)
        self.count += 1
        file = self.path / "in" / f"{self.count:04}.parquet"
        pq.write_table(table, file)
        os.utime(file, (self.count, self.count))  # Spark takes the oldest file first

    def stream(self) -> DataFrame:
        schema = "n long, ts timestamp, type string, id long, x long"
        reader = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.path / "in"))

    def run(self, found: DataFrame) -> Any:
        query = (
            found.writeStream.format("parquet")
            .option("path", str(self.path / "out"))
            .option("checkpointLocation", str(self.path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return query

    def found(self) -> Counter[tuple[Any, ...]]:
        return rows(self.spark.read.parquet(str(self.path / "out")).toArrow())


def rows(found: pa.Table) -> Counter[tuple[Any, ...]]:
    """What rules carry is NULL where none carries it."""
    names = ("rule", "match_start", "match_end", "match", "severity")
    return Counter(tuple(row.get(name) for name in names) for row in found.to_pylist())


@pytest.mark.filterwarnings("ignore:no key connects")
def test_a_stream_and_a_table_give_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """Late by up to 5 s; the last event moves the watermark past all others."""
    folder, table, rules = Folder(spark, tmp_path), events(200), in_seconds(RULES)
    late = np.argsort(np.arange(200) + np.random.default_rng(1).integers(0, 5, 200), kind="stable")
    for part in np.array_split(late, 3):
        folder.add(table.take(pa.array(part)))
    end = table.slice(0, 1).set_column(1, "ts", pa.array([10**10], pa.timestamp("us", "UTC")))
    folder.add(end.set_column(2, "type", pa.array(["X"])))
    stream = folder.stream().withWatermark("ts", "5 seconds")
    folder.run(rules.match(stream, buckets=2, **OPTIONS))
    want = rules.match(table, **OPTIONS)
    assert set(want["rule"].to_pylist()) == set(rules)
    assert folder.found() == rows(want)


def test_rules_change_between_batches(spark: SparkSession, tmp_path: Path) -> None:
    folder, table = Folder(spark, tmp_path), events(200)
    keyed = in_seconds(RULES.select(["rise-1", "rise-2", "many", "big"]))
    first = keyed.without(["rise-2", "big"])
    live = cep.LiveRules(str(tmp_path / "versions"))
    live.publish(first)
    folder.add(table.slice(0, 100))
    folder.run(live.match(folder.stream(), buckets=2, **OPTIONS))
    wrong = cep.RuleSet.of({"wrong": "PATTERN A a ; B b WHERE [id] AND a.y > 1 WITHIN 5 seconds"})
    live.publish(keyed.without("many") | wrong)
    folder.add(table.slice(100))
    query = folder.run(live.match(folder.stream(), buckets=2, **OPTIONS))
    assert max(cep.status(p).refused for p in query.recentProgress) == 1
    before, after, always = (
        rows(keyed.select(names).match(part, **OPTIONS))
        for names, part in (
            (["many"], table.slice(0, 100)),
            (["rise-2", "big"], table.slice(100)),
            (["rise-1"], table),
        )
    )
    assert before and after and always
    assert folder.found() == before + after + always


@pytest.mark.filterwarnings("ignore:no key connects")
def test_throttled_alerts_are_those_of_a_table_after_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder, table = Folder(spark, tmp_path), events(120)
    rules = in_seconds(RULES.select(["rise-1", "many", "quiet", "big"]))
    told: Counter[str] = Counter()
    held: set[str] = set()
    for begin in range(0, 120, 40):
        folder.add(table.slice(begin, 40))
        found = rules.match(folder.stream(), buckets=2, throttle="15 seconds", **OPTIONS)
        query = folder.run(found)
        for progress in query.recentProgress:
            status = cep.status(progress)
            told.update({f"{n} given": figures.matches for n, figures in status.rules.items()})
            told.update({f"{n} left out": f.suppressed for n, f in status.rules.items()})
            held.update(name for name, run in status.runs.items() if run.seconds and run.held)
    end = table.slice(0, 1).set_column(1, "ts", pa.array([10**10], pa.timestamp("us", "UTC")))
    folder.add(end.set_column(2, "type", pa.array(["X"])))
    query = folder.run(rules.match(folder.stream(), buckets=2, throttle="15 seconds", **OPTIONS))
    want = rules.match(table, throttle="15 seconds", **OPTIONS)
    assert folder.found() == rows(want)
    assert rules.match(table, **OPTIONS).num_rows > want.num_rows
    told.update({f"{n} given": f.matches for n, f in cep.status(query).rules.items()})
    told.update({f"{n} left out": f.suppressed for n, f in cep.status(query).rules.items()})
    every = Counter(rules.match(table, **OPTIONS)["rule"].to_pylist())
    given = Counter(want["rule"].to_pylist())
    for name in rules:
        assert told[f"{name} given"] == given[name]
        assert told[f"{name} left out"] == every[name] - given[name]
    assert held


CHAINED = cep.RuleSet.of(
    {
        "rise": "INTO Rise PATTERN A a ; B b WHERE [id] AND b.x > a.x WITHIN 9 seconds "
        "RETURN a.id, b.n",
        "calm": "INTO Calm PATTERN C c ; !A a WHERE [id] WITHIN 7 seconds RETURN c.id, c.n",
        "after": "PATTERN Rise r ; C c WHERE [id] WITHIN 20 seconds RETURN r.n, c.n AS last",
        "pair": "PATTERN ANY(Rise, Calm) r -> Rise s WHERE [id] WITHIN 20 seconds "
        "RETURN r.n, r.rule, s.n AS last",
    }
)


def test_rules_that_read_rules_go_on_after_restarts(spark: SparkSession, tmp_path: Path) -> None:
    """Late by up to 5 s, under rules that change: what was there continues."""
    folder, table = Folder(spark, tmp_path), events(150)
    live = cep.LiveRules(str(tmp_path / "versions"))
    live.publish(CHAINED.without("pair"))
    late = np.argsort(np.arange(150) + np.random.default_rng(1).integers(0, 5, 150), kind="stable")
    parts = np.array_split(late, 3)
    for number, part in enumerate(parts):
        folder.add(table.take(pa.array(part)))
        if number == 1:
            live.publish(CHAINED)
        stream = folder.stream().withWatermark("ts", "5 seconds")
        folder.run(live.match(stream, buckets=2, **OPTIONS))
    end = table.slice(0, 1).set_column(1, "ts", pa.array([10**10], pa.timestamp("us", "UTC")))
    folder.add(end.set_column(2, "type", pa.array(["X"])))
    stream = folder.stream().withWatermark("ts", "5 seconds")
    query = folder.run(live.match(stream, buckets=2, **OPTIONS))
    want, found = rows(CHAINED.match(table, **OPTIONS)), folder.found()
    for name in ("rise", "calm", "after"):
        assert Counter({row: n for row, n in found.items() if row[0] == name}) == Counter(
            {row: n for row, n in want.items() if row[0] == name}
        )
    pairs = Counter({row: n for row, n in found.items() if row[0] == "pair"})
    assert pairs and pairs <= want
    assert sum(cep.status(p).refused for p in query.recentProgress) == 0
