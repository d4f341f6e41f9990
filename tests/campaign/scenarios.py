"""The queries of a campaign, and each again as SQL: self-joins that share nothing with the engine.

The SQL is over a table `events` with the columns row, second, type, id and x, which holds the
events that take part; it returns what the query does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from tests.campaign.events import Event

WINDOW = 20
"""Seconds of every window."""

Found = Counter[tuple[Any, ...]]

_PAIRS = """
    SELECT a.row, b.row FROM events a JOIN events b USING (id)
    WHERE a.type = 'A' AND b.type = 'B' AND a.second < b.second
      AND b.second - a.second < {window} AND b.x > a.x + {more}
"""
_FIRST = """
    WITH pairs AS (
        SELECT a.row AS a, b.row AS b, a.second AS low, b.second AS high,
               min(b.second) OVER (PARTITION BY a.row) AS first
        FROM events a JOIN events b USING (id)
        WHERE a.type = 'A' AND b.type = 'B' AND a.second < b.second
    )
    SELECT a, b FROM pairs WHERE high = first AND high - low < {window}
"""
_UNANSWERED = """
    SELECT a.row, b.row FROM events a JOIN events b USING (id)
    WHERE a.type = 'A' AND b.type = 'B' AND a.second < b.second
      AND b.second - a.second < {window}
      AND NOT EXISTS (
          SELECT 1 FROM events c WHERE c.type = 'C' AND c.id = a.id
          AND c.second > b.second AND c.second < a.second + {window}
      )
"""
_GROUPS = """
    SELECT a.row, c.row, count(*), sum(b.x)
    FROM events a JOIN events c USING (id) JOIN events b USING (id)
    WHERE a.type = 'A' AND b.type = 'B' AND c.type = 'C'
      AND a.second < b.second AND b.second < c.second AND c.second - a.second < {window}
    GROUP BY a.row, c.row
"""
_COUNTS = """
    SELECT a.id, min(a.row), count(*), sum(b.x) FROM events a JOIN events b USING (id)
    WHERE a.type = 'A' AND b.type = 'B' AND a.second < b.second
      AND b.second - a.second < {window}
    GROUP BY a.id, floor(b.second / 10)
"""

_CHAIN = """
    WITH pair AS (
        SELECT a.id, a.row AS a, b.row AS b, b.second AS ends
        FROM events a JOIN events b USING (id)
        WHERE a.type = 'A' AND b.type = 'B' AND a.second < b.second
          AND b.second - a.second < {window} AND b.x > a.x
    )
    SELECT p.a, p.b, c.row FROM pair p JOIN events a ON a.row = p.a
    JOIN events c ON {key} WHERE c.type = 'C' AND p.ends < c.second
      AND c.second - a.second < {window}
"""

PAIRS = "PATTERN A a ; B b WHERE [id] AND b.x > a.x + {more} WITHIN {window} seconds"
UNANSWERED = "PATTERN A a ; B b ; !C c WHERE [id] WITHIN {window} seconds"
FIRST = "PATTERN A a -> B b WHERE [id] WITHIN {window} seconds"
GROUPS = "PATTERN A a ; B+ b ; C c WHERE [id] WITHIN {window} seconds"
COUNTS = "PATTERN A a ; B b WHERE [id] WITHIN {window} seconds GROUP BY a.id, TUMBLE(10 seconds)"
PAIR = (
    "INTO Pair PATTERN A a ; B b WHERE [id] AND b.x > a.x WITHIN 20 seconds "
    "RETURN a.id AS id, a.row AS a, b.row AS b, b.x AS x"
)
CHAIN = "PATTERN Pair p ; C c WHERE {key} WITHIN {window} seconds"
ROWS = " RETURN a.row AS a, b.row AS b"


@dataclass(frozen=True)
class Question:
    """A query and the same in SQL; `columns` are those that both return."""

    query: str
    sql: str
    columns: tuple[str, ...] = ("a", "b")

    def expected(self, events: Iterable[Event]) -> Found:
        return answer(self.sql, events)


def question(
    query: str, sql: str, columns: tuple[str, ...] = ("a", "b"), returned: str = ROWS, more: int = 0
) -> Question:
    filled = {"window": WINDOW, "more": more}
    return Question(query.format(**filled) + returned, sql.format(**filled), columns)


@dataclass(frozen=True)
class Scenario:
    """A query over one folder, or over several streams; or rules, by their names. `changing` are
    the forms that one more rule takes in turn while the stream runs. A query may read the matches
    of others, which come `before` it."""

    name: str
    questions: Mapping[str, Question]
    streams: tuple[str, ...] = ()
    changing: tuple[Question, ...] = field(default=())
    before: tuple[str, ...] = ()

    @property
    def rules(self) -> bool:
        return len(self.questions) > 1

    def suffers(self, fault: str) -> bool:
        """Locks, and files that can't be read, are the command's."""
        return not self.before or fault not in ("second", "unreadable", "rules")


def chained(name: str, own: str, same: str) -> Question:
    """A query of pairs and what follows, with a condition of its own and the same in SQL."""
    returned = " RETURN p.a AS a, p.b AS b, c.row AS c"
    sql = _CHAIN.format(key=same, window=WINDOW)
    return Question(CHAIN.format(key=own, window=WINDOW) + returned, sql, ("a", "b", "c"))


CHANGING = "changing"
"""The name of the rule that comes, changes and goes."""

_SEVERAL = {
    "pairs": question(PAIRS, _PAIRS),
    "unanswered": question(UNANSWERED, _UNANSWERED),
    "groups": question(
        GROUPS,
        _GROUPS,
        ("a", "c", "n", "s"),
        " RETURN a.row AS a, c.row AS c, count(b) AS n, sum(b.x) AS s",
    ),
}
SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("pairs", {"": _SEVERAL["pairs"]}),
        Scenario("first", {"": question(FIRST, _FIRST)}),
        Scenario("unanswered", {"": _SEVERAL["unanswered"]}),
        Scenario("groups", {"": _SEVERAL["groups"]}),
        Scenario(
            "answers",
            {
                "": question(
                    COUNTS,
                    _COUNTS,
                    ("id", "first", "n", "total"),
                    " RETURN a.id, min(a.row) AS first, count(*) AS n, sum(b.x) AS total",
                )
            },
        ),
        *(
            Scenario(name, {"": chained(name, own, same)}, before=(PAIR,))
            for name, own, same in (
                ("chain", "[id]", "c.id = p.id"),
                (
                    "shuffled chain",
                    "p.x % 4 = c.id",
                    "c.id = (SELECT x % 4 FROM events e WHERE e.row = p.b)",
                ),
            )
        ),
        Scenario("streams", {"": _SEVERAL["unanswered"]}, streams=("A", "B", "C")),
        Scenario(
            "rules",
            {
                **_SEVERAL,
                "Pair": Question(PAIR, _PAIRS.format(window=WINDOW, more=0)),
                "after": chained("after", "[id]", "c.id = p.id"),  # which reads `Pair`
            },
            changing=tuple(question(PAIRS, _PAIRS, more=more) for more in (3, 5)),
        ),
    )
}


def answer(sql: str, events: Iterable[Event]) -> Found:
    """What SQL finds in the events."""
    rows = [(e.row, e.second, e.type, e.id, e.x) for e in events]
    names = ("row", "second", "type", "id", "x")
    types = (pa.int64(), pa.int64(), pa.string(), pa.int64(), pa.int64())
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    with duckdb.connect() as database:
        database.register("events", pa.table(arrays, names))
        return Counter(tuple(map(_plain, row)) for row in database.execute(sql).fetchall())


def _plain(value: Any) -> Any:
    return int(value) if value is not None else None
