"""What was seen of a stream: the raw counts behind `Statistics`.

Samples are values, and merging them is associative and commutative (up to rounding), so that
partitions, stretches of time and rounds of a run can be put together in any order. Counts add.
The time that was observed is a union of intervals: two partitions of a stream saw the same time,
two stretches of it different times, and a rate is right for both.
"""

from __future__ import annotations

import json
import math
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import reduce
from typing import TypeVar

from cepheid.errors import DataError
from cepheid.statistics.summary import Statistics

MINIMA = 256
"""The size of a KMV sketch: it estimates the number of distinct values to about 6 %."""

DRAWN = 512
"""The size of a uniform sample of a column."""

ENOUGH = 32
"""How often two values must have agreed before a share is made of it: it is then known to about
18 %."""

SURPRISE = 4.0
"""The number of standard deviations that chance alone exceeds once in ten thousand times."""

HEAVY = 0.02
"""The share of a value's events from which on it is heavy."""

HASHES = 1 << 62
"""Hashes of values are whole numbers from 0 up to this."""

Interval = tuple[int, int]
"""A range of time, in ticks: its first tick, and the first past it."""

Item = TypeVar("Item", int, tuple[int, int, str])


@dataclass(frozen=True, slots=True)
class Tally:
    """How often a condition was tried, and how often it held: whole numbers, or a weighted share
    of one.

    >>> Tally(4, 1).plus(Tally(4, 3)).share
    0.5
    """

    tried: float = 0
    held: float = 0

    def plus(self, other: Tally) -> Tally:
        return Tally(self.tried + other.tried, self.held + other.held)

    @property
    def share(self) -> float:
        """A condition that never held is one that holds half as often as could be seen: that
        nothing at all satisfies it can't be known from a sample."""
        return min(1.0, max(self.held, 0.5) / self.tried)

    def differs(self, other: Tally) -> bool:
        """Whether the two shares are unlikely to be of the same population."""
        if not self.tried or not other.tried:
            return False
        both = self.plus(other)
        share = (both.held + 1) / (both.tried + 2)  # never quite 0 or 1
        spread = math.sqrt(share * (1 - share) * (1 / self.tried + 1 / other.tried))
        return abs(self.held / self.tried - other.held / other.tried) > SURPRISE * spread


@dataclass(frozen=True, slots=True)
class Values:
    """What is known of a column's values, for one variable.

    near    pairs of events inside a window that this part of the key makes, and those that agree
    apart   pairs of random events of the variable: kept where values themselves can't be
    minima  the smallest hashes of values, ascending (KMV, k minimum values)
    drawn   a uniform sample of the events: a random rank, by which the lowest are kept, the
            value's hash, and its text
    """

    near: Tally = Tally()
    apart: Tally = Tally()
    minima: tuple[int, ...] = ()
    drawn: tuple[tuple[int, int, str], ...] = ()

    def plus(self, other: Values) -> Values:
        return Values(
            self.near.plus(other.near),
            self.apart.plus(other.apart),
            _lowest({*self.minima, *other.minima}, MINIMA),
            _lowest(self.drawn + other.drawn, DRAWN),
        )

    @property
    def distinct(self) -> float | None:
        """1 / the probability that two random events agree; None: nothing is known.

        Pairs inside a window count most: events of one user come together. If too few pairs
        agree to say how many do, the values are many, and their number is the next best answer:
        it is right if all are equally frequent.
        """
        for agreed in (self.near, self._drawn_pairs(), self.apart):
            if agreed.held >= ENOUGH:
                return max(1.0, agreed.tried / agreed.held)
        if self.minima:
            return self._count()
        seen = max((self.near, self.apart), key=lambda tally: tally.tried)
        return max(1.0, 1 / seen.share) if seen.tried else None

    def heavy(self, most: int = 5) -> dict[str, float]:
        """The values that many of the drawn events have, with their shares, the heaviest first."""
        texts = {hash_: text for _, hash_, text in self.drawn}
        counts = sorted(self._counts().items(), key=lambda item: (-item[1], texts[item[0]]))
        frequent = [(h, n) for h, n in counts if n > 2 and n >= HEAVY * len(self.drawn)]
        return {texts[h]: n / len(self.drawn) for h, n in frequent[:most]}

    def _counts(self) -> Counter[int]:
        return Counter(hash_ for _, hash_, _ in self.drawn)

    def _drawn_pairs(self) -> Tally:
        n = len(self.drawn)
        return Tally(n * (n - 1) // 2, sum(c * (c - 1) // 2 for c in self._counts().values()))

    def _count(self) -> float:
        if len(self.minima) < MINIMA:
            return float(len(self.minima))
        return max(float(MINIMA), (MINIMA - 1) * HASHES / (self.minima[-1] + 1))


@dataclass(frozen=True)
class Sample:
    """Counts of a part of a stream.

    observed    when it was looked at: disjoint intervals in order
    rows        how many rows the stream had then, of whatever type: what `n EVENTS` counts
    events      by variable, how many of them were of its types (and have a key, in a keyed query)
    shares      of conjuncts, by their canonical text: over the events of one variable, or over
                combinations of several inside a window
    equalities  the same for `a.x = b.y`, whose share may be too small to be seen in pairs
    values      by `variable.column`, of the columns that equalities and the key read
    """

    observed: tuple[Interval, ...] = ()
    rows: float = 0
    events: Mapping[str, float] = field(default_factory=dict)
    shares: Mapping[str, Tally] = field(default_factory=dict)
    equalities: Mapping[str, Tally] = field(default_factory=dict)
    values: Mapping[str, Values] = field(default_factory=dict)

    def merge(self, other: Sample) -> Sample:
        """The union of two samples: of other partitions or other times of the same stream.

        >>> a, b = Sample(((0, 10),), 5, {"a": 2}), Sample(((5, 20),), 5, {"a": 4})
        >>> a.merge(b).statistics().rates
        {'a': 0.3}
        """
        return Sample(
            _union((*self.observed, *other.observed)),
            self.rows + other.rows,
            {
                name: self.events.get(name, 0) + other.events.get(name, 0)
                for name in {**self.events, **other.events}
            },
            _added(self.shares, other.shares),
            _added(self.equalities, other.equalities),
            {
                name: self.values.get(name, Values()).plus(other.values.get(name, Values()))
                for name in {**self.values, **other.values}
            },
        )

    def contradicts(self, later: Sample) -> bool:
        """Whether chance alone hardly explains what the later sample has: a rate or a share that
        is more than four standard deviations from what this one lets expect.

        >>> before = Sample(((0, 100),), 100, {"a": 50})
        >>> before.contradicts(Sample(((100, 200),), 100, {"a": 60}))
        False
        >>> before.contradicts(Sample(((100, 200),), 100, {"a": 99}))
        True
        """
        span = sum(e - b for b, e in self.observed)
        scale = sum(e - b for b, e in later.observed) / span if span else 0.0
        for name, count in self.events.items():
            expected = count * scale
            # Both counts are random: the later one, and the one that the expectation is made of.
            spread = math.sqrt(expected * (1 + scale) + 1)
            if abs(later.events.get(name, 0) - expected) > SURPRISE * spread:
                return True
        return any(
            tally.differs(later.shares[text])
            for text, tally in self.shares.items()
            if text in later.shares
        )

    def statistics(self, ticks: int | None = 1) -> Statistics:
        """The figures of a cost model. Rates are per so many ticks of time (None: per row of the
        stream). What was never tried is left out."""
        unit = self.rows if ticks is None else sum(e - b for b, e in self.observed) / ticks
        values = {name: v.distinct for name, v in self.values.items()}
        heavy = {name: v.heavy() for name, v in self.values.items()}
        seen = {text: tally for text, tally in self.equalities.items() if tally.held >= ENOUGH}
        return Statistics(
            rates={name: count / unit for name, count in self.events.items()} if unit else {},
            selectivities={
                text: tally.share for text, tally in {**self.shares, **seen}.items() if tally.tried
            },
            distinct={name: count for name, count in values.items() if count is not None},
            heavy={name: shares for name, shares in heavy.items() if shares},
        )

    def to_json(self) -> str:
        """As a JSON object.

        >>> sample = Sample(((0, 9),), 3, {"a": 1}, {"a.x < b.x": Tally(2, 1)})
        >>> Sample.from_json(sample.to_json()) == sample
        True
        """
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Sample:
        """Read what `to_json` has written."""
        try:
            parsed = json.loads(text)
            return cls(
                tuple((begin, end) for begin, end in parsed["observed"]),
                parsed["rows"],
                dict(parsed["events"]),
                {name: Tally(**tally) for name, tally in parsed["shares"].items()},
                {name: Tally(**tally) for name, tally in parsed["equalities"].items()},
                {name: _values(**parts) for name, parts in parsed["values"].items()},
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"this is not a sample as JSON: {error}") from None


class Windowed:
    """The last samples of a run, averaged: ZStream's windowed averages (5.3). Samples from before
    the data changed don't count: they would only hide the change."""

    def __init__(self, most: int = 16) -> None:
        self._samples: deque[Sample] = deque(maxlen=most)

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, sample: Sample) -> None:
        if self.sample().contradicts(sample):
            self._samples.clear()
        self._samples.append(sample)

    def sample(self) -> Sample:
        return reduce(Sample.merge, self._samples, Sample())

    def statistics(self, ticks: int | None = 1) -> Statistics:
        return self.sample().statistics(ticks)


def _values(
    near: dict[str, float], apart: dict[str, float], minima: list[int], drawn: list[list[int | str]]
) -> Values:
    return Values(
        Tally(**near),
        Tally(**apart),
        tuple(minima),
        tuple((int(rank), int(hash_), str(text)) for rank, hash_, text in drawn),
    )


def _lowest(items: Iterable[Item], most: int) -> tuple[Item, ...]:
    return tuple(sorted(items)[:most])


def _added(mine: Mapping[str, Tally], theirs: Mapping[str, Tally]) -> dict[str, Tally]:
    none = Tally()
    return {text: mine.get(text, none).plus(theirs.get(text, none)) for text in {**mine, **theirs}}


def _union(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """Disjoint intervals in order, those that touch as one."""
    disjoint: list[Interval] = []
    for begin, end in sorted(intervals):
        if begin >= end:
            continue
        if disjoint and begin <= disjoint[-1][1]:
            disjoint[-1] = disjoint[-1][0], max(end, disjoint[-1][1])
        else:
            disjoint.append((begin, end))
    return tuple(disjoint)
