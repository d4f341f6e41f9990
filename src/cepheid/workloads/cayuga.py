"""The events and rules of Cayuga's technical benchmark (section 5.1, table 2).

Events have four discrete attributes of 100 values and four continuous ones from 0 to 1, all
uniform; `ts` counts them. A rule takes three events. Each has to satisfy four predicates: two
discrete attributes equal a value, two continuous ones are in a range. One of the discrete ones, the
*primary* attribute, and its value are the same for all three events. Attributes and values are
drawn by Zipf's law, so that rules are alike. The five templates differ in how the events follow
each other:

    LinearStat           one directly after the other
    LinearDyn            the same, and `c0` rises by 1 % from event to event
    Filter               each is the next one with the primary value, at most 20 later
    NonDeterministic     any three, at most 20 from one to the next
    NonDeterministicAgg  the same; the sums of the continuous attributes are returned

A template is one query (`TEMPLATES`), whose conditions on attributes that a rule doesn't name hold
for it: `(:a_d0 IS NULL OR a.d0 = :a_d0)`. A row of `rules(...)` is a rule of any of the templates.

The paper leaves open, and chosen here is:

- The primary attribute and its value are drawn with the first step's exponent, the ranks of values
  are the values themselves, and the same for all attributes.
- The two discrete attributes of an event are different ones, and so are the two continuous ones;
  which, is drawn for each event anew.
- The 25 ranges of a continuous attribute are equally wide and begin at equal distances, the first
  at 0; the last ends at 1.
- What LinearDyn compares: only an example with prices is given.
- A duration is that from one event to the next, as in the paper's own example of quotes that come
  "within 10 minutes of each other".

What the paper counted doesn't quite follow from its table. With two equalities a step, 100,000
Filter rules find 0.4 matches in 100,000 events, and a few dozen nodes are active at a time; the
paper has 41 matches and 6,000 active nodes. Both come out, nearly, if the first event has to equal
the primary value alone. `Parameters(first_equalities=1)` makes such rules: far more work.

    >>> rule = rules(1, seed=1).to_pylist()[0]
    >>> [rule[f"b_high{n}"] is not None for n in range(4)].count(True)
    2
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.errors import DataError
from cepheid.workloads.chunks import Floats, Ints, chunks, require_share, require_size, tabled

ATTRIBUTES = 4
DISCRETE = tuple(f"d{n}" for n in range(ATTRIBUTES))
CONTINUOUS = tuple(f"c{n}" for n in range(ATTRIBUTES))
VALUES = 100
RANGES = 25
DURATION = 20

SCHEMA = pa.schema(
    [
        ("ts", pa.int64()),
        *((name, pa.int64()) for name in DISCRETE),
        *((name, pa.float64()) for name in CONTINUOUS),
    ]
)


def batches(rows: int, seed: int = 0) -> Iterator[pa.RecordBatch]:
    """The events."""
    for chunk in chunks(rows, seed):
        columns = [
            chunk.first + np.arange(chunk.rows),
            *(chunk.random.integers(0, VALUES, chunk.rows) for _ in DISCRETE),
            *(chunk.random.random(chunk.rows) for _ in CONTINUOUS),
        ]
        yield pa.RecordBatch.from_arrays(list(map(pa.array, columns)), schema=SCHEMA)


generate = tabled(batches, SCHEMA)


# ── templates ────────────────────────────────────────────────────────────────


def _primary(event: str) -> list[str]:
    return [f"(:p{n} IS NULL OR {event}.d{n} = :p{n})" for n in range(ATTRIBUTES)]


def _static(event: str) -> list[str]:
    """The conditions on the event alone."""
    second = [f"(:{event}_d{n} IS NULL OR {event}.d{n} = :{event}_d{n})" for n in range(ATTRIBUTES)]
    ranges = [
        f"(:{event}_low{n} IS NULL OR {event}.c{n} BETWEEN :{event}_low{n} AND :{event}_high{n})"
        for n in range(ATTRIBUTES)
    ]
    return [*_primary(event), *second, *ranges]


def _query(pattern: str, conditions: list[str], window: int, returned: str) -> str:
    static = [condition for event in "abc" for condition in _static(event)]
    where = "\n  AND ".join([*static, *conditions])
    return f"PATTERN {pattern}\nWHERE {where}\nWITHIN {window}\nRETURN {returned}"


_GAPS = [f"b.ts <= a.ts + {DURATION}", f"c.ts <= b.ts + {DURATION}"]
_WITHIN = 2 * DURATION + 1
_TIMES = "a.ts AS a, b.ts AS b, c.ts AS c"
_SUMS = ", ".join(f"a.{name} + b.{name} + c.{name} AS {name}" for name in CONTINUOUS)

TEMPLATES = {
    "LinearStat": _query("a => b => c", [], 3, _TIMES),
    "LinearDyn": _query("a => b => c", ["b.c0 > 1.01 * a.c0", "c.c0 > 1.01 * b.c0"], 3, _TIMES),
    "Filter": _query(
        "a ; !x ; b ; !y ; c", [*_primary("x"), *_primary("y"), *_GAPS], _WITHIN, _TIMES
    ),
    "NonDeterministic": _query("a ; b ; c", _GAPS, _WITHIN, _TIMES),
    "NonDeterministicAgg": _query("a ; b ; c", _GAPS, _WITHIN, f"{_TIMES}, {_SUMS}"),
}

_BETWEEN = "count(x) + count(y) AS between"
_ITERATED_SUMS = ", ".join(
    f"a.{name} + b.{name} + c.{name} + coalesce(sum(x.{name}), 0) + coalesce(sum(y.{name}), 0) "
    f"AS {name}"
    for name in CONTINUOUS
)
_ITERATION = ("a ; x* ; b ; y* ; c", [*_primary("x"), *_primary("y"), *_GAPS], _WITHIN)

ITERATED = {
    "Iterated": _query(*_ITERATION, f"{_TIMES}, {_BETWEEN}"),
    "IteratedAgg": _query(*_ITERATION, f"{_TIMES}, {_BETWEEN}, {_ITERATED_SUMS}"),
}
"""NonDeterministic, in which the events with the primary value between the steps are kept."""


# ── rules ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Parameters:
    """Table 2: the exponents of Zipf's law for the three steps, the share of values that a range
    holds, and how many equalities the first event has to satisfy, the primary one included."""

    zipf: tuple[float, float, float] = (1.0, 1.0, 0.8)
    selectivity: float = 0.7
    first_equalities: int = 2

    def __post_init__(self) -> None:
        require_share("selectivity", self.selectivity)
        if self.first_equalities not in (1, 2):
            raise DataError(f"an event has 1 or 2 equalities, not {self.first_equalities}")


TABLE_2 = Parameters()


def rules(count: int, seed: int = 0, parameters: Parameters = TABLE_2) -> pa.Table:
    """The parameters of `count` rules, in random order."""
    require_size(count, seed)
    random = np.random.default_rng([seed, 3 << 32])
    first = parameters.zipf[0]
    primary = _attributes(random, count, first)[:, 0]
    value = _ranks(random, count, VALUES, first)
    columns = {f"p{n}": _where(value.astype(np.int16), primary == n) for n in range(ATTRIBUTES)}
    every = np.ones(count, np.bool_)
    for event, exponent in zip("abc", parameters.zipf, strict=True):
        second = _attributes(random, count, first, without=primary)[:, 0]
        value = _ranks(random, count, VALUES, exponent).astype(np.int16)
        named = every if event != "a" or parameters.first_equalities == 2 else ~every
        for n in range(ATTRIBUTES):
            columns[f"{event}_d{n}"] = _where(value, named & (second == n))
        chosen = _attributes(random, count, first)[:, :2]
        steps = _ranks(random, 2 * count, RANGES, exponent).reshape(count, 2)
        lows = steps * ((1 - parameters.selectivity) / (RANGES - 1))
        for n in range(ATTRIBUTES):
            low = np.where(chosen[:, 0] == n, lows[:, 0], lows[:, 1])
            has = (chosen == n).any(axis=1)
            columns[f"{event}_low{n}"] = _where(low, has)
            columns[f"{event}_high{n}"] = _where(low + parameters.selectivity, has)
    return pa.table(columns)


def _where(values: npt.NDArray[np.generic], named: npt.NDArray[np.bool_]) -> pa.Array:
    return pa.array(values, mask=~named)


def _weights(size: int, exponent: float) -> Floats:
    weights: Floats = np.arange(1, size + 1, dtype=np.float64) ** -exponent
    weights /= weights.sum()
    return weights


def _ranks(random: np.random.Generator, count: int, size: int, exponent: float) -> Ints:
    """Ranks from 0, by Zipf's law."""
    drawn = np.searchsorted(np.cumsum(_weights(size, exponent)), random.random(count), "right")
    return np.minimum(drawn, size - 1)


def _attributes(
    random: np.random.Generator, count: int, exponent: float, without: Ints | None = None
) -> Ints:
    """The attributes in the order in which they are drawn, one after the other, by Zipf's law.

    That is the order of exponential times with these rates.
    """
    times = random.exponential(size=(count, ATTRIBUTES)) / _weights(ATTRIBUTES, exponent)
    if without is not None:
        times[np.arange(count), without] = np.inf
    return np.argsort(times, axis=1)
