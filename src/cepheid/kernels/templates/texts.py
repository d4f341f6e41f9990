"""Functions of texts, which are places among bytes: where a text begins, and how long it is.

The order is that of the bytes, which is that of the letters. `_` of LIKE is a letter, which may
have several bytes.
"""

LENGTH_BITS = 28
"""The lower bits of a place are the text's length, the others where it begins."""

TEXTS = f"""
LENGTH_BITS = {LENGTH_BITS}
LENGTH = {(1 << LENGTH_BITS) - 1}


@jit
def text_order(heap, x, y):
    a, n = x >> LENGTH_BITS, x & LENGTH
    b, m = y >> LENGTH_BITS, y & LENGTH
    if x != y:
        for i in range(min(n, m)):
            one, other = np.int64(heap[u(a + i)]), np.int64(heap[u(b + i)])
            if one != other:
                return one - other
    return n - m


@jit
def text_same(heap, a, b, n):
    for i in range(n):
        if heap[u(a + i)] != heap[u(b + i)]:
            return False
    return True


@jit
def text_starts(heap, x, y):
    m = y & LENGTH
    return m <= (x & LENGTH) and text_same(heap, x >> LENGTH_BITS, y >> LENGTH_BITS, m)


@jit
def text_ends(heap, x, y):
    n, m = x & LENGTH, y & LENGTH
    a, b = x >> LENGTH_BITS, y >> LENGTH_BITS
    return m <= n and text_same(heap, a + n - m, b, m)


@jit
def text_contains(heap, x, y):
    n, m = x & LENGTH, y & LENGTH
    a, b = x >> LENGTH_BITS, y >> LENGTH_BITS
    for i in range(n - m + 1):
        if text_same(heap, a + i, b, m):
            return True
    return False


@jit
def next_letter(heap, at, end):
    at += 1
    while at < end and (np.int64(heap[u(at)]) & 192) == 128:
        at += 1
    return at


@jit
def text_like(heap, x, y):
    t, t_end = x >> LENGTH_BITS, (x >> LENGTH_BITS) + (x & LENGTH)
    p, p_end = y >> LENGTH_BITS, (y >> LENGTH_BITS) + (y & LENGTH)
    again, taken = -1, t
    while t < t_end:
        if p < p_end:
            letter = np.int64(heap[u(p)])
            if letter == 37:
                p += 1
                again, taken = p, t
                continue
            if letter == 95:
                p += 1
                t = next_letter(heap, t, t_end)
                continue
            width = 1
            if letter == 92 and p + 1 < p_end:
                letter, width = np.int64(heap[u(p + 1)]), 2
            if letter == np.int64(heap[u(t)]):
                p += width
                t += 1
                continue
        if again < 0:
            return False
        taken = next_letter(heap, taken, t_end)
        if again < p_end:
            letter = np.int64(heap[u(again)])
            if letter != 37 and letter != 92 and letter != 95:
                while taken < t_end and np.int64(heap[u(taken)]) != letter:
                    taken += 1
        p, t = again, taken
    while p < p_end and np.int64(heap[u(p)]) == 37:
        p += 1
    return p == p_end
"""
