"""Source of the operators' kernels (ZStream 4.4), around generated predicates.

Every kernel has the signature `kernel(outer, inner, heads, cols, params, out, results, state)`
with `Records` for outer, inner and out; see `State`. The root of a plan may write its RETURN
columns, `results`, instead of records. A kernel fills `out` up to its capacity, says in
`state` where it stands, and is resumed with the next call. The outer loop runs in the order of
ends, so the output is in that order too. Candidates of the inner side are found by binary search
on their last position, or, with equalities, by a walk along a hash chain, newest first.

Indexes are written `u(i)`: never negative, so Numba need not look whether they are, which is a
third of the time of a join without predicates.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from textwrap import indent

HEAD = """

@jit
def kernel(outer, inner, heads, cols, params, out, results, state):
    o = state[0]
    i = state[1]
    fresh = state[2]
    o_end = state[3]
    i_end = state[4]
    i_base = state[5]
    base = state[6]
    window = state[7]
    k = state[8]
    o_start = outer.start
    o_finish = outer.end
    o_first = outer.first
    o_last = outer.last
    o_slots = outer.slots
    i_start = inner.start
    i_finish = inner.end
    i_first = inner.first
    i_last = inner.last
    i_slots = inner.slots
    i_link = inner.link
    out_start = out.start
    out_end = out.end
    out_first = out.first
    out_last = out.last
    out_slots = out.slots
    expired = state[14]
    room = state[15]
    mask = heads.shape[0] - 1
"""

# Operators may come to their records rounds later: the events of some have left the store by
# then, and no match can have them any more.
SKIP = """
if o_start[u(o)] <= expired:
    o += 1
    continue
"""

TAIL = """
    state[0] = o
    state[2] = 1
    state[8] = k
    state[9] = 1
"""

FULL = """
if k == room:
    state[0] = o
    state[1] = i
    state[2] = 0
    state[8] = k
    state[9] = 0
    return
"""


@dataclass
class Pieces:
    """What an operator's template is filled with.

    `unpack` names columns and parameters. `outer` are lines that read the outer record alone,
    `inner` lines that end inside the `if`s of all predicates, `depth` levels deep. `hash` is the
    outer record's hash, if there are equalities. `results` are values to be written instead of a
    record.
    """

    unpack: list[str] = field(default_factory=list)
    outer: list[str] = field(default_factory=list)
    inner: list[str] = field(default_factory=list)
    depth: int = 0
    hash: str | None = None
    results: list[str] | None = None


def _lines(lines: Iterable[str], level: int) -> str:
    return "".join(f"{'    ' * level}{line}\n" for line in lines)


def _block(text: str, level: int) -> str:
    return indent(text.strip("\n") + "\n", "    " * level)


def _emit(
    pieces: Pieces, copies: Iterable[tuple[int, str]], times: tuple[str, str, str, str]
) -> str:
    """Write a record: its slots and its edges; or its results, then start and end."""
    if pieces.results is not None:
        values = [*pieces.results, times[0], times[1]]
        return "\n".join([*(f"results[{n}][u(k)] = {v}" for n, v in enumerate(values)), "k += 1"])
    lines = [f"out_slots[{slot}, u(k)] = {source}" for slot, source in copies]
    names = ("out_start", "out_end", "out_first", "out_last")
    lines += [f"{name}[u(k)] = {value}" for name, value in zip(names, times, strict=True)]
    return "\n".join([*lines, "k += 1"])


def copy_slots(
    target: int, source: str, record: str, slots: Iterable[int]
) -> list[tuple[int, str]]:
    return [(target + n, f"{source}[{s}, u({record})]") for n, s in enumerate(slots)]


def seq(
    pieces: Pieces,
    outer_slots: list[int],
    inner_slots: list[int],
    floor: int | None = None,
    ceiling: int | None = None,
) -> str:
    """SEQ (algorithm 1): the right input is the outer one, the left the inner one.

    `floor` is the slot of the right record that says how early the left may end, `ceiling` the
    slot of the left record that says how late the right may start (NSEQ bounds).
    """
    body = _lines(pieces.inner, 0)
    emit = _block(FULL, pieces.depth) + _block(
        _emit(
            pieces,
            [
                *copy_slots(0, "i_slots", "i", inner_slots),
                *copy_slots(len(inner_slots), "o_slots", "o", outer_slots),
            ],
            ("i_start[u(i)]", "finish", "i_first[u(i)]", "o_last[u(o)]"),
        ),
        pieces.depth,
    )
    test = "i_start[u(i)] > eat"
    if ceiling is not None:
        test += f" and first <= i_slots[{ceiling}, u(i)]"
    head = (
        HEAD
        + _lines(pieces.unpack, 1)
        + _block("while o < o_end:", 1)
        + _block(SKIP, 2)
        + _block(
            """
first = o_first[u(o)]
finish = o_finish[u(o)]
eat = max(finish - window, expired)
""",
            2,
        )
    )
    if pieces.hash is None:
        low = "i = upper_bound(i_finish, high, eat)"
        if floor is not None:
            low += f"\ni = max(i, lower_bound(i_last, high, o_slots[{floor}, u(o)]))"
        return (
            head
            + _lines(pieces.outer, 2)
            + _block(
                "high = lower_bound(i_last, i_end, first)\nif fresh:\n" + indent(low, "    "), 2
            )
            + _block("fresh = 1\nwhile i < high:", 2)
            + _block(f"if {test}:", 3)
            + indent(body + emit, "    " * 4)
            + _block("i += 1", 3)
            + _block("o += 1", 2)
            + TAIL
        )
    if floor is not None:
        test += f" and i_last[u(i)] >= o_slots[{floor}, u(o)]"
    return (
        head
        + _lines(pieces.outer, 2)
        + _block(
            f"""
if fresh:
    h = {pieces.hash}
    i = heads[u(h & mask)] - i_base if h >= 0 else -1
fresh = 1
while i >= 0 and i_finish[u(i)] > eat:
    if i_last[u(i)] < first and {test}:
""",
            2,
        )
        + indent(body + emit, "    " * 4)
        + _block("i = i_link[u(i)] - i_base", 3)
        + _block("o += 1", 2)
        + TAIL
    )


def conj(left: Pieces, right: Pieces, left_slots: list[int], right_slots: list[int]) -> str:
    """CONJ (algorithm 3): two cursors; the earlier record meets all earlier ones of the other side.

    `outer` is the left input and `inner` the right. `left` are the pieces with the left record o
    at hand and the right record i searched for, `right` the other way round. Both inputs have a
    chain: `heads` is a pair of tables.
    """

    def side(pieces: Pieces, own: str, other: str) -> str:
        """Lines for the record `own` at hand; candidates of `other` are searched with `c`."""
        mine, its = ("o", "i") if own == "o" else ("i", "o")
        times = (
            "min(o_start[u(o)], i_start[u(i)])",
            f"{mine}_finish[u({mine})]",
            "min(o_first[u(o)], i_first[u(i)])",
            f"{mine}_last[u({mine})]",
        )
        copies = [
            *copy_slots(0, "o_slots", "o", left_slots),
            *copy_slots(len(left_slots), "i_slots", "i", right_slots),
        ]
        full = """
if k == room:
    state[0] = at_o
    state[1] = at_i
    state[2] = 0
    state[13] = c
    state[8] = k
    state[9] = 0
    return
"""
        body = (
            _lines(pieces.inner, 0)
            + _block(full, pieces.depth)
            + _block(_emit(pieces, copies, times), pieces.depth)
        )
        begin = (
            f"{mine} = at_{mine}\n"
            f"if {mine}_start[u({mine})] <= expired:\n    at_{mine} += 1\n    continue\n"
            f"eat = max({mine}_finish[u({mine})] - window, expired)\n"
        )
        if pieces.hash is None:
            loop = (
                f"if fresh:\n    c = upper_bound({its}_finish, at_{its}, eat)\n"
                f"fresh = 1\nwhile c < at_{its}:\n"
                f"    {its} = c\n    if {its}_start[u({its})] > eat:\n"
                + indent(body, "    " * 2)
                + "    c += 1\n"
            )
        else:
            table, origin = ("heads_i", "i_base") if its == "i" else ("heads_o", "o_base")
            loop = (
                f"if fresh:\n    h = {pieces.hash}\n"
                f"    c = {table}[u(h & ({table}.shape[0] - 1))] - {origin} if h >= 0 else -1\n"
                f"fresh = 1\nwhile c >= 0 and {its}_finish[u(c)] > eat:\n"
                f"    {its} = c\n    if c < at_{its} and {its}_start[u({its})] > eat:\n"
                + indent(body, "    " * 2)
                + f"    c = {its}_link[u(c)] - {origin}\n"
            )
        return begin + _lines(pieces.outer, 0) + loop + f"at_{mine} += 1\n"

    head = HEAD.replace("    mask = heads.shape[0] - 1\n", "").replace(
        "    i_link = inner.link\n", "    i_link = inner.link\n    o_link = outer.link\n"
    )
    return (
        head
        + _lines(
            [
                "heads_o = heads[0]",
                "heads_i = heads[1]",
                "o_base = state[12]",
                "c = state[13]",
                "at_o = o",
                "at_i = i",
            ],
            1,
        )
        + _lines(left.unpack, 1)
        + _block("while at_o < o_end or at_i < i_end:", 1)
        + _block(
            "if at_i >= i_end or (at_o < o_end and o_last[u(at_o)] <= i_last[u(at_i)]):",
            2,
        )
        + indent(side(left, "o", "i"), "    " * 3)
        + _block("else:", 2)
        + indent(side(right, "i", "o"), "    " * 3)
        + """
    state[0] = at_o
    state[1] = at_i
    state[2] = 1
    state[8] = k
    state[9] = 1
"""
    )


def filter_(pieces: Pieces, slots: list[int]) -> str:
    """Records that satisfy the predicates; all of them are in `pieces.inner`."""
    times = ("o_start[u(o)]", "o_finish[u(o)]", "o_first[u(o)]", "o_last[u(o)]")
    body = (
        _lines(pieces.inner, 0)
        + _block(FULL, pieces.depth)
        + _block(_emit(pieces, copy_slots(0, "o_slots", "o", slots), times), pieces.depth)
    )
    return (
        HEAD
        + _lines(pieces.unpack, 1)
        + _block("while o < o_end:", 1)
        + _block(SKIP, 2)
        + _lines(pieces.outer, 2)
        + indent(body, "    " * 2)
        + _block("o += 1", 2)
        + TAIL
    )


def _search_back(pieces: Pieces, found: str, level: int, stop: str) -> str:
    """Walk the inner records from the newest that ends before `high` back to `stop`."""
    body = _lines(pieces.inner, 0) + _block(found, pieces.depth)
    if pieces.hash is None:
        text = (
            "i = lower_bound(i_last, i_end, high) - 1\n"
            f"while i >= 0 and {stop}:\n" + indent(body, "    ") + "    i -= 1\n"
        )
    else:
        text = (
            f"h = {pieces.hash}\n"
            "i = heads[u(h & mask)] - i_base if h >= 0 else -1\n"
            f"while i >= 0 and {stop}:\n"
            "    if i_last[u(i)] < high:\n"
            + indent(body, "    " * 2)
            + "    i = i_link[u(i)] - i_base\n"
        )
    return indent(text, "    " * level)


def nseq_before(pieces: Pieces, slots: list[int], floor: int | None) -> str:
    """NSEQ with the negation on the left (algorithm 2): the latest negated event before each
    record of the outer input becomes its bound, in the last slot of the output.

    `floor` is the slot of a bound that the record already has; the later of both counts.
    """
    found = "bound = max(bound, i_last[u(i)])\nbreak"
    begin = str(-(1 << 62)) if floor is None else f"o_slots[{floor}, u(o)]"
    copies = [*copy_slots(0, "o_slots", "o", slots), (len(slots), "bound")]
    times = ("o_start[u(o)]", "o_finish[u(o)]", "o_first[u(o)]", "o_last[u(o)]")
    return (
        HEAD
        + _lines(pieces.unpack, 1)
        + _block("while o < o_end:", 1)
        + _block(SKIP, 2)
        + _block(
            f"""
eat = max(o_finish[u(o)] - window, expired)
high = o_first[u(o)]
bound = {begin}
""",
            2,
        )
        + _lines(pieces.outer, 2)
        + _search_back(pieces, found, 2, "i_finish[u(i)] > eat")
        + _block(FULL, 2)
        + _block(_emit(pieces, copies, times), 2)
        + _block("o += 1", 2)
        + TAIL
    )


def nseq_after(pieces: Pieces, bound: int) -> str:
    """NSEQ with the negation on the right: the first negated event after each record.

    Works in place on the outer records whose bound is still open: `bound` is their slot.
    `state[1]` is the first inner record that is new since the last call.
    """
    body = _lines(pieces.inner, 0) + _block(
        f"o_slots[{bound}, u(o)] = i_first[u(i)]\nbreak", pieces.depth
    )
    return (
        HEAD
        + _lines(pieces.unpack, 1)
        + _block(
            f"""
begin = i
for o in range(o, o_end):
    if o_slots[{bound}, u(o)] != 1 << 62 or o_start[u(o)] <= expired:
        continue
""",
            1,
        )
        + _lines(pieces.outer, 2)
        + _block(
            """
i = max(begin, upper_bound(i_first, i_end, o_last[u(o)]))
while i < i_end:
""",
            2,
        )
        + indent(body, "    " * 3)
        + _block("i += 1", 3)
        + "    state[9] = 1\n"
    )


def neg(pieces: Pieces, slots: list[int], low: str, high: str, clock: str | None) -> str:
    """NEG: records of the outer input for which no inner record lies in the gap.

    `low` and `high` are expressions for the positions between which it may lie; `clock` is a
    further test of the inner record against the window's edges.
    """
    copies = copy_slots(0, "o_slots", "o", slots)
    times = ("o_start[u(o)]", "o_finish[u(o)]", "o_first[u(o)]", "o_last[u(o)]")
    test = "i_first[u(i)] > low" + (f" and {clock}" if clock else "")
    search = Pieces(
        inner=[f"if {test}:", *(f"    {line}" for line in pieces.inner)],
        depth=pieces.depth + 1,
        hash=pieces.hash,
    )
    return (
        HEAD
        + _lines(pieces.unpack, 1)
        + _block("while o < o_end:", 1)
        + _block(SKIP, 2)
        + _lines(pieces.outer, 2)
        + _block(f"low = {low}\nhigh = {high}\nclear = True", 2)
        + _search_back(search, "clear = False\nbreak", 2, "i_last[u(i)] > low")
        + _block("if clear:", 2)
        + _block(FULL, 3)
        + _block(_emit(pieces, copies, times), 3)
        + _block("o += 1", 2)
        + TAIL
    )


# Chains run backwards; groups are in order.
_REVERSE = """\
for f in range(count // 2):
    found[u(f)], found[count - 1 - f] = found[count - 1 - f], found[u(f)]
"""


@dataclass
class Group:
    """The parts of a KSEQ kernel that depend on the quantifier and its conditions.

    `running` lines end inside the `if`s of the running conditions (`running_depth` levels);
    `checks` likewise, for the complete group. `leading` and `trailing` move the record's edges.
    """

    low: str
    high: str
    clock: str | None
    least: int
    most: int | None
    exact: int | None
    optional: bool
    running: list[str]
    running_depth: int
    checks: list[str]
    checks_depth: int
    leading: bool
    trailing: bool
    run: bool = False


def kseq(pieces: Pieces, slots: list[int], group: Group) -> str:
    """KSEQ (algorithm 4): outer records with the group of inner events in their gap.

    The qualifying elements are collected in `found`, a group is built in `taken[:m]`, and kept
    in the pool: cols[0], cols[1] and cols[2] are found, taken and pool.
    """
    n = len(slots)
    emit = _emit(
        pieces,
        [*copy_slots(0, "o_slots", "o", slots), (n, "pool_base + pooled"), (n + 1, "m")],
        ("begin", "finish", "first", "last"),
    )
    moves = [
        "begin = o_start[u(o)]",
        "finish = o_finish[u(o)]",
        "first = o_first[u(o)]",
        "last = o_last[u(o)]",
    ]
    if group.leading:
        moves += [
            "if m > 0 and positions[taken[0] - base] < first:",
            "    begin = clocks[taken[0] - base]",
            "    first = positions[taken[0] - base]",
        ]
    if group.trailing:
        moves += [
            "if m > 0 and positions[taken[m - 1] - base] > last:",
            "    finish = clocks[taken[m - 1] - base]",
            "    last = positions[taken[m - 1] - base]",
        ]
    keep = """
if k == room or pooled + m > pool.shape[0]:
    state[0] = o
    state[1] = at
    state[2] = 0
    state[8] = k
    state[9] = 2 if k < room else 0
    state[10] = pooled
    return
"""
    store = "for e in range(m):\n    pool[pooled + e] = taken[u(e)]\n"
    finish = (
        _lines(group.checks, 0)
        + _block(keep, group.checks_depth)
        + _lines(moves, group.checks_depth)
        + _block(store, group.checks_depth)
        + _block(emit + "\npooled += m", group.checks_depth)
    )
    take = _lines(group.running, 0) + _lines(
        ["taken[m] = found[u(f)]", "m += 1"], group.running_depth
    )
    if group.exact is not None:
        build = (
            f"at = 0 if fresh else i\nfresh = 1\n"
            f"while at + {group.exact} <= count:\n"
            f"    m = 0\n"
            f"    for f in range(at, at + {group.exact}):\n"
            + indent(take, "    " * 2)
            + f"    if m == {group.exact}:\n"
            + indent(finish, "    " * 2)
            + "    at += 1\n"
        )
    else:
        stop = "\n    if m == 1:\n        break\n" if group.optional else ""
        size = f"m >= {group.least}" + (f" and m <= {group.most}" if group.most is not None else "")
        build = (
            "at = 0\nm = 0\nfor f in range(count):\n"
            + indent(take, "    ")
            + stop.lstrip("\n")
            + f"if {size}:\n"
            + indent(finish, "    ")
        )
    qualify = _lines(pieces.inner, 0) + _lines(
        ["found[u(count)] = i_slots[0, u(i)]", "count += 1"], pieces.depth
    )
    if group.clock:
        qualify = f"if {group.clock}:\n" + indent(qualify, "    ")
    if group.run:
        # The run ends with the record at hand: its events before, by its chain or one by one.
        back = "i - 1" if pieces.hash is None else "i_link[u(i)] - i_base"
        collect = (
            "i = o\neat = max(o_finish[u(o)] - window, expired)\n"
            f"while i >= 0 and count < {group.exact} and i_finish[u(i)] > eat:\n"
            + indent(qualify, "    ")
            + f"    i = {back}\n"
            + _REVERSE
        )
    elif pieces.hash is None:
        collect = (
            "for i in range(upper_bound(i_last, i_end, low), i_end):\n"
            "    if i_last[u(i)] >= high:\n        break\n" + indent(qualify, "    ")
        )
    else:
        collect = (
            f"h = {pieces.hash}\n"
            "j = heads[u(h & mask)] - i_base if h >= 0 else -1\n"
            "while j >= 0 and i_last[u(j)] > low:\n"
            "    i = j\n"
            "    j = i_link[u(j)] - i_base\n"
            "    if i_last[u(i)] < high:\n" + indent(qualify, "    " * 2) + "\n" + _REVERSE
        )
    return (
        HEAD
        + _lines(
            [
                "found = cols[0]",
                "taken = cols[1]",
                "pool = cols[2]",
                "clocks = cols[3]",
                "positions = cols[4]",
                "pooled = state[10]",
                "pool_base = state[11]",
                "resumed = i",
            ],
            1,
        )
        + _lines(pieces.unpack, 1)
        + _block("while o < o_end:", 1)
        + _block(SKIP, 2)
        + _lines(pieces.outer, 2)
        + _block(f"low = {group.low}\nhigh = {group.high}\ncount = 0", 2)
        + indent(collect, "    " * 2)
        + indent(build.replace("else i\n", "else resumed\n"), "    " * 2)
        + _block("o += 1", 2)
        + "\n    state[10] = pooled"
        + TAIL
    )
