"""Several queries in one run: labels, what reads what, matches as events."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.algebra import bind
from cepheid.algebra.types import Schema, Type
from cepheid.language import parse
from tests.oracle import Event, matches, outputs

TYPED: dict[str, Any] = {"time": "ts", "type": "type", "jit": False}
PAIRS = "INTO Pair PATTERN A a ; B b WITHIN 5 RETURN a.x AS x, b.x AS y"


def events(text: str) -> pa.Table:
    """`A1 B3`: types and times; x is the place in the stream, from 1."""
    words = text.split()
    return pa.table(
        {
            "ts": [int(w[1:]) for w in words],
            "type": [w[0] for w in words],
            "x": list(range(1, len(words) + 1)),
        }
    )


def test_a_label_names_the_matches() -> None:
    found = cep.match(events("A1 B3 A4 B7"), [PAIRS], **TYPED)
    assert {name: part.to_pylist() for name, part in found.items()} == {
        "Pair": [
            {"x": 1, "y": 2, "match_start": 1, "match_end": 3},
            {"x": 3, "y": 4, "match_start": 4, "match_end": 7},
        ]
    }


def test_matches_are_events_from_their_start_to_their_end() -> None:
    # Pairs: 1..3, 2..3, 4..6. The first two end before the third starts; they overlap each other.
    after = "PATTERN Pair p ; Pair q WITHIN 9 RETURN p.x AS p, q.x AS q"
    both = "PATTERN Pair p & Pair q WHERE p.x < q.x WITHIN 3 RETURN p.x AS p, q.x AS q"
    data = events("A1 A2 B3 A4 B6")
    shorter = PAIRS.replace("WITHIN 5", "WITHIN 3")
    found = cep.match(data, [shorter, after, both], **TYPED)
    assert found["query 2"].to_pylist() == [
        {"p": 1, "q": 4, "match_start": 1, "match_end": 6},
        {"p": 2, "q": 4, "match_start": 2, "match_end": 6},
    ]
    assert found["query 3"].to_pylist() == [{"p": 1, "q": 2, "match_start": 1, "match_end": 3}]


def test_the_window_begins_with_the_start_of_the_first_match() -> None:
    query = "PATTERN Pair p ; C c WITHIN {} RETURN c.x AS c"
    data = events("A1 B3 C6")
    assert cep.match(data, [PAIRS, query.format(5)], **TYPED)["query 2"].num_rows == 0
    assert cep.match(data, [PAIRS, query.format(6)], **TYPED)["query 2"].num_rows == 1


def test_the_order_of_the_queries_does_not_matter() -> None:
    chain = [
        "PATTERN Two t ; C c WITHIN 20 RETURN t.n AS n",
        "INTO Two PATTERN Pair p ; Pair q WITHIN 20 RETURN p.x + q.x AS n",
        PAIRS,
    ]
    data = events("A1 B2 A5 B6 C9")
    forward, backward = cep.match(data, chain[::-1], **TYPED), cep.match(data, chain, **TYPED)
    assert forward["query 3"].to_pylist() == [{"n": 4, "match_start": 1, "match_end": 9}]
    assert backward["query 1"].to_pylist() == forward["query 3"].to_pylist()
    assert list(backward) == ["query 1", "Two", "Pair"]


def test_without_from_the_data_counts_beside_the_labels() -> None:
    # By their ends: A1 B3 (and the pair) C4 C5 A6 B7 (and the pair): other events stand between.
    data = events("A1 B3 C4 C5 A6 B7")
    query = "PATTERN Pair p ; Pair q {} WITHIN 2 EVENTS RETURN q.x AS x"
    shorter = PAIRS.replace("WITHIN 5", "WITHIN 3")
    alone = cep.match(data, [shorter, query.format("FROM Pair")], **TYPED)
    beside = cep.match(data, [shorter, query.format("")], **TYPED)
    assert alone["query 2"]["x"].to_pylist() == [5]
    assert beside["query 2"]["x"].to_pylist() == []


def test_labels_stand_beside_the_types_of_the_data() -> None:
    query = """PATTERN Pair p ; ANY(A, Pair) q WHERE q.x > 3 AND q.y = 5 WITHIN 9
    RETURN q.x AS x, q.y AS y, q.match_start AS start"""
    found = cep.match(events("A1 B2 C3 A4 B5"), [PAIRS, query], **TYPED)
    # Of an event of the data, what it has no attribute for holds.
    assert found["query 2"].to_pylist() == [
        {"x": 4, "y": None, "start": None, "match_start": 1, "match_end": 4},
        {"x": 4, "y": 5, "start": 4, "match_start": 1, "match_end": 5},
    ]


def test_labels_stand_beside_named_streams() -> None:
    data = {
        "bids": pa.table({"ts": [1, 4], "price": [5, 6]}),
        "asks": pa.table({"ts": [2, 5], "price": [5, 7]}),
    }
    deal = "INTO Deal PATTERN bids b ; asks a WHERE a.price = b.price WITHIN 9 RETURN b.price"
    query = "PATTERN Deal d ; bids b {} WHERE b.price > d.price WITHIN 9 RETURN b.price AS next"
    for source in ("", "FROM Deal, bids"):
        found = cep.match(data, [query.format(source), deal], time="ts", jit=False)
        assert found["query 1"].to_pylist() == [{"next": 6, "match_start": 1, "match_end": 4}]


@pytest.mark.parametrize(("name", "source"), [("events", ""), ("Stock", "FROM Stock, Rise")])
def test_data_without_a_name_has_one_beside_labels(name: str, source: str) -> None:
    data = pa.table({"ts": [1, 2, 3, 4], "price": [5, 7, 6, 9]})
    rise = "INTO Rise PATTERN a ; b WHERE b.price > a.price WITHIN 2 RETURN b.price AS top"
    query = f"PATTERN Rise r ; {name} e {source} WHERE e.price < r.top WITHIN 9 RETURN e.price"
    found = cep.match(data, [rise, query], time="ts", jit=False)
    assert found["Rise"]["top"].to_pylist() == [7, 9]
    assert found["query 2"].to_pylist() == [{"price": 6, "match_start": 1, "match_end": 3}]


def test_queries_have_their_own_names() -> None:
    named = [cep.Query("PATTERN A a", "first"), cep.Query("PATTERN B b"), "PATTERN C c"]
    found = cep.match(events("A1 B2 C3"), named, **TYPED)
    assert list(found) == ["first", "query 2", "query 3"]


def test_the_result_is_of_the_kind_of_the_data() -> None:
    data = events("A1 B3")
    frames = cep.match(data.to_pandas(), [PAIRS], **TYPED)
    assert isinstance(frames["Pair"], pd.DataFrame)
    read = cep.match(data.to_batches(), [PAIRS, "PATTERN Pair p RETURN p.y AS y"], **TYPED)
    assert read["query 2"].read_all()["y"].to_pylist() == [2]


def test_timestamps() -> None:
    data = events("A1 B3 C5")
    seconds = pa.array([t * 1_000_000 for t in (1, 3, 5)]).cast(pa.timestamp("us", "UTC"))
    data = data.set_column(0, "ts", seconds)
    pairs = PAIRS.replace("WITHIN 5", "WITHIN 5 seconds")
    query = "PATTERN Pair p ; C c WHERE duration() > 3 seconds WITHIN 5 seconds RETURN p.x"
    found = cep.match(data, [pairs, query], **TYPED)["query 2"]
    assert found["match_start"].to_pylist() == [seconds[0].as_py()]
    assert found["match_end"].to_pylist() == [seconds[2].as_py()]


def test_double_top_by_resubscription() -> None:
    """Cayuga 5.2.2: local extrema first, then five of them in a row. A is at 2, B at 7, C at 12,
    D at 17, E at 22; an extremum lasts from the quote before it to the one after."""
    prices = [11, 10, 11, 12, 13, 14, 15, 14, 13, 12, 11, 10.5, 11, 12, 13, 14, 15.5, 14, 13, 12]
    prices += [11, 9, 10]
    data = pa.table({"ts": list(range(1, 24)), "price": [float(p) for p in prices]})
    extremum = (
        "INTO {} PATTERN a ; b ; c WHERE b.price {op} a.price AND b.price {op} c.price "
        "WITHIN 3 EVENTS RETURN b.price AS price"
    )
    top = """PATTERN Low a ; High b ; Low c ; High d ; Low e FROM Low, High
    WHERE b.price >= 1.2 * a.price AND c.price BETWEEN 0.9 * a.price AND 1.1 * a.price
      AND d.price BETWEEN 0.9 * b.price AND 1.1 * b.price AND e.price <= a.price
    WITHIN 5 EVENTS
    RETURN a.price AS A, b.price AS B, c.price AS C, d.price AS D, e.price AS E"""
    low, high = extremum.format("Low", op="<"), extremum.format("High", op=">")
    found = cep.match(data, [low, high, top], time="ts", jit=False)
    assert found["query 3"].to_pylist() == [
        {"A": 10.0, "B": 15.0, "C": 10.5, "D": 15.5, "E": 9.0, "match_start": 1, "match_end": 23}
    ]


# ── against the definition ───────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(12))
def test_resubscription_is_what_the_definition_makes_of_the_matches(seed: int) -> None:
    random = Random(seed)
    times = sorted(random.choices(range(20), k=14))
    base = pa.table(
        {
            "ts": times,
            "type": random.choices("ABC", k=14),
            "x": [random.randrange(4) for _ in times],
        }
    )
    pairs = "INTO Pair PATTERN A a ; B b WHERE a.x <= b.x WITHIN 6 RETURN a.x AS x, b.x AS y"
    query = random.choice(
        [
            "PATTERN Pair p ; Pair q WHERE p.x <= q.y WITHIN 12",
            "PATTERN Pair p ; !C c ; Pair q WITHIN 15",
            "PATTERN C c ; Pair+ p ; A a WITHIN 15",
            "PATTERN Pair p & C c WHERE p.y <> c.x WITHIN 9",
        ]
    )
    found = cep.match(base, [pairs, query], **TYPED)["query 2"]

    columns = {"ts": Type.INTEGER, "type": Type.STRING, "x": Type.INTEGER, "y": Type.INTEGER}
    plain = Schema(columns, "ts", "type")
    rows = [Event(n, row["ts"], row) for n, row in enumerate(base.to_pylist())]
    first = bind(parse(pairs), plain)
    derived = [
        Event(100 + n, m.end, {"ts": m.end, "type": "Pair", **outputs(first, m, rows)}, m.start)
        for n, m in enumerate(matches(first, rows))
    ]
    stream = [Event(e.index, e.time, e.values, e.time) for e in rows] + derived
    lasting = Schema({**columns, "begin": Type.INTEGER}, "ts", "type", start="begin")
    expected = matches(bind(parse(query), lasting), stream)
    spans = zip(found["match_start"].to_pylist(), found["match_end"].to_pylist(), strict=True)
    assert sorted(spans) == sorted((m.start, m.end) for m in expected)


# ── data with durations ──────────────────────────────────────────────────────

LASTING = pa.table(
    {
        "begin": [1, 3, 6, 9, None],
        "end": [5, 7, 9, 8, 9],
        "type": ["A", "B", "B", "B", "A"],
    }
)


def test_data_may_say_when_events_start() -> None:
    query = "PATTERN A a ; B b WITHIN 20 RETURN a.end AS a, b.begin AS b"
    with pytest.warns(UserWarning, match="2 of 5 events have no time, or start after their end"):
        found = cep.match(LASTING, query, time="end", start="begin", type="type", jit=False)
    assert found.to_pylist() == [{"a": 5, "b": 6, "match_start": 1, "match_end": 9}]


def test_events_that_start_after_their_end_are_dead_letters() -> None:
    dead = cep.rejected(LASTING, time="end", start="begin")
    assert dead["end"].to_pylist() == [8, 9]


def test_a_start_goes_without_a_tie() -> None:
    with pytest.raises(ValueError, match="start and tie exclude each other"):
        cep.Options(time="end", start="begin", tie="id")


def test_a_start_is_of_the_kind_of_the_time() -> None:
    data = LASTING.set_column(0, "begin", pa.array(["x"] * 5))
    with pytest.raises(cep.DataError, match="the start column `begin` is string, but"):
        cep.match(data, "PATTERN A a", time="end", start="begin", type="type")
    with pytest.raises(cep.DataError, match=r"there is no column `start` \(start=\)"):
        cep.match(LASTING, "PATTERN A a", time="end", start="start", type="type")


# ── what is wrong ────────────────────────────────────────────────────────────

WRONG = [
    (
        ["INTO P PATTERN A a", "INTO P PATTERN B b"],
        """CEP216: the label `P` is taken: the output of query 1 has it
  query 2:1:6
  1 | INTO P PATTERN B b
    |      ^ give the output another name""",
    ),
    (
        ["INTO events PATTERN A a"],
        """CEP216: the label `events` is taken: data without a name has it
  query 1:1:6
  1 | INTO events PATTERN A a
    |      ^^^^^^ give the output another name""",
    ),
    (
        ["INTO P PATTERN A a", "PATTERN P p ; A a FROM P, S, T WITHIN 5"],
        """CEP201: there is no stream `T`
  query 2:1:30
  1 | PATTERN P p ; A a FROM P, S, T WITHIN 5
    |                              ^ streams are `S`, `P`""",
    ),
    (
        ["INTO P PATTERN A a", "PATTERN P p ; A a FROM S WITHIN 5"],
        """CEP201: FROM leaves out the stream `P`
  query 2:1:9
  1 | PATTERN P p ; A a FROM S WITHIN 5
    |         ^^^ name it there, too""",
    ),
    (
        ["INTO P PATTERN A a", "PATTERN P p WHERE p.z > 1"],
        """CEP204: P has no attribute `z`
  query 2:1:19
  1 | PATTERN P p WHERE p.z > 1
    |                   ^^^ it has `a`, `match_start`, `match_end`""",
    ),
    (
        [
            "INTO P PATTERN Q q ; A a WITHIN 5",
            "INTO Q PATTERN A a ; R r FROM S, R WITHIN 5",
            "INTO R PATTERN P p",
        ],
        """CEP217: queries read each other's output in a circle: `P` reads `Q`, which reads `R`, \
which reads `P`
  query 1:1:16
  1 | INTO P PATTERN Q q ; A a WITHIN 5
    |                ^^^ one of them must read the data alone""",
    ),
    (
        ["INTO P PATTERN A a ; P p FROM S, P WITHIN 5"],
        """CEP217: the query reads its own output, `P`
  query 1:1:34
  1 | INTO P PATTERN A a ; P p FROM S, P WITHIN 5
    |                                  ^ read another stream""",
    ),
]


@pytest.mark.parametrize(("queries", "message"), WRONG)
def test_diagnostics(queries: list[str], message: str) -> None:
    with pytest.raises(cep.QueryError) as raised:
        cep.match(events("A1 B2"), queries, **TYPED)
    assert str(raised.value) == message


def test_names_of_named_streams() -> None:
    data = {"bids": pa.table({"ts": [1]}), "asks": pa.table({"ts": [2]})}
    taken = "INTO bids PATTERN asks a"
    with pytest.raises(cep.QueryError, match="the label `bids` is taken: an input stream has it"):
        cep.match(data, [taken], time="ts")
    with pytest.raises(cep.QueryError, match="did you mean `bids`"):
        cep.match(data, ["PATTERN bids b FROM bid"], time="ts")
    with pytest.raises(cep.QueryError, match="FROM leaves out the stream `asks`"):
        left_out = "PATTERN D d ; asks a FROM D, bids WITHIN 5"
        cep.match(data, ["INTO D PATTERN bids b", left_out], time="ts")


def test_queries_without_a_label_need_names_of_their_own() -> None:
    twice = [cep.Query("PATTERN A a", "same"), cep.Query("PATTERN B b", "same")]
    with pytest.raises(cep.DataError, match="several queries are called `same`"):
        cep.match(events("A1"), twice, **TYPED)
    with pytest.raises(cep.DataError, match="there are no queries"):
        cep.match(events("A1"), [], **TYPED)


def test_an_iterable_can_be_read_only_once() -> None:
    class Once:
        """Neither an iterator nor of a known length."""

        def __iter__(self) -> Iterator[pa.RecordBatch]:
            yield pa.record_batch({"ts": [1], "type": ["A"]})

    queries = ["INTO x PATTERN A a", "PATTERN x FROM x"]
    with pytest.raises(cep.DataError, match="an iterator gives only once"):
        cep.match(Once(), queries, time="ts", type="type")
