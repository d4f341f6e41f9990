"""Worked examples: a ticker as the standard's guide has one, and results worked out by hand."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from time import process_time
from typing import Any

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.language.diagnostics import Source
from cepheid.row_patterns.bound import bind
from cepheid.row_patterns.clause import parse_recognition
from cepheid.row_patterns.recognize import recognize
from cepheid.row_patterns.row_machine import Budget

TICKER = pa.table(
    {
        "symbol": ["X"] * 8 + ["Y"] * 4,
        "day": [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4],
        "price": [50, 48, 45, 47, 52, 49, 44, 46, 10, 12, 11, 13],
    }
)
V_SHAPE = """PARTITION BY symbol ORDER BY day
    MEASURES {measures} {rows} {after}
    PATTERN (STRT DOWN+ UP+)
    DEFINE DOWN AS DOWN.price < PREV(DOWN.price), UP AS UP.price > PREV(UP.price)"""


def run(clause: str, table: pa.Table = TICKER) -> list[dict[str, Any]]:
    result = cep.sql(f"SELECT * FROM ticker MATCH_RECOGNIZE ({clause})", {"ticker": table})
    return list(result.to_pylist())


def v_shape(measures: str, rows: str = "", after: str = "") -> list[tuple[Any, ...]]:
    found = run(V_SHAPE.format(measures=measures, rows=rows, after=after))
    return [tuple(row.values()) for row in found]


ACME = [12, 17, 19, 21, 25, 12, 15, 20, 24, 25, 19, 15, 25, 25, 14, 12, 14, 24, 23, 22]
UP_AND_DOWN = "DEFINE DOWN AS DOWN.price < PREV(DOWN.price), UP AS UP.price > PREV(UP.price)"


def test_shapes_of_oracles_ticker() -> None:
    """The ticker of Oracle's documentation: V shapes that share a row, and a W shape."""
    rows = pa.table({"symbol": ["ACME"] * 20, "day": range(1, 21), "price": ACME})
    clause = """PARTITION BY symbol ORDER BY day
        MEASURES STRT.day AS first, LAST(DOWN.day) AS bottom, LAST(UP.day) AS last
        AFTER MATCH SKIP TO LAST UP PATTERN ({0}) """
    found = [
        tuple(row.values()) for row in run(clause.format("STRT DOWN+ UP+") + UP_AND_DOWN, rows)
    ]
    assert found == [("ACME", 5, 6, 10), ("ACME", 10, 12, 13), ("ACME", 14, 16, 18)]
    found = [
        tuple(row.values())
        for row in run(clause.format("STRT DOWN+ UP+ DOWN+ UP+") + UP_AND_DOWN, rows)
    ]
    assert found == [("ACME", 5, 12, 13)]


def test_counts_of_oracles_ticker() -> None:
    rows = pa.table({"symbol": ["ACME"] * 20, "day": range(1, 21), "price": ACME})
    clause = """PARTITION BY symbol ORDER BY day
        MEASURES FINAL count(UP.day) AS up_days, FINAL count(day) AS days,
            RUNNING count(day) AS so_far, price - STRT.price AS change
        ALL ROWS PER MATCH AFTER MATCH SKIP TO LAST UP PATTERN (STRT DOWN+ UP+) """
    found = [tuple(row.values()) for row in run(clause + UP_AND_DOWN, rows)]
    assert found[:6] == [
        ("ACME", day, 4, 6, day - 4, change, 25 + change)
        for day, change in zip(range(5, 11), (0, -13, -10, -5, -1, 0), strict=True)
    ]
    assert [row[1] for row in found] == [*range(5, 11), *range(10, 14), *range(14, 19)]


def test_orders_of_trinos_blog() -> None:
    """`START` is a label like any other."""
    orders = [
        ("cust_1", 11, 100),
        ("cust_1", 12, 200),
        ("cust_2", 13, 8),
        ("cust_1", 14, 100),
        ("cust_2", 15, 4),
        ("cust_1", 16, 50),
        ("cust_1", 17, 100),
        ("cust_2", 18, 6),
    ]
    names = ("customer", "day", "price")
    rows = pa.table(dict(zip(names, zip(*orders, strict=True), strict=True)))
    clause = """PARTITION BY customer ORDER BY day
        MEASURES START.price AS first, LAST(DOWN.price) AS bottom, LAST(UP.price) AS last,
            START.day AS begin, LAST(UP.day) AS end
        ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (START DOWN+ UP+) """
    assert [tuple(row.values()) for row in run(clause + UP_AND_DOWN, rows)] == [
        ("cust_1", 200, 50, 100, 12, 17),
        ("cust_2", 8, 4, 6, 13, 18),
    ]


def test_one_row_per_match() -> None:
    measures = "STRT.day AS first, LAST(DOWN.day) AS bottom, LAST(UP.day) AS last"
    assert v_shape(measures) == [("X", 1, 3, 5), ("X", 6, 7, 8), ("Y", 2, 3, 4)]


def test_all_rows_running_and_final() -> None:
    measures = "CLASSIFIER() AS c, LAST(UP.day) AS so_far, FINAL LAST(UP.day) AS at_end"
    found = v_shape(measures, "ALL ROWS PER MATCH")
    assert found[:5] == [
        ("X", 1, "STRT", None, 5, 50),
        ("X", 2, "DOWN", None, 5, 48),
        ("X", 3, "DOWN", None, 5, 45),
        ("X", 4, "UP", 4, 5, 47),
        ("X", 5, "UP", 5, 5, 52),
    ]
    assert len(found) == 5 + 3 + 3


@pytest.mark.parametrize(
    ("after", "starts"),
    [
        ("AFTER MATCH SKIP PAST LAST ROW", [("X", 1), ("X", 6), ("Y", 2)]),
        ("AFTER MATCH SKIP TO NEXT ROW", [("X", 1), ("X", 2), ("X", 5), ("X", 6), ("Y", 2)]),
        ("AFTER MATCH SKIP TO LAST UP", [("X", 1), ("X", 5), ("Y", 2)]),
        ("AFTER MATCH SKIP TO FIRST DOWN", [("X", 1), ("X", 2), ("X", 5), ("X", 6), ("Y", 2)]),
    ],
)
def test_after_match(after: str, starts: list[tuple[str, int]]) -> None:
    assert v_shape("STRT.day AS first", after=after) == starts


def test_unmatched_rows_keep_their_places() -> None:
    found = v_shape("MATCH_NUMBER() AS n", "ALL ROWS PER MATCH WITH UNMATCHED ROWS")
    numbers = [(symbol, day, n) for symbol, day, n, _ in found]
    assert numbers == [
        *(("X", day, 1) for day in (1, 2, 3, 4, 5)),
        *(("X", day, 2) for day in (6, 7, 8)),
        ("Y", 1, None),
        *(("Y", day, 1) for day in (2, 3, 4)),
    ]


def test_greedy_gives_rows_back_and_reluctant_takes_few() -> None:
    rows = pa.table({"t": [1, 2, 3, 4], "k": list("ABAB")})
    clause = "ORDER BY t MEASURES count(*) AS n PATTERN (A {0}) DEFINE A AS k = 'A', B AS k = 'B'"
    greedy, reluctant = (clause.replace("{0}", f"X*{mark} B") for mark in ("", "?"))
    assert run(greedy, rows) == [{"n": 4}]
    assert run(reluctant, rows) == [{"n": 2}, {"n": 2}]


def test_exclusion_hides_rows_but_aggregates_read_them() -> None:
    rows = pa.table({"t": [1, 2, 3], "x": [1, 2, 3]})
    clause = "ORDER BY t MEASURES sum(x) AS s ALL ROWS PER MATCH PATTERN (A {- B -} C)"
    assert run(clause, rows) == [{"t": 1, "s": 1, "x": 1}, {"t": 3, "s": 6, "x": 3}]


def test_empty_matches() -> None:
    rows = pa.table({"t": [1, 2], "x": [1, 0]})
    clause = (
        "ORDER BY t MEASURES MATCH_NUMBER() AS n, count(*) AS c, A.x AS a {0} PATTERN (A*) "
        "DEFINE A AS x > 0"
    )
    empty = {"n": 2, "c": 0, "a": None}
    assert run(clause.format(""), rows) == [{"n": 1, "c": 1, "a": 1}, empty]
    shown = run(clause.format("ALL ROWS PER MATCH"), rows)
    assert shown == [{"t": 1, "n": 1, "c": 1, "a": 1, "x": 1}, {"t": 2, **empty, "x": 0}]
    omitted = run(clause.format("ALL ROWS PER MATCH OMIT EMPTY MATCHES"), rows)
    assert omitted == shown[:1]


def test_within_bounds_a_match() -> None:
    rows = pa.table({"t": pa.array([0, 4, 9, 12], pa.timestamp("s")), "x": [1, 2, 3, 4]})
    clause = "ORDER BY t MEASURES count(*) AS n PATTERN (A+) WITHIN INTERVAL '10' SECONDS"
    assert run(clause, rows) == [{"n": 3}, {"n": 1}]


def test_nulls_in_order_and_partition() -> None:
    rows = pa.table({"k": [None, "a", None], "t": [2, None, 1], "x": [1, 2, 3]})
    clause = "PARTITION BY k ORDER BY t DESC NULLS LAST MEASURES array_agg(x) AS xs PATTERN (A+)"
    assert run(clause, rows) == [{"k": None, "xs": [1, 3]}, {"k": "a", "xs": [2]}]


def test_conditions_read_the_labels_of_rows_before() -> None:
    """No two of the same kind one after the other: B after A, A after B."""
    rows = pa.table({"t": range(5), "x": [1, 1, 1, 1, 1]})
    clause = """ORDER BY t MEASURES array_agg(CLASSIFIER()) AS labels PATTERN ((A | B){4})
        DEFINE A AS LAST(CLASSIFIER(), 1) IS NULL OR LAST(CLASSIFIER(), 1) <> 'A',
               B AS PREV(CLASSIFIER()) = 'A'"""
    assert run(clause, rows) == [{"labels": ["A", "B", "A", "B"]}]


def test_paths_into_nested_columns() -> None:
    requests = [{"ip": "a", "tags": ["x"]}, {"ip": "b", "tags": []}, {"ip": "a", "tags": ["y"]}]
    rows = pa.table({"t": range(3), "request": requests})
    clause = """ORDER BY t MEASURES C.request.tags[0] AS tag, LAST(request.ip) AS ip
        PATTERN (A B C)
        DEFINE B AS request.ip <> PREV(request.ip), C AS C.request.ip = A.request.ip"""
    assert run(clause, rows) == [{"tag": "y", "ip": "a"}]


def test_types_of_measures_are_those_of_the_columns() -> None:
    rows = pa.table(
        {"t": pa.array([1, 2], pa.timestamp("ms", "UTC")), "d": pa.array(["1.10", "2.25"])}
    )
    rows = rows.set_column(1, "d", rows["d"].cast(pa.decimal128(5, 2)))
    result = cep.sql(
        "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY t MEASURES LAST(t) AS t1, max(d) AS d1, "
        "LAST(t) - FIRST(t) AS took PATTERN (A+))",
        {"t": rows},
    )
    types = [pa.timestamp("ms", "UTC"), pa.decimal128(5, 2), pa.duration("us")]
    assert result.schema.types == types


@pytest.mark.parametrize(
    ("measure", "value"),
    [
        ("DATE '2024-05-02'", date(2024, 5, 2)),
        ("CAST(t AS date)", date(2024, 5, 1)),
        ("LAST(CAST(t AS date))", date(2024, 5, 1)),
        ("array_agg(CAST(t AS date))", [date(2024, 5, 1)] * 2),
        ("array_agg(DISTINCT date_trunc('hour', t))", [datetime(2024, 5, 1, 12)]),
        ("array_agg(t - TIMESTAMP '2024-05-01 12:00:00')", [timedelta(0), timedelta(seconds=60)]),
        ("array_agg(t < TIMESTAMP '2024-05-01 12:00:01')", [True, False]),
        ("array_agg(NULL)", None),
    ],
)
def test_computed_times_are_times(measure: str, value: Any) -> None:
    rows = pa.table({"t": [datetime(2024, 5, 1, 12, minute) for minute in (0, 1)]})
    clause = f"ORDER BY t MEASURES {measure} AS m PATTERN (A+)"
    if value is None:
        with pytest.raises(cep.QueryError, match="CEP619"):
            run(clause, rows)
    else:
        assert run(clause, rows) == [{"m": value}]


AMBIGUOUS = """PARTITION BY k ORDER BY t MEASURES count(*) AS n PATTERN ((A | B | C)+ D)
    DEFINE A AS sum(A.x) < 9999, B AS sum(B.x) < 9999, C AS sum(C.x) < 9999, D AS D.x > 5"""


def test_a_search_that_would_take_forever_ends_with_an_error() -> None:
    """There are 3^5000 ways to go; the search gives up after some seconds, most of it compiling."""
    rows = pa.table({"k": ["a"] * 5000, "t": range(5000), "x": [1] * 5000})
    begin = process_time()
    with pytest.raises(cep.DataError) as failed:
        run(AMBIGUOUS, rows)
    assert process_time() - begin < 60
    assert str(failed.value) == (
        "the search for a match that begins at row 1 of the partition k = 'a' takes too many "
        "steps, because the conditions of A, B, C read rows that were taken before: compare with "
        "PREV, add WITHIN, or make the pattern less ambiguous"
    )


def test_the_budget_is_for_a_whole_partition() -> None:
    """Each start is cheap, but there are many of them."""
    rows = pa.table({"k": ["a"] * 400, "t": range(400), "x": [1] * 400})
    source = Source(
        "PARTITION BY k ORDER BY t MEASURES count(*) AS n PATTERN (A B+ C) "
        "DEFINE B AS B.x = A.x, C AS C.x > 5"
    )
    bound = bind(parse_recognition(source), rows.schema, source)
    assert recognize(bound, rows, jit=False).num_rows == 0
    with pytest.raises(cep.DataError, match="takes too many steps"):
        recognize(bound, rows, jit=False, budget=Budget(per_row=100, least=0))


def test_ambiguous_patterns_are_quick() -> None:
    rows = pa.table({"t": range(5000), "x": [1] * 5000})
    clause = """ORDER BY t MEASURES count(*) AS n PATTERN ((A+ B?)+ C)
        DEFINE A AS x = 1, B AS x = 1, C AS x > 5"""
    begin = process_time()
    assert run(clause, rows) == []
    assert process_time() - begin < 1


def test_a_budget_that_wide_windows_use_up() -> None:
    rows = pa.table({"t": range(400), "x": [1] * 400})
    source = Source(
        "ORDER BY t MEASURES count(*) AS n PATTERN (A+ B) WITHIN 300 units DEFINE B AS x > 5"
    )
    bound = bind(parse_recognition(source), rows.schema, source)
    with pytest.raises(cep.DataError) as failed:
        recognize(bound, rows, jit=False, budget=Budget(per_row=100, least=0))
    assert str(failed.value).endswith(
        "too many steps, because WITHIN allows matches of very many rows: make it shorter"
    )


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (
            "A",
            "AFTER MATCH SKIP TO A would go to the first row of the match that begins at row 1 of "
            "the partition symbol = 'X', so the search would never end: skip to a later label, or "
            "TO NEXT ROW",
        ),
        (
            "B",
            "AFTER MATCH SKIP TO B: the match that begins at row 1 of the partition symbol = 'X' "
            "has no row with this label",
        ),
    ],
)
def test_a_search_that_can_not_go_on(label: str, message: str) -> None:
    clause = f"""PARTITION BY symbol ORDER BY day AFTER MATCH SKIP TO FIRST {label}
        PATTERN (B? A) DEFINE B AS price > 99"""
    with pytest.raises(cep.DataError) as failed:
        run(clause)
    assert str(failed.value) == message
