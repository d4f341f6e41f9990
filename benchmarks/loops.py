"""One hand-written loop per query: the right number of matches, and the floor to compare with.

A loop knows its query, so it needs no plan, no predicate language and no buffers that fit all
patterns. It still does what the engine does: it reads the same table, finds the classes by their
names, and writes every match into output columns, which are dropped when they are full. It shares
no code with the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit
from numpy.typing import NDArray

CAPACITY = 1 << 14
"""Matches after which the output is dropped; as many as stay in a processor's cache."""

SLACK = 1 << 16
"""More than the matches that end with one tick, and than the pairs in a window, can ever be: there
is one tick per time unit, and the windows are no longer than 200."""

MASK = SLACK - 1

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

jit = njit(cache=True, nogil=True)


class Ticks(NamedTuple):
    """The ticks of one stock, in time order."""

    time: Ints
    price: Floats


class Output(NamedTuple):
    """One row per match: the prices that RETURN names, and the ends of the match."""

    prices: Floats
    start: Ints
    end: Ints


class Pairs(NamedTuple):
    """Pairs of two classes, made once and used for every match that they are part of.

    Those of the later tick n are `begin[n]` to `end[n]`; pair p has its earlier tick in
    `left[p & MASK]`, so that old pairs make room for new ones.
    """

    begin: Ints
    end: Ints
    left: Ints


Limits = tuple[Ints, Ints]
"""For each of the later ticks, how many earlier ones are before its window, and before it."""

# What a kernel remembers when it returns with a full output.
OUTER, PAIRED, MADE = range(3)


def stocks(table: pa.Table, *names: str) -> list[Ticks]:
    """The ticks of the named stocks."""
    column = table["name"].combine_chunks()
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    known = encoded.dictionary.to_pylist()
    time, price = table["ts"].to_numpy(), table["price"].to_numpy()
    assert (time[1:] > time[:-1]).all(), "the loops are for one tick per time unit"
    rows = [np.flatnonzero(codes == (known.index(n) if n in known else -1)) for n in names]
    return [Ticks(time[r], price[r]) for r in rows]


def empty_pairs(later: Ticks) -> Pairs:
    n = len(later.time)
    return Pairs(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(SLACK, np.int64))


@jit
def until(earlier: Ticks, later: Ticks, shift: int) -> Ints:
    """How many of the earlier ticks are at or before each of the later ones less `shift`."""
    counts = np.empty(len(later.time), np.int64)
    n = 0
    for at in range(len(later.time)):
        while n < len(earlier.time) and earlier.time[n] <= later.time[at] - shift:
            n += 1
        counts[at] = n
    return counts


def drain(kernel: Callable[..., int], prices: int, *arguments: Any) -> int:
    """Run a kernel to its end, an output at a time; the number of matches."""
    room = CAPACITY + SLACK
    out = Output(np.empty((prices, room)), np.empty(room, np.int64), np.empty(room, np.int64))
    state = np.zeros(3, np.int64)
    total = 0
    while made := kernel(*arguments, out, state):
        total += made
    return total


# ── Query 4: IBM; Sun; Oracle, IBM.price > Sun.price ──


def query_4(table: pa.Table, window: int = 200) -> int:
    ibm, sun, oracle = stocks(table, "IBM", "Sun", "Oracle")
    sun_ibm = until(ibm, sun, window), until(ibm, sun, 1)
    oracle_sun = until(sun, oracle, window), until(sun, oracle, 1)
    arguments = ibm, sun, oracle, sun_ibm, oracle_sun, empty_pairs(sun), window
    return drain(_query_4, 3, *arguments)


@jit
def _query_4(
    ibm: Ticks,
    sun: Ticks,
    oracle: Ticks,
    sun_ibm: Limits,
    oracle_sun: Limits,
    pairs: Pairs,
    window: int,
    out: Output,
    state: Ints,
) -> int:
    o, paired, made = state[OUTER], state[PAIRED], state[MADE]
    k = 0
    while o < len(oracle.time) and k < CAPACITY:
        while paired < oracle_sun[1][o]:
            if (made & MASK) + window > SLACK:
                made += SLACK - (made & MASK)  # the pairs of a Sun stay in one piece
            pairs.begin[paired] = made
            price = sun.price[paired]
            for i in range(sun_ibm[0][paired], sun_ibm[1][paired]):
                if ibm.price[i] > price:
                    pairs.left[made & MASK] = i
                    made += 1
            pairs.end[paired] = made
            paired += 1
        eat = oracle.time[o] - window
        for s in range(oracle_sun[0][o], oracle_sun[1][o]):
            begin, end = pairs.begin[s], pairs.end[s]
            while begin < end and ibm.time[pairs.left[begin & MASK]] <= eat:
                begin += 1
            pairs.begin[s] = begin  # what is too old for this Oracle is too old for the next
            first = begin & MASK
            for n in range(end - begin):
                i = pairs.left[first + n]
                out.prices[0, k + n] = ibm.price[i]
                out.prices[1, k + n] = sun.price[s]
                out.prices[2, k + n] = oracle.price[o]
                out.start[k + n] = ibm.time[i]
                out.end[k + n] = oracle.time[o]
            k += end - begin
        o += 1
    state[OUTER], state[PAIRED], state[MADE] = o, paired, made
    return k


# ── Query 5: IBM; Sun; Oracle ──


def query_5(table: pa.Table, window: int = 200) -> int:
    ibm, sun, oracle = stocks(table, "IBM", "Sun", "Oracle")
    oracle_sun = until(sun, oracle, window), until(sun, oracle, 1)
    low, high = until(ibm, oracle, window), until(ibm, sun, 1)
    return drain(_query_5, 3, ibm, sun, oracle, oracle_sun, low, high)


@jit
def _query_5(
    ibm: Ticks,
    sun: Ticks,
    oracle: Ticks,
    oracle_sun: Limits,
    low: Ints,
    high: Ints,
    out: Output,
    state: Ints,
) -> int:
    o = state[OUTER]
    k = 0
    while o < len(oracle.time) and k < CAPACITY:
        first = low[o]
        for s in range(oracle_sun[0][o], oracle_sun[1][o]):
            n = high[s] - first
            if n < 8:  # Slices cost more than they save.
                for i in range(first, first + n):
                    out.prices[0, k] = ibm.price[i]
                    out.prices[1, k] = sun.price[s]
                    out.prices[2, k] = oracle.price[o]
                    out.start[k] = ibm.time[i]
                    out.end[k] = oracle.time[o]
                    k += 1
            else:
                out.prices[0, k : k + n] = ibm.price[first : first + n]
                out.prices[1, k : k + n] = sun.price[s]
                out.prices[2, k : k + n] = oracle.price[o]
                out.start[k : k + n] = ibm.time[first : first + n]
                out.end[k : k + n] = oracle.time[o]
                k += n
        o += 1
    state[OUTER] = o
    return k


# ── Query 6: IBM; Sun; Oracle; Google, Oracle.price > Sun.price, Oracle.price > Google.price ──


def query_6(table: pa.Table, window: int = 100) -> int:
    ibm, sun, oracle, google = stocks(table, "IBM", "Sun", "Oracle", "Google")
    oracle_sun = until(sun, oracle, window), until(sun, oracle, 1)
    google_oracle = until(oracle, google, window), until(oracle, google, 1)
    low, high = until(ibm, google, window), until(ibm, sun, 1)
    classes = ibm, sun, oracle, google
    arguments = classes, oracle_sun, google_oracle, low, high, empty_pairs(oracle)
    return drain(_query_6, 4, *arguments)


@jit
def _query_6(
    classes: tuple[Ticks, Ticks, Ticks, Ticks],
    oracle_sun: Limits,
    google_oracle: Limits,
    low: Ints,
    high: Ints,
    pairs: Pairs,
    out: Output,
    state: Ints,
) -> int:
    ibm, sun, oracle, google = classes
    g, paired, made = state[OUTER], state[PAIRED], state[MADE]
    k = 0
    while g < len(google.time) and k < CAPACITY:
        while paired < google_oracle[1][g]:
            pairs.begin[paired] = made
            price = oracle.price[paired]
            for s in range(oracle_sun[0][paired], oracle_sun[1][paired]):
                if price > sun.price[s]:
                    pairs.left[made & MASK] = s
                    made += 1
            pairs.end[paired] = made
            paired += 1
        first = low[g]
        # Without an IBM in the window there is nothing to look for.
        alive = first < len(ibm.time) and ibm.time[first] < google.time[g]
        for o in range(google_oracle[0][g], google_oracle[1][g] if alive else 0):
            if oracle.price[o] > google.price[g]:
                p = pairs.end[o] - 1
                while p >= pairs.begin[o]:
                    s = pairs.left[p & MASK]
                    if high[s] <= first:
                        break
                    for i in range(first, high[s]):
                        out.prices[0, k] = ibm.price[i]
                        out.prices[1, k] = sun.price[s]
                        out.prices[2, k] = oracle.price[o]
                        out.prices[3, k] = google.price[g]
                        out.start[k] = ibm.time[i]
                        out.end[k] = google.time[g]
                        k += 1
                    p -= 1
        g += 1
    state[OUTER], state[PAIRED], state[MADE] = g, paired, made
    return k


# ── Query 7: IBM; !Sun; Oracle ──


def query_7(table: pa.Table, window: int = 200) -> int:
    ibm, sun, oracle = stocks(table, "IBM", "Sun", "Oracle")
    in_window = until(ibm, oracle, window), until(ibm, oracle, 1)
    # Only IBMs after the last Sun count, and a Sun before the first one forbids nothing.
    after_sun = np.concatenate(([0], until(ibm, sun, 0)))[until(sun, oracle, 1)]
    low = np.maximum(in_window[0], after_sun)
    return drain(_query_7, 2, ibm, oracle, low, in_window[1])


@jit
def _query_7(ibm: Ticks, oracle: Ticks, low: Ints, high: Ints, out: Output, state: Ints) -> int:
    o = state[OUTER]
    k = 0
    while o < len(oracle.time) and k < CAPACITY:
        for i in range(low[o], high[o]):
            out.prices[0, k] = ibm.price[i]
            out.prices[1, k] = oracle.price[o]
            out.start[k] = ibm.time[i]
            out.end[k] = oracle.time[o]
            k += 1
        o += 1
    state[OUTER] = o
    return k


# ── Query 8: publication; project; courses, same IP ──

WEB_CLASSES = ("publication", "project", "courses")


def query_8(table: pa.Table, window: int = 36_000_000_000) -> int:
    category = pc.index_in(table["category"], pa.array(WEB_CLASSES)).combine_chunks()
    rows = np.flatnonzero(pc.is_valid(category).to_numpy(zero_copy_only=False))
    relevant = table.take(pa.array(rows)).combine_chunks()
    kinds = category.take(pa.array(rows)).to_numpy()
    address = relevant["ip"].combine_chunks().dictionary_encode()
    time = relevant["time"].cast(pa.int64()).to_numpy()
    found = _query_8(kinds, address.indices.to_numpy(), len(address.dictionary), time, window)
    columns = [relevant["ip"].take(pa.array(found[2]))]
    columns += [relevant["url"].take(pa.array(member)) for member in found]
    columns += [relevant["time"].take(pa.array(found[n])) for n in (0, 2)]
    return len(columns[0])


@jit
def _longer(array: Ints) -> Ints:
    longer = np.empty((array.shape[0], 2 * array.shape[1]), np.int64)
    longer[:, : array.shape[1]] = array
    return longer


@jit
def _query_8(kinds: Ints, address: Ints, addresses: int, time: Ints, window: int) -> Ints:
    """Rows of the matches' members. Chains per address, the newest first."""
    newest = np.full(addresses, -1, np.int64)
    link = np.empty(len(kinds), np.int64)
    newest_pair = np.full(addresses, -1, np.int64)
    pairs = np.empty((3, 1 << 14), np.int64)  # publication, project, link
    made = 0
    out = np.empty((3, 1 << 14), np.int64)
    k = 0
    for row in range(len(kinds)):
        at = address[row]
        eat = time[row] - window
        if kinds[row] == 0:
            link[row] = newest[at]
            newest[at] = row
        elif kinds[row] == 1:
            publication = newest[at]
            while publication >= 0 and time[publication] > eat:
                if time[publication] < time[row]:
                    if made == pairs.shape[1]:
                        pairs = _longer(pairs)
                    pairs[0, made] = publication
                    pairs[1, made] = row
                    pairs[2, made] = newest_pair[at]
                    newest_pair[at] = made
                    made += 1
                publication = link[publication]
        else:
            p = newest_pair[at]
            while p >= 0 and time[pairs[1, p]] > eat:
                if time[pairs[0, p]] > eat and time[pairs[1, p]] < time[row]:
                    if k == out.shape[1]:
                        out = _longer(out)
                    out[0, k] = pairs[0, p]
                    out[1, k] = pairs[1, p]
                    out[2, k] = row
                    k += 1
                p = pairs[2, p]
    return out[:, :k].copy()
