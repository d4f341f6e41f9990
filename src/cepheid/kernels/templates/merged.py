"""The loops of merged automata (Cayuga 4.3). Nothing here depends on the queries: they are arrays.

`cells[row, column]` are integers in the order of the values, `known` says which are not NULL.
Lists of various lengths are a pair of arrays, where each begins and all their values.

A kernel writes into arrays that it is given; where they are full, it returns how far it is, and is
called again with more room. Numba takes as long to compile the making of arrays as all the rest.
"""

from __future__ import annotations

from textwrap import fill
from typing import Any, NamedTuple

_MIXED = """
@inner
def mixed(seed, value):
    # Never beyond 63 bits, so that plain Python comes to the same. What is mixed first is mixed
    # with itself: for a constant, Numba would compile this once more.
    h = ((seed + (value & 0x7FFFFFFF)) * 1103515245 + 12345) & 0x7FFFFFFF
    h ^= h >> 13
    h = ((h ^ ((value >> 31) & 0x7FFFFFFF)) * 1103515245 + 12345) & 0x7FFFFFFF
    return h ^ (h >> 15) ^ ((value >> 62) & 3)
"""

MIXED = _MIXED + "\n\nkernel = mixed\n"
"""`mixed(seed, value)`: a hash of 31 bits; without the JIT, of whole arrays."""

SATISFIED = (
    _MIXED
    + """
LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1


@outer
def kernel(cells, known, kinds, kind_columns, hashes, buckets, places, members, bounds,
           atoms, columns, lows, highs, begins, found, done):
    # A bucket has the predicates of one kind (the columns that have to equal something) whose
    # constants are those of the event, and perhaps some others with the same hash. They are sorted
    # by one of their bounds, so that those that miss by it are not looked at.
    mask, count = hashes.shape[0] - 1, kinds.shape[0] - 1
    n = begins[u(done)]
    for row in range(done, cells.shape[0]):
        for kind in range(count):
            h = mixed(kind, kind)
            complete = True
            for k in range(kinds[u(kind)], kinds[u(kind + 1)]):
                column = kind_columns[u(k)]
                complete = complete and known[u(row), u(column)]
                h = mixed(h, cells[u(row), u(column)])
            if not complete:
                continue
            slot = h & mask
            h = h * count + kind
            while buckets[u(slot)] >= 0 and hashes[u(slot)] != h:
                slot = (slot + 1) & mask
            bucket = buckets[u(slot)]
            if bucket < 0:
                continue
            begin, end = places[u(bucket), 0], places[u(bucket), 1]
            column, upper = places[u(bucket), 2], places[u(bucket), 3]
            if column >= 0:
                value = cells[u(row), u(column)]
                if not known[u(row), u(column)]:
                    value = HIGHEST if upper else LOWEST
                low, high = begin, end
                while low < high:
                    middle = (low + high) >> 1
                    bound = bounds[u(middle)]
                    if bound < value or (bound == value and not upper):
                        low = middle + 1
                    else:
                        high = middle
                if upper:
                    begin = low
                else:
                    end = low
            for m in range(begin, end):
                predicate = members[u(m)]
                holds = True
                for a in range(atoms[u(predicate)], atoms[u(predicate + 1)]):
                    column = columns[u(a)]
                    value = cells[u(row), u(column)]
                    if value < lows[u(a)] or value > highs[u(a)] or not known[u(row), u(column)]:
                        holds = False
                        break
                if holds:
                    if n == found.shape[0]:
                        return row
                    found[u(n)] = predicate
                    n += 1
        begins[u(row + 1)] = n
    return cells.shape[0]
"""
)
"""The predicates that each row satisfies: where each row's begin, and all of them. The rows that
are `done`, before and after."""

_INSTANCES = """
NODE, PARENT, ROW, START, POSITION, LINK, ENDED, HASH, WIDTH = 0, 1, 2, 3, 4, 5, 6, 7, 8
NEVER = (1 << 63) - 1


@inner
def over(pool, i, here, now, reach, restless):
    # Whether it can never advance.
    node = pool[u(i), NODE]
    return (pool[u(i), ENDED] < here or now - pool[u(i), START] >= reach[u(node)]
            or (restless[u(node)] and pool[u(i), POSITION] < here - 1))
"""


class Advance(NamedTuple):
    """What `ADVANCED` is called with, in order: the kernel's signature and its call come from here.

    Of lists of various lengths, the first name is where each begins and the second, if there is
    one, their values.
    """

    # The events at hand: where each row's predicates begin among all; its values.
    position: Any
    time: Any
    satisfied: Any
    predicates: Any
    cells: Any
    known: Any
    base: int
    first: int
    # The nodes.
    parent: Any
    depth: Any
    node_links: Any
    node_probe: Any
    node_key: Any
    strict: Any
    reach: Any
    restless: Any
    rules: Any
    # The edges of each predicate, and the negations that it ends.
    edges: Any
    edge_nodes: Any
    endings: Any
    ending_enders: Any
    enders: Any
    ender_list: Any
    ender_links: Any
    ender_probe: Any
    # What is compared with bound events, what instances are found by, what they look for.
    link_sets: Any
    links: Any
    keys: Any
    key_places: Any
    probes: Any
    probe_columns: Any
    # The instances.
    pool: Any
    heads: Any
    active: Any
    ender_heads: Any
    entry_nodes: Any
    entry_next: Any
    entry_on: Any
    # What comes out, and how far it is.
    out_nodes: Any
    out_rows: Any
    state: Any


def _signature(names: tuple[str, ...]) -> str:
    head = "def kernel("
    return fill(f"{head}{', '.join(names)}):", 100, subsequent_indent=" " * len(head))


ADVANCED = (
    _MIXED
    + _INSTANCES
    + """

@inner
def linked(pool, i, row, cells, known, base, depth, begin, end, links):
    # Whether the event at hand agrees with those that the instance has bound.
    for at in range(begin, end, 4):
        j = i
        for _ in range(depth - links[at + 2]):
            j = pool[j, PARENT]
        other = pool[j, ROW] - base
        if not known[row, links[at]] or not known[other, links[at + 3]]:
            return False
        x, y = cells[row, links[at]], cells[other, links[at + 3]]
        order = 1 if x < y else 2 if x == y else 4
        if not links[at + 1] & order:
            return False
    return True


@inner
def probe_hash(node, row, cells, known, begin, end, columns):
    # The hash of what is looked for in an index of instances; -1 if NULL is.
    h = mixed(node, node)
    for k in range(begin, end):
        if not known[row, columns[k]]:
            return -1
        h = mixed(h, cells[row, columns[k]])
    return h


@outer
"""
    + _signature(Advance._fields)
    + """
    room = out_nodes.shape[0]
    mask = heads.shape[0] - 1
    s, skip, n, m = state[1], state[2], state[3], 0
    for event in range(state[0], position.shape[0]):
        row = first + event - base
        here, now = position[u(event)], time[u(event)]
        while s < satisfied[u(event + 1)]:
            predicate = predicates[u(s)]
            for e in range(edges[u(predicate)] + skip, edges[u(predicate + 1)]):
                node = np.int64(edge_nodes[u(e)])
                before = np.int64(parent[u(node)])
                most = active[u(before)] if before else 1
                if most == 0:
                    continue
                if n + most > room or m + most > room:
                    state[0], state[1], state[2] = event, s, e - edges[u(predicate)]
                    state[3], state[4] = n, m
                    return
                i = slot = -1
                if before:
                    probe = node_probe[u(node)]
                    h = probe_hash(before, row, cells, known, probes[u(probe)],
                                   probes[u(probe + 1)], probe_columns)
                    if h < 0:
                        continue
                    slot = h & mask
                    i = heads[u(slot)]
                    if i < 0:
                        continue
                previous = -1
                while True:
                    if i >= 0:
                        own = pool[u(i), NODE]
                        after = pool[u(i), LINK]
                        if over(pool, i, here, now, reach, restless):
                            pool[u(i), HASH] = -1
                            active[u(own)] -= 1
                            if previous < 0:
                                heads[u(slot)] = after
                            else:
                                pool[u(previous), LINK] = after
                            i = after
                            if i < 0:
                                break
                            continue
                        usable = (own == before and pool[u(i), POSITION] < here
                                  and (not strict[u(node)] or pool[u(i), POSITION] == here - 1)
                                  and now - pool[u(i), START] < reach[u(node)])
                        usable = usable and linked(
                            pool, i, row, cells, known, base, depth[u(own)],
                            link_sets[u(node_links[u(node)])],
                            link_sets[u(node_links[u(node)] + 1)], links)
                    else:
                        after = -1
                        usable = True
                    if usable and rules[u(node)] < rules[u(node + 1)]:
                        out_nodes[u(m)] = node
                        out_rows[u(m), u(depth[u(node)])] = row + base
                        j = i
                        for d in range(depth[u(node)] - 1, -1, -1):
                            out_rows[u(m), u(d)] = pool[u(j), ROW]
                            j = pool[u(j), PARENT]
                        m += 1
                    elif usable:
                        pool[u(n), NODE] = node
                        pool[u(n), PARENT] = i
                        pool[u(n), ROW] = row + base
                        pool[u(n), START] = now if i < 0 else pool[u(i), START]
                        pool[u(n), POSITION] = here
                        pool[u(n), ENDED] = NEVER
                        g = mixed(node, node)
                        key = node_key[u(node)]
                        for k in range(keys[u(key)], keys[u(key + 1)], 2):
                            j = n
                            for _ in range(depth[u(node)] - key_places[u(k)]):
                                j = pool[u(j), PARENT]
                            other = pool[u(j), ROW] - base
                            if not known[u(other), u(key_places[u(k + 1)])]:
                                g = -1
                                break
                            g = mixed(g, cells[u(other), u(key_places[u(k + 1)])])
                        if g >= 0:  # else nothing can ever equal its key
                            pool[u(n), HASH] = g
                            place = g & mask
                            pool[u(n), LINK] = heads[u(place)]
                            heads[u(place)] = n
                            active[u(node)] += 1
                            for entry in range(enders[u(node)], enders[u(node + 1)]):
                                if not entry_on[u(entry)]:
                                    ender = ender_list[u(entry)]
                                    entry_on[u(entry)] = 1
                                    entry_next[u(entry)] = ender_heads[u(ender)]
                                    ender_heads[u(ender)] = entry
                            n += 1
                    if i < 0:
                        break
                    previous = i
                    i = after
                    if i < 0:
                        break
            skip = 0
            for e in range(endings[u(predicate)], endings[u(predicate + 1)]):
                ender = ending_enders[u(e)]
                tested, probe = ender_links[u(ender)], ender_probe[u(ender)]
                last = -1
                entry = ender_heads[u(ender)]
                while entry >= 0:
                    node = entry_nodes[u(entry)]
                    h = probe_hash(node, row, cells, known, probes[u(probe)],
                                   probes[u(probe + 1)], probe_columns)
                    slot = h & mask
                    i = heads[u(slot)] if h >= 0 else -1
                    previous = -1
                    while i >= 0:
                        after = pool[u(i), LINK]
                        if over(pool, i, here, now, reach, restless):
                            pool[u(i), HASH] = -1
                            active[u(pool[u(i), NODE])] -= 1
                            if previous < 0:
                                heads[u(slot)] = after
                            else:
                                pool[u(previous), LINK] = after
                        else:
                            if (pool[u(i), NODE] == node and pool[u(i), POSITION] < here
                                    and pool[u(i), ENDED] == NEVER
                                    and linked(pool, i, row, cells, known, base, depth[u(node)],
                                               link_sets[u(tested)], link_sets[u(tested + 1)],
                                               links)):
                                pool[u(i), ENDED] = here
                            previous = i
                        i = after
                    if active[u(node)] == 0:
                        entry_on[u(entry)] = 0
                        if last < 0:
                            ender_heads[u(ender)] = entry_next[u(entry)]
                        else:
                            entry_next[u(last)] = entry_next[u(entry)]
                    else:
                        last = entry
                    entry = entry_next[u(entry)]
            s += 1
    state[0], state[3], state[4] = position.shape[0], n, m
"""
)
"""Instances meet the rows: the nodes in which paths end, and the rows that they bound. `state` is
how far it is (the row, the predicate, and how many of its edges are behind), the number of
instances, and of ends. It advances along an edge if there is room for all that this may bring."""

COMPACTED = (
    _INSTANCES
    + """

@outer
def kernel(pool, n, here, now, reach, restless, active, kept, heads, size, room):
    # What can't advance is dropped, unless an instance that can has grown out of it.
    for i in range(n):
        if pool[u(i), HASH] >= 0 and over(pool, i, here, now, reach, restless):
            pool[u(i), HASH] = -1
            active[u(pool[u(i), NODE])] -= 1
        if pool[u(i), HASH] >= 0:
            j = i
            while j >= 0 and not kept[u(j)]:
                kept[u(j)] = 1
                j = pool[u(j), PARENT]
    m = 0
    for i in range(n):
        if kept[u(i)]:
            for k in range(WIDTH):
                pool[u(m), u(k)] = pool[u(i), u(k)]
            if pool[u(m), PARENT] >= 0:
                pool[u(m), PARENT] = kept[u(pool[u(m), PARENT])]
            kept[u(i)] = m
            m += 1
    while size < room * m:
        size *= 2
    for i in range(m):
        if pool[u(i), HASH] >= 0:
            slot = pool[u(i), HASH] & (size - 1)
            pool[u(i), LINK] = heads[u(slot)]
            heads[u(slot)] = i
    return m, size
"""
)
"""Instances without those that are over: how many are left, and of `heads`, how many have their
chains."""
