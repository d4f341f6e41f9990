"""Families of rules as a detection team writes them, over card transactions.

A family is a query with parameters. Its rules differ in their values alone, which are drawn anew
for every rule; as *written* rules, each is a query with its constants.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from cepheid.rules import RuleSet

Draw: TypeAlias = Callable[[np.random.Generator, int], list[object]]

COUNTRIES = ("US", "GB", "DE", "FR", "JP", "BR", "IN", "SE")
TRADES = ("grocery", "fuel", "books", "travel", "electronics", "pharmacy", "music", "shoes")
SHOPS = 250


def _amounts(low: float, high: float) -> Draw:
    """Amounts between these, small ones oftener, as those of the events are."""

    def draw(random: np.random.Generator, count: int) -> list[object]:
        logs = random.uniform(np.log(low), np.log(high), count)
        return [round(amount, 2) for amount in np.exp(logs).tolist()]

    return draw


def _among(*values: object) -> Draw:
    return lambda random, count: [values[n] for n in random.integers(0, len(values), count)]


def _shops(size: int) -> Draw:
    """Lists of merchants."""

    def draw(random: np.random.Generator, count: int) -> list[object]:
        numbers = random.integers(0, len(TRADES) * SHOPS, (count, size))
        return [[_shop(n) for n in row] for row in numbers.tolist()]

    return draw


def _shop(number: int) -> str:
    return f"{TRADES[number % len(TRADES)]}-{number // len(TRADES):03}"


def _patterns(text: str) -> Draw:
    """`text` with a merchant in it."""

    def draw(random: np.random.Generator, count: int) -> list[object]:
        numbers = random.integers(0, len(TRADES) * SHOPS, count).tolist()
        return [text.format(_shop(n)) for n in numbers]

    return draw


@dataclass(frozen=True)
class Family:
    """`values` says how the values of a parameter are drawn."""

    name: str
    query: str
    values: Mapping[str, Draw]

    def rows(self, count: int, seed: int) -> pa.Table:
        random = np.random.default_rng((seed, *self.name.encode()))
        names = [f"{self.name} {n}" for n in range(count)]
        columns = {name: draw(random, count) for name, draw in self.values.items()}
        return pa.table({"rule": names, **columns})

    def as_table(self, count: int, seed: int) -> RuleSet:
        return RuleSet.from_template(self.name, self.query, self.rows(count, seed))

    def written(self, count: int, seed: int) -> RuleSet:
        return RuleSet.of(dict(self._texts(self.rows(count, seed))))

    def _texts(self, rows: pa.Table) -> Iterator[tuple[str, str]]:
        pieces = re.split(r":(\w+)", self.query)
        for row in rows.to_pylist():
            values = [literal(row[name]) for name in pieces[1::2]]
            yield row["rule"], "".join(map("".join, zip(pieces[::2], [*values, ""], strict=True)))


def literal(value: object) -> str:
    """A value in the text of a query.

    >>> literal(2.5), literal("it's"), literal(["a", "b"])
    ('2.5', "'it''s'", "('a', 'b')")
    """
    match value:
        case list():
            return f"({', '.join(map(literal, value))})"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case _:
            return str(value)


LARGE = _amounts(150, 2_500)
SMALL = _amounts(2, 12)
COUNTRY = _among(*COUNTRIES)
MINUTES = _among(*range(20, 720, 7))
SUM = _amounts(300, 3_000)


def _family(name: str, query: str, **values: Draw) -> Family:
    return Family(name, query, values)


FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        _family(
            "one event", "PATTERN purchase a WHERE a.amount > :x AND a.country = :c",
            x=LARGE, c=COUNTRY,
        ),
        _family(
            "pair",
            "PATTERN purchase a ; purchase b WHERE [card] AND a.amount < :s AND b.amount > :x "
            "WITHIN 2 hours RETURN b.id",
            s=SMALL, x=LARGE,
        ),
        _family(
            "pair without a key",
            "PATTERN decline a ; purchase b WHERE a.country = :c AND a.amount > :y "
            "AND b.amount > :x AND b.country <> :c WITHIN 20 minutes RETURN b.id",
            c=COUNTRY, x=_amounts(60, 1_000), y=_amounts(20, 200),
        ),
        _family(
            "three steps",
            "PATTERN purchase a ; purchase b ; purchase c WHERE [card] AND a.amount < :s "
            "AND b.amount < :s AND c.amount > :x WITHIN 12 hours RETURN c.id",
            s=_amounts(10, 50), x=LARGE,
        ),
        _family(
            "rising",
            "PATTERN purchase a ; purchase b WHERE [card] AND a.amount > :x "
            "AND b.amount > 2 * a.amount WITHIN 12 hours RETURN b.id",
            x=_amounts(60, 600),
        ),
        _family(
            "window of each rule",
            "PATTERN decline a ; purchase b WHERE [card] AND b.amount > :x WITHIN :m minutes "
            "RETURN b.id",
            x=_amounts(60, 1_000), m=MINUTES,
        ),
        _family(
            "! in the middle",
            "PATTERN pin_change p ; !login l ; purchase b WHERE [card] AND b.amount > :x "
            "AND b.country = :c WITHIN 12 hours RETURN b.id",
            x=_amounts(60, 600), c=COUNTRY,
        ),
        _family(
            "! at the end",
            "PATTERN decline d ; !purchase b WHERE [card] AND d.amount > :x AND b.amount > :y "
            "WITHIN 6 hours RETURN d.id",
            x=LARGE, y=_amounts(5, 50),
        ),
        _family(
            "! at the start",
            "PATTERN !login l ; purchase b WHERE [card] AND b.amount > :x AND b.country = :c "
            "WITHIN 3 hours RETURN b.id",
            x=LARGE, c=COUNTRY,
        ),
        _family(
            "! for a time",
            "PATTERN decline d ; !purchase b FOR 2 hours WHERE [card] AND d.amount > :x "
            "RETURN d.id",
            x=LARGE,
        ),
        _family(
            "sum of a group",
            "PATTERN login l ; purchase+ b ; purchase c WHERE [card] AND b.amount < 100 "
            "AND c.amount > :x HAVING sum(b.amount) > :t WITHIN 3 days RETURN c.id",
            x=LARGE, t=_amounts(50, 300),
        ),
        _family(
            "sum of a group at the end",
            "PATTERN login l ; purchase+ b WHERE [card] HAVING sum(b.amount) > :t "
            "WITHIN 2 days RETURN l.id",
            t=SUM,
        ),
        _family(
            "countries of a group",
            "PATTERN pin_change p ; purchase+ b WHERE [card] AND p.country = :c "
            "HAVING count(DISTINCT b.country) > :n AND max(b.amount) > :x WITHIN 5 days "
            "RETURN p.id",
            c=COUNTRY, n=_among(1, 2), x=_amounts(60, 1_000),
        ),
        _family(
            "|",
            "PATTERN (decline a | pin_change b) ; purchase c WHERE [card] AND a.amount > :y "
            "AND c.amount > :x WITHIN 6 hours RETURN c.id",
            y=_amounts(20, 200), x=LARGE,
        ),
        _family(
            "&",
            "PATTERN login a & decline b WHERE [card] AND b.amount > :x WITHIN 12 hours "
            "RETURN b.id",
            x=_amounts(60, 600),
        ),
        _family(
            "=>",
            "PATTERN purchase a => purchase b WHERE [card] AND a.amount < :s AND b.amount > :x "
            "WITHIN 3 days RETURN b.id",
            s=SMALL, x=LARGE,
        ),
        _family(
            "->, the last step varies",
            "PATTERN decline a -> purchase b WHERE [card] AND b.amount > :x WITHIN 12 hours "
            "RETURN b.id",
            x=LARGE,
        ),
        _family(
            "->, the first step varies",
            "PATTERN purchase a -> purchase b WHERE [card] AND a.amount > :x WITHIN 12 hours "
            "RETURN b.id",
            x=LARGE,
        ),
        _family(
            "->, three steps",
            "PATTERN decline a -> purchase b -> purchase c WHERE [card] AND b.amount > :x "
            "AND c.country = :c WITHIN 1 day RETURN c.id",
            x=_amounts(60, 600), c=COUNTRY,
        ),
        _family(
            "SKIP PAST LAST EVENT",
            "PATTERN decline a ; purchase b WHERE [card] AND b.amount > :x WITHIN 1 day "
            "AFTER MATCH SKIP PAST LAST EVENT RETURN b.id",
            x=_amounts(60, 1_000),
        ),
        _family(
            "SKIP FOR",
            "PATTERN purchase a WHERE [card] AND a.amount > :x AFTER MATCH SKIP FOR 1 day "
            "RETURN a.id",
            x=LARGE,
        ),
        _family(
            "LIMIT PER KEY",
            "PATTERN purchase a ; purchase b WHERE [card] AND a.amount > :x AND b.amount > :x "
            "WITHIN 2 days RETURN b.id LIMIT 1 PER KEY",
            x=_amounts(100, 1_000),
        ),
        _family(
            "filter of a group",
            "PATTERN login l ; purchase+ b ; purchase c WHERE [card] AND b.amount > :x "
            "AND c.amount > 200 WITHIN 2 days RETURN c.id",
            x=LARGE,
        ),
        _family(
            "three of a kind",
            "PATTERN purchase{3} p WHERE [card] AND p.amount > :x WITHIN 3 days "
            "RETURN LAST(p.id) AS id",
            x=_amounts(80, 1_000),
        ),
        _family(
            "run of a group",
            "PATTERN login l -> purchase+ b PREFIXES WHERE [card] AND b.amount > :x "
            "AND b.amount > PREV(b.amount) HAVING count(b) > 1 WITHIN 2 days "
            "RETURN LAST(b.id) AS id",
            x=_amounts(60, 1_000),
        ),
        _family(
            "!, window of each rule",
            "PATTERN decline d ; !purchase b WHERE [card] AND d.amount > :x WITHIN :m minutes "
            "RETURN d.id",
            x=_amounts(40, 400), m=MINUTES,
        ),
        _family(
            "group, window of each rule",
            "PATTERN decline d ; purchase+ b WHERE [card] AND d.amount > :x "
            "HAVING count(b) >= 3 WITHIN :m minutes RETURN d.id",
            x=_amounts(30, 300), m=_among(*range(600, 6_000, 53)),
        ),
        _family(
            "perhaps one between",
            "PATTERN decline a ; login? l ; purchase b WHERE [card] AND b.amount > :x "
            "WITHIN 12 hours RETURN b.id, l.id AS login",
            x=_amounts(60, 1_000),
        ),
        _family(
            "LIKE",
            "PATTERN purchase a ; purchase b WHERE [card] AND a.merchant LIKE :p "
            "AND b.amount > :x WITHIN 1 day RETURN b.id",
            p=_patterns("{}%"), x=LARGE,
        ),
        _family(
            "IN, 10 values",
            "PATTERN purchase a ; purchase b WHERE [card] AND a.merchant IN :l AND b.amount > :x "
            "WITHIN 1 day RETURN b.id",
            l=_shops(10), x=LARGE,
        ),
        _family(
            "IN, 50 values",
            "PATTERN purchase a ; purchase b WHERE [card] AND a.merchant IN :l AND b.amount > :x "
            "WITHIN 1 day RETURN b.id",
            l=_shops(50), x=LARGE,
        ),
        _family(
            "IN, 200 values",
            "PATTERN purchase a ; purchase b WHERE [card] AND a.merchant IN :l AND b.amount > :x "
            "WITHIN 1 day RETURN b.id",
            l=_shops(200), x=LARGE,
        ),
        _family(
            "NOT IN, 10 values",
            "PATTERN pin_change a ; purchase b WHERE [card] AND b.merchant NOT IN :l "
            "AND b.amount > :x WITHIN 1 day RETURN b.id",
            l=_shops(10), x=LARGE,
        ),
    )
}  # fmt: skip


WAYS = ("table", "written", "mixed")


def rules_of(family: Family, way: str, count: int, seed: int) -> RuleSet:
    """Rules of a family: mixed are half of them rows, and half written."""
    match way:
        case "table":
            return family.as_table(count, seed)
        case "written":
            return family.written(count, seed)
        case "mixed":
            whole = family.as_table(count, seed)
            rows = list(whole)[: count // 2 or 1]
            return whole.select(rows) | family.written(count, seed).without(rows)
        case _:
            raise ValueError(way)


def all_families(way: str, count: int, seed: int) -> RuleSet:
    """About as many rules of each family, `count` in all."""
    sizes = [len(part) for part in np.array_split(np.arange(count), len(FAMILIES))]
    pairs = zip(FAMILIES.values(), sizes, strict=True)
    return reduce(or_, (rules_of(family, way, size, seed) for family, size in pairs if size))
