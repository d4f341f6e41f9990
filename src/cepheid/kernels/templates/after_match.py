"""AFTER MATCH and LIMIT: which matches are kept.

`memory` is a hash table with open addressing: entries of keys by hash, -1 for none, and of each
entry its hash, its key and its bound.
"""

_FIND = """

@jit
def find(memory, h, keys, i):
    table, known_hashes, known_keys, bounds = memory
    mask = table.shape[0] - 1
    at = h & mask
    entry = table[u(at)]
    while entry >= 0:
        same = known_hashes[u(entry)] == h
        for p in range(keys.shape[1]):
            same = same and known_keys[u(entry), u(p)] == keys[u(i), u(p)]
        if same:
            break
        at = (at + 1) & mask
        entry = table[u(at)]
    return at, entry


@jit
def entered(memory, h, keys, i, bound, count):
    table, known_hashes, known_keys, bounds = memory
    at, entry = find(memory, h, keys, i)
    if entry < 0:
        entry = count
        count += 1
        table[u(at)] = entry
        known_hashes[u(entry)] = h
        for p in range(keys.shape[1]):
            known_keys[u(entry), u(p)] = keys[u(i), u(p)]
        bounds[u(entry)] = bound
    return entry, count
"""

SKIP = (
    _FIND
    + """

@jit
def kernel(hashes, keys, leads, untils, memory, count, kept):
    bounds = memory[3]
    for i in range(hashes.shape[0]):
        entry, count = entered(memory, hashes[u(i)], keys, i, leads[u(i)], count)
        kept[u(i)] = leads[u(i)] >= bounds[u(entry)]
        if kept[u(i)]:
            bounds[u(entry)] = untils[u(i)]
    return count
"""
)
"""Keep a match if it leads at or after the bound of its key, which then becomes `until`; matches
come in the order in which they are considered. There must be room for an entry per match. Return
how many entries there are."""

COUNT = (
    _FIND
    + """

@jit
def kernel(hashes, keys, starts, mosts, memory, count, kept):
    bounds = memory[3]
    for i in range(hashes.shape[0]):
        entry, count = entered(memory, hashes[u(i)], keys, i, starts[u(i)], count)
        kept[u(i)] = bounds[u(entry)] < mosts[u(i)]
        if kept[u(i)]:
            bounds[u(entry)] += 1
    return count
"""
)
"""Keep a match if fewer than `most` of its key were kept before. The bound of a key is how many
were; it begins at `start`."""

BOUNDS = (
    _FIND
    + """

@jit
def kernel(hashes, keys, memory, found):
    for i in range(hashes.shape[0]):
        at, entry = find(memory, hashes[u(i)], keys, i)
        if entry >= 0:
            found[u(i)] = memory[3][u(entry)]
"""
)
"""The bounds of these keys; what is `found` of a key without one stays as it is."""
