"""How many matches of a chain end at each event, with one comparison between two neighbors of it.

The events of the two are p and q. What stands before p, and what after q, is free: the product of
the matrices of single events says how many ways there are, and every such matrix has an inverse in
integers modulo 2**64. So the ways through a stretch are the inverse of the product up to it, times
the product up to its end; with M for the steps before p and N for those after q, a pair counts
`row 0 of M⁻¹ before the window`, times a column of M at p, times a row of N⁻¹ after q, times
`column of N now`. The middle two are added up in a table over all pairs in the window. For that,
trees over the ranks of the compared values have the columns of all p in the window, and the rows of
all q: an event that comes or expires asks them for the sum over those that it fits.
"""


def neighbor_source(steps: int, p_step: int) -> str:
    """The source of a kernel for a chain of so many steps; p is number `p_step` of them."""
    after = steps - p_step - 2
    constants = f"STEPS, P_STEP, LEFT = {steps}, {p_step}, {p_step + 1}"
    return f"\n{constants}\nAFTER, RIGHT = {after}, {max(after, 1)}\n{_FUNCTIONS}"


_FUNCTIONS = """
@jit
def put(tree, direct, rank, vector, sign, width):
    if direct:
        for j in range(width):
            tree[u(rank), u(j)] += sign * vector[u(j)]
        return
    at = rank + 1
    while at < tree.shape[0]:
        for j in range(width):
            tree[u(at), u(j)] += sign * vector[u(j)]
        at += at & -at


@jit
def ask(tree, direct, total, rank, factors, found, width):
    # The total, what is below the rank, and what is below the next one, each times a factor.
    for j in range(width):
        found[u(j)] = factors[0] * total[u(j)]
    if direct:
        for j in range(width):
            found[u(j)] += factors[2] * tree[u(rank), u(j)]
        return
    for n in range(2):
        if factors[u(n + 1)] != 0:
            at = rank + n
            while at > 0:
                for j in range(width):
                    found[u(j)] += factors[u(n + 1)] * tree[u(at), u(j)]
                at -= at & -at


@jit
def count_steps(bits, first, end, step, many):
    for t in range(many.shape[0]):
        many[u(t)] = 0
        for e in range(first, end):
            many[u(t)] += (bits[u(e)] >> (step + t)) & 1


@jit
def move(matrix, many):
    for t in range(many.shape[0] - 1, -1, -1):
        if many[u(t)] != 0:
            for i in range(matrix.shape[0]):
                matrix[u(i), u(t + 1)] += many[u(t)] * matrix[u(i), u(t)]


@jit
def unmove(inverse, many):
    for t in range(many.shape[0] - 1, -1, -1):
        if many[u(t)] != 0:
            for j in range(inverse.shape[1]):
                inverse[u(t), u(j)] -= many[u(t)] * inverse[u(t + 1), u(j)]


@jit
def unit(matrix):
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[0]):
            matrix[u(i), u(j)] = 1 if i == j else 0


@jit
def kernel(
    bits, places, clock, p_ranks, q_ranks, bounds, window, size, direct, for_q, for_p, out
):
    q_step = LEFT
    left, right = np.zeros((size + 1, LEFT), np.int64), np.zeros((size + 1, RIGHT), np.int64)
    all_left, all_right = np.zeros(LEFT, np.int64), np.zeros(RIGHT, np.int64)
    m = np.zeros((LEFT, LEFT), np.int64)
    m_begin = np.zeros((LEFT, LEFT), np.int64)
    n, n_inverse = np.zeros((RIGHT, RIGHT), np.int64), np.zeros((RIGHT, RIGHT), np.int64)
    pairs = np.zeros((LEFT, RIGHT), np.int64)
    columns = np.zeros((bits.shape[0], LEFT), np.int64)
    rows = np.zeros((bits.shape[0], RIGHT), np.int64)
    column, fresh = np.zeros(LEFT, np.int64), np.zeros(LEFT, np.int64)
    row = np.zeros(RIGHT, np.int64)
    before_p, after_q = np.zeros(P_STEP, np.int64), np.zeros(RIGHT - 1, np.int64)
    for key in range(bounds.shape[0] - 1):
        begin, end = bounds[u(key)], bounds[u(key + 1)]
        unit(m)
        unit(m_begin)
        unit(n)
        unit(n_inverse)
        pairs[:] = 0
        p = begin
        while p <= end:
            # The end of the key: all that is left expires.
            while begin < p and (p == end or clock[u(begin)] <= clock[u(p)] - window):
                last = begin + 1
                while last < p and places[u(last)] == places[u(begin)]:
                    last += 1
                for e in range(begin, last):
                    if (bits[u(e)] >> q_step) & 1 and AFTER > 0:
                        put(right, direct, q_ranks[u(e)], rows[u(e)], -1, RIGHT)
                        for j in range(RIGHT):
                            all_right[u(j)] -= rows[u(e), u(j)]
                for e in range(begin, last):
                    if (bits[u(e)] >> P_STEP) & 1:
                        if AFTER > 0:
                            ask(right, direct, all_right, p_ranks[u(e)], for_p, row, RIGHT)
                            for i in range(LEFT):
                                for j in range(RIGHT):
                                    pairs[u(i), u(j)] -= columns[u(e), u(i)] * row[u(j)]
                        put(left, direct, p_ranks[u(e)], columns[u(e)], -1, LEFT)
                        for i in range(LEFT):
                            all_left[u(i)] -= columns[u(e), u(i)]
                count_steps(bits, begin, last, 0, before_p)
                unmove(m_begin, before_p)
                begin = last
            if p == end:
                break
            q = p + 1
            while q < end and places[u(q)] == places[u(p)]:
                q += 1
            fresh[:] = 0
            for e in range(p, q):
                if (bits[u(e)] >> q_step) & 1:
                    ask(left, direct, all_left, q_ranks[u(e)], for_q, column, LEFT)
                    if AFTER == 0:
                        total = 0
                        for i in range(LEFT):
                            total += m_begin[0, u(i)] * column[u(i)]
                        out[u(e)] = total
                    for i in range(LEFT):
                        fresh[u(i)] += column[u(i)]
                if AFTER > 0 and (bits[u(e)] >> (STEPS - 1)) & 1:
                    total = 0
                    for i in range(LEFT):
                        for j in range(RIGHT):
                            total += m_begin[0, u(i)] * pairs[u(i), u(j)] * n[u(j), u(RIGHT - 1)]
                    out[u(e)] = total
                if (bits[u(e)] >> P_STEP) & 1:
                    for i in range(LEFT):
                        columns[u(e), u(i)] = m[u(i), u(P_STEP)]
            count_steps(bits, p, q, 0, before_p)
            move(m, before_p)
            if AFTER > 0:
                count_steps(bits, p, q, q_step + 1, after_q)
                move(n, after_q)
                unmove(n_inverse, after_q)
                for i in range(LEFT):
                    for j in range(RIGHT):
                        pairs[u(i), u(j)] += fresh[u(i)] * n_inverse[0, u(j)]
            for e in range(p, q):
                if AFTER > 0 and (bits[u(e)] >> q_step) & 1:
                    for j in range(RIGHT):
                        rows[u(e), u(j)] = n_inverse[0, u(j)]
                        all_right[u(j)] += rows[u(e), u(j)]
                    put(right, direct, q_ranks[u(e)], rows[u(e)], 1, RIGHT)
                if (bits[u(e)] >> P_STEP) & 1:
                    for i in range(LEFT):
                        all_left[u(i)] += columns[u(e), u(i)]
                    put(left, direct, p_ranks[u(e)], columns[u(e)], 1, LEFT)
            p = q
    return 0
"""
