"""The rules of a fraud desk: five templates over card transactions, and a sixth with a closure.

The answers are DuckDB's: the steps of a template joined by card and time, then with all its rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import duckdb
import pyarrow as pa

from cepheid.rules import RuleSet

COUNTRIES = ("US", "GB", "DE", "FR", "JP", "BR", "IN", "SE")


@dataclass(frozen=True)
class Template:
    """A query, with a rule for each country, each window in hours, and each variant of the other
    parameters; and its events and conditions as SQL, in which `r` is a rule."""

    query: str
    hours: tuple[float, ...]
    variants: tuple[Mapping[str, float], ...]
    events: Mapping[str, str]
    condition: str

    @property
    def rows(self) -> list[dict[str, object]]:
        return [
            {"country": country, "minutes": round(60 * hours), **variant}
            for country, hours, variant in product(COUNTRIES, self.hours, self.variants)
        ]

    def sql(self, path: Path) -> str:
        """How many matches each rule has."""
        (first, kind), *others = self.events.items()
        tables, before = [f"{{{kind}}} {first}"], first
        for event, kind in others:
            tables.append(
                f"JOIN {{{kind}}} {event} ON {event}.card = {first}.card "
                f"AND ({event}.ts, {event}.id) > ({before}.ts, {before}.id) "
                f"AND {event}.ts < {first}.ts + INTERVAL {max(self.hours):g} HOUR"
            )
            before = event
        within = f"epoch_us({before}.ts) - epoch_us({first}.ts) < r.minutes * 60000000"
        text = (
            f"WITH steps AS MATERIALIZED (SELECT {', '.join(self.events)} FROM {' '.join(tables)}) "
            f"SELECT r.rule, count(*) FROM steps JOIN r ON {self.condition} AND {within} "
            "GROUP BY r.rule"
        )
        kinds = ("purchase", "login", "decline", "pin_change")
        return text.format(**{k: f"(FROM '{path}' WHERE kind = '{k}')" for k in kinds})


def _variants(**columns: tuple[float, ...]) -> tuple[dict[str, float], ...]:
    rows = zip(*columns.values(), strict=True)
    return tuple(dict(zip(columns, row, strict=True)) for row in rows)


TEMPLATES = {
    "taken_over": Template(
        """
        PATTERN pin_change p ; !login l ; purchase b
        WHERE   [card] AND b.amount > :low AND b.country = :country
        WITHIN  :minutes minutes
        RETURN  b.card, b.id AS purchase, b.amount
        """,
        (1, 3, 6, 12, 24),
        _variants(low=(300, 500, 800, 1200, 2000)),
        {"p": "pin_change", "b": "purchase"},
        "b.amount > r.low AND b.country = r.country AND NOT EXISTS (FROM {login} l "
        "WHERE l.card = p.card AND (l.ts, l.id) > (p.ts, p.id) AND (l.ts, l.id) < (b.ts, b.id))",
    ),
    "tested": Template(
        """
        PATTERN purchase a ; purchase b ; purchase c
        WHERE   [card] AND [country] AND c.country = :country
          AND   a.amount < :small AND b.amount < :small AND c.amount > :large
        WITHIN  :minutes minutes
        RETURN  c.card, c.id AS purchase, a.amount AS first, b.amount AS second, c.amount AS third
        """,
        (2, 3, 6, 12, 24),
        _variants(small=(100, 80, 50, 25, 10), large=(250, 400, 600, 800, 400)),
        {"a": "purchase", "b": "purchase", "c": "purchase"},
        "a.country = b.country AND b.country = c.country AND c.country = r.country "
        "AND a.amount < r.small AND b.amount < r.small AND c.amount > r.large",
    ),
    "elsewhere": Template(
        """
        PATTERN purchase a ; purchase b
        WHERE   [card] AND a.country = :country AND b.country <> :country AND b.amount > :low
        WITHIN  :minutes minutes
        RETURN  b.card, b.id AS purchase, b.country, b.amount
        """,
        (1 / 3, 1, 3, 6, 12),
        _variants(low=(100, 250, 500, 800, 1000)),
        {"a": "purchase", "b": "purchase"},
        "a.country = r.country AND b.country <> r.country AND b.amount > r.low",
    ),
    "forced": Template(
        """
        PATTERN decline d ; purchase b
        WHERE   [card] AND d.country = :country AND b.amount BETWEEN :low AND :share * d.amount
        WITHIN  :minutes minutes
        RETURN  b.card, b.id AS purchase, d.amount AS declined, b.amount
        """,
        (0.25, 1, 3, 6, 12),
        _variants(low=(20, 50, 100, 200, 400), share=(0.5, 0.8, 0.95, 0.9, 0.8)),
        {"d": "decline", "b": "purchase"},
        "d.country = r.country AND b.amount BETWEEN r.low AND r.share * d.amount",
    ),
    "rising": Template(
        """
        PATTERN purchase a ; purchase b ; purchase c
        WHERE   [card] AND [country] AND c.country = :country AND a.amount > :low
          AND   a.amount < b.amount AND b.amount < c.amount AND c.amount > :large
        WITHIN  :minutes minutes
        RETURN  c.card, c.id AS purchase, a.amount AS first, b.amount AS second, c.amount AS third
        """,
        (3, 6, 12, 18, 24),
        _variants(low=(20, 30, 50, 75, 100), large=(300, 500, 800, 1200, 2000)),
        {"a": "purchase", "b": "purchase", "c": "purchase"},
        "a.country = b.country AND b.country = c.country AND c.country = r.country "
        "AND a.amount > r.low AND a.amount < b.amount AND b.amount < c.amount "
        "AND c.amount > r.large",
    ),
}
"""The PIN is changed and money spent, and nobody logs in; a card is tried with two small purchases
before a large one; used in one country, and soon in another; declined, and used for a little less;
used three times, for more and more."""


def rule_set(name: str) -> RuleSet:
    return RuleSet.from_template(name, TEMPLATES[name].query, _table(name))


def _table(name: str) -> pa.Table:
    rows = TEMPLATES[name].rows
    return pa.Table.from_pylist([{"rule": f"{name}-{n}", **row} for n, row in enumerate(rows)])


def widest(name: str) -> str:
    """The rule of a template that most events satisfy: the longest window, the weakest limits."""
    longest = round(60 * max(TEMPLATES[name].hours))
    rows = enumerate(TEMPLATES[name].rows)
    return next(f"{name}-{n}" for n, row in rows if row["minutes"] == longest)


def answers(name: str, path: Path) -> dict[str, int]:
    """How many matches the rules of a template have, those that have any."""
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false; SET TimeZone = 'UTC'")
        connection.register("r", _table(name))
        return dict(connection.execute(TEMPLATES[name].sql(path)).fetchall())
