"""Rules from a Spark DataFrame, and checked against one."""

from __future__ import annotations

from pyspark.sql import SparkSession

import cepheid as cep

BIG = "PATTERN A a ; B b WHERE b.x > :low AND (:country IS NULL OR a.country = :country) WITHIN 5"


def test_rows_of_a_frame_are_rules(spark: SparkSession) -> None:
    columns = "rule string, low double, country string, severity int"
    frame = spark.createDataFrame([("de", 1.5, "DE", 3), ("any", 2.0, None, 1)], columns)
    rules = cep.RuleSet.from_template("big", BIG, frame.coalesce(1))
    assert {name: (rule.params, rule.carried) for name, rule in rules.items()} == {
        "de": ({"low": 1.5, "country": "DE"}, {"severity": 3}),
        "any": ({"low": 2.0, "country": None}, {"severity": 1}),
    }


def test_rules_are_checked_against_the_columns_of_a_frame(spark: SparkSession) -> None:
    rules = cep.RuleSet.from_template("big", BIG, {"low": [1, 2], "country": ["DE", None]})
    events = spark.createDataFrame([], "ts long, type string, x double, country string")
    assert rules.check(events, time="ts", type="type") == ()
    (finding,) = rules.check(events.withColumnRenamed("x", "y"), time="ts", type="type")
    assert "B has no attribute `x`" in finding.message
    both = {"A": events.drop("type"), "B": events.drop("type", "x")}
    (finding,) = rules.check(both, time="ts")
    assert "B has no attribute `x`" in finding.message
