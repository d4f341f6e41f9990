"""Every construct that chooses, counts or folds, as a query over the same events, for tests that
compare runtimes: each returns whole numbers and lists of them, so that rows are alike everywhere.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from tests.corpus.reader import Case, case_of, table
from tests.oracle.match import matches, outputs

CONSTRUCTS = {
    "a time at the end": "PATTERN A a ; !B b FOR 6 seconds WHERE [id] RETURN a.row AS a",
    "a time, and a condition across": """PATTERN A a ; !B b FOR 9 seconds WHERE [id] AND b.x > a.x
        RETURN a.row AS a""",
    "a time in the middle": """PATTERN A a ; !B b FOR 3 seconds ; C c WHERE [id] WITHIN 9 seconds
        RETURN a.row AS a, c.row AS c""",
    "a time that leads": """PATTERN !B b FOR 7 seconds ; A a -> C c WHERE [id]
        WITHIN 12 seconds RETURN a.row AS a, c.row AS c""",
    "a time as a branch": """PATTERN A a -> (C c | !B b FOR 4 seconds) WHERE [id] WITHIN 15 seconds
        RETURN a.row AS a, c.row AS c""",
    "two times": """PATTERN A a ; !B b FOR 3 seconds ; !C c FOR 5 seconds WHERE [id]
        RETURN a.row AS a""",
    "a limit": """PATTERN A a ; B b WHERE [id] WITHIN 9 seconds RETURN a.row AS a, b.row AS b
        LIMIT 3""",
    "a limit of each key": """PATTERN A a ; B b WHERE [id] WITHIN 9 seconds
        RETURN a.row AS a, b.row AS b LIMIT 2 PER KEY""",
    "a limit of times": """PATTERN A a ; !B b FOR 6 seconds WHERE [id] RETURN a.row AS a
        LIMIT 1 PER KEY""",
    "one alert": """PATTERN A a ; B b WHERE [id] WITHIN 9 seconds AFTER MATCH SKIP FOR 8 seconds
        RETURN a.row AS a, b.row AS b""",
    "different values": """PATTERN A a ; B+ b ; C c WHERE [id] HAVING count(DISTINCT b.x) >= 2
        WITHIN 20 seconds RETURN a.row AS a, collect(DISTINCT b.x) AS xs, c.row AS c""",
    "different values so far": """PATTERN A a ; B+ b ; C c WHERE [id]
        AND b.x > count(DISTINCT b.x) WITHIN 20 seconds
        RETURN a.row AS a, b.row AS b, c.row AS c""",
    "the element before": """PATTERN A a ; B+ b ; C c WHERE [id] AND b.x > PREV(b.x, a.x)
        WITHIN 20 seconds RETURN a.row AS a, b.row AS b, c.row AS c""",
    "ends of a group": """PATTERN A a ; B{2,} b ; C c WHERE [id]
        HAVING FIRST(b.x, 1) >= LAST(b.x, 1) WITHIN 20 seconds
        RETURN a.row AS a, b.row AS b, c.row AS c, LAST(b.row, 1) AS before""",
    "a fold": """PATTERN A a ; B+ b ; C c WHERE [id] HAVING reduce(b, 1, m -> 2 * m - b.x) > 0
        WITHIN 20 seconds RETURN a.row AS a, reduce(b, 0, n -> 2 * n + b.x) AS n, c.row AS c""",
    "a fold so far": """PATTERN A a ; B+ b ; C c WHERE [id] AND b.x >= reduce(b, 0, m -> b.x - m)
        WITHIN 20 seconds RETURN a.row AS a, b.row AS b, c.row AS c""",
    "a key of two": """PATTERN A a ; !C c ; B b WHERE [id, user] WITHIN 20 seconds
        RETURN a.row AS a, b.row AS b""",
    "fields and elements": """PATTERN A a ; B b WHERE [request.ip] AND a.tags[0] = 'p'
        AND b.tags CONTAINS 'q' WITHIN 9 seconds RETURN a.row AS a, b.row AS b""",
    "groups that touch": """PATTERN A s => ANY(A, B) d+ => ANY(A, B) u+ WHERE [id]
        AND d.x < PREV(d.x, s.x) AND u.x > PREV(u.x) WITHIN 30 seconds
        RETURN s.row AS s, d.row AS d, u.row AS u""",
    "runs that lead": """PATTERN A{1,2} a RUNS -> B b WHERE [id] WITHIN 7 seconds
        RETURN a.row AS a, b.row AS b""",
    "branches": """PATTERN A a ; (B b | C c) WHERE [id] AND NOT (b.x < a.x) WITHIN 5 seconds
        RETURN a.row AS a, b.row AS b, c.row AS c""",
    "functions": """PATTERN A a ; B b WHERE [id] AND CAST(a.text AS integer) < b.x
        AND b.text RLIKE '^[0-9]+$' AND date_trunc('minute', a.ts) = date_trunc('minute', b.ts)
        AND greatest(a.x, b.x) IN (2, 3) WITHIN 20 seconds RETURN a.row AS a, b.row AS b""",
    "texts of two events": """PATTERN A a ; B b WHERE [id] AND a.text < b.text
        AND b.user LIKE a.user WITHIN 20 seconds RETURN a.row AS a, b.row AS b""",
    "rounds": """PATTERN A a ; (B b ; C c)+ ; A d WHERE [id] AND b.x <= c.x WITHIN 15 seconds
        RETURN a.row AS a, b.row AS b, c.row AS c, d.row AS d""",
}  # fmt: skip

OPTIONS: dict[str, Any] = {"time": "ts", "type": "type"}
COLUMNS = "ts:timestamp request:struct<ip:string> tags:array<string>"
TYPES = ("A", "A", "B", "B", "B", "C", "C", "X")


@cache
def _events(count: int = 150) -> str:
    """A second apart or more, so that no two are simultaneous."""
    random = np.random.default_rng(5)
    texts: list[str] = []
    for row, second in enumerate(np.cumsum(random.integers(1, 3, count)).tolist()):
        values: dict[str, Any] = {
            "row": row,
            "id": random.choice(["1", "1", "2", "2", "2", "null"]),
            "user": random.choice(["'u'", "'v'"]),
            "x": int(random.integers(0, 5)),
            "text": random.choice(["'1'", "'2'", "'10'", "'n'", "null"]),
            "request": random.choice(['\'{"ip": "i"}\'', '\'{"ip": "j"}\'', "'{}'"]),
            "tags": random.choice(['\'["p", "q"]\'', "'[\"q\"]'", "'[]'"]),
        }
        given = ", ".join(f"{name}={value}" for name, value in values.items())
        texts.append(f"{random.choice(TYPES)}@{second * 1_000_000}({given})")
    return " ".join(texts)


def case(name: str) -> Case:
    fields = {"name": name, "query": CONSTRUCTS[name], "events": _events(), "oracle": ""}
    return case_of({**fields, "columns": COLUMNS}, "constructs")


def data() -> pa.Table:
    """The events of all cases."""
    one = case("a limit")
    return table(one.schema, one.events)


Rows = Counter[str]


def row(match_start: Any, match_end: Any, values: dict[str, Any]) -> str:
    """A match as a text, whichever runtime has returned it: times in microseconds, and without the
    columns that are NULL."""
    known = {name: value for name, value in values.items() if value is not None}
    return json.dumps([match_start, match_end, known], sort_keys=True)


@cache
def expected(name: str) -> Rows:
    """The oracle's."""
    one = case(name)
    found = matches(one.bound, one.events)
    return Counter(row(m.start, m.end, outputs(one.bound, m, one.events)) for m in found)
