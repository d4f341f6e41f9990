"""How many matches of a sequence end at each event, without finding them.

An event of step j moves a partial match from state j to j + 1, which is a matrix: 1 on the diagonal
and at (j, j + 1). The product of the matrices of the events in a window has, at (0, j), the number
of partial matches of the first j steps. Simultaneous events aren't before each other, so they are
one matrix together.

The product slides by two stacks. The *back* is one matrix, the product since the last flip. The
*front* holds, for every older event in the window, the first row of the product from there to the
flip. When the front has run empty, the back is gone through from its newest event, and becomes the
front. An event is moved once, so the cost depends on neither the window nor the matches.

Counts are kept twice: as integers, which may wrap around 64 bits and are right in their last 64
bits nevertheless, and as doubles, which tell whether they have.
"""

SEQUENCE_COUNTS = """

@jit
def kernel(steps, times, bounds, window, k, exact, about):
    n = times.shape[0]
    front = np.zeros((n, k + 1), np.int64)
    front_about = np.zeros((n, k + 1), np.float64)
    back = np.zeros((k + 1, k + 1), np.int64)
    back_about = np.zeros((k + 1, k + 1), np.float64)
    many = np.zeros(k, np.int64)
    for key in range(bounds.shape[0] - 1):
        begin = bounds[u(key)]
        end = bounds[u(key + 1)]
        flip = begin
        identity(back, back_about, k)
        p = begin
        while p < end:
            time = times[u(p)]
            q = p + 1
            while q < end and times[u(q)] == time:
                q += 1
            while begin < p and times[u(begin)] <= time - window:
                begin += 1
            if begin > flip:
                move(steps, times, begin, p, k, many, back, back_about, front, front_about)
                flip = p
                identity(back, back_about, k)
            found = back[0, u(k - 1)]
            found_about = back_about[0, u(k - 1)]
            if begin < flip:
                found = np.int64(0)
                found_about = 0.0
                for j in range(k):
                    found += front[u(begin), u(j)] * back[u(j), u(k - 1)]
                    found_about += front_about[u(begin), u(j)] * back_about[u(j), u(k - 1)]
            count(steps, p, q, k, many)
            if many[u(k - 1)] > 0:
                for i in range(p, q):
                    if (steps[u(i)] >> (k - 1)) & 1:
                        exact[u(i)] = found
                        about[u(i)] = found_about
            for s in range(k):
                j = k - 1 - s
                if many[u(j)] > 0:
                    for i in range(k + 1):
                        back[u(i), u(j + 1)] += many[u(j)] * back[u(i), u(j)]
                        back_about[u(i), u(j + 1)] += many[u(j)] * back_about[u(i), u(j)]
            p = q
    return 0
"""

_HELPERS = """

@jit
def identity(matrix, about, k):
    for i in range(k + 1):
        for j in range(k + 1):
            matrix[u(i), u(j)] = 1 if i == j else 0
            about[u(i), u(j)] = 1.0 if i == j else 0.0


@jit
def count(steps, p, q, k, many):
    for j in range(k):
        many[u(j)] = 0
    for i in range(p, q):
        for j in range(k):
            many[u(j)] += (steps[u(i)] >> j) & 1


@jit
def move(steps, times, begin, end, k, many, full, full_about, front, front_about):
    identity(full, full_about, k)
    q = end
    while q > begin:
        p = q - 1
        while p > begin and times[u(p - 1)] == times[u(q - 1)]:
            p -= 1
        count(steps, p, q, k, many)
        for j in range(k):
            if many[u(j)] > 0:
                for i in range(k + 1):
                    full[u(j), u(i)] += many[u(j)] * full[u(j + 1), u(i)]
                    full_about[u(j), u(i)] += many[u(j)] * full_about[u(j + 1), u(i)]
        for i in range(k + 1):
            front[u(p), u(i)] = full[0, u(i)]
            front_about[u(p), u(i)] = full_about[0, u(i)]
        q = p
"""

SEQUENCE_COUNTS = _HELPERS + SEQUENCE_COUNTS
"""`steps` has a bit for each step that an event may be; rows are in the order of time, key by key:
key n has those from `bounds[n]` to `bounds[n + 1]`."""
