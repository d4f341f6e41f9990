"""What all kernels have: arguments, how they stop and are resumed, how a record is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from cepheid.kernels.code import Code
from cepheid.kernels.records import KernelState

_HEAD = f"""
def kernel(outer, inner, heads, cols, params, out, results, state):
    o = state[{KernelState.OUTER}]
    i = state[{KernelState.INNER}]
    fresh = state[{KernelState.FRESH}]
    o_end = state[{KernelState.OUTER_END}]
    i_end = state[{KernelState.INNER_END}]
    i_base = state[{KernelState.INNER_BASE}]
    base = state[{KernelState.BASE}]
    window = state[{KernelState.WINDOW}]
    k = state[{KernelState.COUNT}]
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
"""
_OUTPUT = f"""
out_start = out.start
out_end = out.end
out_first = out.first
out_last = out.last
out_slots = out.slots
expired = state[{KernelState.EAT}]
room = state[{KernelState.ROOM}]
"""

# Operators may come to their records rounds later: the events of some have left the store by
# then, and no match can have them any more.
_SKIP = """
if o_{edge}[u(o)] <= expired:
    o += 1
    continue
"""

# The demand comes last among the columns: positions that rise, with floors that don't fall.
# A record that ends at or after all of them waits, and all behind it do. One that starts at or
# before its floor is passed over for good: later floors are no lower.
_DEMANDED = """
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
demand_floor = floors[u(d)]
if o_start[u(o)] <= demand_floor:
    o += 1
    continue
"""

_TAIL = f"""
state[{KernelState.OUTER}] = o
state[{KernelState.FRESH}] = 1
state[{KernelState.COUNT}] = k
state[{KernelState.DONE}] = 1
"""

FULL = f"""
if k == room:
    state[{KernelState.OUTER}] = o
    state[{KernelState.INNER}] = i
    state[{KernelState.FRESH}] = 0
    state[{KernelState.COUNT}] = k
    state[{KernelState.DONE}] = 0
    return
"""


@dataclass
class Pieces:
    """What an operator's template is filled with.

    `unpack` names columns and parameters. `outer` are lines that read the outer record alone,
    `inner` lines that end inside the `if`s of all predicates, `depth` levels deep. `hash` is the
    outer record's hash, if there are equalities. `results` are values to be written instead of a
    record. `demand`: only demanded records are made.
    """

    unpack: list[str] = field(default_factory=list)
    outer: list[str] = field(default_factory=list)
    inner: list[str] = field(default_factory=list)
    depth: int = 0
    hash: str | None = None
    results: list[str] | None = None
    demand: bool = False


def begin_function(code: Code) -> None:
    """Another function comes."""
    code.lines += ["", "", "@jit"]


def begin_kernel(*, chains: bool = False) -> Code:
    """The head of a kernel. `chains`: both inputs have one."""
    code = Code()
    begin_function(code)
    code.text(_HEAD)
    code.level = 1
    if chains:
        code.line("o_link = outer.link")
    code.text(_OUTPUT)
    if not chains:
        code.line("mask = heads.shape[0] - 1")
    return code


def end_kernel(code: Code, *more: str) -> str:
    """Note how far it is, and more; the source of the kernel."""
    code.lines.append("")
    code.add(more)
    code.text(_TAIL)
    return code.source


def unpack(code: Code, pieces: Pieces) -> None:
    """Name what the kernel is called with."""
    code.add(pieces.unpack)
    if pieces.demand:
        code.text(_DEMANDED)


def skip(code: Code, pieces: Pieces, edge: Literal["start", "finish"] = "start") -> None:
    """Pass over outer records of which no match can come; stop before those that must wait.
    `finish`: only those whose events are gone, since a match without a window has any length."""
    code.text(_SKIP.format(edge=edge))
    if pieces.demand:
        code.text(_WANTED)


@contextmanager
def matching(code: Code, pieces: Pieces) -> Iterator[None]:
    """Inside, the predicates hold."""
    code.add(pieces.inner)
    with code.deeper(pieces.depth):
        yield


def emit(
    code: Code,
    pieces: Pieces,
    copies: Iterable[tuple[int, str]],
    times: tuple[str, str, str, str],
) -> None:
    """Write a record: its slots and its edges; or its results, then start and end."""
    if pieces.results is not None:
        values = [*pieces.results, times[0], times[1]]
        code.add(f"results[{n}][u(k)] = {value}" for n, value in enumerate(values))
    else:
        code.add(f"out_slots[{slot}, u(k)] = {source}" for slot, source in copies)
        names = ("out_start", "out_end", "out_first", "out_last")
        code.add(f"{name}[u(k)] = {value}" for name, value in zip(names, times, strict=True))
    code.line("k += 1")


def copy_slots(
    target: int, source: str, record: str, slots: Iterable[int]
) -> list[tuple[int, str]]:
    return [(target + n, f"{source}[{s}, u({record})]") for n, s in enumerate(slots)]


OUTER_TIMES = ("o_start[u(o)]", "o_finish[u(o)]", "o_first[u(o)]", "o_last[u(o)]")
"""The edges of the outer record."""
