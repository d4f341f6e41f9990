"""SEQ, CONJ (ZStream 4.4.1, 4.4.3) and plain filters."""

from __future__ import annotations

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
    copies = [
        *copy_slots(0, "i_slots", "i", inner_slots),
        *copy_slots(len(inner_slots), "o_slots", "o", outer_slots),
    ]
    times = ("i_start[u(i)]", "finish", "i_first[u(i)]", "o_last[u(o)]")
    test = "i_start[u(i)] > eat"
    if ceiling is not None:
        test += f" and first <= i_slots[{ceiling}, u(i)]"
    code = begin_kernel()
    unpack(code, pieces)
    with code.block("while o < o_end:"):
        skip(code, pieces)
        code.line("first = o_first[u(o)]")
        code.line("finish = o_finish[u(o)]")
        code.line("eat = max(finish - window, expired)")
        if pieces.demand:
            code.line("eat = max(eat, demand_floor)")
        code.add(pieces.outer)
        if pieces.hash is None:
            _search_left(code, floor)
            with code.block("while i < high:"):
                code.text(FULL)
                # As many candidates as there is room for: none of them needs to look again.
                code.line("stop = min(high, i + room - k)")
                with (
                    code.block("for i in range(i, stop):"),
                    code.block(f"if {test}:"),
                    matching(code, pieces),
                ):
                    emit(code, pieces, copies, times)
                code.line("i = stop")
        else:
            if floor is not None:
                test += f" and i_last[u(i)] >= o_slots[{floor}, u(o)]"
            with code.block("if fresh:"):
                code.line(f"h = {pieces.hash}")
                code.line("i = heads[u(h & mask)] - i_base if h >= 0 else -1")
            code.line("fresh = 1")
            with code.block("while i >= 0 and i_finish[u(i)] > eat:"):
                with code.block(f"if i_last[u(i)] < first and {test}:"), matching(code, pieces):
                    code.text(FULL)
                    emit(code, pieces, copies, times)
                code.line("i = i_link[u(i)] - i_base")
        code.line("o += 1")
    return end_kernel(code)


def _search_left(code: Code, floor: int | None) -> None:
    """Where the left records begin and end that may come before the right one."""
    code.line("high = lower_bound(i_last, i_end, first)")
    with code.block("if fresh:"):
        code.line("i = upper_bound(i_finish, high, eat)")
        if floor is not None:
            code.line(f"i = max(i, lower_bound(i_last, high, o_slots[{floor}, u(o)]))")
    code.line("fresh = 1")


def conj(left: Pieces, right: Pieces, left_slots: list[int], right_slots: list[int]) -> str:
    """CONJ (algorithm 3): two cursors; the earlier record meets all earlier ones of the other side.

    `outer` is the left input and `inner` the right. `left` are the pieces with the left record o
    at hand and the right record i searched for, `right` the other way round. Both inputs have a
    chain: `heads` is a pair of tables.
    """
    copies = [
        *copy_slots(0, "o_slots", "o", left_slots),
        *copy_slots(len(left_slots), "i_slots", "i", right_slots),
    ]
    code = begin_kernel(chains=True)
    code.line("heads_o = heads[0]")
    code.line("heads_i = heads[1]")
    code.line(f"o_base = state[{KernelState.OUTER_BASE}]")
    code.line(f"c = state[{KernelState.SIDE}]")
    code.line("at_o = o")
    code.line("at_i = i")
    code.add(left.unpack)
    # The earlier one first; of simultaneous ones, the one that the clock puts first.
    with code.block("while at_o < o_end or at_i < i_end:"):
        code.text("""
if at_o >= o_end or at_i >= i_end:
    left = at_i >= i_end
elif o_last[u(at_o)] != i_last[u(at_i)]:
    left = o_last[u(at_o)] < i_last[u(at_i)]
else:
    left = o_finish[u(at_o)] <= i_finish[u(at_i)]
""")
        with code.block("if left:"):
            _meet_earlier(code, left, "o", "i", copies)
        with code.block("else:"):
            _meet_earlier(code, right, "i", "o", copies)
    code.lines.append("")
    _stand(code, "at_o", "at_i", fresh=1)
    code.line(f"state[{KernelState.COUNT}] = k")
    code.line(f"state[{KernelState.DONE}] = 1")
    return code.source


def _stand(code: Code, outer: str, inner: str, fresh: int) -> None:
    code.line(f"state[{KernelState.OUTER}] = {outer}")
    code.line(f"state[{KernelState.INNER}] = {inner}")
    code.line(f"state[{KernelState.FRESH}] = {fresh}")


def _meet_earlier(
    code: Code, pieces: Pieces, mine: str, its: str, copies: list[tuple[int, str]]
) -> None:
    """With the record `mine` at hand; candidates of the other input are searched with `c`."""
    times = (
        "min(o_start[u(o)], i_start[u(i)])",
        f"{mine}_finish[u({mine})]",
        "min(o_first[u(o)], i_first[u(i)])",
        f"{mine}_last[u({mine})]",
    )

    def meet() -> None:
        with matching(code, pieces):
            with code.block("if k == room:"):
                _stand(code, "at_o", "at_i", fresh=0)
                code.line(f"state[{KernelState.SIDE}] = c")
                code.line(f"state[{KernelState.COUNT}] = k")
                code.line(f"state[{KernelState.DONE}] = 0")
                code.line("return")
            emit(code, pieces, copies, times)

    code.line(f"{mine} = at_{mine}")
    with code.block(f"if {mine}_start[u({mine})] <= expired:"):
        code.line(f"at_{mine} += 1")
        code.line("continue")
    code.line(f"eat = max({mine}_finish[u({mine})] - window, expired)")
    code.add(pieces.outer)
    if pieces.hash is None:
        with code.block("if fresh:"):
            code.line(f"c = upper_bound({its}_finish, at_{its}, eat)")
        code.line("fresh = 1")
        with code.block(f"while c < at_{its}:"):
            code.line(f"{its} = c")
            with code.block(f"if {its}_start[u({its})] > eat:"):
                meet()
            code.line("c += 1")
    else:
        table, origin = f"heads_{its}", f"{its}_base"
        with code.block("if fresh:"):
            code.line(f"h = {pieces.hash}")
            newest = f"{table}[u(h & ({table}.shape[0] - 1))]"
            code.line(f"c = {newest} - {origin} if h >= 0 else -1")
        code.line("fresh = 1")
        with code.block(f"while c >= 0 and {its}_finish[u(c)] > eat:"):
            code.line(f"{its} = c")
            with code.block(f"if c < at_{its} and {its}_start[u({its})] > eat:"):
                meet()
            code.line(f"c = {its}_link[u(c)] - {origin}")
    code.line(f"at_{mine} += 1")


def accepted(pieces: Pieces) -> str:
    """Outer events that some inner record, from `KernelState.INNER` on, accepts: it begins after
    the event, ends inside the event's window, and satisfies the predicates (thesis 4.4)."""
    code = begin_kernel()
    unpack(code, pieces)
    code.line("begin = i")
    with code.block("while o < o_end:"):
        skip(code, pieces)
        code.add(pieces.outer)
        code.text("""
while begin < i_end and i_last[u(begin)] <= o_last[u(o)]:
    begin += 1
found = False
i = begin
""")
        with code.block("while i < i_end and i_finish[u(i)] - window < o_start[u(o)]:"):
            with code.block("if i_first[u(i)] > o_last[u(o)]:"), matching(code, pieces):
                code.line("found = True")
                code.line("break")
            code.line("i += 1")
        code.line("i = begin")
        with code.block("if found:"):
            code.text(FULL)
            emit(code, pieces, copy_slots(0, "o_slots", "o", [0]), OUTER_TIMES)
        code.line("o += 1")
    return end_kernel(code)


def filter_(pieces: Pieces, slots: list[int], events: bool) -> str:
    """Records that satisfy the predicates; all of them are in `pieces.inner`. `events`: they are
    single ones, which may be matches without a window."""
    code = begin_kernel()
    unpack(code, pieces)
    with code.block("while o < o_end:"):
        skip(code, pieces, "finish" if events else "start")
        code.add(pieces.outer)
        with matching(code, pieces):
            code.text(FULL)
            emit(code, pieces, copy_slots(0, "o_slots", "o", slots), OUTER_TIMES)
        code.line("o += 1")
    return end_kernel(code)
