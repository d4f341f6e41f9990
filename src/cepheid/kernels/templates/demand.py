"""The demand of records (thesis 4.1); the kernels below have it in `frame`."""

ASK = """

@jit
def kernel(start, end, first, last, window, above_until, above_floor, until, floor):
    n = 0
    d = 0
    d_end = above_until.shape[0]
    for r in range(start.shape[0]):
        while d < d_end and above_until[u(d)] <= last[u(r)]:
            d += 1
        if d == d_end:
            break
        # One that begins no later than one before it, which has no higher floor, adds nothing.
        if start[u(r)] > above_floor[u(d)] and (n == 0 or first[u(r)] > until[u(n - 1)]):
            until[u(n)] = first[u(r)]
            floor[u(n)] = max(end[u(r)] - window, above_floor[u(d)])
            n += 1
    return n
"""
"""Write the demand of these records, of those that are themselves demanded from above, to
`until` and `floor`; how many entries there are. A NamedTuple of records would take longer to hand
over than all of this."""
