"""Kernels for the whole stream at once: its rows are numbered key by key, so that the number of a
row is its position, and every class takes every row.

Such a kernel goes through memory from one end to the other, and the next event is the next row. It
also chooses for SKIP PAST LAST EVENT: matches that end before the start at hand are decided.
"""

from __future__ import annotations

from collections.abc import Iterator

from cepheid.algebra.patterns import Absence, positive, walk
from cepheid.engine.automaton.instructions import Start
from cepheid.engine.automaton.program import Program
from cepheid.kernels.templates.automaton import CHOOSE, AutomatonState


def can_be_numbered(program: Program) -> bool:
    """Whether nothing in the program needs positions that are comparable between keys, or lies
    before the start of a match."""
    return (
        not (program.lasting or program.delayed or program.looks_back or program.back)
        and (program.in_time or not program.windowed)
        and len(program.starts) == 1
        and isinstance(program.instructions[0], Start)
        and not any(isinstance(part, Absence) for part in walk(program.pattern))
    )


def choosing(program: Program) -> str:
    """The functions that choose among matches: by end, start, and the events in the order of the
    pattern. A longer group comes before its own beginning."""
    lines = [
        "",
        "",
        "@jit",
        "def earlier(out, pools, a, b):",
        "    if out.last[u(a)] != out.last[u(b)]:",
        "        return out.last[u(a)] < out.last[u(b)]",
        "    if out.first[u(a)] != out.first[u(b)]:",
        "        return out.first[u(a)] < out.first[u(b)]",
        *(f"    {line}" for line in _compared(program)),
        "    return False",
    ]
    return "\n".join(lines) + CHOOSE


def _compared(program: Program) -> Iterator[str]:
    slot = pool = 0
    for variable in positive(program.pattern):
        yield f"x, y = out.slots[{slot}, u(a)], out.slots[{slot}, u(b)]"
        if variable not in program.groups:
            yield "if x != y:"
            yield "    return y < 0 or (0 <= x < y)"
            slot += 1
            continue
        size = slot + 1
        yield f"n, m = max(out.slots[{size}, u(a)], 0), max(out.slots[{size}, u(b)], 0)"
        yield "for i in range(min(n, m)):"
        yield f"    if pools[{pool}][u(x + i)] != pools[{pool}][u(y + i)]:"
        yield f"        return pools[{pool}][u(x + i)] < pools[{pool}][u(y + i)]"
        yield "if n != m:"
        yield "    return n > m"
        slot, pool = slot + 2, pool + 1


HEAD = [
    f"decided = state[{AutomatonState.DECIDED}]",
    f"bound = state[{AutomatonState.BOUND}]",
    f"latest = state[{AutomatonState.LATEST}]",
    "lowest, leader = FAR, FAR",
    "for i in range(decided, k):",
    "    if out_last[u(i)] < lowest:",
    "        lowest, leader = out_last[u(i)], out_first[u(i)]",
]
"""What a choosing kernel begins with: of the matches that aren't decided, `lowest` is where the
first one ends that would be considered, and `leader` where it starts."""

FULL = [
    f"state[{AutomatonState.DECIDED}] = decided",
    f"state[{AutomatonState.BOUND}] = bound",
    f"state[{AutomatonState.LATEST}] = latest",
]
"""What it leaves when its output is full."""


def before_start(row: str) -> list[str]:
    """Choose among the matches that end before the row at hand, and pass over a start that lies in
    one that is kept."""
    return [
        f"if latest < {row} and decided < k:",
        "    if decided + 1 == k:",
        "        bound = latest + 1",
        "    else:",
        "        k, bound = choose(out, pools, decided, k, bound)",
        "    decided = k",
        "    lowest, leader = FAR, FAR",
        f"if {row} < bound: continue",
    ]


def may_be_kept(start: str, end: str) -> str:
    """Whether a match may be kept. One that starts in the first that would be considered, and comes
    after it, never is: whatever is considered before that one starts no earlier than this."""
    return f"{start} > lowest or {end} < lowest or ({end} == lowest and {start} == leader)"


def noted(start: str, end: str) -> list[str]:
    """Note a match that may be kept."""
    return [
        f"latest = max(latest, {end})",
        f"if {end} < lowest:",
        f"    lowest, leader = {end}, {start}",
    ]


END = ["k, bound = choose(out, pools, decided, k, bound)"]
"""What it ends with."""
