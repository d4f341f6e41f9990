"""What functions are called with: what is shown of it, and what is said if it is wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.options import GivenOptions

EVENTS = pa.table({"ts": [1, 2], "type": ["A", "B"]})
QUERY = "PATTERN A ; B WITHIN 5 RETURN B.ts"
RULES = cep.RuleSet.of({"pair": QUERY})


@pytest.mark.parametrize(
    "function",
    [
        cep.match,
        cep.timeouts,
        cep.analyze,
        cep.Query.match,
        cep.Query.explain,
        cep.Query.bind,
        cep.RuleSet.match,
        cep.RuleSet.explain,
        cep.RuleSet.check,
        cep.LiveRules.match,
        cep.Rule.match,
        cep.Rule.typed,
    ],
    ids=lambda function: function.__qualname__,
)
def test_options_are_spelled_out(function: Callable[..., object]) -> None:
    """For `help` and completion."""
    shown = inspect.signature(function).parameters
    options = {option.name: option for option in fields(cep.Options)}
    assert options.keys() <= shown.keys()
    assert shown["type"].default is None and shown["plan"].default == "auto"
    assert shown["time"].kind is inspect.Parameter.KEYWORD_ONLY


def test_options_that_type_checkers_know() -> None:
    assert get_type_hints(GivenOptions) == get_type_hints(cep.Options)


def test_public_names() -> None:
    assert set(cep.__all__) < set(dir(cep))


def test_sets_of_rules() -> None:
    found = cep.match(EVENTS, RULES, time="ts", type="type")
    assert found.equals(RULES.match(EVENTS, time="ts", type="type"))
    assert found["rule"].to_pylist() == ["pair"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cep.match(EVENTS, QUERY, "ts"), "expected Options, not a str: name it, as in tim"),
        (lambda: cep.match(EVENTS, QUERY, {"time": "ts"}), "expected Options, not a dict"),
        (lambda: cep.match(EVENTS, QUERY, tme="ts"), "no option `tme`; did you mean `time`?"),
        (lambda: cep.match(EVENTS, QUERY), "say which column holds the event time: time='ts'"),
        (lambda: cep.match(EVENTS, 5, time="ts"), "expected a query, not an int"),
        (lambda: cep.match(EVENTS, None, time="ts"), "expected a query, not a NoneType"),
        (lambda: cep.match(EVENTS, [QUERY, 5], time="ts"), "expected a query, not an int"),
        (lambda: cep.match(EVENTS, [], time="ts"), "there are no queries"),
        (lambda: cep.match(EVENTS, {"a": QUERY}, time="ts"), "with `RuleSet.of`"),
        (lambda: cep.match(EVENTS, Path("a.cep"), time="ts"), "with `path.read_text()`"),
        (lambda: cep.match(QUERY, EVENTS, time="ts"), "pass the data before the query"),
        (lambda: cep.timeouts(EVENTS, RULES, time="ts"), "rules.match(data, ...)"),
        (lambda: cep.analyze(EVENTS, 5, time="ts"), "expected a query, not an int"),
        (lambda: cep.Query(5), "a query is a text, not an int"),
        (lambda: cep.Query(Path("a.cep")), "with `path.read_text()`"),
        (lambda: cep.match("a.parquet", QUERY, time="ts"), "with `pyarrow.dataset.dataset(path)`"),
        (lambda: cep.match(Path("a.csv"), QUERY, time="ts"), "from PosixPath: open the file"),
        (lambda: cep.match(5, QUERY, time="ts"), "can't read events from int: pass a Spark"),
        (lambda: cep.match([1, 2], QUERY, time="ts"), "expected record batches, not int"),
        (lambda: cep.match({"ts": [1]}, QUERY, time="ts"), "with `pyarrow.table(data)`"),
        (lambda: cep.match({"a": 5}, QUERY, time="ts"), "stream `a`: can't read events from int"),
        (lambda: cep.match(pd.Series([1]), QUERY, time="ts"), "from Series, which gives no table"),
        (lambda: cep.match(EVENTS, QUERY, time="ts", engine="treee"), "engine must be one of auto"),
        (lambda: cep.match(EVENTS, QUERY, time="ts", params=[1]), "a dict of values by the param"),
        (lambda: cep.match(EVENTS, QUERY, time="ts", stats="s.json"), "`Statistics.from_json("),
        (lambda: cep.match(EVENTS, QUERY, time="ts", limit=5), "limit is a Limit, such as Limit("),
        (lambda: cep.match(EVENTS, QUERY, time="ts", adapt=True), "adapt is an Adaptation, or Non"),
        (lambda: cep.match(EVENTS, QUERY, time="ts", buckets="8"), "must be at least 1, not '8'"),
        (lambda: cep.match(EVENTS, QUERY, time="ts", plan=5), "plan is auto, left-deep, right"),
        (lambda: cep.match(EVENTS, QUERY, time="ts", without="flat"), "without is a list of names"),
        (lambda: cep.match(EVENTS, QUERY, time="ts", without=5), "without is a list of names"),
        (lambda: cep.match(EVENTS, QUERY, time="ts", jit="no"), "jit is True or False, not 'no'"),
        (lambda: cep.match(EVENTS, QUERY, time="ts", threads=None), "threads must be at least 1"),
        (lambda: cep.match(EVENTS, QUERY, time="ts", buckets=True), "buckets must be at least 1"),
        (lambda: cep.match(EVENTS, QUERY, time="ts", future=5), "like '10 seconds', not 5"),
        (lambda: cep.match(EVENTS, QUERY, time="ts", heartbeat=5), "like '10 seconds', not 5"),
        (lambda: cep.match(EVENTS, QUERY, time="ts", idle=5.0), "like '10 seconds', not 5.0"),
        (lambda: cep.match(EVENTS, QUERY, time="ts", dead_letters="x"), "dead_letters is a list"),
        (lambda: cep.match(EVENTS, QUERY, time="ts", without=["flat"]), "no rewrite rule 'flat'"),
        (lambda: cep.sql("SELECT 1", EVENTS), "tables are a dict of tables, not Table: pass {"),
        (lambda: cep.sql(5, {}), "`sql` takes the text of a statement, not int"),
        (lambda: cep.rejected(EVENTS, time="tss"), "no column `tss` (time=); did you mean `ts`?"),
    ],
)
def test_wrong_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(cep.DataError) as caught:
        call()
    assert message in str(caught.value)


def test_columns_are_named_by_text() -> None:
    number: Any = 5
    with pytest.raises(cep.OptionError, match="time is the name of a column, a string; not 5"):
        cep.match(EVENTS, QUERY, time=number)


class TestRejected:
    """Dead letters are the rows as they are, with all that no query could read."""

    def test_pandas(self) -> None:
        times = pd.Series([1, None], dtype="Int64")
        frame = pd.DataFrame({"ts": times, "x": pd.Series([1, "x"], dtype=object)})
        found = cep.rejected(frame, time="ts")
        assert found["x"].tolist() == ["x"] and found.dtypes.equals(frame.dtypes)
        assert len(cep.rejected(frame.dropna(), time="ts")) == 0

    @pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
    def test_not_a_number_is_no_time(self, make: Any) -> None:
        """As pandas has it where an integer is missing."""
        frame = make({"ts": [1.0, float("nan")], "x": [5, 6]})
        (dead,) = cep.rejected(frame, time="ts")["x"]
        assert int(dead) == 6
        assert len(cep.rejected(frame, time="ts", start="ts")) == 1

    def test_polars(self) -> None:
        frame = pl.DataFrame({"ts": [1, None], "x": pl.Series([1, 2], dtype=pl.Int128)})
        assert cep.rejected(frame, time="ts").rows() == [(None, 2)]
        assert cep.rejected(frame.lazy(), time="ts").collect().rows() == [(None, 2)]

    def test_streams(self) -> None:
        parts = {"a": pa.table({"ts": [1, None]}), "b": pa.table({"ts": [1]})}
        found = cep.rejected(parts, time="ts")
        assert {name: part.num_rows for name, part in found.items()} == {"a": 1, "b": 0}


def test_an_index_that_has_a_name_is_a_column() -> None:
    frame = EVENTS.to_pandas().set_index("ts")
    assert cep.match(frame, QUERY, time="ts", type="type")["ts"].tolist() == [2]
    levels = EVENTS.to_pandas().set_index(["ts", "type"])
    assert len(cep.match(levels, QUERY, time="ts", type="type")) == 1
