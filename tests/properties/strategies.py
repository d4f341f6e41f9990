"""Random cases for engines: a query, its schema and a stream on which it often matches.

Queries are built so that they bind: `;` `&` `|` `!`, closures `+ * {n} {n,m} {n,} ?` where they
are legal, conditions of every role. Attribute domains are small, so that predicates hold often;
times repeat, so that events are simultaneous; some values are NULL or NaN. Every event carries
its place in the input as the attribute `row`, so that a returned struct tells which event it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from cepheid.algebra.types import Schema, Type
from tests.corpus.reader import Case
from tests.oracle.events import Event
from tests.properties.conditions import Conditions
from tests.properties.patterns import Patterns

MOST_EVENTS = 14


class Queries(Patterns, Conditions):
    def query(self) -> str:
        lines = [f"PATTERN {self.pattern()}"]
        drawn = [self.condition() for _ in range(self.choose(0, 1, 1, 2, 1, 0, 3))]
        conditions = list(dict.fromkeys(drawn))
        if conditions:
            lines.append(f"WHERE {' AND '.join(conditions)}")
        if self.chance(15):
            lines.append(f"HAVING {self.having()}")
        if self.chance(15):
            lines.append(f"WITHIN {self.choose(2, 3, 5, 7, 9, 12)} EVENTS")
        else:
            lines.append(f"WITHIN {self.choose(2, 8, 4, 1, 12, 6, 10, 3, 16, 12)}")
        return "\n".join(lines)


# ── events ───────────────────────────────────────────────────────────────────

COLUMNS = {
    "ts": Type.INTEGER,
    "type": Type.STRING,
    "row": Type.INTEGER,
    "x": Type.INTEGER,
    "id": Type.INTEGER,
    "y": Type.FLOAT,
    "s": Type.STRING,
    "n": Type.INTEGER,
}


STEPS = (1, 0, 1, 1, 0, 2, 1, 4)
XS = (0, 1, 2, 3, 1, 2, 0, 3, 1, None)
IDS = (1, 2, 1, 2, 1, 2, 1, 2, 1, None)
YS = (0.5, 1.5, 2.5, 0.5, 1.5, 2.5, 1.5, None, float("nan"))
SS = ("u", "v", "u", "v", "u", "v", None)
NS = (0, 1, 2)
VALUES: tuple[Sequence[Any], ...] = (XS, IDS, YS, SS, NS)

NUMBERS_OR_NULL = (0, None, 1, None)
RICH_IN_NULLS: tuple[Sequence[Any], ...] = (
    NUMBERS_OR_NULL,
    NUMBERS_OR_NULL,
    (0.0, None, -0.0, float("nan"), None),
    ("u", None, "v", None),
    NS,
)
"""Values among which NULL is frequent, and so is 0, which kernels have in its place."""


def event_codes(
    types: Sequence[str], values: tuple[Sequence[Any], ...] = VALUES
) -> st.SearchStrategy[tuple[Any, ...]]:
    """An event's step in time and its values, drawn as one number: far faster than one by one."""
    kinds = (*types, *types, *types, "X") if len(types) < 4 else (*types, "X")
    domains: tuple[Sequence[Any], ...] = (STEPS, kinds, *values)

    def decode(code: int) -> tuple[Any, ...]:
        found = []
        for domain in domains:
            code, digit = divmod(code, len(domain))
            found.append(domain[digit])
        return tuple(found)

    size = 1
    for domain in domains:
        size *= len(domain)
    return st.integers(0, size - 1).map(decode)


@st.composite
def streams(
    draw: Callable[[st.SearchStrategy[Any]], Any],
    types: Sequence[str],
    most: int = MOST_EVENTS,
    values: tuple[Sequence[Any], ...] = VALUES,
) -> tuple[Event, ...]:
    """Events in the order of their times, which often repeat; types that no pattern names, too."""
    code = event_codes(types, values)
    drawn = draw(
        st.lists(code, min_size=draw(st.sampled_from((most // 2, 0, most - 3))), max_size=most)
    )
    time = 0
    events: list[Event] = []
    for row, (step, kind, x, id_, y, s, n) in enumerate(drawn):
        time += step
        values = {
            "ts": time,
            "type": kind,
            "row": row,
            "x": x,
            "id": id_,
            "y": y,
            "s": s,
            "n": n,
        }
        events.append(Event(row, time, values))
    return tuple(events)


@st.composite
def cases(draw: Callable[[st.SearchStrategy[Any]], Any], most_events: int = MOST_EVENTS) -> Case:
    """`expected` is left to the oracle."""
    queries = Queries(draw)
    text = queries.query()
    events = draw(streams(queries.types, most_events))
    tie = draw(st.sampled_from((None, None, "n")))
    schema = Schema(COLUMNS, time="ts", type="type", tie=tie)
    return Case("random", "strategies", text, schema, events, by_hand=False)
