"""What all automaton kernels have: arguments, functions on positions and histories.

A kernel goes through the keys, and in each through the events that a match can start with; for
one it looks for all matches, depth first. A start whose search ran into the horizon stays alive:
events to come may complete it.
"""

from __future__ import annotations


class AutomatonState:
    """Indexes into the int64 array with which an automaton's kernel is called and resumed."""

    KEY = 0  # the key to begin with
    ENTRY = 1  # of that key, the entry to begin with
    AT = 2  # of that entry, the start to begin with (its number in the list)
    COUNT = 3  # records written
    DONE = 4  # 1: finished; 0: the output is full; -1: a pool is
    BASE = 5  # absolute number of the store's row 0
    WINDOW = 6
    FRONTIER = 7  # the clock that has been reached
    HORIZON = 8  # every event before this position is known
    KNOWN = 9  # the horizon of the round before: what was known then has been written
    REACHED = 10  # the frontier of the round before
    ROOM = 11  # how many records the output takes
    KEYS = 12  # how many keys there are
    SCALE = 13  # what a unit of time is in positions, if ends are moved
    SEEN = 14  # the first row that wasn't there in the round before
    ORIGIN = 15  # the time from which positions count, if ends are moved
    DECIDED = 16  # where matches are chosen: how many of those written are kept for good,
    BOUND = 17  # where the last of them sets its bound,
    LATEST = 18  # and where the last of the others ends
    POOLS = 19  # from here on: elements written to each pool, then the absolute number of element 0


SORT = """

@jit
def kernel(codes, rows, position, begins, ends, listed, at):
    for i in range(rows.shape[0]):
        ends[u(codes[u(rows[u(i)])])] += 1
    total = 0
    for key in range(ends.shape[0]):
        begins[u(key)] = total
        total += ends[u(key)]
        ends[u(key)] = begins[u(key)]
    for i in range(rows.shape[0]):
        r = rows[u(i)]
        key = codes[u(r)]
        place = ends[u(key)]
        listed[u(place)] = r
        at[u(place)] = position[u(r)]
        ends[u(key)] = place + 1
"""
"""Rows, which are in order, key by key, by counting: as fast as two passes can be. `codes` has the
key of each row of the store; `ends` comes with zeros."""

FLOOR = """

@jit
def kernel(rows, at, begins, ends, alive, floors):
    for key in range(begins.shape[0]):
        for i in range(begins[u(key)], ends[u(key)]):
            if alive[u(rows[u(i)])]:
                floors[u(key)] = min(floors[u(key)], at[u(i)])
                break
"""
"""Where the first start of each key lies that is alive."""

NEED = """

@jit
def kernel(rows, at, begins, ends, floors, needed):
    most = 0
    for key in range(begins.shape[0]):
        floor = floors[u(key)]
        i = ends[u(key)] - 1
        while i >= begins[u(key)] and at[u(i)] >= floor:
            needed[u(rows[u(i)])] = True
            i -= 1
        most = max(most, ends[u(key)] - 1 - i)
    return most
"""
"""Note the rows from each key's floor on, and return how many the key with the most has."""

ARRANGE = """

@jit
def kernel(codes, first, begins, ends, order):
    for row in range(codes.shape[0]):
        key = codes[u(row)] - first
        if 0 <= key < ends.shape[0]:
            ends[u(key)] += 1
    total = 0
    for key in range(ends.shape[0]):
        begins[u(key)] = total
        total += ends[u(key)]
        ends[u(key)] = begins[u(key)]
    for row in range(codes.shape[0]):
        key = codes[u(row)] - first
        if 0 <= key < ends.shape[0]:
            order[u(ends[u(key)])] = row
            ends[u(key)] += 1
    return total
"""
"""The rows of some keys, from the `first` on, key by key, by counting. `ends` comes with zeros."""

# A search goes out from where x should be. In a list as long as that of the start at hand, which
# mostly has the same events, that is beside the start; else the events of a key lie about evenly.
# The rows before a time end mostly as far from the start as they did for the start before.
# These functions write nothing, so that the compiler can leave out a search that was made before.
SEARCHES = """
FAR = 1 << 62


@jit
def first_after(at, low, high, x, place, size):
    guess = -1
    if high - low == size:
        guess = low + place
    elif high - low > 32:
        first, last = at[u(low)], at[u(high - 1)]
        if x < first:
            return low
        if x >= last:
            return high
        share = (float(x) - float(first)) / (float(last) - float(first))
        guess = low + min(int(share * (high - 1 - low)), high - 1 - low)
    if guess >= 0:
        step = 1
        if at[u(guess)] <= x:
            low = guess + 1
            while guess + step < high and at[u(guess + step)] <= x:
                low = guess + step + 1
                step += step
            high = min(high, guess + step)
        else:
            high = guess
            while guess - step >= low and at[u(guess - step)] > x:
                high = guess - step
                step += step
            low = max(low, guess - step)
    while low < high:
        middle = (low + high) >> 1
        if at[u(middle)] <= x:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def following(at, low, high, x, place, size):
    i = first_after(at, low, high, x, place, size)
    return at[u(i)] if i < high else -FAR
"""

# The same where a row's number is its position.
NUMBERED = """
FAR = 1 << 62


@jit
def first_after(at, low, high, x, place, size):
    return min(max(x + 1, low), high)


@jit
def following(at, low, high, x, place, size):
    i = max(x + 1, low)
    return i if i < high else -FAR
"""

FUNCTIONS = """

@jit
def first_later(clock, rows, low, high, x):
    while low < high:
        middle = (low + high) >> 1
        if clock[u(rows[u(middle)])] <= x:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def rows_before(time, x, guess):
    low, high, step = 0, time.shape[0], 1
    guess = min(max(guess, low), high)
    if guess < high and time[u(guess)] < x:
        low = guess + 1
        while guess + step < high and time[u(guess + step)] < x:
            low = guess + step + 1
            step += step
        high = min(high, guess + step)
    else:
        high = guess
        while guess - step >= low and time[u(guess - step)] >= x:
            high = guess - step
            step += step
        low = max(low, guess - step)
    while low < high:
        middle = (low + high) >> 1
        if time[u(middle)] < x:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def put(history, n, position):
    i = n
    while i > 1 and history[u(i - 1)] < position:
        history[u(i)] = history[u(i - 1)]
        i -= 1
    history[u(i)] = position
    return n + 1


@jit
def compare(one, n, other, m):
    i = 0
    while i < n and i < m:
        if one[u(i)] != other[u(i)]:
            return -1 if one[u(i)] < other[u(i)] else 1
        i += 1
    return 0 if n == m else (-1 if n > m else 1)


@jit
def order(one, other, n):
    for i in range(n):
        if one[u(i)] != other[u(i)]:
            return -1 if one[u(i)] < other[u(i)] else 1
    return 0


@jit
def same(one, other, n):
    for i in range(n):
        if one[u(i)] != other[u(i)]:
            return False
    return True


@jit
def share(one, begin, end, other, start, stop):
    for i in range(begin, end):
        for j in range(start, stop):
            if one[u(i)] == other[u(j)]:
                return True
    return False


@jit
def holds_row(rows, begin, end, row):
    for i in range(begin, end):
        if rows[u(i)] == row:
            return True
    return False
"""

CHOOSE = """

@jit
def moved(out, source, target):
    out.first[u(target)] = out.first[u(source)]
    out.last[u(target)] = out.last[u(source)]
    for slot in range(out.slots.shape[0] - 2):
        out.slots[u(slot), u(target)] = out.slots[u(slot), u(source)]


@jit
def considered(out, pools, begin, end):
    indexes = np.arange(begin, end)
    merged = np.empty(end - begin, np.int64)
    size = 1
    while size < end - begin:
        for low in range(0, end - begin, 2 * size):
            middle, high = min(low + size, end - begin), min(low + 2 * size, end - begin)
            i, j = low, middle
            for n in range(low, high):
                left = i < middle
                if left and j < high:
                    left = not earlier(out, pools, indexes[u(j)], indexes[u(i)])
                if left:
                    merged[u(n)] = indexes[u(i)]
                    i += 1
                else:
                    merged[u(n)] = indexes[u(j)]
                    j += 1
        indexes, merged = merged, indexes
        size += size
    return indexes


@jit
def choose(out, pools, begin, end, bound):
    first, last = out.first, out.last
    ordered = True
    for i in range(begin + 1, end):
        if last[u(i)] < last[u(i - 1)] or (
            last[u(i)] == last[u(i - 1)] and first[u(i)] <= first[u(i - 1)]
        ):
            ordered = False
            break
    k = begin
    if ordered:
        for i in range(begin, end):
            if first[u(i)] >= bound:
                bound = last[u(i)] + 1
                if k < i:
                    moved(out, i, k)
                k += 1
        return k, bound
    kept = np.zeros(end - begin, np.bool_)
    for i in considered(out, pools, begin, end):
        if first[u(i)] >= bound:
            bound = last[u(i)] + 1
            kept[u(i - begin)] = True
    for i in range(begin, end):
        if kept[u(i - begin)]:
            if k < i:
                moved(out, i, k)
            k += 1
    return k, bound
"""
"""Which of some matches SKIP PAST LAST EVENT keeps: those before them are decided, and set the
bound; what comes later ends later. `earlier` says which of two is considered first. Such a kernel
doesn't write the times of records."""

HEAD = f"""

@jit
def kernel(lists, base_columns, alive, scratch, sums, cols, params, out, pools, state):
    begin, pos, clock0, clock, time0, time = base_columns
    base = 0
    store_base = state[{AutomatonState.BASE}]
    window = state[{AutomatonState.WINDOW}]
    frontier = state[{AutomatonState.FRONTIER}]
    horizon = state[{AutomatonState.HORIZON}]
    known = state[{AutomatonState.KNOWN}]
    reached = state[{AutomatonState.REACHED}]
    seen = state[{AutomatonState.SEEN}]
    room = state[{AutomatonState.ROOM}]
    scale = state[{AutomatonState.SCALE}]
    origin = state[{AutomatonState.ORIGIN}]
    k = state[{AutomatonState.COUNT}]
    more = 0
    out_start = out.start
    out_end = out.end
    out_first = out.first
    out_last = out.last
    out_slots = out.slots
"""
