"""The loops of merged automata (Cayuga 4.3). Nothing here depends on the queries: they are arrays.

`cells[row, column]` are integers in the order of the values, `known` says which are not NULL.
Lists of various lengths are a pair of arrays, where each begins and all their values.
"""

_MIXED = """
NODE, PARENT, ROW, START, POSITION, LINK, ENDED, HASH, WIDTH = 0, 1, 2, 3, 4, 5, 6, 7, 8
LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1


@jit
def mixed(seed, value):
    # Never beyond 63 bits, so that plain Python comes to the same.
    h = ((seed ^ (value & 0x7FFFFFFF)) * 1103515245 + 12345) & 0x7FFFFFFF
    h ^= h >> 13
    h = ((h ^ ((value >> 31) & 0x7FFFFFFF)) * 1103515245 + 12345) & 0x7FFFFFFF
    return h ^ (h >> 15) ^ ((value >> 62) & 3)


@jit
def longer(values):
    more = np.empty(2 * values.shape[0], np.int64)
    more[: values.shape[0]] = values
    return more
"""

MIXED = _MIXED + "\n\nkernel = mixed\n"
"""`mixed(seed, value)`: a hash of 31 bits; without the JIT, of whole arrays."""

SATISFIED = (
    _MIXED
    + """

@jit
def kernel(cells, known, kinds, kind_columns, hashes, buckets, places, members, bounds,
           atoms, columns, lows, highs):
    # A bucket has the predicates of one kind (the columns that have to equal something) whose
    # constants are those of the event, and perhaps some others with the same hash. They are sorted
    # by one of their bounds, so that those that miss by it are not looked at.
    mask = hashes.shape[0] - 1
    begins = np.zeros(cells.shape[0] + 1, np.int64)
    found = np.empty(1024, np.int64)
    n = 0
    for row in range(cells.shape[0]):
        for kind in range(kinds.shape[0] - 1):
            h = mixed(0, kind)
            complete = True
            for k in range(kinds[kind], kinds[kind + 1]):
                column = kind_columns[k]
                complete = complete and known[row, column]
                h = mixed(h, cells[row, column])
            if not complete:
                continue
            slot = h & mask
            while buckets[slot] >= 0 and hashes[slot] != h:
                slot = (slot + 1) & mask
            bucket = buckets[slot]
            if bucket < 0:
                continue
            begin, end = places[bucket, 0], places[bucket, 1]
            column, upper = places[bucket, 2], places[bucket, 3]
            if column >= 0:
                if upper:
                    value = cells[row, column] if known[row, column] else HIGHEST
                    begin += lower_bound(bounds[begin:end], end - begin, value)
                else:
                    value = cells[row, column] if known[row, column] else LOWEST
                    end = begin + upper_bound(bounds[begin:end], end - begin, value)
            for m in range(begin, end):
                predicate = members[m]
                holds = True
                for a in range(atoms[predicate], atoms[predicate + 1]):
                    value = cells[row, columns[a]]
                    if not known[row, columns[a]] or value < lows[a] or value > highs[a]:
                        holds = False
                        break
                if holds:
                    if n == found.shape[0]:
                        found = longer(found)
                    found[n] = predicate
                    n += 1
        begins[row + 1] = n
    return begins, found[:n]
"""
)
"""The predicates that each row satisfies: where each row's begin, and all of them."""

_LINKS = """
@jit
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
        operator = links[at + 1]
        if operator == 0:
            holds = x == y
        elif operator == 1:
            holds = x != y
        elif operator == 2:
            holds = x < y
        elif operator == 3:
            holds = x <= y
        elif operator == 4:
            holds = x > y
        else:
            holds = x >= y
        if not holds:
            return False
    return True


@jit
def asked(seed, row, cells, known, begin, end, columns):
    # The hash of what is looked for in an index of instances; -1 if NULL is.
    h = mixed(1, seed)
    for k in range(begin, end):
        if not known[row, columns[k]]:
            return -1
        h = mixed(h, cells[row, columns[k]])
    return h


@jit
def relinked(pool, n, size):
    heads = np.full(size, -1, np.int64)
    for i in range(n):
        if pool[i, HASH] >= 0:
            slot = pool[i, HASH] & (size - 1)
            pool[i, LINK] = heads[slot]
            heads[slot] = i
    return heads
"""

ADVANCED = (
    _MIXED
    + _LINKS
    + """

@jit
def kernel(position, time, satisfied, predicates, cells, known, base, first,
           parent, depth, node_links, node_probe, node_key, strict, reach, restless,
           rules, edges, edge_nodes, endings, ending_enders, enders, ender_list,
           ender_links, ender_probe, link_sets, links, keys, key_places, probes, probe_columns,
           pool, n, heads, active, ender_heads, entry_nodes, entry_next, entry_on, steps):
    out_nodes = np.empty(256, np.int64)
    out_rows = np.empty((256, steps), np.int64)
    m = 0
    h = 0
    slot = 0
    for event in range(position.shape[0]):
        row = first + event - base
        here, now = position[event], time[event]
        for s in range(satisfied[event], satisfied[event + 1]):
            predicate = predicates[s]
            for e in range(edges[predicate], edges[predicate + 1]):
                node = edge_nodes[e]
                before = parent[node]
                if before == 0:
                    i = -1
                elif active[before] == 0:
                    continue
                else:
                    h = asked(before, row, cells, known, probes[node_probe[node]],
                              probes[node_probe[node] + 1], probe_columns)
                    if h < 0:
                        continue
                    slot = h & (heads.shape[0] - 1)
                    i = heads[slot]
                    if i < 0:
                        continue
                previous = -1
                while True:
                    if i >= 0:
                        own = pool[i, NODE]
                        after = pool[i, LINK]
                        if (pool[i, ENDED] < here or now - pool[i, START] >= reach[own]
                                or (restless[own] and pool[i, POSITION] < here - 1)):
                            # It will never go on: out of the chain.
                            pool[i, HASH] = -1
                            active[own] -= 1
                            if previous < 0:
                                heads[slot] = after
                            else:
                                pool[previous, LINK] = after
                            i = after
                            if i < 0:
                                break
                            continue
                        usable = (own == before and pool[i, POSITION] < here
                                  and (not strict[node] or pool[i, POSITION] == here - 1)
                                  and now - pool[i, START] < reach[node])
                        usable = usable and linked(
                            pool, i, row, cells, known, base, depth[own],
                            link_sets[node_links[node]], link_sets[node_links[node] + 1], links)
                    else:
                        after = -1
                        usable = True
                    if usable and rules[node] < rules[node + 1]:
                        if m == out_nodes.shape[0]:
                            out_nodes = longer(out_nodes)
                            more = np.empty((2 * m, steps), np.int64)
                            more[:m] = out_rows
                            out_rows = more
                        out_nodes[m] = node
                        out_rows[m, depth[node]] = row + base
                        j = i
                        for d in range(depth[node] - 1, -1, -1):
                            out_rows[m, d] = pool[j, ROW]
                            j = pool[j, PARENT]
                        m += 1
                    elif usable:
                        if n == pool.shape[0]:
                            more = np.empty((2 * n, WIDTH), np.int64)
                            more[:n] = pool
                            pool = more
                            heads = relinked(pool, n, 4 * n)
                            if before:
                                slot = h & (heads.shape[0] - 1)
                                after = pool[i, LINK]
                        pool[n, NODE] = node
                        pool[n, PARENT] = i
                        pool[n, ROW] = row + base
                        pool[n, START] = now if i < 0 else pool[i, START]
                        pool[n, POSITION] = here
                        pool[n, ENDED] = HIGHEST
                        g = mixed(1, node)
                        for k in range(keys[node_key[node]], keys[node_key[node] + 1], 2):
                            j = n
                            for _ in range(depth[node] - key_places[k]):
                                j = pool[j, PARENT]
                            other = pool[j, ROW] - base
                            if not known[other, key_places[k + 1]]:
                                g = -1
                                break
                            g = mixed(g, cells[other, key_places[k + 1]])
                        if g >= 0:  # else nothing can ever equal its key
                            pool[n, HASH] = g
                            place = g & (heads.shape[0] - 1)
                            pool[n, LINK] = heads[place]
                            heads[place] = n
                            active[node] += 1
                            for entry in range(enders[node], enders[node + 1]):
                                if not entry_on[entry]:
                                    entry_on[entry] = 1
                                    entry_next[entry] = ender_heads[ender_list[entry]]
                                    ender_heads[ender_list[entry]] = entry
                            n += 1
                    if i < 0:
                        break
                    previous = i
                    i = after
                    if i < 0:
                        break
            for e in range(endings[predicate], endings[predicate + 1]):
                ender = ending_enders[e]
                last = -1
                entry = ender_heads[ender]
                while entry >= 0:
                    node = entry_nodes[entry]
                    h = asked(node, row, cells, known, probes[ender_probe[ender]],
                              probes[ender_probe[ender] + 1], probe_columns)
                    i = heads[h & (heads.shape[0] - 1)] if h >= 0 else -1
                    while i >= 0:
                        if (pool[i, NODE] == node and pool[i, POSITION] < here
                                and pool[i, ENDED] == HIGHEST
                                and linked(pool, i, row, cells, known, base, depth[node],
                                           link_sets[ender_links[ender]],
                                           link_sets[ender_links[ender] + 1], links)):
                            pool[i, ENDED] = here
                        i = pool[i, LINK]
                    if active[node] == 0:
                        entry_on[entry] = 0
                        if last < 0:
                            ender_heads[ender] = entry_next[entry]
                        else:
                            entry_next[last] = entry_next[entry]
                    else:
                        last = entry
                    entry = entry_next[entry]
    return out_nodes[:m], out_rows[:m], pool, n, heads
"""
)
"""Instances meet the rows: the nodes in which paths end, and the rows that they bound; and the
instances, which may have moved."""

COMPACTED = (
    _MIXED
    + _LINKS
    + """

@jit
def kernel(pool, n, here, now, reach, restless, active, entry_on, ender_heads, enders, ender_list,
           entry_next):
    # What can't go on is dropped, unless an instance that can has grown out of it.
    kept = np.zeros(n, np.int64)
    active[:] = 0
    for i in range(n):
        node = pool[i, NODE]
        over = (pool[i, HASH] < 0 or pool[i, ENDED] < here or now - pool[i, START] >= reach[node]
                or (restless[node] and pool[i, POSITION] < here - 1))
        if over:
            pool[i, HASH] = -1
        else:
            active[node] += 1
            j = i
            while j >= 0 and not kept[j]:
                kept[j] = 1
                j = pool[j, PARENT]
    m = 0
    for i in range(n):
        if kept[i]:
            for k in range(WIDTH):
                pool[m, k] = pool[i, k]
            if pool[m, PARENT] >= 0:
                pool[m, PARENT] = kept[pool[m, PARENT]]
            kept[i] = m
            m += 1
    entry_on[:] = 0
    ender_heads[:] = -1
    for node in range(active.shape[0]):
        if active[node]:
            for entry in range(enders[node], enders[node + 1]):
                entry_on[entry] = 1
                entry_next[entry] = ender_heads[ender_list[entry]]
                ender_heads[ender_list[entry]] = entry
    size = 64
    while size < 2 * m:
        size *= 2
    return m, relinked(pool, m, size)
"""
)
"""Instances without those that are over; how many are left, and their chains."""
