"""KSEQ (ZStream 4.4.5)."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import indent

from cepheid.kernels.records import State
from cepheid.kernels.templates.frame import (
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
    run: bool = False
    lasting: bool = False


def kseq(pieces: Pieces, slots: list[int], group: Group) -> str:
    """KSEQ (algorithm 4): outer records with the group of inner events in their gap.

    The qualifying elements are collected in `found`, a group is built in `taken[:m]`, and kept
    in the pool: cols[0], cols[1] and cols[2] are found, taken and pool.
    """
    n = len(slots)
    write = emit(
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
        opened, started = "opens[taken[0] - base]", "begins[taken[0] - base]"
        if group.lasting:
            opened, started = (f"least({a}, taken, 0, m, base)" for a in ("opens", "begins"))
        moves += [
            # A clock of events tells simultaneous ones apart, positions don't.
            "if m > 0:",
            f"    begin = min(begin, {opened})",
            f"    first = min(first, {started})",
        ]
    if group.trailing:
        moves += [
            "if m > 0:",
            "    finish = max(finish, clocks[taken[m - 1] - base])",
            "    last = max(last, positions[taken[m - 1] - base])",
        ]
    keep = f"""
if k == room or pooled + m > pool.shape[0]:
    state[{State.OUTER}] = o
    state[{State.INNER}] = at
    state[{State.FRESH}] = 0
    state[{State.COUNT}] = k
    state[{State.DONE}] = 2 if k < room else 0
    state[{State.POOL_COUNT}] = pooled
    return
"""
    store = "for e in range(m):\n    pool[pooled + e] = taken[u(e)]\n"
    finish = (
        lines(group.checks, 0)
        + block(keep, group.checks_depth)
        + lines(moves, group.checks_depth)
        + block(store, group.checks_depth)
        + block(write + "\npooled += m", group.checks_depth)
    )
    take = lines(group.running, 0) + lines(
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
    qualify = lines(pieces.inner, 0) + lines(
        ["found[u(count)] = i_slots[0, u(i)]", "count += 1"], pieces.depth
    )
    tests = [group.clock] if group.clock else []
    if group.lasting and not group.run:
        tests.append("i_first[u(i)] > low")
    if tests:
        qualify = f"if {' and '.join(tests)}:\n" + indent(qualify, "    ")
    if group.run:
        # The run ends with the record at hand: its events before, by its chain or one by one.
        back = "i - 1" if pieces.hash is None else "i_link[u(i)] - i_base"
        collect = (
            "i = o\n"
            f"while i >= 0 and count < {group.exact} and i_finish[u(i)] > eat:\n"
            + indent(qualify, "    ")
            + f"    i = {back}\n"
            + _REVERSE
        )
    elif pieces.hash is None:
        collect = (
            "i = max(upper_bound(i_last, i_end, low), upper_bound(i_finish, i_end, eat))\n"
            "for i in range(i, i_end):\n"
            "    if i_last[u(i)] >= high:\n        break\n" + indent(qualify, "    ")
        )
    else:
        collect = (
            f"h = {pieces.hash}\n"
            "j = heads[u(h & mask)] - i_base if h >= 0 else -1\n"
            "while j >= 0 and i_last[u(j)] > low and i_finish[u(j)] > eat:\n"
            "    i = j\n"
            "    j = i_link[u(j)] - i_base\n"
            "    if i_last[u(i)] < high:\n" + indent(qualify, "    " * 2) + "\n" + _REVERSE
        )
    return (
        HEAD
        + lines(
            [
                "found = cols[0]",
                "taken = cols[1]",
                "pool = cols[2]",
                "clocks = cols[3]",
                "positions = cols[4]",
                "opens = cols[5]",
                "begins = cols[6]",
                f"pooled = state[{State.POOL_COUNT}]",
                f"pool_base = state[{State.POOL_BASE}]",
                "resumed = i",
            ],
            1,
        )
        + unpack(pieces)
        + block("while o < o_end:", 1)
        + skip(pieces)
        + lines(pieces.outer, 2)
        + block("eat = max(o_finish[u(o)] - window, expired)\ncount = 0", 2)
        + block(f"low = {group.low}\nhigh = {group.high}", 2)
        + indent(collect, "    " * 2)
        + indent(build.replace("else i\n", "else resumed\n"), "    " * 2)
        + block("o += 1", 2)
        + f"\n    state[{State.POOL_COUNT}] = pooled"
        + TAIL
    )
