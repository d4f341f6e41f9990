"""Answers about drawn events, against SQL over the matches of the plain pattern: the windows and
groups are made by DuckDB, which shares nothing with the engine."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import cepheid as cep
from tests.answers.test_corpus import same
from tests.examples import examples

PATTERNS = (
    "A a ; B b",
    "A a ; !C n ; B b",
    "A a & B b",
    "B b ; C+ c ; A a",
    "A a ; C* c ; B b",
    "A a ; C+ c SUBSETS ; B b",
    "A a -> B b",
    "A a | B b",
    "A a ; (B b | C c)",
    "A a ; A x ; B b",
)
CONDITIONS = ("[id]", "a.x < b.x", "a.x <> b.x", "a.y + b.y > 2", "b.s >= a.s", "a.x > 1")
GROUPS = ("a.id", "b.s", "a.x", "b.x % 2", "a.y")
VALUES = ("a.x", "b.x", "a.y", "b.y", "a.s", "b.s")
HAVINGS = {
    "count(*) > 1": "count(*) > 1",
    "sum(b.x) > 3": 'sum("b.x") > 3',
    "min(a.x) IS NOT NULL": 'min("a.x") IS NOT NULL',
    "avg(a.y) < 2": 'avg("a.y") < 2',
}
WINDOWS = ("", "TUMBLE({r})", "HOP({s}, {r})", "SESSION({s})", "RANGE({r})")

IN_WINDOWS: dict[str, str] = {
    "": "SELECT *, 0 AS low, 0 AS high FROM m",
    "TUMBLE": "SELECT *, floor(t / {r})::BIGINT * {r} AS low, low + {r} AS high FROM m",
    "HOP": """SELECT m.*, k * {s} AS low, k * {s} + {r} AS high
              FROM m JOIN range(-50, 200) AS n(k) ON t >= k * {s} AND t < k * {s} + {r}""",
    "SESSION": """
        WITH gaps AS (SELECT *, t - lag(t) OVER w >= {s} AS far FROM m
                      WINDOW w AS (PARTITION BY {groups} ORDER BY t)),
             numbered AS (SELECT *, count(*) FILTER (far) OVER w AS session FROM gaps
                          WINDOW w AS (PARTITION BY {groups} ORDER BY t))
        SELECT *, min(t) OVER w AS low, max(t) OVER w + {s} AS high FROM numbered
        WINDOW w AS (PARTITION BY {groups}, session)""",
    "RANGE": """SELECT o.* EXCLUDE (number), n.t - {r} AS low, n.t AS high, n.number
                FROM m AS n JOIN m AS o ON o.t > n.t - {r} AND o.t <= n.t {equal}""",
}
EMPTY = {"TUMBLE": "{r}", "HOP": "{s}"}


@dataclass(frozen=True)
class Asked:
    """A query about groups, the plain one over the same matches, and the SQL in between."""

    query: str
    plain: str
    sql: str


def table(draw: random.Random) -> pa.Table:
    """Many events at one time, and many values missing."""
    n = draw.randint(0, 28)
    times = sorted(draw.randint(0, 40) for _ in range(n))

    def column(values: list[Any]) -> list[Any]:
        return [None if draw.random() < 0.2 else draw.choice(values) for _ in range(n)]

    return pa.table(
        {
            "ts": pa.array(times, pa.int64()),
            "type": pa.array([draw.choice("AABBC") for _ in range(n)], pa.string()),
            "id": pa.array(column([1, 2]), pa.int64()),
            "x": pa.array(column([0, 1, 2, 3]), pa.int64()),
            "y": pa.array(column([0.5, 1.0, 2.25]), pa.float64()),
            "s": pa.array(column(["p", "q", "r"]), pa.string()),
        }
    )


def aggregates(draw: random.Random) -> Iterator[tuple[str, str]]:
    """Each in the language and in SQL."""
    yield "count(*)", "count(*)"
    for _ in range(3):
        value = draw.choice(VALUES)
        text = value.endswith(".s")
        name = draw.choice(("count", "min", "max", *(() if text else ("sum", "avg"))))
        some = "DISTINCT " if draw.random() < 0.3 and name in ("count", "sum") else ""
        whole = "::BIGINT" if name == "sum" and value.endswith(".x") else ""
        yield f"{name}({some}{value})", f'{name}({some}"{value}"){whole}'


def asked(draw: random.Random) -> Asked:
    pattern = draw.choice(PATTERNS)
    where = draw.sample(CONDITIONS, draw.randint(0, 2))
    body = f"PATTERN {pattern}" + (f" WHERE {' AND '.join(where)}" if where else "")
    body += draw.choice(("", "", " HAVING b.x IS NOT NULL")) + f" WITHIN {draw.randint(2, 14)}"
    groups = draw.sample(GROUPS, draw.randint(0, 2))
    sizes = {"r": draw.randint(1, 12), "s": draw.randint(1, 9)}
    window = draw.choice(WINDOWS)
    kind = window.partition("(")[0]
    parts = [*groups, *([window.format(**sizes)] if window else [])]
    found = list(aggregates(draw))
    columns = [f"{own} AS v{n}" for n, (own, _) in enumerate(found)]
    columns += [f"{group} AS g{n}" for n, group in enumerate(groups)]
    columns += ["window_start AS low", "window_end AS high"] if kind else []
    having = draw.choice(list(HAVINGS)) if parts and draw.random() < 0.3 else None
    query = f"{body} {'GROUP BY ' + ', '.join(parts) if parts else ''}"
    query += (f" HAVING {having}" if having else "") + f" RETURN {', '.join(columns)}"
    plain = [f"{value} AS `{value}`" for value in VALUES]
    plain += [f"{group} AS g{n}" for n, group in enumerate(groups)]
    sql = _sql(kind, sizes, groups, [of for _, of in found], having)
    return Asked(query, f"{body} RETURN {', '.join(plain)}", sql)


def _sql(
    kind: str, sizes: dict[str, int], groups: list[str], found: list[str], having: str | None
) -> str:
    names = [f"g{n}" for n in range(len(groups))]
    equal = "".join(f" AND o.{name} IS NOT DISTINCT FROM n.{name}" for name in names)
    rows = IN_WINDOWS[kind].format(**sizes, groups=", ".join([*names, "1"]), equal=equal)
    values = ", ".join(f"{text} AS v{n}" for n, text in enumerate(found))
    keys = [*names, *(["low", "high"] if kind else []), *(["number"] if kind == "RANGE" else [])]
    group_by = f"GROUP BY {', '.join(keys)}" if keys else ""
    chosen = ", ".join([values, *names, *(["low", "high"] if kind else [])])
    after = f"HAVING {HAVINGS[having]}" if having else ""
    if kind not in EMPTY or names:
        return f"WITH r AS ({rows}) SELECT {chosen} FROM r {group_by} {after}"
    # Without groups, the windows in between have rows, too; their one row is no match.
    step = EMPTY[kind].format(**sizes)
    counts = ", ".join(
        f"count(*) FILTER (there) AS v{n}" if text == "count(*)" else f"{text} AS v{n}"
        for n, text in enumerate(found)
    )
    after = after.replace("count(*)", "count(*) FILTER (there)")
    return f"""
        WITH r AS (SELECT *, true AS there FROM ({rows})),
             every AS (SELECT unnest(range(min(low), max(low) + 1, {step})) AS low FROM r),
             filled AS (SELECT * EXCLUDE (low, high), every.low AS low, every.low + {sizes["r"]}
                        AS high FROM every LEFT JOIN r ON r.low = every.low)
        SELECT {counts}, low, high FROM filled GROUP BY low, high {after}"""


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: [(v is None, str(v)) for _, v in sorted(row.items())])


@pytest.mark.filterwarnings("ignore:no event is of type")
@pytest.mark.parametrize("seed", range(examples("answers against SQL")))
def test_as_in_sql(seed: int) -> None:
    draw = random.Random(f"against SQL {seed}")
    ask = asked(draw)
    for _ in range(3):
        events = table(draw)
        given = {"time": "ts", "type": "type", "jit": False}
        try:
            matches = cep.match(events, ask.plain, **given)
        except cep.QueryError:
            return  # drawn conditions may name what a branch lacks
        matches = matches.append_column("t", matches["match_end"])
        matches = matches.append_column("number", pa.array(range(matches.num_rows), pa.int64()))
        with duckdb.connect() as database:
            database.register("m", matches)
            expected = database.sql(ask.sql).to_arrow_table().to_pylist()
        for data in (events, iter(events.to_batches(max_chunksize=draw.choice((1, 7, 100))))):
            if data is not events and not events.num_rows:
                continue
            try:
                answers = cep.match(data, ask.query, **given)
            except cep.QueryError:
                assert data is not events
                continue  # on data that may never end, a group needs a window
            rows = answers.read_all() if data is not events else answers
            found = rows.drop_columns(["match_start", "match_end"]).to_pylist()
            assert same(in_order(found), in_order(expected)), (ask, events.to_pylist())
