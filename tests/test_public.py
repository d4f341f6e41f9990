"""The public surface: what it exports, what it takes, what it says when the data is wrong."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.plan.text import plan_text

EVENTS = pa.table(
    {
        "ts": [3, 1, 2, 4],
        "name": ["C", "A", "B", "C"],
        "id": [7, 7, 7, 8],
        "x": [1.0, 2.0, 3.0, 4.0],
    }
)
QUERY = "PATTERN A a ; B b ; C c WITHIN 9 RETURN a.x AS a, b.x AS b, c.x AS c"
ROWS = [
    {"a": 2.0, "b": 3.0, "c": 1.0, "match_start": 1, "match_end": 3},
    {"a": 2.0, "b": 3.0, "c": 4.0, "match_start": 1, "match_end": 4},
]


def test_exports() -> None:
    assert set(cep.__all__) == {
        "REWRITES",
        "Adaptation",
        "CepheidError",
        "DataError",
        "Explanation",
        "ExtraError",
        "Funnel",
        "Heartbeat",
        "Limit",
        "LiveRules",
        "Metrics",
        "OptionError",
        "Options",
        "PlanError",
        "Query",
        "QueryError",
        "Rule",
        "RuleSet",
        "RuleSetError",
        "Session",
        "SessionError",
        "SessionStatus",
        "StateError",
        "StateLimitError",
        "StatementExplanation",
        "Statistics",
        "Status",
        "StreamError",
        "Timeline",
        "UnsupportedError",
        "Watch",
        "Why",
        "WhyNot",
        "analyze",
        "funnel",
        "explain_sql",
        "match",
        "open",
        "reached",
        "register",
        "rejected",
        "resume",
        "sql",
        "status",
        "timeline",
        "timeouts",
        "wait",
        "warm",
        "why",
    }
    assert all(getattr(cep, name).__doc__ for name in cep.__all__)


def test_a_worker_does_not_load_the_parser() -> None:
    program = "import sys, cepheid.engine.run; print({'lark', 'pyspark'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr


@pytest.mark.slow
def test_any_module_of_the_engine_can_be_imported_first() -> None:
    """An ordinary run reads the imports instead (`tests/packaging/test_first_imports.py`)."""
    program = """
import importlib, pkgutil, sys
import cepheid.engine
names = [m.name for m in pkgutil.walk_packages(cepheid.engine.__path__, "cepheid.engine.")]
for name in names:
    for loaded in [m for m in sys.modules if m.startswith("cepheid")]:
        del sys.modules[loaded]
    importlib.import_module(name)
print("cepheid.engine.automaton.operator" in names)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr


class TestKindsOfData:
    """The result is of the same kind as the data; a table need not be in order."""

    def test_pyarrow(self) -> None:
        found = cep.match(EVENTS, QUERY, time="ts", type="name")
        assert isinstance(found, pa.Table)
        assert found.to_pylist() == ROWS

    def test_pandas(self) -> None:
        found = cep.match(EVENTS.to_pandas(), QUERY, time="ts", type="name")
        assert isinstance(found, pd.DataFrame)
        assert found.to_dict("records") == ROWS

    def test_polars(self) -> None:
        frame = pl.from_arrow(EVENTS)
        assert isinstance(frame, pl.DataFrame)
        found = cep.match(frame, QUERY, time="ts", type="name")
        assert isinstance(found, pl.DataFrame)
        assert found.to_dicts() == ROWS
        lazy = cep.match(frame.lazy(), QUERY, time="ts", type="name")
        assert isinstance(lazy, pl.LazyFrame)
        assert lazy.collect().to_dicts() == ROWS

    def test_batches(self) -> None:
        ordered = EVENTS.sort_by("ts")
        batches = iter(ordered.to_batches(max_chunksize=1))
        found = cep.match(batches, QUERY, time="ts", type="name")
        assert isinstance(found, pa.RecordBatchReader)
        assert found.read_all().to_pylist() == ROWS

    def test_batches_are_not_read_ahead(self) -> None:
        """Matches come while the stream goes on."""
        read = 0

        def stream() -> Iterator[pa.RecordBatch]:
            nonlocal read
            for batch in EVENTS.sort_by("ts").to_batches(max_chunksize=1):
                read += 1
                yield batch

        found = cep.match(stream(), QUERY, time="ts", type="name")
        assert found.read_next_batch().num_rows == 1
        assert read == 3

    def test_streams(self) -> None:
        trades = pa.table({"ts": [1, 3], "symbol": ["X", "Y"], "price": [5, 6]})
        news = pa.table({"ts": [2, 4], "symbol": ["X", "X"], "text": ["up", "down"]})
        query = "PATTERN trades t ; news n WHERE [symbol] WITHIN 9 RETURN t.price, n.text"
        found = cep.match({"trades": trades, "news": news}, query, time="ts")
        assert found.select(["price", "text"]).to_pylist() == [
            {"price": 5, "text": "up"},
            {"price": 5, "text": "down"},
        ]

    def test_from_leaves_out_streams(self) -> None:
        """Events of other streams don't count for `n EVENTS`."""
        parts = {n: pa.table({"ts": [t]}) for n, t in (("a", 1), ("b", 2), ("c", 3))}
        query = "PATTERN a ; c {} WITHIN 2 EVENTS RETURN a.ts"
        assert cep.match(parts, query.format(""), time="ts").num_rows == 0
        assert cep.match(parts, query.format("FROM a, c"), time="ts").num_rows == 1

    def test_in_the_order_of_ends(self) -> None:
        """Also where the engine goes key by key."""
        events = pa.table({"ts": [1, 2, 3, 4], "k": [1, 2, 2, 1]})
        query = "PATTERN a ; b WHERE [k] WITHIN 2 EVENTS RETURN a.k"
        found = cep.match(events, query, time="ts")
        assert found["match_end"].to_pylist() == [3, 4]

    def test_dictionary_encoded_strings(self) -> None:
        coded = EVENTS.set_column(1, "name", EVENTS["name"].dictionary_encode())
        query = "PATTERN A a ; C c WHERE a.name <> c.name WITHIN 9 RETURN c.name AS name"
        found = cep.match(coded, query, time="ts", type="name")
        assert found["name"].to_pylist() == ["C", "C"]

    def test_no_events(self) -> None:
        found = cep.match(EVENTS.slice(0, 0), QUERY, time="ts", type="name")
        assert found.num_rows == 0
        assert found.schema.names == ["a", "b", "c", "match_start", "match_end"]


class TestTypes:
    """Every type of column passes through RETURN."""

    def test_pass_through(self) -> None:
        when = datetime(2024, 1, 2, tzinfo=UTC)
        columns = {
            "ts": pa.array([when, when.replace(hour=1)], pa.timestamp("us", "UTC")),
            "name": pa.array(["A", "B"]),
            "d": pa.array([when.date(), None], pa.date32()),
            "n": pa.array(["1.50", "2.25"]).cast(pa.decimal128(10, 2)),
            "f": pa.array([True, None]),
            "b": pa.array([b"x", b"\x00"]),
            "l": pa.array([[1, 2], None]),
            "m": pa.array([{"k": 1}, {"k": None}]),
        }
        events = pa.table(columns)
        found = cep.match(events, "PATTERN A ; B WITHIN 2 hours", time="ts", type="name")
        assert found["A"].to_pylist() == events.slice(0, 1).to_pylist()
        assert found["B"].to_pylist() == events.slice(1, 1).to_pylist()
        assert found.schema.field("match_end").type == pa.timestamp("us", "UTC")
        attributes = ", ".join(f"B.{c} AS {c}" for c in columns)
        query = f"PATTERN A ; B WITHIN 2 hours RETURN {attributes}"
        found = cep.match(events, query, time="ts", type="name").drop_columns(
            ["match_start", "match_end"]
        )
        assert found.to_pylist() == events.slice(1, 1).to_pylist()
        assert found.schema.types == events.schema.types

    @pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
    def test_timestamps_of_every_unit(self, unit: str) -> None:
        times = pa.array([0, 5, 20]).cast(pa.timestamp("s")).cast(pa.timestamp(unit))
        events = pa.table({"ts": times, "name": ["A", "B", "B"]})
        found = cep.match(events, "PATTERN A ; B WITHIN 10 sec RETURN B.ts", time="ts", type="name")
        assert found["match_end"].to_pylist() == found["ts"].to_pylist() == times[1:2].to_pylist()
        assert found.schema.field("ts").type == pa.timestamp(unit)

    def test_computed_columns(self) -> None:
        query = """
            PATTERN A a ; B b ; C+ c WITHIN 9
            RETURN a.x + b.x AS total, count(c) AS n, avg(c.x) AS mean, collect(c.id) AS ids,
                   duration() AS span, upper(a.name) || '!' AS word, max(c.ts) AS latest"""
        found = cep.match(EVENTS, query, time="ts", type="name").to_pylist()
        assert found == [
            {
                "total": 5.0,
                "n": 2,
                "mean": 2.5,
                "ids": [7, 8],
                "span": 3,
                "word": "A!",
                "latest": 4,
                "match_start": 1,
                "match_end": 4,
            }
        ]


class TestQuery:
    def test_is_a_value(self) -> None:
        query = cep.Query(QUERY)
        copy = pickle.loads(pickle.dumps(query))
        assert copy == query
        assert copy.match(EVENTS, time="ts", type="name").num_rows == 2
        field = "text"
        with pytest.raises(AttributeError):
            setattr(query, field, "other")

    def test_options_object(self) -> None:
        options = cep.Options(time="ts", type="name", plan="right-deep")
        assert cep.match(EVENTS, QUERY, options).num_rows == 2
        assert cep.match(EVENTS, QUERY, options, plan="((a b) c)").num_rows == 2

    def test_params(self) -> None:
        query = "PATTERN A a ; C c WHERE c.x > :low WITHIN :w RETURN c.x"
        found = cep.match(EVENTS, query, time="ts", type="name", params={"low": 2, "w": 9})
        assert found["x"].to_pylist() == [4.0]

    def test_explain_without_data(self) -> None:
        found = cep.Query("PATTERN A a ; B b WHERE a.s = 'x' AND a.k = b.k WITHIN 9").explain()
        assert plan_text(found.planned.plan).splitlines() == [
            "key: k",
            "window: 9 units",
            "SEQ  hash(a.k = b.k)",
            "├── A a  a.s = 'x'",
            "└── B b",
        ]
        assert "├── A a  a.s = 'x'" in str(found)

    def test_analyze_needs_data(self) -> None:
        with pytest.raises(cep.DataError, match="it needs data"):
            cep.Query("PATTERN A").explain(analyze=True)

    def test_analyze_tells_what_happened(self) -> None:
        found = cep.Query(QUERY).explain(EVENTS, time="ts", type="name", analyze=True)
        assert found.profile is not None
        assert (found.profile.events, found.profile.matches) == (EVENTS.num_rows, 2)

    def test_a_query_that_can_match_nothing(self) -> None:
        query = "PATTERN A a ; C c WHERE a.x > 5 AND a.x < 3 WITHIN 9 RETURN c.x"
        with pytest.warns(
            UserWarning, match="matches nothing: `a.x > 5` and `a.x < 3` can't both be true"
        ):
            found = cep.match(EVENTS, query, time="ts", type="name")
        assert found.num_rows == 0
        assert found.schema.names == ["x", "match_start", "match_end"]

    def test_a_rule_can_be_left_out(self) -> None:
        query = "PATTERN A a ; C c WHERE a.x > 5 AND a.x > 3 WITHIN 9 RETURN c.x"
        rules = {rule.name for rule in cep.REWRITES}
        applied = {r.rule for r in cep.Query(query).explain().rewrites}
        assert applied <= rules and applied
        without = cep.Query(query).explain(without=tuple(applied)).rewrites
        assert without == ()
        with pytest.raises(ValueError, match="did you mean"):
            cep.Query(query).explain(without=("redundanc",))


class TestWrongData:
    @pytest.mark.parametrize(
        ("named", "message"),
        [
            ({"time": "tz"}, "no column `tz` (time=); there are ts, name, id, x"),
            ({"time": "name"}, "the time column `name` is string; it must be a timestamp"),
            ({"time": "ts", "type": "kind"}, "no column `kind` (type=)"),
            ({"time": "ts", "type": "name", "tie": "idd"}, "did you mean `id`?"),
            ({"type": "name"}, "say which column holds the event time: time='ts'"),
        ],
    )
    def test_columns(self, named: dict[str, str], message: str) -> None:
        with pytest.raises(cep.DataError) as caught:
            cep.match(EVENTS, QUERY, **named)
        assert message in str(caught.value)

    def test_options(self) -> None:
        unknown: Any = "down"
        with pytest.raises(ValueError, match="negation must be one of auto, push, top"):
            cep.Options(time="ts", negation=unknown)
        with pytest.raises(ValueError, match="partitions must be at least 1"):
            cep.Options(time="ts", partitions=0)

    def test_missing_attribute(self) -> None:
        with pytest.raises(cep.QueryError, match=r"CEP2\d\d.*\n.*\n.*\n.*did you mean `x`"):
            query = "PATTERN A a ; B b WHERE a.xx = b.x WITHIN 9"
            cep.match(EVENTS, query, time="ts", type="name")

    def test_disorder(self) -> None:
        batches = iter(EVENTS.to_batches())
        with pytest.raises(cep.DataError, match="not in the order of `ts`: 1 comes after 3"):
            cep.match(batches, QUERY, time="ts", type="name").read_all()

    def test_events_without_a_time(self) -> None:
        events = pa.table({"ts": [1, None, 2], "name": ["A", "A", "B"]})
        with pytest.warns(UserWarning, match="1 of 3 events have no time"):
            found = cep.match(events, "PATTERN A ; B WITHIN 5", time="ts", type="name")
        assert found.num_rows == 1
        assert cep.rejected(events, time="ts").to_pylist() == [{"ts": None, "name": "A"}]

    def test_streams_that_disagree(self) -> None:
        one, other = pa.table({"ts": [1], "v": ["x"]}), pa.table({"ts": [1], "v": [1]})
        with pytest.raises(cep.DataError, match="`v` is string in one stream and int64 in `b`"):
            cep.match({"a": one, "b": other}, "PATTERN a ; b WITHIN 5", time="ts")

    def test_unknown_data(self) -> None:
        with pytest.raises(cep.DataError, match="can't read events from int"):
            cep.match(5, QUERY, time="ts")

    def test_a_tree_for_what_needs_an_automaton(self) -> None:
        with pytest.raises(cep.PlanError, match="needs an automaton"):
            cep.match(EVENTS, "PATTERN A -> B", time="ts", type="name", engine="tree")
