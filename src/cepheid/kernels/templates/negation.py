"""NSEQ and NEG (ZStream 4.4.2)."""

from __future__ import annotations

from contextlib import nullcontext

from cepheid.kernels.code import Code
from cepheid.kernels.records import KernelState
from cepheid.kernels.templates.frame import (
    FULL,
    OUTER_TIMES,
    Pieces,
    begin_kernel,
    copy_slots,
    emit,
    end_kernel,
    matching,
    skip,
    unpack,
)


def _search_back(code: Code, pieces: Pieces, body: str, stop: str, test: str | None = None) -> None:
    """Walk the inner records from the newest that ends before `high` back to `stop`; of those that
    the test, too, allows, and all predicates: `body`."""

    def candidate() -> None:
        with nullcontext() if test is None else code.block(f"if {test}:"), matching(code, pieces):
            code.text(body)

    if pieces.hash is None:
        code.line("i = lower_bound(i_last, i_end, high) - 1")
        with code.block(f"while i >= 0 and {stop}:"):
            candidate()
            code.line("i -= 1")
    else:
        code.line(f"h = {pieces.hash}")
        code.line("i = heads[u(h & mask)] - i_base if h >= 0 else -1")
        with code.block(f"while i >= 0 and {stop}:"):
            with code.block("if i_last[u(i)] < high:"):
                candidate()
            code.line("i = i_link[u(i)] - i_base")


def nseq_before(pieces: Pieces, slots: list[int], floor: int | None) -> str:
    """NSEQ with the negation on the left (algorithm 2): the latest start of a negated event before
    each record of the outer input becomes its bound, in the last slot of the output. If events
    have a duration, that need not be the event which ends last.

    `floor` is the slot of a bound that the record already has; the later of both counts.
    """
    body = "bound = max(bound, i_first[u(i)])\nif i_last[u(i)] <= bound:\n    break"
    begin = str(-(1 << 62)) if floor is None else f"o_slots[{floor}, u(o)]"
    copies = [*copy_slots(0, "o_slots", "o", slots), (len(slots), "bound")]
    code = begin_kernel()
    unpack(code, pieces)
    with code.block("while o < o_end:"):
        skip(code, pieces)
        code.line("eat = max(o_finish[u(o)] - window, expired)")
        code.line("high = o_first[u(o)]")
        code.line(f"bound = {begin}")
        code.add(pieces.outer)
        _search_back(code, pieces, body, "i_finish[u(i)] > eat")
        code.text(FULL)
        emit(code, pieces, copies, OUTER_TIMES)
        code.line("o += 1")
    return end_kernel(code)


def nseq_after(pieces: Pieces, bound: int) -> str:
    """NSEQ with the negation on the right: the earliest end of a negated event after each record.

    Works in place on the outer records whose bound is still open: `bound` is their slot.
    `KernelState.INNER` is the first inner record that is new since the last call.
    """
    code = begin_kernel()
    unpack(code, pieces)
    code.line("begin = i")
    with code.block("for o in range(o, o_end):"):
        closed = f"o_slots[{bound}, u(o)] != 1 << 62 or o_start[u(o)] <= expired"
        with code.block(f"if {closed}:"):
            code.line("continue")
        code.add(pieces.outer)
        code.line("i = max(begin, upper_bound(i_last, i_end, o_last[u(o)]))")
        with code.block("while i < i_end:"):
            with code.block("if i_first[u(i)] > o_last[u(o)]:"), matching(code, pieces):
                code.line(f"o_slots[{bound}, u(o)] = i_last[u(i)]")
                code.line("break")
            code.line("i += 1")
    code.line(f"state[{KernelState.DONE}] = 1")
    return code.source


def neg(pieces: Pieces, slots: list[int], low: str, high: str, clock: str | None) -> str:
    """NEG: records of the outer input for which no inner record lies in the gap.

    `low` and `high` are expressions for the positions between which it may lie; `clock` is a
    further test of the inner record against the window's edges.
    """
    test = "i_first[u(i)] > low" + (f" and {clock}" if clock else "")
    stop = "i_last[u(i)] > low and i_finish[u(i)] > eat"
    code = begin_kernel()
    unpack(code, pieces)
    with code.block("while o < o_end:"):
        skip(code, pieces)
        code.add(pieces.outer)
        code.line("eat = max(o_finish[u(o)] - window, expired)")
        code.line("clear = True")
        code.line(f"low = {low}")
        code.line(f"high = {high}")
        _search_back(code, pieces, "clear = False\nbreak", stop, test)
        with code.block("if clear:"):
            code.text(FULL)
            emit(code, pieces, copy_slots(0, "o_slots", "o", slots), OUTER_TIMES)
        code.line("o += 1")
    return end_kernel(code)
