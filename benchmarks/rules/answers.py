"""What rules find, by plain SQL: every step's events by a join on what they have to equal, then the
steps of each rule by a join on their times."""

from __future__ import annotations

from itertools import permutations

import duckdb
import numpy as np
import pyarrow as pa

from cepheid.workloads.cayuga import ATTRIBUTES, CONTINUOUS, DISCRETE, DURATION

EVENTS = "abc"
FOUND = ("rule", *EVENTS)


def numbered(rules: pa.Table) -> pa.Table:
    return rules.append_column("rule", pa.array(np.arange(rules.num_rows)))


class Answers:
    """The events that each step of each rule takes, for all templates."""

    def __init__(self, rules: pa.Table, events: pa.Table) -> None:
        self._sql = duckdb.connect(config={"threads": 1})
        self._sql.register("rules", numbered(rules))
        self._sql.register("events", events)
        values = ", ".join(CONTINUOUS)
        single = (f"SELECT ts, {n} AS p, d{n} AS pv, {values} FROM events" for n in range(4))
        self._sql.execute(f"CREATE TABLE singles AS {' UNION ALL '.join(single)}")
        pairs = (
            f"SELECT ts, {p} AS p, d{p} AS pv, {s} AS s, d{s} AS sv, {values} FROM events"
            for p, s in permutations(range(ATTRIBUTES), 2)
        )
        self._sql.execute(f"CREATE TABLE pairs AS {' UNION ALL '.join(pairs)}")
        for event in EVENTS:
            self._sql.execute(f"CREATE TABLE taken_{event} AS {_taken(event)}")

    def found(self, template: str) -> pa.Table:
        """The rule and the times of the three events of each match, in order."""
        query = f"""
            SELECT a.rule, a.ts AS a, b.ts AS b, c.ts AS c
            FROM taken_a a
            JOIN taken_b b ON b.rule = a.rule AND {_follows("a", "b", template)}
            JOIN taken_c c ON c.rule = b.rule AND {_follows("b", "c", template)}
            ORDER BY ALL"""
        return self._sql.sql(query).to_arrow_table()

    def iterated(self) -> pa.Table:
        """Those of NonDeterministic, and how many events with the primary value are between."""
        query = f"""
            SELECT a.rule, a.ts AS a, b.ts AS b, c.ts AS c,
              (SELECT count(*) FROM singles e WHERE e.p = a.p AND e.pv = a.pv
               AND e.ts > a.ts AND e.ts < c.ts AND e.ts <> b.ts) AS between_
            FROM taken_a a
            JOIN taken_b b ON b.rule = a.rule AND {_follows("a", "b", "NonDeterministic")}
            JOIN taken_c c ON c.rule = b.rule AND {_follows("b", "c", "NonDeterministic")}
            ORDER BY ALL"""
        return self._sql.sql(query).to_arrow_table()

    def close(self) -> None:
        self._sql.close()


def _taken(event: str) -> str:
    """Rules name two discrete attributes, or the primary one alone."""
    seconds = [f"{event}_{name}" for name in DISCRETE]
    primaries = [f"p{n}" for n in range(ATTRIBUTES)]
    ranges = " AND ".join(
        f"({event}_low{n} IS NULL OR e.c{n} BETWEEN {event}_low{n} AND {event}_high{n})"
        for n in range(ATTRIBUTES)
    )
    named = f"""
        SELECT *, {_which(primaries)} AS p, coalesce({", ".join(primaries)}) AS pv,
          {_which(seconds)} AS s, coalesce({", ".join(seconds)}) AS sv
        FROM rules"""
    return f"""
        SELECT rule, e.ts, e.c0, r.p, r.pv FROM ({named}) r
        JOIN pairs e ON e.p = r.p AND e.pv = r.pv AND e.s = r.s AND e.sv = r.sv WHERE {ranges}
        UNION ALL
        SELECT rule, e.ts, e.c0, r.p, r.pv FROM ({named}) r
        JOIN singles e ON e.p = r.p AND e.pv = r.pv WHERE r.s IS NULL AND {ranges}"""


def _which(columns: list[str]) -> str:
    """The number of the column that isn't NULL."""
    cases = (f"WHEN {column} IS NOT NULL THEN {n}" for n, column in enumerate(columns))
    return f"CASE {' '.join(cases)} END"


def _follows(one: str, other: str, template: str) -> str:
    if template.startswith("Linear"):
        directly = f"{other}.ts = {one}.ts + 1"
        rises = f"{other}.c0 > 1.01 * {one}.c0"
        return f"{directly} AND {rises}" if template == "LinearDyn" else directly
    near = f"{other}.ts > {one}.ts AND {other}.ts <= {one}.ts + {DURATION}"
    if template != "Filter":
        return near
    between = f"e.ts > {one}.ts AND e.ts < {other}.ts"
    same = f"e.p = {one}.p AND e.pv = {one}.pv"
    return f"{near} AND NOT EXISTS (SELECT 1 FROM singles e WHERE {same} AND {between})"


def planted(events: pa.Table, rules: pa.Table, count: int, seed: int = 0) -> pa.Table:
    """The events, with such among them as some rules wait for: of uniform events, next to none
    match, and an answer of nothing is easily right."""
    random = np.random.default_rng(seed)
    columns = {name: events[name].to_numpy().copy() for name in events.column_names}
    room = events.num_rows // count
    chosen = rules.take(random.integers(0, rules.num_rows, count))
    for n, rule in enumerate(chosen.to_pylist()):
        # Every other one directly after each other.
        gaps = (1, 1) if n % 2 else random.integers(1, DURATION + 1, 2).tolist()
        places = n * room + np.cumsum([0, *gaps])
        if places[-1] >= events.num_rows:
            break
        for rank, (event, at) in enumerate(zip(EVENTS, places.tolist(), strict=True)):
            for k in range(ATTRIBUTES):
                for value in (rule[f"{event}_d{k}"], rule[f"p{k}"]):
                    if value is not None:
                        columns[f"d{k}"][at] = value
                low, high = rule[f"{event}_low{k}"], rule[f"{event}_high{k}"]
                if low is not None:  # from event to event higher, for LinearDyn
                    columns[f"c{k}"][at] = low + (high - low) * (0.1 + 0.4 * rank)
    return pa.table(columns, schema=events.schema)
