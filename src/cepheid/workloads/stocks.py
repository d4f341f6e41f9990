"""Stock ticks as in ZStream, section 6: rates and predicate selectivities are under control.

Schema: id, name, price, volume, ts. One event per time unit, so that `WITHIN 200 units` spans 200
events. The knobs:

- `rates`: relative event rates by stock name. `{"IBM": 1, "Sun": 100}` is the paper's 1:100. Each
  event's name is drawn independently.
- `selectivity`: `{("IBM", "Sun"): 1 / 32}` makes P(IBM.price > Sun.price) exactly 1/32. If Y is
  uniform on [0, 1) and X lies in [0, 1], then P(X > Y) is X's mean; so one stock of each pair
  keeps the full price range and the other one gets a uniform range with the right mean. A stock
  in several pairs keeps the full range (Oracle in Query 6), and each other one has one partner.
- `interval`: None for integer time, or the microseconds between ticks for timestamps.
- `first`: the first event's number, so that runs with other knobs can be appended (section 6.3).

    >>> ticks = generate(1000, seed=7, rates={"IBM": 1, "Sun": 1, "Oracle": 1})
    >>> ticks.schema.names
    ['id', 'name', 'price', 'volume', 'ts']
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from cepheid.errors import DataError
from cepheid.workloads.chunks import chunks, strings, tabled, timestamps

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("price", pa.float64()),
        ("volume", pa.int64()),
        ("ts", pa.int64()),
    ]
)
TIMESTAMP_SCHEMA = SCHEMA.set(4, pa.field("ts", pa.timestamp("us", tz="UTC")))

DEFAULT_RATES: Mapping[str, float] = {"IBM": 1, "Sun": 1, "Oracle": 1, "Google": 1}
START = int(datetime(2009, 1, 5, 14, 30, tzinfo=UTC).timestamp()) * 1_000_000
"""A Monday's opening bell, in microseconds: the first tick, if there is an `interval`."""

TOP_PRICE = 100.0
TOP_VOLUME = 1000


def batches(
    rows: int,
    seed: int = 0,
    *,
    rates: Mapping[str, float] = DEFAULT_RATES,
    selectivity: Mapping[tuple[str, str], float] | None = None,
    interval: int | None = None,
    first: int = 0,
) -> Iterator[pa.RecordBatch]:
    """Stock ticks; the module says what the knobs do."""
    if not rates or min(rates.values()) < 0 or sum(rates.values()) <= 0:
        raise DataError(f"rates must be positive numbers, but they are {dict(rates)}")
    ranges = price_ranges(tuple(rates), selectivity or {})
    names = pa.array(list(rates))
    low = np.array([ranges[name][0] for name in rates])
    width = np.array([ranges[name][1] - ranges[name][0] for name in rates])
    thresholds = np.cumsum(list(rates.values())) / sum(rates.values())
    schema = SCHEMA if interval is None else TIMESTAMP_SCHEMA
    for chunk in chunks(rows, seed):
        random = chunk.random
        # `minimum` guards against a last threshold that rounds to less than one.
        drawn = np.searchsorted(thresholds, random.random(chunk.rows), side="right")
        stock = np.minimum(drawn, len(names) - 1)
        number = np.arange(first + chunk.first, first + chunk.first + chunk.rows)
        price = low[stock] + width[stock] * random.random(chunk.rows)
        volume = random.integers(1, TOP_VOLUME + 1, chunk.rows)
        ts = pa.array(number) if interval is None else timestamps(START + number * interval)
        columns = [pa.array(number), strings(stock, names), pa.array(price), pa.array(volume), ts]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def generate(
    rows: int,
    seed: int = 0,
    *,
    rates: Mapping[str, float] = DEFAULT_RATES,
    selectivity: Mapping[tuple[str, str], float] | None = None,
    interval: int | None = None,
    first: int = 0,
) -> pa.Table:
    """All of `batches` in one table."""
    schema = SCHEMA if interval is None else TIMESTAMP_SCHEMA
    return tabled(batches, schema)(
        rows, seed, rates=rates, selectivity=selectivity, interval=interval, first=first
    )


def price_ranges(
    names: tuple[str, ...], selectivity: Mapping[tuple[str, str], float]
) -> dict[str, tuple[float, float]]:
    """Uniform price ranges under which every `left.price > right.price` has its selectivity.

    >>> price_ranges(("IBM", "Sun"), {("IBM", "Sun"): 1 / 32})
    {'IBM': (0.0, 6.25), 'Sun': (0.0, 100.0)}
    """
    partners = Counter(name for pair in selectivity for name in pair)
    ranges = dict.fromkeys(names, (0.0, TOP_PRICE))
    for (left, right), share in selectivity.items():
        for name in (left, right):
            if name not in ranges:
                raise DataError(f"`{name}` has a selectivity but no rate")
        if not 0.0 <= share <= 1.0 or left == right:
            raise DataError(f"{left}.price > {right}.price can't have the selectivity {share}")
        if partners[left] == 1:
            ranges[left] = _range_with_mean(share)
        elif partners[right] == 1:
            ranges[right] = _range_with_mean(1.0 - share)
        else:
            raise DataError(
                f"`{left}` and `{right}` both have several selectivities; "
                "of each pair, one stock must occur in no other"
            )
    return ranges


def _range_with_mean(mean: float) -> tuple[float, float]:
    """The widest uniform range inside the full one that has this mean (as a share of the top)."""
    half = min(mean, 1.0 - mean)
    return TOP_PRICE * (mean - half), TOP_PRICE * (mean + half)
