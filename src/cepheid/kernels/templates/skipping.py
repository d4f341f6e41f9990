"""AFTER MATCH: which matches are kept."""

SKIP = """

@jit
def kernel(hashes, keys, leads, untils, memory, count, kept):
    table, known_hashes, known_keys, bounds = memory
    mask = table.shape[0] - 1
    parts = keys.shape[1]
    for i in range(hashes.shape[0]):
        h = hashes[u(i)]
        at = h & mask
        entry = table[u(at)]
        while entry >= 0:
            same = known_hashes[u(entry)] == h
            for p in range(parts):
                same = same and known_keys[u(entry), u(p)] == keys[u(i), u(p)]
            if same:
                break
            at = (at + 1) & mask
            entry = table[u(at)]
        if entry < 0:
            entry = count
            count += 1
            table[u(at)] = entry
            known_hashes[u(entry)] = h
            for p in range(parts):
                known_keys[u(entry), u(p)] = keys[u(i), u(p)]
            bounds[u(entry)] = leads[u(i)]
        kept[u(i)] = leads[u(i)] >= bounds[u(entry)]
        if kept[u(i)]:
            bounds[u(entry)] = untils[u(i)]
    return count
"""
"""Keep a match if it leads at or after the bound of its key, which then becomes `until`; matches
come in the order in which they are considered. `memory` is a hash table with open addressing:
entries of keys by hash, -1 for none, and of each entry its hash, its key and its bound. There must
be room for an entry per match. Return how many entries there are."""

BOUNDS = """

@jit
def kernel(hashes, keys, memory, found):
    table, known_hashes, known_keys, bounds = memory
    mask = table.shape[0] - 1
    parts = keys.shape[1]
    for i in range(hashes.shape[0]):
        h = hashes[u(i)]
        at = h & mask
        entry = table[u(at)]
        while entry >= 0:
            same = known_hashes[u(entry)] == h
            for p in range(parts):
                same = same and known_keys[u(entry), u(p)] == keys[u(i), u(p)]
            if same:
                found[u(i)] = bounds[u(entry)]
                break
            at = (at + 1) & mask
            entry = table[u(at)]
"""
"""The bounds of these keys; what is `found` of a key without one stays as it is."""
