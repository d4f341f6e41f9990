"""Loops written by hand for the two keyed queries that `benchmarks.loops` has none for.

They share no code with the engine. They know their query, not the data: keys may be any integers,
and the order of the events is checked."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from benchmarks.loops import Ints, jit

Floats = NDArray[np.float64]

HOURS = 12
SMALL, LARGE = 100.0, 250.0


@jit
def _longer(array: Ints) -> Ints:
    longer = np.empty((array.shape[0], 2 * array.shape[1]), np.int64)
    longer[:, : array.shape[1]] = array
    return longer


def _codes(key: pa.ChunkedArray) -> tuple[Ints, int]:
    """Keys as numbers from 0 on, and how many there are."""
    encoded = key.combine_chunks().dictionary_encode()
    return encoded.indices.to_numpy(), len(encoded.dictionary)


@jit
def _in_order(time: Ints, identity: Ints) -> bool:
    for row in range(1, len(time)):
        if time[row] < time[row - 1]:
            return False
        if time[row] == time[row - 1] and identity[row] < identity[row - 1]:
            return False
    return True


# ── fraud: two small purchases, then a large one, with one card ──


def fraud(table: pa.Table) -> int:
    bought = pc.equal(table["kind"], "purchase")
    rows = table.select(["id", "ts", "card", "amount"]).filter(bought).combine_chunks()
    time = rows["ts"].cast(pa.int64()).to_numpy()
    identity, amount = rows["id"].to_numpy(), rows["amount"].to_numpy()
    assert _in_order(time, identity), "the loop is for events in order"
    card, cards = _codes(rows["card"])
    found = _fraud(time, card, amount, cards, HOURS * 3_600_000_000)
    columns = [rows["card"].to_numpy()[found[0]], *(identity[member] for member in found)]
    columns += [amount[found[2]], time[found[0]], time[found[2]]]
    return len(columns[0])


@jit
def _fraud(time: Ints, card: Ints, amount: Floats, cards: int, window: int) -> Ints:
    newest = np.full(cards, -1, np.int64)
    link = np.empty(len(time), np.int64)
    out = np.empty((3, 1 << 14), np.int64)
    k = 0
    for row in range(len(time)):
        at = card[row]
        if amount[row] < SMALL:
            link[row] = newest[at]
            newest[at] = row
        elif amount[row] > LARGE:
            eat = time[row] - window
            second = newest[at]
            while second >= 0 and time[second] > eat:
                first = link[second]
                while first >= 0 and time[first] > eat:
                    if k == out.shape[1]:
                        out = _longer(out)
                    out[0, k] = first
                    out[1, k] = second
                    out[2, k] = row
                    k += 1
                    first = link[first]
                second = link[second]
    return out[:, :k].copy()


# ── strict run: an event, rises, then a fall, of one account; matches don't overlap ──


def strict_run(table: pa.Table) -> int:
    identity, time = table["id"].to_numpy(), table["ts"].to_numpy()
    assert _in_order(time, identity), "the loop is for events in order"
    account, accounts = _codes(table["account"])
    first, last, rises = _strict_run(account, table["price"].to_numpy(), accounts)
    columns = [
        table["account"].to_numpy()[first],
        identity[first],
        rises,
        identity[last],
        time[first],
        time[last],
    ]
    return len(columns[0])


@jit
def _strict_run(account: Ints, price: Floats, accounts: int) -> Ints:
    """Of each match its first row, its last row, and how many rises lie between."""
    begin = np.full(accounts, -1, np.int64)
    rises = np.zeros(accounts, np.int64)
    before = np.empty(accounts, np.float64)
    out = np.empty((3, 1 << 14), np.int64)
    k = 0
    for row in range(len(account)):
        at = account[row]
        now = price[row]
        if begin[at] >= 0 and now > before[at]:
            rises[at] += 1
        elif begin[at] >= 0 and rises[at] > 0 and now < before[at]:
            if k == out.shape[1]:
                out = _longer(out)
            out[0, k] = begin[at]
            out[1, k] = row
            out[2, k] = rises[at]
            k += 1
            begin[at] = -1
        else:
            begin[at] = row
            rises[at] = 0
        before[at] = now
    return out[:, :k].copy()
