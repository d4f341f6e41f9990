"""What is held without a window: what a match may still need, no more than the caller allows, and
nothing at all without a bound if the data may never end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.engine.run import Engine
from cepheid.engine.state import LoadedRows, as_table, from_table
from cepheid.options import Limit, Options
from cepheid.planner import prepare
from cepheid.query import Query

BATCH, KEYS = 400, 20
NAMED: dict[str, Any] = {"time": "ts", "type": "type", "jit": False}


def batch(first: int, types: Sequence[str], ids: Sequence[int]) -> pa.RecordBatch:
    """One event per tick."""
    times = np.arange(first, first + len(types))
    return pa.record_batch({"ts": times, "type": pa.array(types), "id": pa.array(ids)})


def random_stream(batches: int) -> Iterator[pa.RecordBatch]:
    random = np.random.default_rng(5)
    for n in range(batches):
        types = random.choice(["A", "B", "C"], BATCH)
        yield batch(n * BATCH, types.tolist(), random.integers(0, KEYS, BATCH).tolist())


def visits(keys: int) -> Iterator[pa.RecordBatch]:
    """Every key has A, B, C and never comes again; four keys at a time take turns."""
    for n in range(0, keys, 4):
        ids = [n, n + 1, n + 2, n + 3]
        yield batch(3 * n, ["A"] * 4 + ["B"] * 4 + ["C"] * 4, ids * 3)


def engine_for(
    query: str, limit: Limit | None = None, journal: list[LoadedRows] | None = None
) -> Engine:
    schema = batch(0, ["A"], [0]).schema
    options = Options(time="ts", type="type", limit=limit)
    return prepare(Query(query).bind(schema, options), options).engine(schema, False, journal)


def held(engine: Engine, batches: Iterable[pa.RecordBatch]) -> list[int]:
    """The number of events in the store after each batch."""
    sizes = []
    for events in batches:
        for _ in engine.push(events):
            pass
        sizes.append(engine.context.store.n)
    return sizes


@pytest.mark.parametrize(
    ("pattern", "most"),
    [
        # Of a key, the start and what followed it. As much again may stay until it is worth
        # the effort to drop it.
        ("A a => B b => C c WHERE [id]", 2 * (2 * KEYS + 1)),
        ("A a => B b => C c", 2 * 3),
        ("A a => B b WHERE [id] AFTER MATCH SKIP PAST LAST EVENT", 2 * (KEYS + 1)),
    ],
)
def test_strict_patterns_hold_what_is_unbroken(pattern: str, most: int) -> None:
    engine = engine_for(f"PATTERN {pattern}")
    sizes = held(engine, random_stream(40))
    assert engine.counts.matches > 100
    assert 0 < max(sizes) <= most


LARGE = """
    PATTERN T a -> T b -> T c
    WHERE   [id]
    HAVING  a.amount > 1000 AND b.amount > 1000 AND c.amount > 1000
"""
"""NEXT 3.4: three consecutive transactions of an account, all of them large."""


def transactions(amounts: Sequence[int], gap: int = 1) -> Iterator[pa.RecordBatch]:
    """2,000 accounts with transactions of these amounts each, one after the other."""
    number = 2_000 * len(amounts)
    table = pa.table(
        {
            "ts": np.arange(number) * gap,
            "type": pa.array(["T"] * number),
            "id": np.repeat(np.arange(2_000), len(amounts)),
            "amount": np.tile(amounts, 2_000),
        }
    )
    return iter(table.to_batches(max_chunksize=50))


@pytest.mark.parametrize("amounts", [(5,), (5_000, 5), (5_000, 2_000, 5)])
def test_a_start_that_can_only_fail_is_forgotten(amounts: Sequence[int]) -> None:
    found = cep.match(transactions(amounts), LARGE, limit=Limit(total=150), **NAMED)
    assert sum(batch.num_rows for batch in found) == 0


def test_one_that_may_still_match_is_not() -> None:
    with pytest.raises(cep.StateLimitError):
        list(cep.match(transactions((5_000,)), LARGE, limit=Limit(total=150), **NAMED))


@pytest.mark.parametrize(
    "condition",
    [
        "HAVING (a, c) OCCURS WITHIN 500",  # as NEXT's first query
        "WHERE (a, c) OCCURS WITHIN 500",
        "HAVING duration() < 500",
        "HAVING (a, b) OCCURS WITHIN 500",
        "WHERE (b, a) OCCURS WITHIN 500",
    ],
)
def test_a_time_between_events_bounds_what_is_held(condition: str) -> None:
    """Of the accounts, 50 at a time are less than 500 ticks old."""
    where, _, having = condition.partition("HAVING ")
    where = f"{where} AND [id]" if where else f"WHERE [id] HAVING {having}"
    query = f"PATTERN T a -> T b -> T c {where}"
    found = cep.match(transactions((5,), gap=10), query, limit=Limit(total=150), **NAMED)
    assert sum(batch.num_rows for batch in found) == 0


@pytest.mark.parametrize(
    "pattern",
    [
        "A a -> B b -> C c WHERE [id]",
        "A a => B+ b => C c WHERE [id]",
        "(A a -> B b) \\ C c WHERE [id]",
        "A a -> B b WHERE [id] AFTER MATCH SKIP TO LAST b",
    ],
)
def test_what_is_held_does_not_grow_with_the_stream(pattern: str) -> None:
    engine = engine_for(f"PATTERN {pattern}")
    sizes = held(engine, random_stream(40))
    assert engine.counts.matches > 100
    assert max(sizes[20:]) <= 1.5 * max(sizes[:20])
    assert max(sizes) < BATCH


@pytest.mark.parametrize("operator", ["->", "=>"])
@pytest.mark.parametrize("after", ["", "AFTER MATCH SKIP PAST LAST EVENT"])
def test_many_keys_stay_within_the_limit(operator: str, after: str) -> None:
    """No key needs anything once it has its match, so that four are held at a time: three events
    of each, before the last is complete."""
    query = f"PATTERN A a {operator} B b {operator} C c WHERE [id] {after}"
    engine = engine_for(query, Limit(per_key=3, total=12))
    sizes = held(engine, visits(800))
    for _ in engine.finish():
        pass
    assert engine.counts.matches == 800
    assert max(sizes) <= 24


def test_a_start_that_waits_holds_up_no_other_key() -> None:
    """Key 0 waits for its B for ever; matches of the others come out as they are found."""
    query = "PATTERN A a -> B b WHERE [id] AFTER MATCH SKIP PAST LAST EVENT"
    engine = engine_for(query, Limit(per_key=3, total=12))
    sizes = held(engine, [batch(-1, ["A"], [-1])])
    sizes += held(engine, visits(400))
    assert engine.counts.matches >= 396  # the last ones may wait for simultaneous events
    assert max(sizes) <= 24


WAITING = (["A", "A", "A", "A", "A", "A", "A", "X"], [1, 1, 2, 1, 2, 1, 1, 9])
"""Five events that wait for a B of key 1, and two for one of key 2."""


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        (Limit(per_key=4), r"5 events .* of one key \(per_key\), and the limit is 4: .*Add WITHIN"),
        (Limit(total=6), r"7 events .* altogether \(total\), and the limit is 6: .*larger limit"),
        (Limit(per_key=4, total=7), "of one key"),
        (Limit(per_key=5, total=6), "altogether"),
    ],
)
@pytest.mark.parametrize("after", ["", "WITHIN 100", "AFTER MATCH SKIP TO NEXT EVENT"])
def test_more_than_the_limit_is_an_error(limit: Limit, message: str, after: str) -> None:
    engine = engine_for(f"PATTERN A a -> B b WHERE [id] {after}", limit)
    with pytest.raises(cep.StateLimitError, match=message):
        held(engine, [batch(0, *WAITING)])


def test_as_much_as_the_limit_is_none() -> None:
    engine = engine_for("PATTERN A a -> B b WHERE [id]", Limit(per_key=5, total=7))
    assert held(engine, [batch(0, *WAITING)]) == [7]


def test_what_was_found_before_comes_out() -> None:
    batches = [batch(0, ["A", "B", "X"], [1, 1, 1]), batch(3, *WAITING)]
    found = cep.match(iter(batches), "PATTERN A -> B WHERE [id]", limit=Limit(total=6), **NAMED)
    assert next(found).column("match_end").to_pylist() == [1]
    with pytest.raises(cep.StateLimitError):
        list(found)


# ── forgetting ───────────────────────────────────────────────────────────────


def found_by(query: str, limit: Limit, rows: Sequence[tuple[int, str, int]]) -> tuple[Any, int]:
    """Events one by one: start and end of the matches, and how many events were forgotten. It is
    the same if every event meets a new engine, made of what the one before has saved."""
    staying, changing = (spans_of(query, limit, rows, anew) for anew in (False, True))
    assert staying == changing
    return staying


def spans_of(
    query: str, limit: Limit, rows: Sequence[tuple[int, str, int]], anew: bool
) -> tuple[Any, int]:
    journal: list[LoadedRows] = []
    engine = engine_for(query, limit, journal)
    found: list[dict[str, Any]] = []
    saved, shed = pa.table({}), 0
    for time, kind, key in rows:
        for matches in engine.push(batch(time, [kind], [key])):
            found += matches.to_pylist()
        if anew:
            state, shed = engine.save(), shed + engine.counts.shed
            parts = [as_table(loaded, engine.context.store.names) for loaded in journal]
            saved = pa.concat_tables([saved, *parts], promote_options="default")
            journal = []
            engine = engine_for(query, limit, journal)
            kept = saved.slice(state.base)
            engine.resume(state, [from_table(kept, len(engine.leaves))] if kept.num_rows else [])
    for matches in engine.finish():
        found += matches.to_pylist()
    spans = sorted((match["match_start"], match["match_end"]) for match in found)
    return spans, shed + engine.counts.shed


JOINED = "PATTERN A a ; B b WHERE [id] WITHIN 100"
ARROW = "PATTERN A a -> B b WHERE [id]"


@pytest.mark.parametrize("query", [JOINED, ARROW])
def test_the_oldest_are_forgotten(query: str) -> None:
    """The ninth event is one too many: seven are kept, and with the B there are eight."""
    rows = [(n, "A", 1) for n in range(9)]
    limit = Limit(total=8, policy="drop-oldest")
    assert found_by(query, limit, [*rows, (9, "B", 1)]) == ([(n, 9) for n in range(2, 9)], 2)


@pytest.mark.parametrize("query", [JOINED, ARROW])
def test_other_keys_lose_nothing(query: str) -> None:
    """Three of key 1 are one too many, and one of two is kept; the event of key 2 is older."""
    rows = [(0, "A", 2), (1, "A", 1), (2, "A", 1), (3, "A", 1), (4, "B", 1), (5, "B", 2)]
    limit = Limit(per_key=2, policy="drop-oldest")
    assert found_by(query, limit, rows) == ([(0, 5), (3, 4)], 2)


def test_what_was_forgotten_still_forbids() -> None:
    """The B is forgotten with the first A, when the third comes. Whether there was one less than
    10 before an A is known again from 11 on; nothing is said of those before."""
    rows = [(0, "B", 1), (1, "A", 1), (2, "A", 1), (3, "A", 1), (5, "A", 1), (12, "A", 1)]
    limit = Limit(total=3, policy="drop-oldest")
    assert found_by("PATTERN !B b ; A a WITHIN 10", limit, rows) == ([(12, 12)], 2)


def test_what_was_forgotten_of_a_key_still_forbids() -> None:
    """The fourth A is one too many: two go, and with them the B before them."""
    rows = [(0, "B", 1), *((time, "A", 1) for time in (1, 2, 3, 4, 5, 13))]
    limit = Limit(per_key=3, policy="drop-oldest")
    query = "PATTERN !B b ; A a WHERE [id] WITHIN 10"
    assert found_by(query, limit, rows) == ([(13, 13)], 3)


def test_what_began_before_the_forgotten_is_given_up() -> None:
    """Of two that may be held one is kept: the second A, which began before the C that is forgotten
    with the first. Nobody knows any more that the C lies between its start and the B."""
    query = "PATTERN (A a ; B b) \\ C c WITHIN 50"
    schema = pa.schema([("from", pa.int64()), ("ts", pa.int64()), ("type", pa.string())])
    limit = Limit(total=2, policy="drop-oldest")
    options = Options(time="ts", type="type", start="from", limit=limit)
    engine = prepare(Query(query).bind(schema, options), options).engine(schema, jit=False)
    found = 0
    ahead = [(1, 2, "A"), (4, 5, "C"), (3, 7, "A")]
    for rows in (*([row] for row in ahead), [(10, 10, "B"), (11, 11, "X")]):
        columns = [pa.array(column) for column in zip(*rows, strict=True)]
        events = pa.RecordBatch.from_arrays(columns, schema=schema)
        found += sum(matches.num_rows for matches in engine.push(events))
    assert engine.counts.shed > 0
    assert found == 0


@pytest.mark.parametrize("query", [JOINED, ARROW])
def test_the_latest_instant_is_kept_until_it_has_passed(query: str) -> None:
    rows = [(0, "A", 1)] * 4
    limit = Limit(total=3, policy="drop-oldest")
    assert found_by(query, limit, rows)[1] == 0
    assert found_by(query, limit, [*rows, (1, "A", 1)])[1] == 4


def test_memory_follows_the_limit() -> None:
    """Also that of events of which only their own keys are forgotten."""
    query = "PATTERN A a ; B b WHERE [id] WITHIN 1000000"
    engine = engine_for(query, Limit(per_key=16, policy="drop-oldest"))
    sizes = held(engine, random_stream(40))
    assert max(sizes) <= 2 * (2 * KEYS * 16 + BATCH)
    assert engine.profile().shed == engine.counts.shed > 20 * BATCH


@pytest.mark.parametrize("query", [JOINED, ARROW])
def test_a_run_tells_how_many_were_forgotten(query: str) -> None:
    """Of nine events in the first batch seven are kept."""
    batches = [batch(0, ["A"] * 9, [1] * 9), batch(9, ["B"], [1])]
    limit = Limit(total=8, policy="drop-oldest")
    with pytest.warns(UserWarning, match="2 of 10 events were dropped because of the limit"):
        found = cep.match(iter(batches), query, limit=limit, **NAMED).read_all()
    assert sorted(found["match_start"].to_pylist()) == [2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("query", [JOINED, ARROW])
def test_what_a_batch_decides_comes_before_anything_is_forgotten(query: str) -> None:
    """The limit is on what is held between rounds: all nine are there when the B is matched. Then
    they go on waiting, for another B of the same time, and ten are two too many for eight."""
    events = batch(0, ["A"] * 9 + ["B"], [1] * 10)
    limit = Limit(total=8, policy="drop-oldest")
    with pytest.warns(UserWarning, match="3 of 10 events were dropped because of the limit"):
        found = cep.match(pa.Table.from_batches([events]), query, limit=limit, **NAMED)
    assert sorted(found["match_start"].to_pylist()) == [0, 1, 2, 3, 4, 5, 6, 7, 8]


def test_other_policies_are_unknown() -> None:
    policy: Any = "drop-newest"
    with pytest.raises(ValueError, match="policy must be one of fail, drop-oldest"):
        Limit(total=1, policy=policy)


# ── data that may never end ──────────────────────────────────────────────────


NEVER_ENDS = """\
CEP407: on data that may never end, a pattern without a window could hold ever more events
  query:1:9
  1 | PATTERN A a -> B b
    |         ^^^^^^^^^^ add WITHIN 10 units, or pass limit=Limit(total=100_000) for the run"""


def endless() -> Iterator[pa.RecordBatch]:
    """A test that reads on fails instead of hanging."""
    yield batch(0, ["A", "B", "X"], [1, 1, 1])
    raise AssertionError("read on")


def test_an_iterator_may_be_endless() -> None:
    with pytest.raises(cep.QueryError) as error:
        cep.match(endless(), "PATTERN A a -> B b", **NAMED)
    assert str(error.value) == NEVER_ENDS


@pytest.mark.parametrize("query", ["PATTERN A => B", "PATTERN A ; B USING STRICT CONTIGUITY"])
def test_strict_ones_too(query: str) -> None:
    with pytest.raises(cep.QueryError, match="CEP407"):
        cep.match(endless(), query, **NAMED)


def test_so_may_a_reader_and_a_stream_of_several() -> None:
    first = batch(0, ["A"], [1])
    reader = pa.RecordBatchReader.from_batches(first.schema, endless())
    with pytest.raises(cep.QueryError, match="CEP407"):
        cep.match(reader, "PATTERN A -> B", **NAMED)
    streams = {"A": pa.Table.from_batches([first]), "B": endless()}
    with pytest.raises(cep.QueryError, match="CEP407"):
        cep.match(streams, "PATTERN A -> B", time="ts")


def test_a_limit_of_nothing_is_none() -> None:
    with pytest.raises(cep.QueryError, match="CEP407"):
        cep.match(endless(), "PATTERN A -> B", limit=Limit(), **NAMED)


@pytest.mark.parametrize(
    ("query", "limit"),
    [
        ("PATTERN A a -> B b", Limit(total=9)),
        ("PATTERN A a -> B b", Limit(per_key=9)),
        ("PATTERN A a -> B b WITHIN 2", None),
        ("PATTERN A a -> B b HAVING (a, b) OCCURS WITHIN 2", None),
        ("PATTERN B b", None),
        ("PATTERN B b | C c", None),
    ],
)
def test_what_is_bounded_runs(query: str, limit: Limit | None) -> None:
    found = cep.match(endless(), query, limit=limit, **NAMED)
    assert next(found).column("match_end").to_pylist() == [1]


def test_finite_data_need_no_bound() -> None:
    """Also as a list of batches: it has an end."""
    batches, query = list(visits(8)), "PATTERN A -> B WHERE [id]"
    assert cep.match(pa.Table.from_batches(batches), query, **NAMED).num_rows == 8
    reader: Any = cep.match(batches, query, **NAMED)
    assert reader.read_all().num_rows == 8


@pytest.mark.parametrize("engine", ["tree", "nfa"])
def test_joins_and_stacks_hold_the_window(engine: Literal["tree", "nfa"]) -> None:
    times = list(range(100))
    events = pa.table({"ts": times, "type": ["A", "B"] * 50, "id": [n % 7 for n in times]})
    query = "PATTERN A a ; B b WHERE [id] WITHIN 28"

    def found(limit: cep.Limit) -> int:
        options = cep.Options(time="ts", type="type", engine=engine, limit=limit, jit=False)
        return int(cep.match(events, query, options).num_rows)

    # 28 events are less than 28 apart, 4 of them of each id, of which 2 are of a class.
    assert found(cep.Limit(per_key=2, total=28)) > 0
    with pytest.raises(cep.StateLimitError, match=r"28 events .* altogether"):
        found(cep.Limit(total=27))
    with pytest.raises(cep.StateLimitError, match=r"2 events .* of one key"):
        found(cep.Limit(per_key=1))
