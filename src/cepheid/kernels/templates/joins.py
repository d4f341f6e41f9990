"""SEQ, CONJ (ZStream 4.4.1, 4.4.3) and plain filters."""

from __future__ import annotations

from textwrap import indent

from cepheid.kernels.records import State
from cepheid.kernels.templates.frame import (
    FULL,
    HEAD,
    TAIL,
    Pieces,
    block,
    copy_slots,
    emit,
    lines,
    skip,
    unpack,
)


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
    body = lines(pieces.inner, 0)
    write = block(
        emit(
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
        + unpack(pieces)
        + block("while o < o_end:", 1)
        + skip(pieces)
        + block(
            """
first = o_first[u(o)]
finish = o_finish[u(o)]
eat = max(finish - window, expired)
""",
            2,
        )
        + (block("eat = max(eat, asked)", 2) if pieces.demand else "")
    )
    if pieces.hash is None:
        low = "i = upper_bound(i_finish, high, eat)"
        if floor is not None:
            low += f"\ni = max(i, lower_bound(i_last, high, o_slots[{floor}, u(o)]))"
        return (
            head
            + lines(pieces.outer, 2)
            + block(
                "high = lower_bound(i_last, i_end, first)\nif fresh:\n" + indent(low, "    "), 2
            )
            + block("fresh = 1\nwhile i < high:", 2)
            + block(FULL, 3)
            # As many candidates as there is room for: none of them needs to look again.
            + block("stop = min(high, i + room - k)\nfor i in range(i, stop):", 3)
            + block(f"if {test}:", 4)
            + indent(body + write, "    " * 5)
            + block("i = stop", 3)
            + block("o += 1", 2)
            + TAIL
        )
    if floor is not None:
        test += f" and i_last[u(i)] >= o_slots[{floor}, u(o)]"
    return (
        head
        + lines(pieces.outer, 2)
        + block(
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
        + indent(body + block(FULL, pieces.depth) + write, "    " * 4)
        + block("i = i_link[u(i)] - i_base", 3)
        + block("o += 1", 2)
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
        full = f"""
if k == room:
    state[{State.OUTER}] = at_o
    state[{State.INNER}] = at_i
    state[{State.FRESH}] = 0
    state[{State.SIDE}] = c
    state[{State.COUNT}] = k
    state[{State.DONE}] = 0
    return
"""
        body = (
            lines(pieces.inner, 0)
            + block(full, pieces.depth)
            + block(emit(pieces, copies, times), pieces.depth)
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
        return begin + lines(pieces.outer, 0) + loop + f"at_{mine} += 1\n"

    head = HEAD.replace("    mask = heads.shape[0] - 1\n", "").replace(
        "    i_link = inner.link\n", "    i_link = inner.link\n    o_link = outer.link\n"
    )
    return (
        head
        + lines(
            [
                "heads_o = heads[0]",
                "heads_i = heads[1]",
                f"o_base = state[{State.OUTER_BASE}]",
                f"c = state[{State.SIDE}]",
                "at_o = o",
                "at_i = i",
            ],
            1,
        )
        + lines(left.unpack, 1)
        # The earlier one first; of simultaneous ones, the one that the clock puts first.
        + block("while at_o < o_end or at_i < i_end:", 1)
        + block(
            """
if at_o >= o_end or at_i >= i_end:
    left = at_i >= i_end
elif o_last[u(at_o)] != i_last[u(at_i)]:
    left = o_last[u(at_o)] < i_last[u(at_i)]
else:
    left = o_finish[u(at_o)] <= i_finish[u(at_i)]
if left:
""",
            2,
        )
        + indent(side(left, "o", "i"), "    " * 3)
        + block("else:", 2)
        + indent(side(right, "i", "o"), "    " * 3)
        + f"""
    state[{State.OUTER}] = at_o
    state[{State.INNER}] = at_i
    state[{State.FRESH}] = 1
    state[{State.COUNT}] = k
    state[{State.DONE}] = 1
"""
    )


def accepted(pieces: Pieces) -> str:
    """Outer events that some inner record, from `State.INNER` on, accepts: it begins after the
    event, ends inside the event's window, and satisfies the predicates (thesis 4.4)."""
    times = ("o_start[u(o)]", "o_finish[u(o)]", "o_first[u(o)]", "o_last[u(o)]")
    found = "found = True\nbreak"
    return (
        HEAD
        + unpack(pieces)
        + block("begin = i\nwhile o < o_end:", 1)
        + skip(pieces)
        + lines(pieces.outer, 2)
        + block(
            """
while begin < i_end and i_last[u(begin)] <= o_last[u(o)]:
    begin += 1
found = False
i = begin
while i < i_end and i_finish[u(i)] - window < o_start[u(o)]:
    if i_first[u(i)] > o_last[u(o)]:
""",
            2,
        )
        + indent(lines(pieces.inner, 0) + block(found, pieces.depth), "    " * 4)
        + block("i += 1", 3)
        + block("i = begin\nif found:", 2)
        + block(FULL, 3)
        + block(emit(pieces, copy_slots(0, "o_slots", "o", [0]), times), 3)
        + block("o += 1", 2)
        + TAIL
    )


def filter_(pieces: Pieces, slots: list[int], events: bool) -> str:
    """Records that satisfy the predicates; all of them are in `pieces.inner`. `events`: they are
    single ones, which may be matches without a window."""
    times = ("o_start[u(o)]", "o_finish[u(o)]", "o_first[u(o)]", "o_last[u(o)]")
    body = (
        lines(pieces.inner, 0)
        + block(FULL, pieces.depth)
        + block(emit(pieces, copy_slots(0, "o_slots", "o", slots), times), pieces.depth)
    )
    return (
        HEAD
        + unpack(pieces)
        + block("while o < o_end:", 1)
        + skip(pieces, "finish" if events else "start")
        + lines(pieces.outer, 2)
        + indent(body, "    " * 2)
        + block("o += 1", 2)
        + TAIL
    )
