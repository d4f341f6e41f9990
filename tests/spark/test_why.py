"""`why` on Spark: all events come into this process if they are few, or else the first in time."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import cepheid as cep
from tests.reasons.test_why import EVENTS, QUERY
from tests.spark.harness import frame


def test_why(spark: SparkSession) -> None:
    events = frame(spark, EVENTS)
    here = cep.why(EVENTS, QUERY, time="ts", type="type")
    there = cep.why(events, QUERY, time="ts", type="type")
    assert (there.steps, there.without, there.sample) == (here.steps, here.without, None)
    first = cep.why(events, QUERY, rows=4, time="ts", type="type")
    assert first.sample == "the first 4 of 10 events in time"
    assert (first.events, first.total, first.matches) == (4, 10, 1)
    named = {"a": "a.id = 2", "b": "b.id = 2"}
    verdict = cep.why(events, QUERY, events=named, time="ts", type="type")
    assert verdict.change == "b.x >= 5 instead of b.x > 6"
    with pytest.raises(cep.DataError, match="rows of a DataFrame of Spark have no numbers"):
        cep.why(events, QUERY, events={"a": 2}, time="ts", type="type")


def test_rules_that_never_fired(spark: SparkSession) -> None:
    rules = cep.RuleSet.of({"some": QUERY, "none": QUERY.replace("> 6", "> 600")})
    here = rules.funnel(EVENTS, time="ts", type="type")
    there = rules.funnel(frame(spark, EVENTS), time="ts", type="type")
    assert there.silent == here.silent == ("none",)
    assert (there.matches, there.funnels) == (here.matches, here.funnels)
