"""Answers in sessions: random queries, cut, shuffled and resumed at random, give the oracle's; and
the rules of resuming, chains, limits and the end by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import cepheid as cep
from cepheid.algebra import bind
from cepheid.algebra.query import BoundQuery
from cepheid.errors import PlanError, QueryError
from cepheid.language import parse
from cepheid.options import Options
from cepheid.planner import prepare
from tests.answers.test_corpus import same
from tests.answers.test_counting import (
    COUNTS,
    OTHER_PATTERNS,
    OTHERS,
    PATTERNS,
    SCHEMA,
    WINDOWS,
    events,
)
from tests.corpus.reader import table
from tests.examples import examples
from tests.oracle import Event, answers
from tests.sessions.test_chains import rows_of
from tests.sessions.test_properties import ENGINES, WAYS, Driven, Way, arranged, relaxed

LATER = ("A a ; !B x", "A a ; !B x FOR 4", "A a ; B+ b", "A a -> B b", "A a => B b ; C c")


@st.composite
def queries(draw: st.DrawFn) -> BoundQuery:
    """With a window: without one, no answer is complete before the end."""
    pattern = draw(st.sampled_from((*PATTERNS, *OTHER_PATTERNS, *LATER)))
    one = pattern.split()[-1] if pattern in PATTERNS else "a" if "a" in pattern.split() else ""
    values = [text for text in (*COUNTS, *OTHERS) if one or "." not in text]
    found = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True))
    groups = [f"{one}.id"] if one and draw(st.booleans()) else []
    window = draw(st.sampled_from((*filter(None, WINDOWS), "RANGE(4)")))
    having = draw(st.sampled_from(("", "HAVING count(*) > 1")))
    columns = [f"{text.format(last=one)} AS m{n}" for n, text in enumerate(found)]
    text = (
        f"PATTERN {pattern} WITHIN {draw(st.integers(1, 12))} "
        f"GROUP BY {', '.join([*groups, window])} {having} "
        f"RETURN window_start, {', '.join([*columns, *groups])}"
    )
    try:
        return bind(parse(text), SCHEMA)
    except QueryError:  # a.x of a closure
        reject()


def plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    assert all(row["match_start"] == row["match_end"] for row in rows)
    return [{k: v for k, v in row.items() if not k.startswith("match_")} for row in rows]


@settings(relaxed, max_examples=examples("session answers"))
@given(queries(), events(), WAYS, ENGINES)
def test_any_query(query: BoundQuery, given_events: list[Event], way: Way, engine: str) -> None:
    try:
        prepared = prepare(query, Options("ts", engine=engine))
    except PlanError:
        reject()
    data, arrivals = arranged(query, table(query.schema, given_events), way)
    driven = Driven(prepared, data.schema, way)
    driven.run(data, arrivals)
    assert same(plain(driven.rows), answers(query, given_events))


COLUMNS = pa.schema({"ts": pa.int64(), "type": pa.string(), "x": pa.int64()})
NAMED: dict[str, Any] = {"time": "ts", "type": "type", "jit": False}
HOURLY = "PATTERN A a ; B b WITHIN 6 GROUP BY TUMBLE(10) RETURN window_start, count(*) AS n"
PAIR = [{"ts": 1, "type": "A"}, {"ts": 3, "type": "B"}]


def test_a_heartbeat_closes_windows() -> None:
    session = cep.open(HOURLY, COLUMNS, **NAMED)
    assert session.push(PAIR).num_rows == 0
    assert session.advance(9).num_rows == 0
    answer = {"window_start": 0, "n": 1, "match_start": 10, "match_end": 10}
    assert session.advance(10).to_pylist() == [answer]
    assert session.advance(30).num_rows == 0
    assert session.close().num_rows == 0
    assert session.status.matches == 1


def test_an_event_that_ends_no_match_closes_windows() -> None:
    session = cep.open(HOURLY, COLUMNS, **NAMED)
    session.push(PAIR)
    assert session.push({"ts": 12, "type": "C"})["n"].to_pylist() == [1]


def test_open_groups_are_held_and_lost_only_with_a_warning() -> None:
    told = pytest.warns(UserWarning, match="matches may wait for time")
    with told, cep.open(HOURLY, COLUMNS, **NAMED) as session:
        session.push(PAIR)
        assert session.status.held == 2  # both events, which aren't counted yet
    assert session.status.matches == 0


def test_until_leaves_open_windows_out() -> None:
    session = cep.open(HOURLY, COLUMNS, until="last event", **NAMED)
    session.push([*PAIR, {"ts": 12, "type": "A"}, {"ts": 13, "type": "B"}])
    assert session.close().num_rows == 0
    assert (session.status.matches, session.status.undecided) == (1, 1)


def test_a_limit_bounds_groups() -> None:
    grouped = "FROM A a GROUP BY a.x, TUMBLE(100)"
    session = cep.open(grouped, COLUMNS, limit=cep.Limit(total=2), **NAMED)
    with pytest.raises(cep.StateLimitError, match="GROUP BY holds 3 groups and slices"):
        session.push([{"ts": n, "type": "A", "x": n} for n in range(3)])


def test_endless_data_need_a_window() -> None:
    with pytest.raises(cep.QueryError, match="CEP346"):
        cep.open("PATTERN A a ; B b WITHIN 5 GROUP BY a.x", COLUMNS, **NAMED)


def test_resumed_with_another_having_and_not_with_another_window() -> None:
    session = cep.open(HOURLY, COLUMNS, **NAMED)
    session.push(PAIR)
    saved = session.save()
    fewer = HOURLY.replace("RETURN", "HAVING count(*) > 1 RETURN")
    assert cep.resume(fewer, COLUMNS, saved, **NAMED).close().num_rows == 0
    assert cep.resume(HOURLY, COLUMNS, saved, **NAMED).close()["n"].to_pylist() == [1]
    with pytest.raises(cep.StateError, match=r"GROUP BY was `TUMBLE\(0, 10\)` and is"):
        cep.resume(HOURLY.replace("10", "20"), COLUMNS, saved, **NAMED)
    with pytest.raises(cep.StateError, match="GROUP BY was not there"):
        plain_saved = cep.open(HOURLY.split(" GROUP")[0], COLUMNS, **NAMED).save()
        cep.resume(HOURLY, COLUMNS, plain_saved, **NAMED)
    with pytest.raises(cep.StateError, match="and is not there"):
        cep.resume(HOURLY.split(" GROUP")[0], COLUMNS, saved, **NAMED)


class TestChains:
    BUSY = (
        "INTO Busy PATTERN A a GROUP BY TUMBLE(10) HAVING count(*) > 1 "
        "RETURN window_start, count(*) AS n"
    )

    def test_answers_are_read_in_the_same_push(self) -> None:
        queries = ["PATTERN Busy b ; C c WITHIN 30 RETURN b.n, c.x", self.BUSY]
        session = cep.open(queries, COLUMNS, **NAMED)
        session.push([{"ts": 1, "type": "A"}, {"ts": 3, "type": "A"}, {"ts": 9, "type": "C"}])
        found = session.push([{"ts": 12, "type": "C", "x": 7}])
        expected = {"n": 2, "x": 7, "match_start": 10, "match_end": 12}
        assert found["query 1"].to_pylist() == [expected]

    def test_answers_about_answers(self) -> None:
        """Windows with more than one A; how many of those in 30 ticks."""
        queries = [self.BUSY, "FROM Busy b GROUP BY TUMBLE(30) RETURN count(*) AS n, sum(b.n) AS s"]
        session = cep.open(queries, COLUMNS, **NAMED)
        times = [1, 2, 11, 21, 22, 23, 41, 42]
        pushed = [session.push({"ts": ts, "type": "A"}) for ts in times]
        pushed.append(session.close())
        found = pa.concat_tables([each["query 2"] for each in pushed]).to_pylist()
        # Busy: [0, 10) with 2, at 10; [20, 30) with 3, at 30; [40, 50) with 2, at 50.
        assert [(row["n"], row["s"], row["match_end"]) for row in found] == [(1, 2, 30), (2, 5, 60)]

    def test_answers_about_nothing_have_no_time(self) -> None:
        busy = self.BUSY.replace("HAVING count(*) > 1 ", "")
        message = "^answers of `Busy` about windows without matches are known only with the next"
        with pytest.raises(cep.UnsupportedError, match=message):
            cep.open([busy, "PATTERN Busy b ; C c WITHIN 30"], COLUMNS, **NAMED)

    def test_iterators(self) -> None:
        queries = [self.BUSY, "PATTERN Busy b ; C c WITHIN 30 RETURN b.n, c.x"]
        kinds = "AACAABCAAACCAB"
        rows = [{"ts": 3 * n, "type": t, "x": n} for n, t in enumerate(kinds)]
        data = pa.Table.from_pylist(rows, COLUMNS)
        expected = cep.match(data, queries, **NAMED)
        readers = cep.match(iter(data.to_batches(2)), queries, **NAMED)
        found = {name: reader.read_all() for name, reader in readers.items()}
        assert rows_of(found) == rows_of(expected)
        assert expected["query 2"].num_rows > 3
