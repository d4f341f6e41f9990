"""Queries of a session that read the matches of others: what `match` finds over the whole data."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

import cepheid as cep
from tests.examples import in_turn

OPTIONS: dict[str, Any] = {"time": "ts", "type": "type", "jit": False}
SCHEMA = pa.schema({"ts": pa.int64(), "type": pa.string(), "x": pa.int64()})

PAIR = "INTO Pair PATTERN A a ; B b WHERE a.x <= b.x WITHIN 6 RETURN a.x AS x, b.x AS y"
ALONE = "INTO Alone PATTERN A a ; !B b WITHIN 5 RETURN a.x AS x"
LEFT = "INTO Left PATTERN A a ; !B b FOR 4 RETURN a.x AS x"
GROUP = "INTO Group PATTERN A a ; B+ b WITHIN 5 RETURN a.x AS x, count(b) AS n"

CHAINS = {
    "joins": [PAIR, "PATTERN Pair p ; C c WHERE p.x < c.x WITHIN 9 RETURN p.x, c.x AS z"],
    "given backwards": ["PATTERN Pair p & Pair q WHERE p.x < q.y WITHIN 8 RETURN q.y", PAIR],
    "a negation of matches": [PAIR, "PATTERN A a ; !Pair p ; C c WITHIN 9 RETURN a.x, c.x AS z"],
    "matches alone": [PAIR, "PATTERN Pair p ; !Pair q FOR 5 FROM Pair RETURN p.x AS x"],
    "matches in a group": [PAIR, "PATTERN C c ; Pair+ p ; C d WITHIN 12 RETURN c.x, count(p) AS n"],
    "the next match": [PAIR, "PATTERN C c -> Pair p WITHIN 9 RETURN c.x, p.y"],
    "known a window later": [ALONE, "PATTERN Alone a ; C c WITHIN 9 RETURN a.x, c.x AS z"],
    "not one known later": [ALONE, "PATTERN C c ; !Alone a ; C d WITHIN 9 RETURN c.x, d.x AS z"],
    "known when time comes": [LEFT, "PATTERN Left a ; C c WITHIN 9 RETURN a.x, c.x AS z"],
    "groups known later": [GROUP, "PATTERN Group g ; C c WHERE g.n > 1 WITHIN 9 RETURN g.x, g.n"],
    "three": [
        ALONE,
        "INTO Both PATTERN Alone a ; C c ; !Alone b WITHIN 6 RETURN a.x AS x, c.x AS y",
        "PATTERN Both b ; A a WITHIN 12 RETURN b.y, a.x",
    ],
    "one per time": [
        PAIR,
        "PATTERN Pair p ; C c WITHIN 9 AFTER MATCH SKIP PAST LAST EVENT RETURN c.x",
    ],
}


def stream(seed: int, rows: int = 60) -> pa.Table:
    """Events in order, few of them simultaneous."""
    chance = Random(seed)
    times, now = [], 0
    for _ in range(rows):
        now += chance.choice((0, 1, 1, 2, 3))
        times.append(now)
    types = [chance.choice("AABBC") for _ in range(rows)]
    return pa.table({"ts": times, "type": types, "x": [chance.randrange(5) for _ in times]}, SCHEMA)


def rows_of(tables: dict[str, pa.Table]) -> dict[str, list[str]]:
    return {name: sorted(map(str, table.to_pylist())) for name, table in tables.items()}


def pushed(queries: list[str], data: pa.Table, seed: int, delay: int | None) -> dict[str, pa.Table]:
    """Through a session, in pieces, with heartbeats, disorder and changes of the process."""
    chance = Random(seed)
    times = data["ts"].to_pylist()
    later = {t: t + (chance.randrange(delay) if delay else 0) for t in sorted(set(times))}
    order = sorted(range(len(times)), key=lambda n: (later[times[n]], times[n], n))
    data = data.take(pa.array(order))
    session = cep.open(queries, SCHEMA, delay=delay, **OPTIONS)
    results = [session.push(data.slice(0, 0))]
    begin = 0
    while begin < data.num_rows:
        size = chance.choice((1, 1, 2, 5))
        if chance.random() < 0.3:
            results.append(session.advance(later[times[order[begin]]]))
        results.append(session.push(data.slice(begin, size)))
        begin += size
        if chance.random() < 0.3:
            session = cep.resume(queries, SCHEMA, session.save(), delay=delay, **OPTIONS)
    results.append(session.close())
    assert session.rejected.num_rows == 0
    return {name: pa.concat_tables([r[name] for r in results]) for name in results[0]}


@pytest.mark.parametrize("name", CHAINS)
def test_what_match_finds(name: str) -> None:
    queries = CHAINS[name]
    some = 0
    for seed in range(3):
        data = stream(seed)
        expected = rows_of(cep.match(data, queries, **OPTIONS))
        for delay in in_turn((None, 4), f"{name} {seed}"):
            assert rows_of(pushed(queries, data, seed, delay)) == expected
        some += min(map(len, expected.values()))
    assert some > 0  # every query finds something


def test_in_the_same_push() -> None:
    session = cep.open(CHAINS["joins"], SCHEMA, **OPTIONS)
    session.push([{"ts": 1, "type": "A", "x": 1}])
    found = session.push([{"ts": 2, "type": "B", "x": 2}, {"ts": 3, "type": "C", "x": 3}])
    assert {name: table.num_rows for name, table in found.items()} == {"Pair": 1, "query 2": 1}


def test_matches_without_an_event_come_as_soon_as_time_has_passed() -> None:
    """Also with the first event that they read after time has passed the last one of those."""
    session = cep.open([LEFT, "PATTERN Left a ; B b WITHIN 9 RETURN b.x"], SCHEMA, **OPTIONS)
    session.push([{"ts": 16, "type": "A", "x": 1}, {"ts": 18, "type": "C", "x": 2}])
    found = session.push([{"ts": 21, "type": "C", "x": 3}, {"ts": 24, "type": "B", "x": 4}])
    assert found["Left"]["match_end"].to_pylist() == [20]
    last = session.close()["query 2"]
    matches = pa.concat_tables([found["query 2"], last]).to_pylist()
    assert matches == [{"x": 4, "match_start": 16, "match_end": 24}]


def test_several_streams() -> None:
    schemas = {name: pa.schema({"ts": pa.int64(), "x": pa.int64()}) for name in "ABC"}
    session = cep.open(CHAINS["joins"], schemas, time="ts", jit=False)
    session.push({"A": {"ts": 1, "x": 1}, "B": {"ts": 2, "x": 2}})
    found = session.push({"C": {"ts": 3, "x": 3}})
    assert found["query 2"].to_pylist() == [{"x": 1, "z": 3, "match_start": 1, "match_end": 3}]


def test_matches_that_no_time_makes_known() -> None:
    open_end = "INTO Alone PATTERN A a ; !B b WITHIN 5 EVENTS RETURN a.x"
    message = (
        r"^no time bounds when matches of `Alone` are known, so nothing can read them on data that "
        r"may never end: give it a window of time, or end its pattern with an event$"
    )
    with pytest.raises(cep.UnsupportedError, match=message):
        cep.open([open_end, "PATTERN Alone a ; C c WITHIN 9"], SCHEMA, **OPTIONS)


def test_other_queries_than_those_that_were_saved() -> None:
    saved = cep.open([PAIR], SCHEMA, **OPTIONS).save()
    message = (
        r"^the session was saved without a query `Left`: resume with the queries that it had, or "
        r"open a new session$"
    )
    with pytest.raises(cep.StateError, match=message):
        cep.resume([PAIR, LEFT], SCHEMA, saved, **OPTIONS)


class TestIterators:
    """Several queries over data that can be read once."""

    @pytest.mark.parametrize("name", CHAINS)
    def test_what_match_finds(self, name: str) -> None:
        data = stream(1)
        expected = cep.match(data, CHAINS[name], **OPTIONS)
        batches = iter(data.to_batches(max_chunksize=7))
        readers = cep.match(batches, CHAINS[name], **OPTIONS)
        tables = {query: reader.read_all() for query, reader in readers.items()}
        assert rows_of(tables) == rows_of(expected)
        assert list(tables) == list(expected)
        for table in tables.values():
            ends = table["match_end"].to_pylist()
            assert ends == sorted(ends)

    def test_batches_are_read_as_they_are_needed(self) -> None:
        read: list[int] = []

        def batches() -> Any:
            for number, batch in enumerate(stream(1).to_batches(max_chunksize=10)):
                read.append(number)
                yield batch

        readers = cep.match(batches(), CHAINS["joins"], **OPTIONS)
        assert readers["Pair"].read_next_batch().num_rows > 0
        assert len(read) < 4
        assert rows_of({"q": readers["query 2"].read_all()}) == rows_of(
            {"q": cep.match(stream(1), CHAINS["joins"], **OPTIONS)["query 2"]}
        )

    def test_disorder(self) -> None:
        rows = pa.table({"ts": [1, 2, 4], "type": ["A", "B", "B"], "x": [1, 2, 3]}, SCHEMA)
        shuffled = rows.take(pa.array([1, 0, 2]))
        with pytest.raises(cep.DataError, match="the events are not in the order of `ts`"):
            cep.match(iter(shuffled.to_batches()), [PAIR], **OPTIONS)["Pair"].read_all()
        found = cep.match(iter(shuffled.to_batches()), [PAIR], delay=5, **OPTIONS)
        tables = {name: reader.read_all() for name, reader in found.items()}
        assert rows_of(tables) == rows_of(cep.match(rows, [PAIR], **OPTIONS))

    def test_what_is_left_out(self) -> None:
        schema = pa.schema({"ts": pa.int64(), "type": pa.string(), "x": pa.int64()})
        batch = pa.RecordBatch.from_pylist([{"ts": 9}, {"ts": None}, {"ts": 1}], schema)
        readers = cep.match(iter([batch]), [PAIR], delay=3, **OPTIONS)
        with pytest.warns(UserWarning) as told:
            readers["Pair"].read_all()
        texts = [str(warning.message).split(";")[0] for warning in told]
        assert texts == [
            "1 of 3 events have no time and were left out",
            "1 event was left out: it came later than delay= allows",
        ]
