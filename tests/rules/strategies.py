"""Random sets of rules: templates whose rows overlap, and queries of any kind beside them, over
flat events or nested ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from cepheid.algebra import bind
from cepheid.algebra.types import Schema
from cepheid.errors import QueryError
from cepheid.language import parse
from tests.oracle.events import Event
from tests.properties.construct_strategies import KINDS
from tests.properties.drawing import COMPARISONS
from tests.properties.full_strategies import FullQueries
from tests.properties.nested_cases import nested_event, nested_schema, nested_text
from tests.properties.strategies import COLUMNS, Queries, streams

TYPES = ("A", "B", "C")

PARAMETERS: Mapping[str, tuple[Any, ...]] = {
    "p": (0, 1, 2, 3, None),
    "q": (1, 2, None),
    "f": (0.5, 1.5, 2.5, float("nan"), None),
    "s": ("u", "v", "w", None),
    "w": (2, 4, 8, 12),
}
"""The parameters that conditions read, each with the values that rows have."""


@dataclass(frozen=True)
class Set:
    """Templates by name: a query, and a dict of columns for its rows, or None. Events for all."""

    templates: Mapping[str, tuple[str, Mapping[str, list[Any]] | None]]
    events: tuple[Event, ...]
    tie: str | None
    nested: bool = False

    @property
    def schema(self) -> Schema:
        flat = Schema(COLUMNS, time="ts", type="type", tie=self.tie)
        return nested_schema(flat) if self.nested else flat

    def with_nested_values(self) -> Set:
        """The same rules, which read the same values from structs, arrays and maps."""
        templates = {
            name: (nested_text(text), rows) for name, (text, rows) in self.templates.items()
        }
        events = tuple(map(nested_event, self.events))
        return replace(self, templates=templates, events=events, nested=True)


class Paths:
    """Draws sequences of single events: mostly what one automaton runs for all, and some that come
    close to it."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def choose(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def query(self) -> str:
        steps = self.choose(1, 2, 2, 2, 3, 3, 4)
        bound = [f"v{n}" for n in range(steps)]
        pattern = [self.leaf(bound[0])]
        negated: list[tuple[str, str]] = []
        for before, own in pairwise(bound):
            if self.choose(*[False] * 2, True):
                name = f"n{len(negated)}"
                negated.append((name, before))
                pattern += [";", f"!{self.leaf(name)}{self.lasting()}"]
            pattern += [self.choose(";", ";", ";", ";", "=>", "->"), self.leaf(own)]
        if self.choose(*[False] * 5, True):
            name = f"n{len(negated)}"
            negated.append((name, bound[-1]))
            pattern += [";", f"!{self.leaf(name)} FOR {self.choose('3', ':w')} units"]
        conditions = [self.alone(v) for v in bound for _ in range(self.choose(0, 1, 1, 2))]
        conditions += [self.alone(n) for n, _ in negated for _ in range(self.choose(0, 1, 1))]
        conditions += [self.link(n, before) for n, before in negated if self.choose(False, True)]
        for before, own in pairwise(bound):
            if self.choose(False, True, False):
                conditions.append(self.link(own, before))
        if self.choose(False, True, False):
            conditions.append("[id]")
        if steps > 1 and self.choose(False, False, True):
            conditions.append(f"{bound[-1]}.x + :p > {bound[0]}.x")
        lines = [f"PATTERN {' '.join(pattern)}"]
        if conditions:
            lines.append(f"WHERE {' AND '.join(dict.fromkeys(conditions))}")
        lines.append(f"WITHIN {self.choose('6', ':w', '12')} units")
        returned = [f"{v}.row AS {v}" for v in bound]
        lines.append(f"RETURN {', '.join([*returned, *self.choose([], [], [':p AS p'])])}")
        return "\n".join(lines)

    def lasting(self) -> str:
        return str(self.choose(*[""] * 5, " FOR 2 units", " FOR :w units"))

    def leaf(self, name: str) -> str:
        return f"{self.choose(*TYPES)} {name}"

    def alone(self, v: str) -> str:
        compared = self.choose(*COMPARISONS)
        return str(
            self.choose(
                f"{v}.x {compared} :p",
                f"(:q IS NULL OR {v}.id = :q)",
                f"{v}.y {compared} :f",
                f"{v}.s = :s",
                f"{v}.x IN (:p, 2)",
                f"({v}.x < :p OR {v}.s <> :s)",
                f"NOT ({v}.x = :p OR {v}.y < :f)",
                f"{v}.x BETWEEN :q AND 3",
                f"{v}.x * :q > 2",
                f"{v}.s IS NULL",
                f"{v}.x < 2",
            )
        )

    def link(self, v: str, other: str) -> str:
        attribute = self.choose("x", "id", "s", "y")
        compared = self.choose("=", "<>") if attribute == "s" else self.choose(*COMPARISONS)
        return f"{v}.{attribute} {compared} {other}.{attribute}"


@st.composite
def rows(draw: st.DrawFn, query: str) -> dict[str, list[Any]]:
    """Some rows for a query; a column that has no value at all would have no type."""
    count = draw(st.integers(1, 5))
    names = [name for name in PARAMETERS if f":{name}" in query]
    columns = {
        name: draw(st.lists(st.sampled_from(PARAMETERS[name]), min_size=count, max_size=count))
        for name in names
    }
    for name, values in columns.items():
        if all(value is None for value in values):
            values[0] = PARAMETERS[name][0]
    return columns if names else {"severity": list(range(count))}


@st.composite
def other_queries(draw: st.DrawFn, schema: Schema) -> tuple[str, Queries | FullQueries]:
    """A query of any kind, and how it was drawn; any query of joins if binding refuses it."""
    drawing: Queries | FullQueries = draw(st.sampled_from((Queries, *KINDS)))(draw)
    query = drawing.query()
    if not binds(query, schema):
        drawing = Queries(draw)
        query = drawing.query()
    return query, drawing


def binds(query: str, schema: Schema) -> bool:
    try:
        bind(parse(query), schema, {})
    except QueryError:
        return False
    return True


@st.composite
def sets(draw: st.DrawFn) -> Set:
    drawn = Set({}, (), draw(st.sampled_from((None, None, "n"))))
    templates: dict[str, tuple[str, Mapping[str, list[Any]] | None]] = {}
    for n in range(draw(st.sampled_from((1, 2, 2, 3)))):
        query = Paths(draw).query()
        templates[f"path {n}"] = (query, draw(rows(query)))
    types = list(TYPES)
    for n in range(draw(st.sampled_from((0, 0, 1)))):
        query, others = draw(other_queries(drawn.schema))
        templates[f"other {n}"] = (query, None)
        types = list(dict.fromkeys([*types, *others.types]))
    flat = replace(drawn, templates=templates, events=draw(streams(types, 18)))
    return flat.with_nested_values() if draw(st.integers(0, 4)) == 4 else flat
