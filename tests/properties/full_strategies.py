"""Random cases over the whole language, for automata and whatever else runs all of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from cepheid.algebra.patterns import (
    Closure,
    Delay,
    Disjunction,
    Negation,
    Pattern,
    Sequence,
    Unless,
)
from cepheid.algebra.types import Schema
from cepheid.errors import QueryError
from cepheid.language.ast import Between, Exactly, Mode, Optional
from tests.corpus.reader import Case, bound
from tests.properties.drawing import Kind
from tests.properties.full_patterns import FullPatterns
from tests.properties.strategies import COLUMNS, MOST_EVENTS, streams

TRIES = 4
"""How often a query is drawn again if binding refuses it."""

BY_THEMSELVES = (Mode.RUNS, Mode.SUBSETS)


class FullQueries(FullPatterns):
    def query(self, *, returning: bool = False) -> str:
        lines = [f"PATTERN {self.pattern()}"]
        drawn = [self.condition() for _ in range(self.choose(0, 1, 1, 2, 1, 0))]
        if drawn:
            lines.append(f"WHERE {' AND '.join(dict.fromkeys(drawn))}")
        if self.chance(15):
            lines.append(f"HAVING {self.having()}")
        lines += self.window(lines[0]) + self.using() + self.skipping()
        if returning:
            lines.append(f"RETURN {self.returned()}")
        return "\n".join(lines)

    def window(self, pattern: str) -> list[str]:
        needed = ";" in pattern or "&" in pattern
        kind = self.choose("time", "time", "time", "events", "time" if needed else "none")
        if kind == "events":
            return [f"WITHIN {self.choose(7, 5, 9, 12, 3)} EVENTS"]
        return [f"WITHIN {self.choose(8, 12, 4, 16, 6, 10, 3)}"] if kind == "time" else []

    def using(self) -> list[str]:
        strategies = ("SKIP TILL NEXT MATCH", "STRICT CONTIGUITY", "SKIP TILL ANY MATCH")
        return [f"USING {self.choose(*strategies)}"] if self.chance(12) else []

    def returned(self) -> str:
        """Expressions of exact values, over every bound variable."""
        columns = [
            self.fill("{v}.x", "{v}.row", v=v.name)
            if v.kind is Kind.SINGLE
            else self.fill(
                "collect({v}.row)",
                "collect({v}.x + 1)",
                "sum({v}.x)",
                "count({v})",
                "min({v}.x)",
                "max({v}.x)",
                "first({v}.s)",
                "last({v}.x)",
                v=v.name,
            )
            for v in self.variables
            if v.negation is None
        ]
        columns.append(self.choose("duration()", *columns))
        return ", ".join(f"{column} AS c{n}" for n, column in enumerate(columns))

    def skipping(self) -> list[str]:
        if not self.chance(15):
            return []
        bound = [v.name for v in self.variables if v.negation is None]
        ways = ["TO NEXT EVENT", "PAST LAST EVENT"]
        ways += [f"TO {end} {self.choose(*bound)}" for end in ("FIRST", "LAST")]
        return [f"AFTER MATCH SKIP {self.choose(*ways)}"]


def anchored(pattern: Pattern) -> bool:
    """Whether every match has an event that nothing else decides about. Without one it could be
    empty, or a group at an edge have no neighbor."""
    match pattern:
        case Closure():
            chosen = isinstance(pattern.quantifier, Exactly) or pattern.mode in BY_THEMSELVES
            return chosen and pattern.quantifier not in (
                Optional(),
                Between(0, 2),
                Between(0, None),
            )
        case Sequence():
            return any(anchored(p) for p in pattern.items if not isinstance(p, Negation))
        case Disjunction():
            return all(anchored(p) for p in pattern.items)
        case Unless() | Delay():
            return anchored(pattern.item)
        case _:
            return True


@st.composite
def full_cases(
    draw: Callable[[st.SearchStrategy[Any]], Any],
    most_events: int = MOST_EVENTS,
    returning: bool = False,
) -> Case:
    """`expected` is left to the oracle."""
    schema = Schema(COLUMNS, "ts", "type", tie=draw(st.sampled_from((None, None, "n"))))
    for _ in range(TRIES):
        queries = FullQueries(draw)
        text = queries.query(returning=returning)
        case = Case("random", "strategies", text, schema, (), by_hand=False)
        try:
            pattern = bound(case).pattern
        except QueryError:
            continue
        if anchored(pattern):
            return replace(case, events=draw(streams(queries.types, most_events)))
    reject()
