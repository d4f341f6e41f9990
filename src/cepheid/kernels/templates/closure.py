"""KSEQ (ZStream 4.4.5)."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

from cepheid.kernels.code import Code
from cepheid.kernels.records import KernelState
from cepheid.kernels.templates.frame import (
    Pieces,
    begin_kernel,
    copy_slots,
    emit,
    end_kernel,
    matching,
    skip,
    unpack,
)

# Chains run backwards; groups are in order.
_REVERSE = """\
for f in range(count // 2):
    found[u(f)], found[count - 1 - f] = found[count - 1 - f], found[u(f)]
"""


@dataclass
class ClosureParts:
    """The parts of a KSEQ kernel that depend on the quantifier and its conditions.

    `running` lines end inside the `if`s of the running conditions (`running_depth` levels);
    `checks` likewise, for the complete group. `opening`, `reset` and `pushing` are of aggregates
    that are carried along: at the start, before each group, and for each element. `leading` and
    `trailing` move the record's edges.
    `lasting`: events have a duration, so that any element may be the one that starts first.
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
    opening: tuple[str, ...] = ()
    reset: tuple[str, ...] = ()
    pushing: tuple[str, ...] = ()
    run: bool = False
    lasting: bool = False


def kseq(pieces: Pieces, slots: list[int], group: ClosureParts) -> str:
    """KSEQ (algorithm 4): outer records with the group of inner events in their gap.

    The qualifying elements are collected in `found`, a group is built in `taken[:m]`, and kept
    in the pool: cols[0], cols[1] and cols[2] are found, taken and pool.
    """
    code = begin_kernel()
    names = ("found", "taken", "pool", "clocks", "positions", "opens", "begins")
    code.add(f"{name} = cols[{n}]" for n, name in enumerate(names))
    code.line(f"pooled = state[{KernelState.POOL_COUNT}]")
    code.line(f"pool_base = state[{KernelState.POOL_BASE}]")
    code.line("resumed = i")
    unpack(code, pieces)
    code.add(group.opening)
    with code.block("while o < o_end:"):
        skip(code, pieces)
        code.add(pieces.outer)
        code.line("eat = max(o_finish[u(o)] - window, expired)")
        code.line("count = 0")
        code.line(f"low = {group.low}")
        code.line(f"high = {group.high}")
        _collect(code, pieces, group)
        if group.exact is None:
            _build(code, pieces, slots, group)
        else:
            _build_runs(code, pieces, slots, group, group.exact)
        code.line("o += 1")
    return end_kernel(code, f"state[{KernelState.POOL_COUNT}] = pooled")


# ── the elements ──


def _collect(code: Code, pieces: Pieces, group: ClosureParts) -> None:
    if group.run:
        # The run ends with the record at hand: its events before, by its chain or one by one.
        code.line("i = o")
        inside = f"count < {group.exact} and i_finish[u(i)] > eat"
        with code.block(f"while i >= 0 and {inside}:"):
            _qualify(code, pieces, group)
            code.line("i = i - 1" if pieces.hash is None else "i = i_link[u(i)] - i_base")
        code.text(_REVERSE)
    elif pieces.hash is None:
        code.line("i = max(upper_bound(i_last, i_end, low), upper_bound(i_finish, i_end, eat))")
        with code.block("for i in range(i, i_end):"):
            with code.block("if i_last[u(i)] >= high:"):
                code.line("break")
            _qualify(code, pieces, group)
    else:
        code.line(f"h = {pieces.hash}")
        code.line("j = heads[u(h & mask)] - i_base if h >= 0 else -1")
        with code.block("while j >= 0 and i_last[u(j)] > low and i_finish[u(j)] > eat:"):
            code.line("i = j")
            code.line("j = i_link[u(j)] - i_base")
            with code.block("if i_last[u(i)] < high:"):
                _qualify(code, pieces, group)
        code.lines.append("")
        code.text(_REVERSE)


def _qualify(code: Code, pieces: Pieces, group: ClosureParts) -> None:
    """Note the inner event if it qualifies."""
    tests = [group.clock] if group.clock else []
    if group.lasting and not group.run:
        tests.append("i_first[u(i)] > low")
    tested = code.block(f"if {' and '.join(tests)}:") if tests else nullcontext()
    with tested, matching(code, pieces):
        code.line("found[u(count)] = i_slots[0, u(i)]")
        code.line("count += 1")


# ── the group ──


def _build_runs(
    code: Code, pieces: Pieces, slots: list[int], group: ClosureParts, exact: int
) -> None:
    """Each run of exactly so many elements."""
    code.line("at = 0 if fresh else resumed")
    code.line("fresh = 1")
    with code.block(f"while at + {exact} <= count:"):
        code.line("m = 0")
        code.add(group.reset)
        with code.block(f"for f in range(at, at + {exact}):"):
            _take(code, group)
        with code.block(f"if m == {exact}:"):
            _keep(code, pieces, slots, group)
        code.line("at += 1")


def _build(code: Code, pieces: Pieces, slots: list[int], group: ClosureParts) -> None:
    """The maximal group."""
    code.line("at = 0")
    code.line("m = 0")
    code.add(group.reset)
    with code.block("for f in range(count):"):
        _take(code, group)
        if group.optional:
            with code.block("if m == 1:"):
                code.line("break")
    most = f" and m <= {group.most}" if group.most is not None else ""
    with code.block(f"if m >= {group.least}{most}:"):
        _keep(code, pieces, slots, group)


def _take(code: Code, group: ClosureParts) -> None:
    code.add(group.running)
    with code.deeper(group.running_depth):
        code.add(group.pushing)
        code.line("taken[m] = found[u(f)]")
        code.line("m += 1")


def _keep(code: Code, pieces: Pieces, slots: list[int], group: ClosureParts) -> None:
    """Write the record with its group, if the checks hold."""
    n = len(slots)
    copies = [*copy_slots(0, "o_slots", "o", slots), (n, "pool_base + pooled"), (n + 1, "m")]
    code.add(group.checks)
    with code.deeper(group.checks_depth):
        with code.block("if k == room or pooled + m > pool.shape[0]:"):
            code.line(f"state[{KernelState.OUTER}] = o")
            code.line(f"state[{KernelState.INNER}] = at")
            code.line(f"state[{KernelState.FRESH}] = 0")
            code.line(f"state[{KernelState.COUNT}] = k")
            code.line(f"state[{KernelState.DONE}] = 2 if k < room else 0")
            code.line(f"state[{KernelState.POOL_COUNT}] = pooled")
            code.line("return")
        _move_edges(code, group)
        with code.block("for e in range(m):"):
            code.line("pool[pooled + e] = taken[u(e)]")
        emit(code, pieces, copies, ("begin", "finish", "first", "last"))
        code.line("pooled += m")


def _move_edges(code: Code, group: ClosureParts) -> None:
    code.line("begin = o_start[u(o)]")
    code.line("finish = o_finish[u(o)]")
    code.line("first = o_first[u(o)]")
    code.line("last = o_last[u(o)]")
    if group.leading:
        opened, started = "opens[taken[0] - base]", "begins[taken[0] - base]"
        if group.lasting:
            opened, started = (f"least({a}, taken, 0, m, base)" for a in ("opens", "begins"))
        # A clock of events tells simultaneous ones apart, positions don't.
        with code.block("if m > 0:"):
            code.line(f"begin = min(begin, {opened})")
            code.line(f"first = min(first, {started})")
    if group.trailing:
        with code.block("if m > 0:"):
            code.line("finish = max(finish, clocks[taken[m - 1] - base])")
            code.line("last = max(last, positions[taken[m - 1] - base])")
