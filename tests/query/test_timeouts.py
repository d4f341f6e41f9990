"""`cep.timeouts`: what it returns, for what data, and what it refuses."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.algebra.types import STREAM_COLUMN
from tests.corpus.reader import Case, show, table
from tests.oracle.test_timeouts import CASES, written

EVENTS = pa.table(
    {
        "ts": [5, 1, 2, 14],
        "name": ["A", "A", "B", "C"],
        "x": [1.5, 2.5, 3.5, 4.5],
    }
)
QUERY = "PATTERN A a ; B b ; C+ c WITHIN 10 RETURN a.x AS a, b.ts + a.ts AS both, c.x AS c"
ROWS = [
    {"step": 2, "steps": 3, "reached": "a, b", "missing": "C+ c", "a": 2.5, "both": 3, "c": None}
    | {"match_start": 1, "match_end": 2},
    {"step": 1, "steps": 3, "reached": "a", "missing": "B b", "a": 1.5, "both": None, "c": None}
    | {"match_start": 5, "match_end": 5},
]
NAMED = {"time": "ts", "type": "name"}


def by_engine(case: Case) -> list[str]:
    """What a query without RETURN finds, as the case writes it."""
    rows = pa.array([e.index for e in case.events])
    data: Any = table(case.schema, case.events).append_column("row", rows)
    options: dict[str, Any] = {"time": "ts", "tie": case.schema.tie, "start": case.schema.start}
    options |= {"params": case.params, "jit": False}
    if case.schema.streams is None:
        options["type"] = case.schema.type
    else:
        data = {
            name: data.filter(pa.compute.equal(data[STREAM_COLUMN], name)).select([*own, "row"])
            for name, columns in case.schema.streams.items()
            for own in [sorted(columns - {STREAM_COLUMN})]
        }
    told = ("step", "steps", "reached", "missing", "match_start", "match_end")
    return sorted(
        show(case, [{name: places(value) for name, value in row.items() if name not in told}])
        for row in cep.timeouts(data, case.query_text, **options).to_pylist()
    )


def places(value: Any) -> Any:
    """Events by their places in the input."""
    match value:
        case dict():
            return value["row"]
        case list():
            return tuple(element["row"] for element in value)
        case _:
            return None


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:.*left out")
@pytest.mark.filterwarnings("ignore:the query matches nothing")
def test_the_engine_finds_what_a_person_finds(name: str) -> None:
    case = written(name, CASES[name].strip())
    assert by_engine(case) == sorted(show(case, [e]) for e in case.expected)


class TestTheResult:
    def test_columns(self) -> None:
        found = cep.timeouts(EVENTS, QUERY, **NAMED)
        assert found.to_pylist() == ROWS
        matched = cep.match(EVENTS, QUERY, **NAMED).schema
        told = {"step": pa.int32(), "steps": pa.int32()}
        told |= {"reached": pa.string(), "missing": pa.string()}
        assert found.schema == pa.schema([*told.items(), *matched])

    def test_without_return(self) -> None:
        (found,) = cep.timeouts(EVENTS, "PATTERN A ; B ; C WITHIN 4", **NAMED).to_pylist()[:1]
        assert found["A"] == {"ts": 1, "name": "A", "x": 2.5}
        assert (found["B"]["ts"], found["C"]) == (2, None)
        assert (found["reached"], found["missing"]) == ("A, B", "C")

    def test_what_was_not_reached_is_null_in_return(self) -> None:
        query = "PATTERN A a ; B b WITHIN 1 RETURN coalesce(b.x, 0 - a.x) AS x, duration() AS took"
        found = cep.timeouts(EVENTS, query, **NAMED)
        assert found.select(["x", "took"]).to_pylist() == [
            {"x": -2.5, "took": 0},
            {"x": -1.5, "took": 0},
        ]

    def test_in_the_order_of_ends(self) -> None:
        events = pa.table({"ts": [1, 2, 3, 4], "name": ["A", "B", "A", "B"]})
        found = cep.timeouts(events, "PATTERN A ; B ; C WITHIN 2", **NAMED)
        assert found["match_end"].to_pylist() == [2, 4]
        found = cep.timeouts(events, "PATTERN B ; A ; C WITHIN 2", **NAMED)
        assert found.select(["step", "match_end"]).to_pylist() == [
            {"step": 2, "match_end": 3},
            {"step": 1, "match_end": 4},
        ]

    def test_no_events(self) -> None:
        found = cep.timeouts(EVENTS.slice(0, 0), QUERY, **NAMED)
        assert found.num_rows == 0 and found.column_names == list(ROWS[0])

    def test_plans_and_statistics_are_those_of_the_matches(self) -> None:
        stats = cep.analyze(EVENTS, QUERY, **NAMED)
        options = cep.Options(time="ts", type="name", plan="(a (b c))", stats=stats)
        query = cep.Query("PATTERN A a ; B b ; C c WITHIN 10")
        assert cep.timeouts(EVENTS, query, options).num_rows == 2


class TestKindsOfData:
    def test_pandas(self) -> None:
        found = cep.timeouts(EVENTS.to_pandas(), QUERY, **NAMED)
        assert isinstance(found, pd.DataFrame)
        assert list(found["missing"]) == ["C+ c", "B b"]

    def test_polars(self) -> None:
        frame = pl.from_arrow(EVENTS)
        assert isinstance(frame, pl.DataFrame)
        found = cep.timeouts(frame, QUERY, **NAMED)
        assert isinstance(found, pl.DataFrame)
        assert found.to_dicts() == ROWS
        assert cep.timeouts(frame.lazy(), QUERY, **NAMED).collect().to_dicts() == ROWS

    def test_a_list_of_batches(self) -> None:
        found: Any = cep.timeouts(EVENTS.to_batches(max_chunksize=1), QUERY, **NAMED)
        assert found.read_all().to_pylist() == ROWS

    def test_an_iterator_of_batches_is_refused(self) -> None:
        with pytest.raises(cep.DataError, match="an iterator gives only once: pass a table"):
            cep.timeouts(iter(EVENTS.to_batches()), QUERY, **NAMED)


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("pattern", "why"),
        [
            ("A a", "this pattern isn't one"),
            ("A a & B b", "this pattern isn't one"),
            ("A a => B b", "this pattern isn't one"),
            ("A a ; B b => C c", "this pattern isn't one"),
            ("A a -> (B b -> C c)", "this pattern has another part"),
            ("A a ; B b USING STRICT CONTIGUITY", "this pattern isn't one"),
            ("A a ; !B b ; C c", "this pattern has another part"),
            ("A a ; (B b | C c)", "this pattern has another part"),
            ("A a ; (B b ; C c)+ ; B d", "this pattern has another part"),
            ("A a ; B b @ 3", "this pattern has another part"),
            ("A+ a ; B b", "this one begins with a closure"),
            ("A a ; B{2} b", "here one needs 2: name them one by one"),
            ("A a ; B b ; C{3,} c", "here one needs 3: name them one by one"),
            ("A a ; B+ b UNTIL (b.x > 5) ; C c", "UNTIL looks the same"),
            ("A a ; B* b", "here nothing can be missing"),
        ],
    )
    def test_other_patterns(self, pattern: str, why: str) -> None:
        with pytest.raises(cep.UnsupportedError) as refused:
            cep.timeouts(EVENTS, f"PATTERN {pattern} WITHIN 9", **NAMED)
        assert str(refused.value).startswith("timeouts are defined for a sequence `c1 ; c2 ; …`")
        assert why in str(refused.value)

    def test_nothing_expires_without_a_window(self) -> None:
        with pytest.raises(cep.UnsupportedError, match="nothing expires: add WITHIN to the query"):
            cep.timeouts(EVENTS, "PATTERN A a -> B b", **NAMED)

    def test_parentheses_that_change_nothing_are_taken(self) -> None:
        assert cep.timeouts(EVENTS, "PATTERN A a ; (B b ; C c) WITHIN 9", **NAMED).num_rows == 2

    def test_a_running_condition_that_reads_what_follows(self) -> None:
        query = "PATTERN A a ; B+ b ; C c WHERE b.x > PREV(b.x) + c.x WITHIN 9"
        with pytest.raises(cep.UnsupportedError, match=r"what continues `b`: .* reads `c`"):
            cep.timeouts(EVENTS, query, **NAMED)

    def test_a_column_of_the_same_name(self) -> None:
        query = "PATTERN A a ; B b WITHIN 9 RETURN a.x AS step"
        with pytest.raises(cep.UnsupportedError, match=r"a column called `step`, .* with AS"):
            cep.timeouts(EVENTS, query, **NAMED)

    def test_a_wrong_query_is_shown_as_it_was_written(self) -> None:
        query = "PATTERN A a ; B b ; C c WHERE c.y > 5 WITHIN 9"
        with pytest.raises(cep.QueryError, match=r"CEP204: C has no attribute `y`\n  query:1:31"):
            cep.timeouts(EVENTS, query, **NAMED)
        with pytest.raises(cep.QueryError, match="CEP401"):
            cep.timeouts(EVENTS, "PATTERN A a ; B b", **NAMED)

    def test_data(self) -> None:
        with pytest.raises(cep.DataError, match="say which column holds the event time"):
            cep.timeouts(EVENTS, QUERY, type="name")
        with pytest.raises(cep.DataError, match="can't read events from int"):
            cep.timeouts(5, QUERY, **NAMED)
