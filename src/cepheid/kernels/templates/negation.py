"""NSEQ and NEG (ZStream 4.4.2)."""

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


def _search_back(pieces: Pieces, found: str, level: int, stop: str) -> str:
    """Walk the inner records from the newest that ends before `high` back to `stop`."""
    body = lines(pieces.inner, 0) + block(found, pieces.depth)
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
    """NSEQ with the negation on the left (algorithm 2): the latest start of a negated event before
    each record of the outer input becomes its bound, in the last slot of the output. If events
    have a duration, that need not be the event which ends last.

    `floor` is the slot of a bound that the record already has; the later of both counts.
    """
    found = "bound = max(bound, i_first[u(i)])\nif i_last[u(i)] <= bound:\n    break"
    begin = str(-(1 << 62)) if floor is None else f"o_slots[{floor}, u(o)]"
    copies = [*copy_slots(0, "o_slots", "o", slots), (len(slots), "bound")]
    times = ("o_start[u(o)]", "o_finish[u(o)]", "o_first[u(o)]", "o_last[u(o)]")
    return (
        HEAD
        + unpack(pieces)
        + block("while o < o_end:", 1)
        + skip(pieces)
        + block(
            f"""
eat = max(o_finish[u(o)] - window, expired)
high = o_first[u(o)]
bound = {begin}
""",
            2,
        )
        + lines(pieces.outer, 2)
        + _search_back(pieces, found, 2, "i_finish[u(i)] > eat")
        + block(FULL, 2)
        + block(emit(pieces, copies, times), 2)
        + block("o += 1", 2)
        + TAIL
    )


def nseq_after(pieces: Pieces, bound: int) -> str:
    """NSEQ with the negation on the right: the earliest end of a negated event after each record.

    Works in place on the outer records whose bound is still open: `bound` is their slot.
    `State.INNER` is the first inner record that is new since the last call.
    """
    body = lines(pieces.inner, 0) + block(
        f"o_slots[{bound}, u(o)] = i_last[u(i)]\nbreak", pieces.depth
    )
    return (
        HEAD
        + unpack(pieces)
        + block(
            f"""
begin = i
for o in range(o, o_end):
    if o_slots[{bound}, u(o)] != 1 << 62 or o_start[u(o)] <= expired:
        continue
""",
            1,
        )
        + lines(pieces.outer, 2)
        + block(
            """
i = max(begin, upper_bound(i_last, i_end, o_last[u(o)]))
while i < i_end:
    if i_first[u(i)] > o_last[u(o)]:
""",
            2,
        )
        + indent(body, "    " * 4)
        + block("i += 1", 3)
        + f"    state[{State.DONE}] = 1\n"
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
        + unpack(pieces)
        + block("while o < o_end:", 1)
        + skip(pieces)
        + lines(pieces.outer, 2)
        + block("eat = max(o_finish[u(o)] - window, expired)\nclear = True", 2)
        + block(f"low = {low}\nhigh = {high}", 2)
        + _search_back(
            search, "clear = False\nbreak", 2, "i_last[u(i)] > low and i_finish[u(i)] > eat"
        )
        + block("if clear:", 2)
        + block(FULL, 3)
        + block(emit(pieces, copies, times), 3)
        + block("o += 1", 2)
        + TAIL
    )
