"""The thesis' queries 5 to 15 and its random trades (chapter 6), and a loop that counts.

All queries are over the same six stocks in the same order, so a query is its comparisons. There is
one trade per time unit (the thesis' second). Where the thesis returns whole events, these return
their numbers: what is compared is how matches are found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from benchmarks.cases import Workload
from cepheid.options import GivenOptions
from cepheid.statistics import Statistics

STOCKS = {"a": "IBM", "b": "Google", "c": "Sun", "d": "Oracle", "e": "Microsoft", "f": "Yahoo"}
EVEN: Mapping[str, float] = dict.fromkeys(STOCKS, 1.0)
COLUMNS: GivenOptions = {"time": "ts", "type": "name"}
ATTRIBUTES = ("price", "type", "volume")

TOP = 1000
"""Attributes are drawn from 0 to this, inclusive."""

RARE = 100
"""A closure takes prices below this: about a tenth."""

SEED = 2010

Phase = Mapping[tuple[str, str], int]
"""What is not random in a phase of changing data: by variable and attribute, its value."""

PHASES: tuple[Phase, ...] = (
    {("a", "volume"): 950},
    {("b", "type"): 950, ("f", "type"): 50},
    {("c", "price"): 950},
)
"""The three batches of section 6.6: each makes another predicate of queries 10 and 11 selective."""


@dataclass(frozen=True, slots=True)
class SixStocks:
    """A query of the thesis: its number, its comparisons, and the variables that repeat."""

    number: int
    comparisons: tuple[str, ...]
    closures: tuple[str, ...] = ()

    def text(self, window: int) -> str:
        """In our language. A closure's group is maximal here."""
        leaves = (f"{name}{'+' * (v in self.closures)} {v}" for v, name in STOCKS.items())
        filters = (f"{v}.price < {RARE}" for v in self.closures)
        outputs = (f"count({v}) AS {v}" if v in self.closures else f"{v}.id AS {v}" for v in STOCKS)
        return (
            f"PATTERN {' ; '.join(leaves)}\n"
            f"WHERE   {' AND '.join((*self.comparisons, *filters))}\n"
            f"WITHIN  {window} units\n"
            f"RETURN  {', '.join(outputs)}\n"
        )


QUERY_5 = SixStocks(5, ("a.price = d.price", "b.price = e.price", "c.price = f.price"))
QUERY_6 = SixStocks(6, ("a.price = b.price", "c.price = d.price", "e.price = f.price"))
QUERY_7 = SixStocks(7, tuple(f"a.price < {v}.price" for v in "bcdef"))
QUERY_8 = SixStocks(
    8, (*(f"{v}.price < d.price" for v in "abc"), *(f"d.price < {v}.price" for v in "ef"))
)
QUERY_9 = SixStocks(9, tuple(f"{v}.price < f.price" for v in "abcde"))
QUERY_10 = SixStocks(10, ("a.volume < b.volume", "c.price < d.price", "e.type < f.type"))
QUERY_11 = SixStocks(11, ("a.volume < d.volume", "c.price < f.price", "b.type < e.type"))
QUERY_12 = SixStocks(12, ("a.volume < d.volume", "c.price < f.price"), ("b",))
QUERY_13 = SixStocks(13, ("a.volume < d.volume", "c.price < f.price"), ("b", "e"))
QUERY_14 = SixStocks(14, ("a.volume < d.volume", "c.price < e.price", "b.type < f.type"))
QUERY_15 = SixStocks(15, ("b.type < f.type",))


def trades(
    rows: int,
    rates: Mapping[str, float] = EVEN,
    top: int = TOP,
    phases: tuple[Phase, ...] = (),
    phase_rows: int = 1,
) -> pa.Table:
    """Random trades; `rates` are by variable. With phases, each lasts `phase_rows` rows, and they
    come in turns."""
    random = np.random.default_rng(SEED)
    weights = np.array([rates[v] for v in STOCKS])
    stock = random.choice(len(STOCKS), size=rows, p=weights / weights.sum())
    columns = {name: random.integers(0, top + 1, rows) for name in ATTRIBUTES}
    turn = np.arange(rows) // phase_rows % max(1, len(phases))
    for number, phase in enumerate(phases):
        for (variable, name), value in phase.items():
            columns[name][(turn == number) & (stock == list(STOCKS).index(variable))] = value
    number = pa.array(np.arange(rows))
    names = pa.array(list(STOCKS.values())).take(pa.array(stock))
    return pa.table({"id": number, "name": names, **columns, "ts": number})


def workload(
    name: str,
    query: SixStocks,
    window: int,
    rows: int,
    rates: Mapping[str, float] = EVEN,
    top: int = TOP,
    phases: tuple[Phase, ...] = (),
    phase_rows: int = 1,
) -> Workload:
    """A query of the thesis over random trades."""
    total = sum(rates.values())
    equal = 1 / (top + 1)
    shares = {c: equal if " = " in c else (1 - equal) / 2 for c in query.comparisons}
    shares |= {f"{v}.price < {RARE}": RARE / (top + 1) for v in query.closures}
    return Workload(
        f"thesis {query.number} within {window}, {name}",
        query.text(window),
        rows,
        lambda n: trades(n, rates, top, phases, phase_rows),
        lambda table: count(table, query, window),
        COLUMNS,
        statistics=Statistics({v: rate / total for v, rate in rates.items()}, shares),
    )


# ── counting ──

Ints = NDArray[np.int64]


def count(table: pa.Table, query: SixStocks, window: int) -> int:
    """The number of matches, by nested loops from the last event back; none of our engine's code.

    A closure adds no choice: a match is its other events, if a group has an event at all.
    """
    known = {name: n for n, name in enumerate(STOCKS.values())}
    codes = table["name"].combine_chunks().dictionary_encode()
    stock = np.array([known[n] for n in codes.dictionary.to_pylist()])[codes.indices.to_numpy()]
    variables = list(STOCKS)
    bound = [n for n, v in enumerate(variables) if v not in query.closures]
    rows = [np.flatnonzero(stock == n) for n in bound]
    before = np.stack([np.cumsum(stock == n) - (stock == n) for n in bound])
    values = np.stack([table[name].to_numpy() for name in ATTRIBUTES])
    comparisons = np.array([_comparison(c, variables, bound) for c in query.comparisons], np.int64)
    groups = np.array([bound.index(variables.index(v) + 1) for v in query.closures], np.int64)
    cheap = values[0] < RARE
    taken = np.stack(
        [np.cumsum((stock == variables.index(v)) & cheap) for v in query.closures]
        or [np.zeros(len(stock), np.int64)]
    )
    longest = max(len(r) for r in rows)
    padded = np.stack([np.pad(r, (0, longest - len(r))) for r in rows])
    lengths = np.array([len(r) for r in rows])
    time = table["ts"].to_numpy()
    return int(_count(padded, lengths, before, time, values, comparisons, groups, taken, window))


def _comparison(text: str, variables: list[str], bound: list[int]) -> list[int]:
    """Left and right as levels of the loop, their attribute, and whether `=` is asked for."""
    left, symbol, right = text.split()
    assert symbol in ("=", "<") and left[1:] == right[1:]
    levels = [bound.index(variables.index(side[0])) for side in (left, right)]
    return [*levels, ATTRIBUTES.index(left[2:]), int(symbol == "=")]


@njit(cache=True)
def _count(
    rows: Ints,
    lengths: Ints,
    before: Ints,
    time: Ints,
    values: NDArray[np.float64],
    comparisons: Ints,
    groups: Ints,
    taken: Ints,
    window: int,
) -> int:
    top = len(lengths) - 1
    chosen = np.zeros(top + 1, np.int64)
    at = np.zeros(top + 1, np.int64)
    found = 0
    for last in range(lengths[top]):
        chosen[top] = rows[top, last]
        edge = time[chosen[top]] - window
        level = top - 1
        at[level] = before[level, chosen[top]]
        while level < top:
            at[level] -= 1
            row = rows[level, at[level]] if at[level] >= 0 else -1
            if row < 0 or time[row] <= edge:
                level += 1
                continue
            chosen[level] = row
            good = True
            for n in range(len(comparisons)):
                left, right, name, equal = comparisons[n]
                if min(left, right) == level:
                    x, y = values[name, chosen[left]], values[name, chosen[right]]
                    good = good and (x == y if equal else x < y)
            for n in range(len(groups)):
                if groups[n] - 1 == level:
                    good = good and taken[n, chosen[level + 1]] > taken[n, row]
            if not good:
                continue
            if level == 0:
                found += 1
            else:
                level -= 1
                at[level] = before[level, row]
    return found
