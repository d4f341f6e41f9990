"""Random templates over the whole language: queries whose constants have become parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from cepheid.algebra import bind
from cepheid.algebra.types import Schema
from cepheid.errors import QueryError
from cepheid.language import parse
from tests.properties.conditions import Conditions
from tests.properties.construct_strategies import (
    BranchingQueries,
    CallingQueries,
    FoldingQueries,
    MixedQueries,
)
from tests.properties.drawing import Drawing, Kind
from tests.properties.full_strategies import FullQueries, TimedQueries
from tests.properties.strategies import Queries, streams
from tests.rules.strategies import Set

TRIES = 4
VALUES: Mapping[str, tuple[Any, ...]] = {
    "p": (1, 2, 0, 3, 1, 2, None),
    "f": (0.5, 1.5, 2.5, float("nan"), None),
    "s": ("u", "v", "w", None),
    "w": (4, 8, 12, 16),
}
"""What rows have in the columns whose names begin so."""

WEAK = ("{v} <= 2", "{v} >= 1", "{v} <> {k}", "{v} + 1 > {k}")
NUMBER = re.compile(r"(?<![\w.:'{])\d+(?:\.\d+)?(?![\w.])")
TEXT = re.compile("'u'")
STOP = re.compile(r"(?<=[=>] )\d+(?=\))")


class Lifting:
    """Puts parameters in the place of constants."""

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing
        self.names: list[str] = []

    def template(self, query: str) -> str:
        lines = [self.line(line) for line in query.splitlines()]
        if self.drawing.chance(25):
            bound = [v.name for v in self.drawing.variables if v.negation is None]
            lines.append(f"RETURN {', '.join(bound)}, {self.name('p')} AS given")
        return "\n".join(lines)

    def line(self, line: str) -> str:
        match line.split()[0]:
            case "PATTERN":
                return STOP.sub(self.lifted, line)
            case "WITHIN" if "EVENTS" not in line and self.drawing.chance(50):
                return f"WITHIN {self.name('w')} units"
            case "WHERE" | "HAVING":
                return TEXT.sub(self.lifted, NUMBER.sub(self.lifted, line))
            case _:
                return line

    def lifted(self, found: re.Match[str]) -> str:
        if self.drawing.chance(25):
            return found[0]
        return self.name("s" if "u" in found[0] else "f" if "." in found[0] else "p")

    def name(self, kind: str) -> str:
        """A new one, or one that is there already."""
        known = [name for name in self.names if name.startswith(kind)]
        if not known or self.drawing.chance(60):
            known = [f"{kind}{len(self.names)}"]
            self.names += known
        return f":{self.drawing.choose(*known)}"


class Choosing(Queries):
    """Short sequences, or single events, in which an arrow or AFTER MATCH chooses among events or
    matches."""

    repeats = 75

    def query(self) -> str:
        pattern = self.atom()
        more = self.choose(0, 1, 1, 2)
        for _ in range(more):
            pattern += f" {self.choose('->', '->', ';')} {self.atom()}"
        asked = self.fill(*WEAK, v=f"{self.variables[-1].name}.x")
        by_key = self.chance(40)
        asked = f"[id] AND {asked}" if by_key else asked
        lines = [f"PATTERN {pattern}", f"WHERE {asked}", f"WITHIN {self.choose(12, 6)}"]
        if self.chance(30 if more else 60):
            ways = ("TO NEXT EVENT", "PAST LAST EVENT", "FOR 5")
            lines.append(f"AFTER MATCH SKIP {self.choose(*ways)}")
        if self.chance(20):
            lines.append(f"LIMIT {self.choose(1, 2)}{' PER KEY' if by_key else ''}")
        return "\n".join(lines)


KINDS: tuple[type[Queries | FullQueries], ...] = (
    *[Queries] * 4,
    *[Choosing] * 4,
    *[FullQueries] * 3,
    TimedQueries,
    FoldingQueries,
    BranchingQueries,
    CallingQueries,
    MixedQueries,
)


def asking_more(query: str, drawing: Conditions) -> str:
    """The query with one more condition on an event, and one on a whole group; weak ones, so that
    matches are left."""
    lines = query.splitlines()
    singles, aggregate = drawing.of_kind(Kind.SINGLE), drawing.aggregate()
    if singles and drawing.chance(70):
        condition = drawing.fill(*WEAK, v=f"{drawing.choose(*singles)}.x")
        lines = also(lines, drawing.choose("WHERE", "WHERE", "HAVING"), condition)
    if aggregate is not None:
        condition = drawing.fill(*WEAK, v=aggregate)
        lines = also(lines, drawing.choose("WHERE", "HAVING"), condition)
    return "\n".join(lines)


def also(lines: list[str], clause: str, condition: str) -> list[str]:
    """The query with one more condition."""
    if any(line.startswith(clause) for line in lines):
        return [f"{line} AND {condition}" if line.startswith(clause) else line for line in lines]
    place = 1 + (clause == "HAVING" and any(line.startswith("WHERE") for line in lines))
    return [*lines[:place], f"{clause} {condition}", *lines[place:]]


def _fits(query: str, schema: Schema, columns: Mapping[str, list[Any]]) -> bool:
    """Whether it binds with every row."""
    try:
        for values in zip(*columns.values(), strict=True):
            bind(parse(query), schema, dict(zip(columns, values, strict=True)))
    except QueryError:
        return False
    return True


@st.composite
def templates(draw: st.DrawFn) -> Set:
    """One template with two to six rows."""
    tie = draw(st.sampled_from((None, None, "n")))
    schema = Set({}, (), tie).schema
    for _ in range(TRIES):
        queries = draw(st.sampled_from(KINDS))(draw)
        lifting = Lifting(queries)
        query = lifting.template(asking_more(queries.query(), queries))
        count = draw(st.sampled_from((2, 3, 3, 4, 6)))
        columns: dict[str, list[Any]] = {}
        for name in lifting.names:
            column = st.lists(st.sampled_from(VALUES[name[0]]), min_size=count, max_size=count)
            columns[name] = draw(column)
            if all(value is None for value in columns[name]):
                columns[name][0] = VALUES[name[0]][0]
        if columns and _fits(query, schema, columns):
            return Set({"rule": (query, columns)}, draw(streams(queries.types, 16)), tie)
    reject()
