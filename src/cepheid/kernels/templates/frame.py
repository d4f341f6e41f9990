"""What all kernels have: arguments, how they stop and are resumed, how a record is written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from textwrap import indent
from typing import Literal

from cepheid.kernels.records import State

HEAD = f"""

@jit
def kernel(outer, inner, heads, cols, params, out, results, state):
    o = state[{State.OUTER}]
    i = state[{State.INNER}]
    fresh = state[{State.FRESH}]
    o_end = state[{State.OUTER_END}]
    i_end = state[{State.INNER_END}]
    i_base = state[{State.INNER_BASE}]
    base = state[{State.BASE}]
    window = state[{State.WINDOW}]
    k = state[{State.COUNT}]
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
    expired = state[{State.EAT}]
    room = state[{State.ROOM}]
    mask = heads.shape[0] - 1
"""

# Operators may come to their records rounds later: the events of some have left the store by
# then, and no match can have them any more.
_SKIP = """
if o_{edge}[u(o)] <= expired:
    o += 1
    continue
"""

# What is asked for comes last among the columns: positions that rise, with floors that don't fall.
# A record that ends at or after all of them waits, and all behind it do. One that starts at or
# before its floor is passed over for good: floors asked for later are no lower.
_ASKED = """
until = cols[-2]
floors = cols[-1]
d = 0
d_end = until.shape[0]
"""
_WANTED = """
while d < d_end and until[u(d)] <= o_last[u(o)]:
    d += 1
if d == d_end:
    break
asked = floors[u(d)]
if o_start[u(o)] <= asked:
    o += 1
    continue
"""

TAIL = f"""
    state[{State.OUTER}] = o
    state[{State.FRESH}] = 1
    state[{State.COUNT}] = k
    state[{State.DONE}] = 1
"""

FULL = f"""
if k == room:
    state[{State.OUTER}] = o
    state[{State.INNER}] = i
    state[{State.FRESH}] = 0
    state[{State.COUNT}] = k
    state[{State.DONE}] = 0
    return
"""


@dataclass
class Pieces:
    """What an operator's template is filled with.

    `unpack` names columns and parameters. `outer` are lines that read the outer record alone,
    `inner` lines that end inside the `if`s of all predicates, `depth` levels deep. `hash` is the
    outer record's hash, if there are equalities. `results` are values to be written instead of a
    record. `demand`: only what is asked for is made.
    """

    unpack: list[str] = field(default_factory=list)
    outer: list[str] = field(default_factory=list)
    inner: list[str] = field(default_factory=list)
    depth: int = 0
    hash: str | None = None
    results: list[str] | None = None
    demand: bool = False


def lines(texts: Iterable[str], level: int) -> str:
    return "".join(f"{'    ' * level}{text}\n" for text in texts)


def block(text: str, level: int) -> str:
    return indent(text.strip("\n") + "\n", "    " * level)


def unpack(pieces: Pieces) -> str:
    """Name what the kernel is called with."""
    return lines(pieces.unpack, 1) + (block(_ASKED, 1) if pieces.demand else "")


def skip(pieces: Pieces, edge: Literal["start", "finish"] = "start") -> str:
    """Pass over outer records of which no match can come; stop before those that must wait.
    `finish`: only those whose events are gone, since a match without a window has any length."""
    return block(_SKIP.format(edge=edge), 2) + (block(_WANTED, 2) if pieces.demand else "")


def emit(
    pieces: Pieces, copies: Iterable[tuple[int, str]], times: tuple[str, str, str, str]
) -> str:
    """Write a record: its slots and its edges; or its results, then start and end."""
    if pieces.results is not None:
        values = [*pieces.results, times[0], times[1]]
        return "\n".join([*(f"results[{n}][u(k)] = {v}" for n, v in enumerate(values)), "k += 1"])
    written = [f"out_slots[{slot}, u(k)] = {source}" for slot, source in copies]
    names = ("out_start", "out_end", "out_first", "out_last")
    written += [f"{name}[u(k)] = {value}" for name, value in zip(names, times, strict=True)]
    return "\n".join([*written, "k += 1"])


def copy_slots(
    target: int, source: str, record: str, slots: Iterable[int]
) -> list[tuple[int, str]]:
    return [(target + n, f"{source}[{s}, u({record})]") for n, s in enumerate(slots)]
