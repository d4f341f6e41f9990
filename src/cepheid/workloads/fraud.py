"""Card transactions with planted fraud, after NEXT CEP, section 1.1.

A thief tests a copied card with two small purchases and then makes a large one:

    PATTERN s1 ; s2 ; l
    WHERE s1.card = s2.card = l.card
      AND s1.amount < 100 AND s2.amount < 100 AND l.amount > 250
    WITHIN 12 hours

Schema: id, ts, card, kind, amount, currency, country, merchant, planted. `kind` is `purchase`,
`login`, `decline` or `pin_change`; logins and changes of the PIN have no amount, so it is NULL.
`planted` tells the planted triples apart and is NULL for ordinary events: the truth that a
detector is checked against, not something that it may read. Each planted triple lies within 3
hours, in one country that isn't the card's own, its small amounts are below 100 and its large one
is above 250. Ordinary customers sometimes match by chance, as they do in life. The knobs:

- `days`: the time that the events cover. `cards`: how many cards there are; by default so many that
  each is used once a day, as the paper assumes.
- `fraud`: the number of planted triples per event, about (those that would overlap are left out).
- `abroad`: the share of ordinary events outside of the card's own country.

    >>> generate(10_000, seed=1).schema.names[:5]
    ['id', 'ts', 'card', 'kind', 'amount']
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from cepheid.errors import DataError
from cepheid.workloads.chunks import (
    CHUNK_ROWS,
    Chunk,
    Ints,
    arrival_times,
    chunks,
    require_share,
    strings,
    tabled,
    timestamps,
)

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("card", pa.int64()),
        ("kind", pa.string()),
        ("amount", pa.float64()),
        ("currency", pa.string()),
        ("country", pa.string()),
        ("merchant", pa.string()),
        ("planted", pa.int64()),
    ]
)

START = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
SMALL = 100.0
LARGE = 250.0
LONGEST_STEP = 90 * 60 * 1_000_000
"""Microseconds between two events of a planted triple, at most."""

_HOUR = 3_600_000_000
_KINDS = ("purchase", "login", "decline", "pin_change")
_KIND_SHARES = (0.78, 0.15, 0.05, 0.02)
_PURCHASE, _LOGIN, _PIN_CHANGE = 0, 1, 3
_COUNTRIES = ("US", "GB", "DE", "FR", "JP", "BR", "IN", "SE")
_CURRENCIES = ("USD", "GBP", "EUR", "EUR", "JPY", "BRL", "INR", "SEK")
_TRADES = ("grocery", "fuel", "books", "travel", "electronics", "pharmacy", "music", "shoes")
_SHOPS_PER_TRADE = 250


def batches(
    rows: int,
    seed: int = 0,
    *,
    days: float = 30.0,
    cards: int | None = None,
    fraud: float = 0.0005,
    abroad: float = 0.03,
) -> Iterator[pa.RecordBatch]:
    """Card transactions; the module says what the knobs do."""
    if days <= 0:
        raise DataError(f"the events must cover some time, not {days} days")
    cards = max(1, round(rows / days)) if cards is None else cards
    if cards < 1:
        raise DataError(f"there must be a card, not {cards}")
    require_share("fraud", fraud)
    require_share("abroad", abroad)
    span = max(1, int(days * 24 * _HOUR))
    kinds, countries = pa.array(_KINDS), pa.array(_COUNTRIES)
    currencies, merchants = pa.array(_CURRENCIES), _merchants()
    kind_thresholds = np.cumsum(_KIND_SHARES)[:-1]
    for chunk in chunks(rows, seed):
        random = chunk.random
        time = arrival_times(chunk, rows, START, span)
        card = random.integers(0, cards, chunk.rows)
        kind = np.searchsorted(kind_thresholds, random.random(chunk.rows), side="right")
        amount = np.exp(random.normal(3.3, 1.0, chunk.rows))
        away = (random.random(chunk.rows) < abroad) * random.integers(
            1, len(_COUNTRIES), chunk.rows
        )

        triples = _triples(chunk, time, fraud)
        first, second, last = triples.T
        planted = np.full(chunk.rows, -1)
        planted[triples] = (chunk.number * CHUNK_ROWS + np.arange(len(triples)))[:, None]
        card[second] = card[last] = card[first]
        kind[triples] = _PURCHASE
        amount[triples[:, :2]] = random.uniform(1.0, SMALL - 1.0, (len(triples), 2))
        amount[last] = random.uniform(LARGE + 1.0, 10 * LARGE, len(triples))
        away[triples] = random.integers(1, len(_COUNTRIES), len(triples))[:, None]

        country = (_home(card) + away) % len(_COUNTRIES)
        no_amount = (kind == _LOGIN) | (kind == _PIN_CHANGE)
        columns = [
            pa.array(np.arange(chunk.first, chunk.first + chunk.rows)),
            timestamps(time),
            pa.array(card),
            strings(kind, kinds),
            pa.array(np.round(amount, 2), mask=no_amount),
            strings(country, currencies),
            strings(country, countries),
            strings(random.integers(0, len(merchants), chunk.rows), merchants),
            pa.array(planted, mask=planted < 0),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


generate = tabled(batches, SCHEMA)


def _triples(chunk: Chunk, time: Ints, fraud: float) -> Ints:
    """Rows of planted triples, one per line, in time order and with no row in two of them."""
    amount = chunk.random.binomial(chunk.rows, fraud)
    first = chunk.random.integers(0, chunk.rows, amount)
    steps = chunk.random.integers(1, LONGEST_STEP, (amount, 2))
    times = time[first, None] + np.cumsum(steps, axis=1)
    # The event before each chosen moment, so that a step never gets longer than was drawn.
    later = np.searchsorted(time, times, side="right") - 1
    triples = np.column_stack([first, later])
    increasing = (np.diff(time[triples], axis=1) > 0).all(axis=1)
    triples = triples[increasing]
    _, index, uses = np.unique(triples, return_inverse=True, return_counts=True)
    alone = (uses[index.reshape(triples.shape)] == 1).all(axis=1)
    kept: Ints = triples[alone]
    return kept[np.argsort(kept[:, 0])]


def _home(card: Ints) -> Ints:
    """A card's own country: a fixed function of its number, so that chunks agree."""
    home: Ints = (card * 2_654_435_761 >> 16) % len(_COUNTRIES)
    return home


def _merchants() -> pa.Array:
    return pa.array(f"{trade}-{n:03}" for trade in _TRADES for n in range(_SHOPS_PER_TRADE))
