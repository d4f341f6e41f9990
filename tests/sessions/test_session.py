"""Sessions: what is pushed, what comes back, what is rejected, and what is said if it is wrong."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cepheid as cep

SCHEMA = pa.schema({"ts": pa.int64(), "type": pa.string(), "id": pa.int64(), "x": pa.float64()})
PAIR = "PATTERN A a ; B b WHERE [id] WITHIN 10 RETURN a.x AS a, b.x AS b"
LEFT = "PATTERN A a ; !B b FOR 30 WHERE [id] RETURN a.id AS id"
TYPED: dict[str, Any] = {"time": "ts", "type": "type", "jit": False}


def event(ts: int | None, type_: str, id_: int = 1, x: float = 0.0) -> dict[str, Any]:
    return {"ts": ts, "type": type_, "id": id_, "x": x}


def opened(query: Any = PAIR, schema: Any = SCHEMA, **options: Any) -> cep.Session:
    return cep.open(query, schema, **{**TYPED, **options})


@pytest.mark.parametrize(
    "kind",
    [
        lambda rows: rows,
        lambda rows: pa.Table.from_pylist(rows, SCHEMA),
        lambda rows: pa.RecordBatch.from_pylist(rows, SCHEMA),
        pd.DataFrame,
        pl.DataFrame,
    ],
    ids=["dicts", "table", "batch", "pandas", "polars"],
)
def test_kinds_of_events(kind: Any) -> None:
    session = opened()
    assert session.push(event(1, "A", x=5.0)).num_rows == 0
    found = session.push(kind([event(2, "B", x=6.0), event(3, "B", x=7.0)]))
    assert found.schema == session.schema
    assert found.to_pylist() == [
        {"a": 5.0, "b": 6.0, "match_start": 1, "match_end": 2},
        {"a": 5.0, "b": 7.0, "match_start": 1, "match_end": 3},
    ]


def test_several_streams() -> None:
    schemas = {
        "A": pa.schema({"ts": pa.int64(), "x": pa.int64()}),
        "B": pa.schema({"ts": pa.int64(), "y": pa.int64()}),
    }
    query = "PATTERN A a ; B b WITHIN 10 RETURN a.x, b.y"
    session = cep.open(query, schemas, time="ts", jit=False)
    assert session.push({"A": {"ts": 1, "x": 5}}).num_rows == 0
    found = session.push({"A": [], "B": [{"ts": 2, "y": 6}]})
    assert found.to_pylist() == [{"x": 5, "y": 6, "match_start": 1, "match_end": 2}]
    with pytest.raises(cep.DataError, match=r"^there is no stream `C`: the session has `A`, `B`$"):
        session.push({"C": []})
    with pytest.raises(
        cep.DataError,
        match=r"^the session has several streams: push a dict of them, as in \{'A': events\}$",
    ):
        session.push([{"ts": 3, "x": 5}])


def test_time_releases_what_waits_for_it() -> None:
    session = opened(LEFT)
    session.push([event(1, "A", 1), event(2, "A", 2), event(5, "B", 2)])
    assert session.advance(30).num_rows == 0
    assert session.advance(31).to_pylist() == [{"id": 1, "match_start": 1, "match_end": 31}]
    assert session.push(event(31, "A", 3)).num_rows == 0  # of that time, more may come
    assert session.close().to_pylist() == [{"id": 3, "match_start": 31, "match_end": 61}]


def test_a_heartbeat_is_no_event() -> None:
    query = "PATTERN A a => B b WITHIN 3 EVENTS RETURN a.x, b.x AS y"
    session = opened(query)
    session.push(event(1, "A", x=1.0))
    for time in (2, 3, 4):
        session.advance(time)
    assert session.push(event(5, "B", x=2.0)).num_rows + session.close().num_rows == 1


def test_times_of_heartbeats() -> None:
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "id": pa.int64()})
    query = "PATTERN a ; !b FOR 30 seconds WHERE [id] RETURN a.id"
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    session = cep.open(query, schema, time="ts", jit=False)
    session.push({"ts": begin, "id": 1})
    assert session.status.time == begin
    assert session.advance(begin + timedelta(seconds=29)).num_rows == 0
    assert session.advance("2026-01-01 00:00:30Z").num_rows == 1
    assert session.advance(begin).num_rows == 0  # time never goes back
    assert session.status.time == begin + timedelta(seconds=30)
    message = (
        r"^advance is a time like those of `ts`, as in advance\('2026-01-31 12:00'\); not 'soon'$"
    )
    with pytest.raises(cep.OptionError, match=message):
        session.advance("soon")


def test_the_end_and_until() -> None:
    session = opened(LEFT, until="last event")
    session.push([event(1, "A", 1), event(40, "A", 2)])
    assert session.close().num_rows == 0
    assert session.status.undecided == 1
    assert session.status.matches == 1


class TestRejected:
    """Nothing is lost silently."""

    def test_late_and_without_a_time(self) -> None:
        session = opened()
        session.push([event(5, "A", x=1.0), event(None, "B", x=2.0)])
        session.push([event(4, "A", x=3.0), event(6, "B", x=4.0)])
        assert session.rejected.to_pylist() == [
            {**event(None, "B", x=2.0), "reason": "no time"},
            {**event(4, "A", x=3.0), "reason": "late"},
        ]
        status = session.status
        assert (status.events, status.late, status.unplaced, status.matches) == (4, 1, 1, 1)

    def test_rows_of_one_push_are_put_in_order(self) -> None:
        found = opened().push([event(2, "B", x=2.0), event(1, "A", x=1.0)])
        assert found.num_rows == 1

    def test_what_belongs_before_a_tie_is_late(self) -> None:
        session = opened("PATTERN A a ; B b WITHIN 10", tie="id")
        session.push(event(1, "A", 2))
        assert session.push([event(1, "B", 1), event(1, "B", 3)]).num_rows == 1
        assert session.rejected["id"].to_pylist() == [1]

    def test_before_a_heartbeat(self) -> None:
        session = opened()
        session.advance(10)
        session.push([event(9, "A"), event(10, "A")])
        assert session.status.late == 1

    def test_the_last_are_kept_and_all_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("cepheid.sessions.intake.KEPT", 3)
        session = opened()
        session.push(event(9, "A"))
        session.push([event(n, "A") for n in range(5)])
        assert session.rejected["ts"].to_pylist() == [2, 3, 4]
        assert session.status.late == 5


class TestDelay:
    """Rows inside the delay are put in order, later ones are rejected."""

    def test_in_order(self) -> None:
        session = opened(delay=3)
        assert session.push([event(5, "B"), event(2, "A"), event(1, "A")]).num_rows == 0
        assert session.rejected["ts"].to_pylist() == [1]  # before 5 - 3
        assert session.status.waiting == 2
        assert session.push(event(9, "C")).to_pylist() == [
            {"a": 0.0, "b": 0.0, "match_start": 2, "match_end": 5}
        ]

    def test_whatever_the_cuts(self) -> None:
        rows = [event(t, k) for t, k in ((5, "A"), (9, "B"), (5, "A"), (6, "A"), (8, "B"))]
        once, apart = opened(delay=3), opened(delay=3)
        whole = [*once.push(rows).to_pylist(), *once.close().to_pylist()]
        parts = [row for one in rows for row in apart.push(one).to_pylist()]
        assert [*parts, *apart.close().to_pylist()] == whole
        assert len(whole) == 4
        assert once.rejected == apart.rejected
        assert once.rejected["ts"].to_pylist() == [5]

    def test_a_heartbeat_leaves_it(self) -> None:
        session = opened(LEFT, delay=5)
        session.push(event(1, "A"))
        assert session.advance(35).num_rows == 0  # events from 30 on may come
        session.push(event(30, "B"))
        assert session.status.late == 0
        assert session.advance(50).num_rows == 0
        assert session.push(event(44, "A")).num_rows == 0
        assert session.status.late == 1

    def test_durations(self) -> None:
        assert opened(delay="3 seconds", unit="s").push(event(1, "A")).num_rows == 0
        with pytest.raises(cep.OptionError, match=r"^delay='3 seconds' is a duration, and the"):
            opened(delay="3 seconds")
        schema = pa.schema({"ts": pa.timestamp("us"), "id": pa.int64()})
        message = "^delay=3 has no unit: give a duration, as in delay='10 seconds'$"
        with pytest.raises(cep.OptionError, match=message):
            cep.open("PATTERN a ; b WITHIN 1 s", schema, time="ts", delay=3)
        message = "^delay is a duration like '10 seconds', or ticks from 0 up; not -1$"
        with pytest.raises(cep.OptionError, match=message):
            opened(delay=-1)


class TestSaved:
    """A session goes on from its bytes."""

    def test_in_another_process(self) -> None:
        session = opened(LEFT, delay=2)
        session.push([event(1, "A", 1), event(2, "A", 2), event(0, "A", 3), event(3, "C")])
        session.push(event(0, "A", 9))
        saved = session.save()
        program = f"""
import sys, pyarrow as pa, cepheid as cep
schema = pa.schema({{"ts": pa.int64(), "type": pa.string(), "id": pa.int64(), "x": pa.float64()}})
session = cep.resume({LEFT!r}, schema, sys.stdin.buffer.read(), time="ts", type="type", delay=2,
                     jit=False)
session.push({{"ts": 10, "type": "B", "id": 2}})
found, rejected = session.advance(40), session.rejected
print(found["id"].to_pylist(), session.status.late, rejected["id"].to_pylist())
"""
        done = subprocess.run([sys.executable, "-c", program], input=saved, capture_output=True)
        assert done.stdout.decode().strip() == "[3, 1] 1 [9]", done.stderr.decode()

    def test_rows_are_written_now_and_then(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("cepheid.sessions.query_run.NOTED", 3)
        session = opened("PATTERN A a ; B b WITHIN 5 RETURN a.ts AS a, b.ts AS b")
        for n in range(20):
            session.push(event(n, "A"))
        again = cep.resume(
            "PATTERN A a ; B b WITHIN 5 RETURN a.ts AS a, b.ts AS b",
            SCHEMA,
            session.save(),
            **TYPED,
        )
        assert again.push(event(20, "B"))["a"].to_pylist() == [16, 17, 18, 19]
        assert again.status.events == 21

    def test_another_query(self) -> None:
        saved = opened().save()
        other = PAIR.replace("WITHIN 10", "WITHIN 11")
        message = (
            r"^the query is not the one that the saved session was written with: WITHIN was `10 "
            r"units` and is `11 units`. Only RETURN and the plan may change: resume with the old "
            r"query, or open a new session$"
        )
        with pytest.raises(cep.StateError, match=message):
            cep.resume(other, SCHEMA, saved, **TYPED)
        assert cep.resume(PAIR.replace("b.x AS b", "b.id"), SCHEMA, saved, **TYPED)

    def test_another_delay(self) -> None:
        message = (
            r"^the session was saved with delay=None, and now it is 3 \(in ticks of its clock\): "
            r"resume with the delay that it had$"
        )
        with pytest.raises(cep.StateError, match=message):
            cep.resume(PAIR, SCHEMA, opened().save(), delay=3, **TYPED)

    def test_another_type_of_column(self) -> None:
        schema = SCHEMA.set(3, pa.field("x", pa.string()))
        message = r"^column `x` was double when the saved session was written, and is string: cast"
        with pytest.raises(cep.StateError, match=message):
            cep.resume(PAIR, schema, opened().save(), **TYPED)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (
                lambda saved: b"",
                "the saved session is not one of Cepheid's: pass what session.save",
            ),
            (
                lambda saved: saved[:-1],
                "the saved session is damaged: its checksum is wrong. Use an",
            ),
            (
                lambda saved: saved[:4] + b"\x01" + saved[5:],
                "the saved session has format 1, and th",
            ),
            (
                lambda saved: "text",
                r"the saved session is bytes, as session.save\(\) gives them, no",
            ),
        ],
        ids=["empty", "cut", "version", "text"],
    )
    def test_other_bytes(self, change: Any, message: str) -> None:
        with pytest.raises(cep.StateError, match=f"^{message}"):
            cep.resume(PAIR, SCHEMA, change(opened().save()), **TYPED)


class TestWrongUse:
    def test_columns_and_values(self) -> None:
        session = opened()
        session.push(event(1, "A"))
        wrong = pa.table({"ts": [2], "type": ["B"], "id": [1]})
        message = (
            r"^the events have no column `x`, which is in the session's schema; add it, with NULLs "
            r"if there are no values$"
        )
        with pytest.raises(cep.DataError, match=message):
            session.push(wrong)
        text = wrong.append_column("x", pa.array(["high"]))
        message = r"^column `x` is string, and double in the session's schema; cast it before$"
        with pytest.raises(cep.DataError, match=message):
            session.push(text)
        message = r"^event 2: `x` is 'high', and double in the session's schema$"
        with pytest.raises(cep.DataError, match=message):
            session.push([event(2, "B"), {**event(3, "B"), "x": "high"}])
        with pytest.raises(cep.DataError, match=r"^push a frame, a table, a record batch, a dict"):
            session.push(iter([pa.record_batch({"ts": [1]})]))
        # Nothing of it was taken.
        assert session.push(event(2, "B")).num_rows == 1
        assert session.status.events == 2

    def test_times_that_are_too_far_away(self) -> None:
        session = opened()
        with pytest.raises(cep.DataError, match=r"^`ts` has the time 4611686018427387904"):
            session.push(event(1 << 62, "A"))
        assert session.push(event(1, "A")).num_rows == 0

    def test_no_schema(self) -> None:
        message = (
            r"^a session is opened with the schema of its events, not with Table: pass a "
            r"pyarrow.schema, or a dict of them for several streams$"
        )
        with pytest.raises(cep.DataError, match=message):
            opened(schema=SCHEMA.empty_table())

    def test_answers_of_keys_that_wait_for_events(self) -> None:
        counted = PAIR.replace("WITHIN 10", "WITHIN 10 EVENTS").replace(" ; ", " -> ")
        message = r"^the events of each key are counted .* no window of answers is ever over"
        with pytest.raises(cep.UnsupportedError, match=message):
            opened(counted.split(" RETURN")[0] + " GROUP BY TUMBLE(10) RETURN count(*) AS n")

    def test_after_the_end(self) -> None:
        session = opened()
        session.close()
        for use in (lambda: session.push(event(1, "A")), session.close, session.save):
            with pytest.raises(cep.SessionError, match=r"^the session is closed$"):
                use()

    def test_two_threads(self) -> None:
        session, errors = opened(), list[Exception]()
        session._lock.acquire()  # as a push of another thread does

        def push() -> None:
            try:
                session.push(event(1, "A"))
            except cep.SessionError as error:
                errors.append(error)

        thread = threading.Thread(target=push)
        thread.start()
        thread.join()
        session._lock.release()
        (error,) = errors
        assert str(error) == (
            "another thread uses the session: only one may at a time; put a lock around its calls, "
            "or open a session for each thread"
        )
        assert session.push(event(1, "A")).num_rows == 0

    def test_after_a_failure(self) -> None:
        session = opened(limit=cep.Limit(total=1))
        with pytest.raises(cep.StateLimitError):
            session.push([event(1, "A"), event(2, "A")])
        message = (
            r"^the session has failed \(StateLimitError\): resume it from the last "
            r"session.save\(\), with cepheid.resume$"
        )
        with pytest.raises(cep.SessionError, match=message):
            session.push(event(3, "A"))

    def test_a_query_that_holds_ever_more(self) -> None:
        with pytest.raises(cep.QueryError, match="CEP407"):
            opened("PATTERN A a -> B b")

    def test_leaving_a_block(self) -> None:
        with opened(LEFT) as session:
            session.push(event(1, "A"))
            session.save()
        with pytest.raises(cep.SessionError):
            session.push(event(2, "A"))
        message = "^the session ends while matches may wait for time: call close"
        with pytest.warns(UserWarning, match=message), opened(LEFT) as session:
            session.push(event(1, "A"))


def test_what_can_match_nothing() -> None:
    with pytest.warns(UserWarning):
        session = opened("PATTERN A a ; B b WHERE a.x > 1 AND a.x < 0 WITHIN 5")
    assert session.push([event(1, "A"), event(2, "B")]).num_rows + session.close().num_rows == 0


def test_events_that_end_no_match_wait_for_one_that_may_and_are_saved() -> None:
    schema = pa.schema({"ts": pa.int64(), "type": pa.string()})
    query = "PATTERN A a ; B b WITHIN 1000 RETURN a.ts AS a, b.ts AS b"
    session = cep.open(query, schema, time="ts", type="type")
    for ts in range(300):  # more than may wait
        assert session.push({"ts": ts, "type": "A"}).num_rows == 0
    assert session.push({"ts": 300, "type": "B"}).num_rows == 300
    session.push({"ts": 301, "type": "A"})
    assert session.status.held == 302
    session.push({"ts": 302, "type": "A"})
    session = cep.resume(query, schema, session.save(), time="ts", type="type")
    assert session.push({"ts": 303, "type": "B"}).num_rows == 302
