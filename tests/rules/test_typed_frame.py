"""The matches of a rule in those of a set are what the rule finds by itself, to the bit."""

from __future__ import annotations

import warnings
from collections import Counter
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cepheid as cep
from cepheid.options import Options
from cepheid.rules import RuleSet
from tests.corpus.reader import table
from tests.examples import examples
from tests.rules.strategies import Set, sets
from tests.rules.test_batch import rule_set


def ticks(low: datetime, high: datetime) -> st.SearchStrategy[int]:
    """Nanoseconds since 1970."""
    begin = datetime(1970, 1, 1)
    micro = timedelta(microseconds=1)
    span = [(moment - begin) // micro * 1000 for moment in (low, high)]
    return st.integers(*span)


def moments(low: datetime, high: datetime) -> st.SearchStrategy[datetime]:
    return st.datetimes(low, high, timezones=st.just(UTC))


TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)
EARLY, LATE = datetime(1700, 1, 1), datetime(2200, 1, 1)
TYPES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.string(): TEXTS,
    pa.large_string(): TEXTS,
    pa.binary(): st.binary(max_size=5),
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.date32(): st.dates(),
    pa.time64("us"): st.times(),
    pa.timestamp("us"): st.datetimes(),
    pa.timestamp("ms", "UTC"): moments(EARLY, LATE).map(
        lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    ),
    pa.timestamp("us", "Asia/Kolkata"): moments(EARLY, LATE),
    pa.timestamp("ns"): ticks(EARLY, LATE),
    pa.timestamp("ns", "Europe/Berlin"): ticks(EARLY, LATE),
    pa.duration("us"): st.timedeltas(timedelta(-(10**6)), timedelta(10**6)),
    pa.duration("s"): st.integers(-(10**9), 10**9).map(lambda n: timedelta(seconds=n)),
    pa.decimal128(12, 3): st.integers(-(10**11), 10**11).map(lambda n: Decimal(n).scaleb(-3)),
    pa.list_(pa.float64()): st.lists(st.none() | st.floats(), max_size=3),
    pa.struct({"a": pa.decimal128(4, 1), "b": pa.list_(pa.date32())}): st.builds(
        lambda n, days: {"a": Decimal(n).scaleb(-1), "b": days},
        st.integers(-999, 999),
        st.lists(st.none() | st.dates(), max_size=2),
    ),
    pa.map_(pa.string(), pa.int16()): st.dictionaries(TEXTS, st.integers(-9, 9), max_size=2).map(
        lambda pairs: [*pairs.items()]
    ),
    pa.map_(pa.bool_(), pa.date32()): st.dictionaries(st.booleans(), st.dates()).map(
        lambda pairs: [*pairs.items()]
    ),
    pa.map_(pa.date32(), pa.float64()): st.dictionaries(st.dates(), st.floats(), max_size=2).map(
        lambda pairs: [*pairs.items()]
    ),
}
NAMES = [f"c{n}" for n in range(len(TYPES))]
RETURNED = ", ".join(f"b.{name} AS {name}" for name in NAMES)
RULES = RuleSet.of(
    {
        "together": f"PATTERN A a ; B b WITHIN 9 RETURN {RETURNED}",
        "whole": "PATTERN A a ; B b WITHIN 9 RETURN a, b",
        "alone": f"PATTERN A a -> B b WITHIN 9 RETURN a.n, {RETURNED}",
        "groups": f"PATTERN A a ; B+ b WITHIN 9 RETURN {RETURNED}, count(b) AS many",
    }
)
NAMED: dict[str, Any] = {"time": "ts", "type": "type", "jit": False}


@st.composite
def events(draw: st.DrawFn) -> pa.Table:
    n = 5
    columns: dict[str, Any] = {
        "ts": pa.array(range(n)),
        "type": ["A", "B", "A", "B", "B"],
        "n": pa.array(range(n)),
    }
    for name, (type_, values) in zip(NAMES, TYPES.items(), strict=True):
        drawn = draw(st.lists(st.none() | values, min_size=n, max_size=n))
        columns[name] = pa.array(drawn, type_)
    return pa.table(columns)


def rows(found: pa.Table) -> Counter[str]:
    """NaN and negative zero are themselves in a text."""
    return Counter(map(repr, found.to_pylist()))


@settings(
    max_examples=examples("typed frames"), suppress_health_check=list(HealthCheck), deadline=None
)
@given(events())
def test_values_of_all_types_come_back(drawn: pa.Table) -> None:
    found = RULES.match(drawn, **NAMED)
    for name, rule in RULES.items():
        expected = rule.match(drawn, **NAMED)
        assert expected.num_rows
        typed = rule.typed(found, drawn.schema, **NAMED)
        assert typed.schema == expected.schema
        assert rows(typed) == rows(expected), name


@settings(
    max_examples=examples("rule sets", part=3),
    suppress_health_check=list(HealthCheck),
    deadline=None,
)
@given(sets())
def test_every_rule_of_a_random_set(drawn: Set) -> None:
    schema = drawn.schema
    options = Options("ts", type="type", tie=drawn.tie, jit=False)
    events, rules = table(schema, drawn.events), rule_set(drawn)
    found = rules.match(events, options)
    for name, rule in rules.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some can't match anything
            expected = rule.match(events, options)
        typed = rule.typed(found, events, options)
        assert typed.schema == expected.schema
        assert rows(typed) == rows(expected), (name, rule.params)


# ── frames ───────────────────────────────────────────────────────────────────

PAIRS = RuleSet.from_template(
    "pair",
    "PATTERN A a ; B b WHERE b.x > :low WITHIN 9 seconds "
    "RETURN a.x, b.at AS day, b.s, duration() AS took",
    {"rule": ["any", "high", "none"], "low": [0.0, 2.0, float("inf")]},
)
FRAME = pa.table(
    {
        "ts": pa.array(np.arange(4) * 1_000_000, pa.timestamp("us")),
        "type": ["A", "B", "B", "B"],
        "x": [1.5, 0.5, None, float("inf")],
        "at": pa.array([date(2026, 1, n) for n in (1, 2, 3, 4)]),
        "s": ["", 'a"', "b", None],
    }
)
TIMED = {"time": "ts", "type": "type"}
HIGH = [
    {
        "x": 1.5,
        "day": date(2026, 1, 4),
        "s": None,
        "took": timedelta(seconds=3),
        "match_start": datetime(1970, 1, 1),
        "match_end": datetime(1970, 1, 1, 0, 0, 3),
    }
]


def test_a_table() -> None:
    found = PAIRS.match(FRAME, **TIMED)
    assert PAIRS["high"].typed(found, FRAME, **TIMED).to_pylist() == HIGH
    assert PAIRS["none"].typed(found, FRAME, **TIMED).to_pylist() == []
    assert PAIRS["any"].typed(found, FRAME, **TIMED).num_rows == 2


@pytest.mark.parametrize("name", ["high", "any", "none"])
def test_a_pandas_frame(name: str) -> None:
    frame = FRAME.to_pandas()
    found = PAIRS.match(frame, **TIMED)
    typed = PAIRS[name].typed(found, frame, **TIMED)
    pd.testing.assert_frame_equal(typed, PAIRS[name].match(frame, **TIMED))


@pytest.mark.parametrize("name", ["high", "any", "none"])
def test_a_polars_frame(name: str) -> None:
    frame = pl.from_arrow(FRAME)
    found = PAIRS.match(frame, **TIMED)
    typed = PAIRS[name].typed(found, frame, **TIMED)
    assert isinstance(typed, pl.DataFrame)
    assert typed.equals(PAIRS[name].match(frame, **TIMED))
    assert typed.schema == PAIRS[name].match(frame, **TIMED).schema


def test_several_streams() -> None:
    streams = {
        name: FRAME.filter(pa.compute.equal(FRAME["type"], name)).drop_columns("type")
        for name in "AB"
    }
    found = PAIRS.match(streams, time="ts")
    assert PAIRS["high"].typed(found, streams, time="ts").to_pylist() == HIGH


def test_parameters_that_are_returned_have_their_types() -> None:
    rules = RuleSet.from_template(
        "p",
        "PATTERN A a RETURN :day AS day, :low AS low",
        {"day": [date(2026, 1, 31)], "low": [2]},
    )
    found = rules.match(FRAME, **TIMED)
    typed = rules["p-1"].typed(found, FRAME, **TIMED)
    assert typed.drop_columns(["match_start", "match_end"]).to_pylist() == [
        {"day": date(2026, 1, 31), "low": 2}
    ]


# ── what isn't its own ───────────────────────────────────────────────────────


def test_what_no_set_has_found() -> None:
    with pytest.raises(cep.DataError, match=r"no column `rule`; pass the result of RuleSet.match"):
        PAIRS["high"].typed(FRAME, FRAME, **TIMED)


def test_what_another_rule_of_the_name_has_found() -> None:
    other = RuleSet.of({"high": "PATTERN A a RETURN a.s"})
    found = other.match(FRAME, **TIMED)
    with pytest.raises(cep.DataError, match="have no `x` for this rule"):
        PAIRS["high"].typed(found, FRAME, **TIMED)


@pytest.mark.parametrize("type_", [pa.int64(), pa.float64(), pa.timestamp("us", "UTC")])
def test_columns_that_are_not_those_of_the_events(type_: pa.DataType) -> None:
    found = PAIRS.match(FRAME, **TIMED)
    days = FRAME.set_column(3, "at", pa.nulls(FRAME.num_rows, type_))
    with pytest.raises(cep.DataError, match=r"aren't .*: .*; pass the events of that run"):
        PAIRS["high"].typed(found, days, **TIMED)


def test_offsets_with_seconds_are_read() -> None:
    """Berlin's time was 53 minutes and 28 seconds ahead before 1893."""
    moment = datetime(1850, 1, 1, tzinfo=timezone(timedelta(seconds=3208)))
    frame = pa.table(
        {"ts": [1], "type": ["A"], "at": pa.array([moment], pa.timestamp("us", "Europe/Berlin"))}
    )
    rules = RuleSet.of({"one": "PATTERN A a RETURN a.at"})
    typed = rules["one"].typed(rules.match(frame, **TIMED), frame, **TIMED)
    assert typed["at"].to_pylist() == [moment]


def test_a_time_of_day() -> None:
    frame = pa.table({"ts": [1], "type": ["A"], "at": [time(23, 59, 59, 999999)]})
    rules = RuleSet.of({"one": "PATTERN A a RETURN a.at"})
    typed = rules["one"].typed(rules.match(frame, **TIMED), frame, **TIMED)
    assert typed["at"].to_pylist() == [time(23, 59, 59, 999999)]
