"""Rules from a Spark DataFrame, and checked against one."""

from __future__ import annotations

from collections import Counter

from pyspark.sql import DataFrame, SparkSession

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


EVENTS = """
SELECT TIMESTAMP '2026-01-31 12:00:00' AS ts, 'A' AS type, double('NaN') AS x, X'00FF' AS raw,
  DATE '2026-01-31' AS day, 1.25BD AS price, array(1, NULL) AS many,
  TIMESTAMP_NTZ '2026-01-01' AS at
UNION ALL
SELECT TIMESTAMP '2026-01-31 12:00:01.5', 'B', double('-Infinity'), NULL, NULL, -0.05BD, array(),
  TIMESTAMP_NTZ '2026-01-01 00:00:00.000001'
UNION ALL
SELECT TIMESTAMP '2026-01-31 12:00:02', 'B', 0.1D, X'', DATE '1582-10-15', NULL, NULL, NULL
"""


def test_the_matches_of_a_rule_have_their_types_again(spark: SparkSession) -> None:
    events = spark.sql(EVENTS)
    rules = cep.RuleSet.of(
        {
            "together": "PATTERN A a ; B b WITHIN 5 seconds RETURN a, b, duration() AS took",
            "alone": "PATTERN A a ; B+ b WITHIN 5 seconds RETURN b.x, b.price, b.raw, a.day",
        }
    )
    found = rules.match(events, time="ts", type="type")

    def rows(frame: DataFrame) -> Counter[str]:
        return Counter(map(repr, frame.collect()))

    for rule, many in zip(rules.values(), (2, 1), strict=True):
        expected = rule.match(events, time="ts", type="type")
        typed = rule.typed(found, events, time="ts", type="type")
        assert typed.schema == expected.schema
        assert rows(typed) == rows(expected) and expected.count() == many
