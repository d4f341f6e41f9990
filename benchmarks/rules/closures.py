"""A template with a closure and an aggregate: one query for all its rules, and one for each.

A login, a run of small purchases, and a large one: rules differ in how large, where, how many, how
much in all, and how soon. Both ways take all rules over the same events, and must find the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import product

import pyarrow as pa

from benchmarks.report import Record, Verdict, provenance
from benchmarks.rules.figures import Say, Size
from benchmarks.rules.running import SEED
from benchmarks.rules.ways import Way, figures, measure_ways, table
from cepheid.rules import RuleSet
from cepheid.workloads import fraud

QUERY = """
PATTERN login l ; purchase+ b ; purchase c
WHERE   [card] AND b.amount < 100
  AND   c.amount > :large AND (:country IS NULL OR c.country = :country)
HAVING  count(b) >= :many AND sum(b.amount) > :total
WITHIN  :hours hours
RETURN  c.card, c.id AS purchase, count(b) AS purchases, sum(b.amount) AS small
"""
RULES = 200
WAYS = ("one query for all", "one by one")
SHARED, ALONE = WAYS


@dataclass(frozen=True)
class Found:
    """What both ways find, and what each of them takes."""

    rules: int
    events: int
    matches: int
    ways: Mapping[str, Way]

    @property
    def times(self) -> float:
        return self.ways[ALONE].matching / self.ways[SHARED].matching


def rules(count: int) -> RuleSet:
    """Every combination of a few values, in an order in which all values come soon."""
    values = {
        "large": (100, 150, 250, 400, 600),
        "country": (None, "US", "GB", "DE", "FR", "JP", "BR", "IN"),
        "many": (1, 2, 3),
        "total": (20, 50, 90, 140, 200),
        "hours": (24, 72, 120, 168),
    }
    every = list(product(*values.values()))
    rows = [every[n * 997 % len(every)] for n in range(count)]
    table = pa.table(dict(zip(values, map(list, zip(*rows, strict=True)), strict=True)))
    return RuleSet.from_template("spree", QUERY, table)


def measure(size: Size, say: Say) -> Found:
    events = fraud.generate(size.events, SEED)
    given = rules(max(2, RULES // size.rules))
    sets = {SHARED: [given], ALONE: [given.select([name]) for name in given]}
    ways, matches = measure_ways(sets, events, size.repeats, lambda c: len(c.alone), say)
    return Found(len(given), events.num_rows, matches, ways)


# ── to keep ──


def verdicts(found: Found) -> Iterator[Verdict]:
    text = f"one query for {found.rules} rules is at least 10 times as fast as {found.rules}"
    yield Verdict(text, found.times >= 10, f"{found.times:.0f} ×", must=True)


def record(found: Found, quick: bool) -> Record:
    title = f"{found.rules} rules, {found.events:,} events, {found.matches:,} matches"
    return {
        **provenance(quick),
        "name": "closures",
        "title": "A template with a closure and an aggregate",
        "tables": [table(title, found.ways, found.events)],
        "claims": [asdict(verdict) for verdict in verdicts(found)],
        "ways": figures(found.ways),
    }
