"""What is wrong with a clause is said with a code, a place in the whole statement, and a hint."""

from __future__ import annotations

import pyarrow as pa
import pytest

import cepheid as cep

TABLE = pa.table({"k": ["a"], "t": [1], "x": [1], "s": ["b"], "r": [{"ip": 1}]})

MISTAKES = {
    # Clauses.
    "PATERN (A)": ("CEP603: expected a clause, not `PATERN`", "did you mean `PATTERN`?"),
    "ORDER BY t": (
        "CEP603: expected `PATTERN`, not the end",
        "MATCH_RECOGNIZE needs a PATTERN",
    ),
    "PATTERN (A) ORDER BY t": (
        "CEP602: ORDER BY can't stand here",
        "the order is PARTITION BY, ORDER BY, MEASURES, … ROWS PER MATCH, AFTER MATCH, PATTERN, "
        "WITHIN, SUBSET, DEFINE",
    ),
    "MEASURES x PATTERN (A)": ("CEP605: a measure needs a name", "write `x AS name`"),
    "MEASURES A.x - 1 y PATTERN (A)": ("CEP605: a measure needs a name", "write `A.x - 1 AS y`"),
    "MEASURES A.x PATTERN (A)": ("CEP605: a measure needs a name", "write `A.x AS name`"),
    "MEASURES A.x AS y, PATTERN (A)": ("CEP603: expected a measure, not `PATTERN`", ""),
    "PARTITION BY k, ORDER BY t PATTERN (A)": ("CEP603: expected a column, not `ORDER`", ""),
    "AFTER MATCH SKIP PAST LAST PATTERN (A)": ("CEP603: expected `ROW`, not `PATTERN`", ""),
    "PATTERN (A, B)": (
        "CEP603: expected `)`, not `,`",
        "labels stand side by side, as in `A B+`",
    ),
    "SEEK PATTERN (A)": (
        "CEP604: SEEK is for patterns of a WINDOW, not for MATCH_RECOGNIZE",
        "leave it out",
    ),
    "INITIAL PATTERN (A)": (
        "CEP604: INITIAL is for patterns of a WINDOW, not for MATCH_RECOGNIZE",
        "leave it out",
    ),
    "ORDER BY t PATTERN (A) WITHIN 5 EVENTS": (
        "CEP109: this is a duration, and is not counted in events",
        "as in `10 minutes`",
    ),
    "PATTERN (A) WITHIN 5 > 3": (
        "CEP606: WITHIN needs an interval",
        "write `WITHIN INTERVAL '10' MINUTES`",
    ),
    # Patterns.
    "PATTERN (A{3,2})": ("CEP111: this quantifier allows no number of rows", ""),
    "PATTERN (A{})": ("CEP111: this quantifier has no number", "as in `A{2,5}`"),
    "PATTERN (A B+*)": (
        "CEP111: a quantifier can't follow another",
        "put parentheses around what it quantifies, as in `(A+)*`",
    ),
    "ORDER BY t PATTERN (A)": (
        "CEP627: ONE ROW PER MATCH returns no column here",
        "add MEASURES, as in `MEASURES count(*) AS n`",
    ),
    "PATTERN (A |)": ("CEP603: expected a label, or `()` for an empty pattern, not `)`", ""),
    "PATTERN ((A{9999}){9999})": (
        "CEP615: this pattern has too many steps when its quantifiers and permutations are written "
        "out",
        "use `*`, `+` or smaller numbers, and PERMUTE fewer labels",
    ),
    "ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A {- B -})": (
        "CEP610: {- -} can't stand with WITH UNMATCHED ROWS: its rows are matched, not shown",
        "leave one of them out",
    ),
    # Names.
    'PATTERN (A "b")': (
        'CEP603: expected a label, not `"b"`',
        "names stand in backticks, texts in quotes",
    ),
    'PARTITION BY "k" PATTERN (A)': (
        "CEP617: PARTITION BY takes columns, not expressions",
        "names stand in backticks: `k`",
    ),
    "PATTERN (A) DEFINE B AS x > 1": (
        "CEP611: the pattern has no label `B`",
        "labels are `A`",
    ),
    "PATTERN (A DOWN) DEFINE A AS DOWNN.x > 1": (
        "CEP611: the pattern has no label `DOWNN`",
        "did you mean `DOWN`?",
    ),
    "AFTER MATCH SKIP TO FIRST B PATTERN (A)": (
        "CEP611: the pattern has no label `B`",
        "labels are `A`",
    ),
    "PATTERN (A) SUBSET A = (A)": (
        "CEP612: `A` is a label of the pattern",
        "give the subset another name",
    ),
    "PATTERN (A B) SUBSET U = (A, B) DEFINE U AS x > 1": (
        "CEP612: `U` is a SUBSET, which has no condition of its own",
        "define its labels",
    ),
    "MEASURES classifier AS c PATTERN (A)": (
        "CEP204: there is no column `classifier`",
        "write `CLASSIFIER()`",
    ),
    "PARTITION BY CLASSIFIER() PATTERN (A)": (
        "CEP617: PARTITION BY takes columns, not expressions",
        "rows have labels and numbers in MEASURES and DEFINE alone",
    ),
    "PATTERN (A) DEFINE A AS x > 1, A AS x > 2": (
        "CEP612: DEFINE has a condition for `A` already",
        "",
    ),
    "MEASURES x AS a, t AS A PATTERN (A)": (
        "CEP612: the result has a column `A` already",
        "give the measure another name",
    ),
    "PARTITION BY k MEASURES x AS k PATTERN (A)": (
        "CEP612: the result has a column `k` already",
        "give the measure another name",
    ),
    "MEASURES t + 1 AS X ALL ROWS PER MATCH PATTERN (A)": (
        "CEP612: the result has a column `X` already",
        "give the measure another name",
    ),
    "AFTER MATCH SKIP TO FIRST A PATTERN (A B*)": (
        "CEP626: AFTER MATCH SKIP TO A goes to the first row of every match",
        "skip to a label that comes later, or TO NEXT ROW",
    ),
    "AFTER MATCH SKIP TO U PATTERN ((A | B) C) SUBSET U = (A, B)": (
        "CEP626: AFTER MATCH SKIP TO U goes to the first row of every match",
        "skip to a label that comes later, or TO NEXT ROW",
    ),
    "MEASURES A.y AS y PATTERN (A)": (
        "CEP204: there is no column `y`",
        "columns are `k`, `t`, `x`, `s`, `r`",
    ),
    "MEASURES count(A) AS y PATTERN (A)": (
        "CEP205: `A` is a label, not a value",
        "count its rows with `count(A.*)`",
    ),
    "MEASURES A AS y PATTERN (A)": ("CEP205: `A` is a label, not a value", "name a column: `A.x`"),
    "PARTITION BY lower(k), t ORDER BY t PATTERN (A)": (
        "CEP617: PARTITION BY takes columns, not expressions",
        "compute it in a subquery: `(SELECT *, lower(k) AS x FROM …)`, and use x",
    ),
    "ORDER BY t, x + (1) DESC PATTERN (A)": (
        "CEP617: ORDER BY takes columns, not expressions",
        "compute it in a subquery: `(SELECT *, x + (1) AS x FROM …)`, and use x",
    ),
    "ORDER BY -t PATTERN (A)": (
        "CEP617: ORDER BY takes columns, not expressions",
        "compute it in a subquery: `(SELECT *, -t AS x FROM …)`, and use x",
    ),
    "PARTITION BY r ORDER BY t PATTERN (A)": (
        "CEP617: PARTITION BY takes values that can be compared, and `r` is nested",
        "take a part of it in a subquery: `(SELECT *, r.id AS id FROM …)`, and use id",
    ),
    "ORDER BY t, r PATTERN (A)": (
        "CEP617: ORDER BY takes values that can be compared, and `r` is nested",
        "take a part of it in a subquery: `(SELECT *, r.id AS id FROM …)`, and use id",
    ),
    "MEASURES count(DISTINCT r) AS y PATTERN (A)": (
        "CEP210: `count(DISTINCT …)` needs a value that can be compared, but `r` is nested",
        "",
    ),
    "MEASURES t AS y PATTERN (A) DEFINE A AS t > DATE '2024-02-30'": (
        "CEP214: `'2024-02-30'` is not a date or timestamp",
        "write it as '2024-05-01 12:30:00'",
    ),
    "MEASURES A.r.ipp AS y PATTERN (A)": (
        "CEP204: `r` has no field `ipp`",
        "did you mean `ip`?",
    ),
    # Functions.
    "MEASURES sum(avg(x)) AS y PATTERN (A)": ("CEP613: `avg` can't stand inside of SUM", ""),
    "MEASURES FIRST(PREV(x)) AS y PATTERN (A)": ("CEP613: `prev` can't stand inside of FIRST", ""),
    "MEASURES sum(A.x + B.x) AS y PATTERN (A B)": (
        "CEP619: `sum` reads rows of one label, not of several",
        "use a SUBSET for both",
    ),
    "MEASURES LAST(5) AS y PATTERN (A)": ("CEP619: `last` needs a column, but `5` has none", ""),
    "MEASURES match_sequence_number() AS y ALL ROWS PER MATCH PATTERN (A)": (
        "CEP208: MATCH_RECOGNIZE has no `match_sequence_number`",
        "the rows of a match so far are counted with `count(*)`",
    ),
    "MEASURES x AS y PATTERN (A) DEFINE A AS x > lag(x)": (
        "CEP208: MATCH_RECOGNIZE has no `lag`",
        "the row before is read with `PREV(x)`",
    ),
    "MEASURES count_if(x > 1) AS n PATTERN (A)": (
        "CEP208: MATCH_RECOGNIZE has no `count_if`",
        "CASE chooses what is counted: `count(CASE WHEN x > 1 THEN 1 END)`",
    ),
    "MEASURES any_value(x) AS n PATTERN (A)": (
        "CEP208: MATCH_RECOGNIZE has no `any_value`",
        "the first row is read with `FIRST(x)`",
    ),
    "PATTERN (A) DEFINE A AS date_diff('day', t, PREV(t)) > 1": (
        "CEP208: there is no function `date_diff`",
        "times are subtracted, as in `b.ts - a.ts < 10 minutes`",
    ),
    "PATTERN (A) DEFINE A AS x IN (SELECT 1)": (
        "CEP625: a subquery can't stand in MATCH_RECOGNIZE",
        "join what it returns to the table, before MATCH_RECOGNIZE",
    ),
    "MEASURES reduce(A, 0, acc -> acc + A.x) AS y PATTERN (A)": (
        "CEP208: MATCH_RECOGNIZE has no `reduce`",
        "aggregates are count, sum, avg, min, max, stddev, collect",
    ),
    "MEASURES FINAL PREV(x) AS y PATTERN (A)": (
        "CEP618: FINAL goes with FIRST, LAST and aggregates, not with `prev`",
        "as in `FINAL LAST(A.x)`",
    ),
    "MEASURES FINAL(A.x) AS y PATTERN (A)": (
        "CEP618: FINAL goes with FIRST, LAST and aggregates, not with `A.x`",
        "as in `FINAL LAST(A.x)`",
    ),
    "MEASURES RUNNING() AS y PATTERN (A)": (
        "CEP618: RUNNING goes with FIRST, LAST and aggregates",
        "as in `RUNNING LAST(A.x)`",
    ),
    "MEASURES LAST(x, y) AS y PATTERN (A)": (
        "CEP209: `last` takes a value and a number that isn't negative",
        "",
    ),
    "PATTERN (A) DEFINE A AS FINAL LAST(x) > 1": (
        "CEP618: FINAL can't stand in DEFINE: the match isn't complete there",
        "",
    ),
    "MEASURES CLASSIFIER(B) AS y PATTERN (A)": (
        "CEP611: the pattern has no label `B`",
        "labels are `A`",
    ),
    "MEASURES CLASSIFIER(A, A) AS y PATTERN (A)": (
        "CEP209: `CLASSIFIER` takes a label or nothing",
        "",
    ),
    "PATTERN (A) DEFINE A AS x + 1": (
        "CEP211: a condition is needed here, but `x + 1` is an integer",
        "compare it with something",
    ),
    "PATTERN (A) DEFINE A AS s > 1": (
        "CEP210: can't compare `s` (string) with `1` (integer)",
        "for the text, write `'1'`",
    ),
    "MEASURES t AS y PATTERN (A B) DEFINE B AS A.s LIKE s": (
        "CEP628: `A.s LIKE s` can't be checked while rows are taken",
        "a function in DEFINE reads one row: not an aggregate, nor texts of several rows",
    ),
    "MEASURES t AS y PATTERN (A B) DEFINE B AS upper(min(s)) = 'X'": (
        "CEP628: `upper(min(s)) = 'X'` can't be checked while rows are taken",
        "a function in DEFINE reads one row: not an aggregate, nor texts of several rows",
    ),
    "PATTERN (A B) SUBSET U = (A, B), V = (A, U)": (
        "CEP611: a SUBSET is made of labels, and `U` is a SUBSET itself",
        "name the labels of `U`",
    ),
    "PATTERN (A) WITHIN INTERVAL '1' HOUR": (
        "CEP616: WITHIN needs ORDER BY with an ascending time",
        "order by the time of the rows first",
    ),
    "ORDER BY s PATTERN (A) WITHIN INTERVAL '1' HOUR": (
        "CEP616: WITHIN measures `s`, which is not a timestamp",
        "order by one of a subquery: `(SELECT *, CAST(s AS TIMESTAMP) AS ts FROM …)`",
    ),
}


@pytest.mark.parametrize("clause", MISTAKES)
def test_mistake(clause: str) -> None:
    message, hint = MISTAKES[clause]
    statement = f"SELECT *\nFROM t MATCH_RECOGNIZE (\n{clause})"
    with pytest.raises(cep.QueryError) as failed:
        cep.sql(statement, {"t": TABLE})
    first = failed.value.diagnostics[0]
    assert f"{first.code}: {first.message}" == message
    assert first.hint == hint
    assert first.source.text == statement
    begin = statement.index(clause)
    assert begin <= first.span.start <= begin + len(clause)


AT = {
    "PATTERN (A) DEFINE B AS x > 1": "B AS x > 1",
    "AFTER MATCH SKIP TO FIRST B PATTERN (A)": "B PATTERN",
    "AFTER MATCH SKIP TO FIRST A PATTERN (A B*)": "A PATTERN",
    "MEASURES sum(avg(x)) AS y PATTERN (A)": "avg(x)",
    "MEASURES CLASSIFIER(B) AS y PATTERN (A)": "CLASSIFIER(B)",
    "MEASURES x PATTERN (A)": "x PATTERN",
    "MEASURES A.y AS y PATTERN (A)": "A.y",
    "PATTERN (A) DEFINE A AS FINAL LAST(x) > 1": "FINAL LAST",
    "MEASURES classifier AS c PATTERN (A)": "classifier",
    "PARTITION BY classifier() PATTERN (A)": "classifier()",
    "PATTERN (A B+? C) DEFINE B AS s > 1": "s > 1",
    "PATTERN (A B+?+ C)": "+ C",
}


@pytest.mark.parametrize("clause", AT)
def test_where_a_mistake_stands(clause: str) -> None:
    """In the second clause of a statement, behind comments and letters of several bytes."""
    before = (
        "SELECT 'ä', /* 😀 */ * FROM t MATCH_RECOGNIZE (MEASURES x AS y PATTERN (A)) a,\n"
        "  t MATCH_RECOGNIZE (\n"
    )
    statement = f"{before}{clause}) b"
    with pytest.raises(cep.QueryError) as failed:
        cep.sql(statement, {"t": TABLE})
    place = len(before) + clause.index(AT[clause])
    assert failed.value.diagnostics[0].span.start == place
