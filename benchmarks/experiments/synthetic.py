"""SASE's event and query generators (5.1, tables 1 and 2), and a count of the matches.

Types and attributes are uniform (θ = 0), and there is one event per time unit, so a window of W
units has W events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from benchmarks.cases import Workload
from cepheid.options import GivenOptions

TYPES = 20
WINDOW = 10_000
SEED = 2006
COLUMNS: GivenOptions = {"time": "ts", "type": "type"}
RANGE = 1_000
"""Values of `a4`, which queries compare; `a3` has ten, of which they want one."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Chain:
    """SEQ(E1, …, EL) WHERE [a1, …] WITHIN W, of `tests` equivalence tests.

    `simple`: E1.a3 = 1. `compared`: the a4 of the last event but one is below that of the last.
    `negated`: no N, with equal attributes, between the event of this number and the next one; 0 for
    none.
    """

    length: int = 3
    tests: int = 1
    window: int = WINDOW
    simple: bool = False
    compared: bool = False
    negated: int = 0

    @property
    def text(self) -> str:
        names = [f"e{n}" for n in range(1, self.length + 1)]
        items = [f"{name.upper()} {name}" for name in names]
        if self.negated:
            items.insert(self.negated, "!N n")
        conditions = [f"[a{n}]" for n in range(1, self.tests + 1)]
        conditions += ["e1.a3 = 1"] * self.simple
        conditions += [f"{names[-2]}.a4 < {names[-1]}.a4"] * self.compared
        where = f"WHERE   {' AND '.join(conditions)}\n" if conditions else ""
        returned = ", ".join(f"{name}.ts AS {name}" for name in names)
        return (
            f"PATTERN {' ; '.join(items)}\n{where}WITHIN  {self.window} units\nRETURN  {returned}\n"
        )


@dataclass(frozen=True, slots=True)
class Stream:
    """How many types there are, and how many values `a1` and `a2` have."""

    types: int = TYPES
    values: Mapping[str, int] = field(default_factory=lambda: {"a1": 100, "a2": 20})

    def events(self, rows: int) -> pa.Table:
        """The last of the types is N, which queries forbid; those before are E1, E2, …"""
        random = np.random.default_rng(SEED)
        codes = random.integers(0, self.types, rows).astype(np.int32)
        names = [*(f"E{n}" for n in range(1, self.types)), "N"]
        columns = {name: random.integers(0, count, rows) for name, count in self.values.items()}
        return pa.table(
            {
                "ts": np.arange(rows),
                "type": pa.DictionaryArray.from_arrays(codes, pa.array(names)),
                **columns,
                "a3": random.integers(0, 10, rows),
                "a4": random.integers(0, RANGE, rows),
            }
        )


def workload(name: str, chain: Chain, stream: Stream, rows: int) -> Workload:
    return Workload(
        f"SASE {name}",
        chain.text,
        rows,
        stream.events,
        lambda table: count(table, chain),
        COLUMNS,
    )


# ── counting ──


def count(table: pa.Table, chain: Chain) -> int:
    """The number of matches; none of our engine's code.

    For every last event, go through the events of its key in the window before it, and count the
    prefixes of each length: an event extends those that are one shorter, and a forbidden event
    ends those that have to be extended without it.
    """
    column = table["type"].combine_chunks()
    levels = np.array([_level(str(name), chain) for name in column.dictionary.to_pylist()])
    level = levels[column.indices.to_numpy()]
    if chain.simple:
        level = np.where((level == 1) & (table["a3"].to_numpy() != 1), 0, level)
    rows = np.flatnonzero(level)
    keys = np.zeros(len(rows), np.int64)
    for n in range(1, chain.tests + 1):
        values = table[f"a{n}"].to_numpy()
        keys = keys * (int(values.max(initial=0)) + 1) + values[rows]
    rows, keys = rows[order := np.argsort(keys, kind="stable")], keys[order]
    compared = table["a4"].to_numpy()[rows] if chain.compared else np.zeros(0, np.int64)
    times = table["ts"].to_numpy()[rows]
    return int(_count(level[rows], keys, times, compared, chain.length, chain.window))


def _level(name: str, chain: Chain) -> int:
    """The place in the chain; negative for what is forbidden after that place."""
    if name == "N":
        return -chain.negated
    place = int(name[1:])
    return place if place <= chain.length else 0


@njit(cache=True)
def _count(level: Ints, keys: Ints, times: Ints, compared: Ints, length: int, window: int) -> int:
    total = 0
    prefixes = np.zeros(length + 1, np.int64)
    begin = 0
    for last in range(len(level)):
        while keys[begin] != keys[last] or times[last] - times[begin] >= window:
            begin += 1
        if level[last] != length:
            continue
        prefixes[:] = 0
        prefixes[0] = 1
        for at in range(begin, last):
            place = level[at]
            if place < 0:
                prefixes[-place] = 0
            elif place == length - 1 and len(compared) and compared[at] >= compared[last]:
                continue
            else:
                prefixes[place] += prefixes[place - 1]
        total += prefixes[length - 1]
    return total
