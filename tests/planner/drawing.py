"""Random queries and statistics for the planner, and all trees that a pattern has."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from random import Random

import pyarrow as pa

import cepheid as cep
from cepheid.algebra.patterns import Conjunction, Leaf, Pattern, Sequence
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.text import expression_text
from cepheid.planner.trees.gaps import core
from cepheid.planner.trees.shapes import Shape, ShapePair
from cepheid.statistics import Statistics

COLUMNS = pa.schema(
    {
        "ts": pa.int64(),
        "type": pa.string(),
        "x": pa.float64(),
        "y": pa.float64(),
        "k": pa.int64(),
        "m": pa.int64(),
        "d": pa.decimal128(9, 2),
    }
)


def bind(text: str) -> BoundQuery:
    return cep.Query(text).bind(COLUMNS, time="ts", type="type")


class Draw:
    """One random query. Types are all different, or all the same."""

    def __init__(self, random: Random, same: bool = False) -> None:
        self.random = random
        self.same = same
        self.count = 0
        self.singles: list[str] = []
        self.groups: list[tuple[str, int]] = []
        self.negated: list[str] = []

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def name(self, stem: str) -> tuple[str, str]:
        self.count += 1
        name = f"{stem}{self.count}"
        return name, "T" if self.same else name.upper()

    def event(self) -> str:
        name, kind = self.name("v")
        self.singles.append(name)
        return f"{kind} {name}"

    def between(self, hang: float) -> list[str]:
        """What may stand between two events: negations and one closure."""
        found = []
        if self.chance(hang):
            name, kind = self.name("n")
            self.negated.append(name)
            found.append(f"!{kind} {name}")
            if self.chance(0.3):
                other, kind = self.name("n")
                found.append(f"!{kind} {other}")
                self.negated.append(other)
        if self.chance(hang):
            name, kind = self.name("g")
            self.groups.append((name, len(self.singles)))
            quantifier = self.random.choice(["+", "*", "?", "{2}", "{1,3}", "{2,}"])
            found.append(f"{kind} {name}{quantifier}")
        return found

    def sequence(self, n: int, hang: float = 0.2, nest: float = 0.0) -> str:
        items = [self.item(nest)]
        for _ in range(n - 1):
            items += self.between(hang)
            items.append(self.item(nest))
        return " ; ".join(items)

    def item(self, nest: float) -> str:
        if not self.chance(nest):
            return self.event()
        return f"({self.conjunction(2, 0.3)})"

    def conjunction(self, n: int, nest: float = 0.0) -> str:
        return " & ".join(
            f"({self.sequence(2, 0.3)})" if self.chance(nest) else self.event() for _ in range(n)
        )

    def predicates(self, share: float = 0.5) -> list[str]:
        """Between single events, and on groups and negated ones."""
        choose, singles = self.random.choice, self.singles
        found = []
        for a, b in combinations(singles, 2):
            if self.chance(share / len(singles) * 2):
                column = choose(["x", "y"])
                found.append(
                    choose(
                        [
                            f"{a}.{column} < {b}.{column}",
                            f"{a}.k = {b}.k",
                            f"{a}.k = {b}.m",
                            f"{a}.d = {b}.d",
                            f"{a}.x + {b}.x > {choose(singles)}.y",
                        ]
                    )
                )
        for name, reach in self.groups:
            near = singles[: reach + 1]
            if self.chance(0.5):
                found.append(f"{name}.{choose('xy')} < {choose(near)}.x")
            if self.chance(0.3):
                found.append(f"{name}.k = {choose(near)}.k")
            if self.chance(0.4):
                found.append(f"count({name}) < {choose(singles)}.x")
            if self.chance(0.2):
                found.append(f"{name}.x > PREV({name}.x)")
        for name in self.negated:
            if self.chance(0.5):
                found.append(f"{name}.{choose('xy')} < {choose(singles)}.x")
            if self.chance(0.3):
                found.append(f"{name}.k = {choose(singles)}.k")
        return list(dict.fromkeys(found))

    def query(self, pattern: str, share: float = 0.5) -> BoundQuery:
        where = self.predicates(share)
        if self.chance(0.25):
            where.append("[m]")
        condition = f" WHERE {' AND '.join(where)}" if where else ""
        return bind(f"PATTERN {pattern}{condition} WITHIN {self.random.choice([3, 50, 1000])}")

    def statistics(self, query: BoundQuery) -> Statistics:
        """Of some of what the query reads."""
        random = self.random
        texts = [expression_text(c.expression) for c in query.where]
        places = [f"{v}.{c}" for v in query.variables for c in "km"]
        return Statistics(
            {v: 10 ** random.uniform(-3, 1) for v in query.variables if self.chance(0.9)},
            {t: 10 ** random.uniform(-3, 0) for t in texts if self.chance(0.7)},
            {p: 10 ** random.uniform(0, 3) for p in places if self.chance(0.5)},
        )


def trees(pattern: Pattern) -> Iterator[Shape]:
    """Every tree over what a match of the pattern binds."""
    match pattern:
        case Leaf():
            yield pattern.variable
        case Sequence() | Conjunction():
            units = [list(trees(item)) for item in pattern.items if core(item)]
            ordered = isinstance(pattern, Sequence)
            yield from (_of_sequence if ordered else _of_conjunction)(units)
        case _:
            raise AssertionError(pattern)


def _of_sequence(units: list[list[Shape]]) -> Iterator[Shape]:
    if len(units) == 1:
        yield from units[0]
    for cut in range(1, len(units)):
        sides = list(_of_sequence(units[:cut])), list(_of_sequence(units[cut:]))
        yield from (ShapePair(a, b) for a, b in product(*sides))


def _of_conjunction(units: list[list[Shape]]) -> Iterator[Shape]:
    if len(units) == 1:
        yield from units[0]
    first, *rest = units
    for size in range(len(rest)):
        for chosen in combinations(range(len(rest)), size):
            with_first = [first, *(rest[i] for i in chosen)]
            others = [u for i, u in enumerate(rest) if i not in chosen]
            sides = list(_of_conjunction(with_first)), list(_of_conjunction(others))
            yield from (ShapePair(a, b) for a, b in product(*sides))
