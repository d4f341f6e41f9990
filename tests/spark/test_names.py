"""Columns on Spark with names that Spark would take for others: with dots, spaces and backticks,
and such that differ in case alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import cepheid as cep
from cepheid.cli.arguments import InputSource
from cepheid.cli.batch.run_spark import run_in_session
from cepheid.cli.stream.stream_columns import open_folders
from cepheid.cli.stream.stream_source import read_folder
from cepheid.cli.target import Target
from cepheid.files.formats import Format
from cepheid.files.guard import Guard
from cepheid.options import Options
from cepheid.spark.columns import column_names
from cepheid.spark.columns.entrance import entered
from cepheid.spark.streaming.clock.time import below_watermark, delay_of

COLUMNS = ["event.time", "eventType", "user id", "User ID", "x", "X", "`odd`", "x~", "é", "É"]
COLUMNS += ["bucket"]  # as one of ours in streams
PLAIN = [f"c{n}" for n in range(len(COLUMNS))]
ROWS = [
    (1, "A", 7, 1, 10, 100, "p", 1.0, 5, 6, 71),
    (2, "B", 7, 2, 20, 200, "q", 2.0, 5, 6, 72),
    (3, "B", 8, 3, 30, 300, "r", 3.0, 5, 6, 73),
]
TIMED = {"time": "event.time", "type": "eventType"}
PAIR = "PATTERN A a ; B b WHERE a.`user id` = b.`user id` WITHIN 9"


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, PLAIN).toDF(*COLUMNS)


@given(st.text(), st.text())
def test_no_two_names_become_one(one: str, other: str) -> None:
    assert column_names.given(column_names.safe(one)) == one
    assert (column_names.safe(one).lower() == column_names.safe(other).lower()) == (one == other)
    assert set(column_names.safe(one)) <= set("abcdefghijklmnopqrstuvwxyz0123456789_~")


def test_values(events: DataFrame) -> None:
    """The exact name wins, in conditions and in RETURN."""
    query = f"""{PAIR.replace("WITHIN", "AND b.X = 2 * a.X AND b.x = 20 WITHIN")}
        RETURN a.x AS low, a.X AS high, b.`odd` AS odd, b.`x~` AS tilde, b.é AS e, b.É AS f"""
    query = query.replace("b.`odd`", "b.```odd```")
    (row,) = cep.match(events, query, **TIMED, jit=False).collect()
    assert tuple(row) == (10, 100, "q", 2.0, 5, 6, 1, 2)


def test_whole_events(events: DataFrame) -> None:
    (row,) = cep.match(events, PAIR, **TIMED, jit=False).collect()
    assert row["a"].__fields__ == row["b"].__fields__ == COLUMNS
    assert (tuple(row["a"]), tuple(row["b"])) == (ROWS[0], ROWS[1])


@pytest.mark.parametrize("partitioning", ["key", "single", "slices"])
def test_partitionings(events: DataFrame, partitioning: str) -> None:
    query = f"{PAIR} RETURN b.X AS high"
    found = cep.match(events, query, **TIMED, partitioning=partitioning, partitions=2, jit=False)
    assert [row.high for row in found.collect()] == [200]


def test_keys_of_other_names(events: DataFrame) -> None:
    query = "PATTERN A a ; B b WHERE a.`User ID` = b.`User ID` - 1 WITHIN 9 RETURN b.X AS high"
    (row,) = cep.match(events, query, **TIMED, tie="X", jit=False).collect()
    assert row.high == 200
    query = "PATTERN A a ; B b WHERE [`user id`] WITHIN 2 EVENTS RETURN b.X AS high"
    (row,) = cep.match(events, query, **TIMED, jit=False).collect()
    assert row.high == 200


def test_several_streams(spark: SparkSession) -> None:
    """`x` of one stream isn't `X` of the other."""
    left = spark.createDataFrame([(1, 5)], ["Event Time", "x"])
    right = spark.createDataFrame([(2, 6)], ["Event Time", "X"])
    query = "PATTERN l ; r WITHIN 9 RETURN l.x AS low, r.X AS high"
    found = cep.match({"l": left, "r": right}, query, time="Event Time", jit=False)
    assert [tuple(row)[:2] for row in found.collect()] == [(5, 6)]
    wrong = "PATTERN l ; r WITHIN 9 RETURN l.x AS low, r.x AS high"  # without case it is unique
    found = cep.match({"l": left, "r": right}, wrong, time="Event Time", jit=False)
    assert [tuple(row)[:2] for row in found.collect()] == [(5, 6)]


def test_queries_that_read_matches(events: DataFrame) -> None:
    first = f"INTO Pair {PAIR} RETURN b.X AS `b.X`, b.x AS x"
    second = "PATTERN Pair p ; B b WITHIN 9 RETURN p.`b.X` AS X, b.X AS `other X`"
    found = cep.match(events, [first, second], **TIMED, jit=False)
    (row,) = found["query 2"].collect()
    assert tuple(row)[:2] == (200, 300)


def test_several_of_one_name(spark: SparkSession) -> None:
    """They may be there, but not be read."""
    data = spark.createDataFrame([(1, 5, 6, 7)], ["ts", "b", "c", "__d"]).toDF(
        "ts", "b", "b", "__d"
    )
    (row,) = cep.match(data, "PATTERN a RETURN a.ts", time="ts", jit=False).collect()
    assert row.ts == 1
    with pytest.raises(cep.DataError, match="column `b` occurs several times"):
        cep.match(data, "PATTERN a RETURN a.b", time="ts")
    with pytest.raises(cep.DataError, match="column `__d` has a reserved name"):
        cep.match(data, "PATTERN a RETURN a.__d", time="ts")


def test_dead_letters(events: DataFrame) -> None:
    late = events.withColumns({"`event.time`": F.lit(None).cast("long")}).limit(1)
    late = late.drop("event.time").toDF(*COLUMNS[1:], "event.time")
    dead = cep.rejected(late, time="event.time")
    assert dead.columns == late.columns
    assert dead.count() == 1
    with pytest.raises(cep.DataError, match=r"no column `event\.tim`"):
        cep.rejected(events, time="event.tim")


def test_explaining_and_analyzing(events: DataFrame) -> None:
    told = str(cep.Query(PAIR).explain(events, **TIMED))
    assert "key user id" in told and "eventType = 'A'" in told
    statistics = cep.analyze(events, PAIR, **TIMED)
    assert statistics.distinct == {"a.user id": 1, "b.user id": 2}


def test_rules(events: DataFrame) -> None:
    rules = cep.RuleSet.of(
        {
            "pair": f"{PAIR} RETURN b.X AS high",
            "low": "PATTERN B b WHERE b.x > 25 RETURN b.X",
            "next": "PATTERN A a -> B b RETURN b.X",
        }
    )
    found = rules.match(events, **TIMED, jit=False).collect()
    assert sorted((row.rule, row.match) for row in found) == [
        ("low", '{"X":300}'),
        ("next", '{"X":200}'),
        ("pair", '{"high":200}'),
    ]


def stream_of(spark: SparkSession, events: DataFrame, folder: Path) -> DataFrame:
    """The events as a stream of one file."""
    plain = events.toDF(*PLAIN)
    plain.coalesce(1).write.parquet(str(folder))
    return spark.readStream.schema(plain.schema).parquet(str(folder)).toDF(*COLUMNS)


def written(found: DataFrame, folder: Path, name: str) -> list[Any]:
    """What a stream has found when it has read all. Parquet would refuse `x` beside `X`."""
    run = (
        found.writeStream.format("memory")
        .queryName(name)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    run.awaitTermination()
    return found.sparkSession.table(name).collect()


def test_streams(spark: SparkSession, events: DataFrame, tmp_path: Path) -> None:
    """Also the dead letters have the names that the events have."""
    plain = events.toDF(*PLAIN).withColumn("c0", F.when(F.col("c5") < 300, F.col("c0")))
    stream = stream_of(spark, plain, tmp_path / "events")
    query = f"{PAIR} RETURN a.x AS low, b.X AS high, b.bucket AS bucket"
    asked = cep.match(stream, query, **TIMED, dead_letters=["x", "X"], jit=False)
    rows = written(asked, tmp_path, "asked")
    (found,) = [row for row in rows if row.dead_letter is None]
    assert (found.low, found.high, found.bucket) == (10, 200, 72)
    (dead,) = [row.dead_letter.row.asDict() for row in rows if row.dead_letter is not None]
    assert (dead["event.time"], dead["x"], dead["X"], dead["bucket"]) == (None, 30, 300, 73)


def test_rules_over_streams(spark: SparkSession, events: DataFrame, tmp_path: Path) -> None:
    stream = stream_of(spark, events, tmp_path / "events")
    rules = cep.RuleSet.of({"pair": f"{PAIR} RETURN b.X AS high, b.bucket AS bucket"})
    (row,) = written(rules.match(stream, **TIMED, jit=False), tmp_path, "of_rules")
    assert (row.rule, row.match) == ("pair", '{"high":200,"bucket":72}')


def test_files_on_the_command_line(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "e.csv"
    lines = ["1,A,7,10,100", "2,B,7,20,200", "soon,B,7,30,300", "3,B,8,40,400"]
    file.write_text("\n".join(["event.time,eventType,user id,x,X", *lines]))
    target = Target(None, Format.PARQUET, None, 5, Guard())
    query = cep.Query(f"{PAIR} RETURN a.x AS low, b.X AS high")
    options = Options(**TIMED, jit=False)
    found = run_in_session(spark, query, (InputSource(None, str(file)),), options, target)
    assert [(row["low"], row["high"]) for row in found.rows] == [(10, 200)]
    assert (found.figures.events, found.figures.rejected) == (4, 1)


@pytest.mark.classic
def test_folders_as_streams(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "1.csv").write_text("event.time,user id\n2026-01-31T12:00:00Z,7\n")
    query = cep.Query("PATTERN a RETURN a.`user id`")
    options = Options(time="event.time")
    inputs = [InputSource(None, str(source))]
    (folder,) = open_folders(spark, inputs, [query], options, tmp_path / "inputs.json")
    stream = read_folder(spark, folder, "5 seconds", None)
    assert stream.columns == ["event.time", "user id"]
    assert delay_of(entered(stream), "event.time") == 5000


def test_a_watermark_stays_the_last_thing_done(
    spark: SparkSession, events: DataFrame, tmp_path: Path
) -> None:
    """So that events ahead of the clock can be held back below it."""
    stream = stream_of(spark, events, tmp_path / "events")
    timed = stream.withColumn("At", F.timestamp_seconds(F.col("`event.time`")))
    inside = entered(timed.withWatermark("At", "7 seconds"))
    assert delay_of(inside, "At") == 7000
    below = below_watermark(inside)
    assert below is not None and below.columns == inside.columns
    with pytest.raises(cep.DataError, match="the watermark is on `At`"):
        delay_of(inside, "event.time")
