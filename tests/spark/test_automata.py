"""Automata and AFTER MATCH on Spark: the oracle's matches, however the work is cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

import cepheid as cep
from cepheid.errors import PlanError
from tests.corpus.reader import Case, bound, cases
from tests.spark.harness import (
    HOW,
    ROW,
    Rows,
    again,
    event_table,
    expected,
    frame,
    in_process,
    on_spark,
)

FILES = (
    "after_match.txt",
    "durations_next.txt",
    "exception.txt",
    "groups.txt",
    "modes.txt",
    "next.txt",
    "papers_automata.txt",
    "strict.txt",
)
INPUT_ORDER = {
    "after match/simultaneous matches by input order",
}
"""Cases that a cluster may answer otherwise: it doesn't keep the input order."""


def options(case: Case) -> dict[str, Any]:
    schema = case.schema
    return {
        "time": schema.time,
        "start": schema.start,
        "type": schema.type,
        "tie": schema.tie,
        "params": case.params,
        "partitions": 3,
        "jit": False,
    }


def ways(case: Case) -> Iterator[str]:
    """As it is done by itself; with a key, also as it could be done."""
    yield "auto"
    if bound(case).key:
        yield from ("partial", "slices")


def named(matches: DataFrame, case: Case, how: str) -> DataFrame:
    """Matches by the rows that they bind, in columns that are the same for every case."""
    bindings = []
    for field in matches.schema.fields[:-2]:
        column = F.col(f"`{field.name}`")[ROW]
        several = isinstance(field.dataType, t.ArrayType)
        rows = column if several else F.when(column.isNotNull(), F.array(column))
        bindings += [F.lit(field.name), rows]
    return matches.select(
        F.lit(case.name).alias("case"),
        F.lit(how).alias(HOW),
        F.create_map(*bindings).alias("bindings"),
        "match_start",
        "match_end",
    )


def collected(matches: Sequence[DataFrame]) -> dict[tuple[str, str], Rows]:
    found: dict[tuple[str, str], Rows] = {}
    for row in reduce(DataFrame.unionAll, matches).collect():
        bindings = ((v, tuple(rows or ())) for v, rows in sorted(row.bindings.items()))
        one = (*bindings, row.match_start, row.match_end)
        found.setdefault((row.case, row.how), Counter())[one] += 1
    return found


@pytest.mark.parametrize("file", FILES)
def test_corpus(spark: SparkSession, file: str) -> None:
    """The stream three times over, so that slices cut through it; a file at once, since jobs take
    longer than their work."""
    matches: list[DataFrame] = []
    want: dict[tuple[str, str], Rows] = {}
    for case in cases(file)[::2]:
        if case.name in INPUT_ORDER or case.schema.streams is not None:
            continue
        events = again(case.events, 3)
        data = frame(spark, event_table(case, events))
        oracle = expected(case, events)
        for how in ways(case):
            try:
                found = cep.match(data, case.query_text, partitioning=how, **options(case))
            except PlanError:
                assert how != "auto"
                continue
            matches.append(named(found, case, how))
            if oracle:
                want[case.name, how] = oracle
    assert collected(matches) == want
