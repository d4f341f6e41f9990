"""Sequence scan and construction over active instance stacks (SASE 3.2, 4.1 to 4.3).

One kernel does both: it goes through the new events of all classes in the order of their
positions, pushes those of every class but the last on stacks, and for each of the last class walks
the pointers back. Of simultaneous events those of later classes come first, so that none finds
another one below it.

An instance of a stack is a row of `FIELDS` and a link for each attribute with partitions: to the
instance before it in the same partition. A table of partitions has a value in each row, and the
newest instance of each class with that value: one look tells where an event's predecessors are and
where it goes itself. Values are compared, not hashes, so a partition is never mixed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

from cepheid.kernels.code import Code
from cepheid.kernels.records import KernelState
from cepheid.kernels.templates.frame import Pieces, begin_function, emit

ROW, POSITION, CLOCK, START, RIP, LINK = range(6)
"""Fields of an instance. POSITION and CLOCK are those of its end. RIP is the most recent instance
before it in the stack before. START is the latest clock at which a sequence can begin that ends
with it, or with one before it in its partition: what RIP has, and so on down to the first class.
It never falls along a partition, so a search can end at the first instance that is too old. LINK
and those behind it are one for each attribute; of events that last, clock and position of their
own start follow."""

EMPTY = -(1 << 63) + 1
"""In place of a partition's first instance: no value has this entry."""

NEVER = 1 << 62

CONSTRUCT = 0
CURSORS = 1
"""Where a kernel stands: whether it constructs at all; then cursor and end of each class, size of
each stack, the instance at hand of each stack, entries of each table."""

SEEK = f"""

@jit
def seek(table, value):
    mask = table.shape[0] - 1
    folded = (value ^ (value >> 31)) & 0x7FFFFFFF
    e = ((folded * 0x9E3779B1) >> 16) & mask
    while table[u(e), 1] != {EMPTY} and table[u(e), 0] != value:
        e = (e + 1) & mask
    return e
"""

REHASH = f"""{SEEK}

@jit
def kernel(old, new, shifts, least, none):
    used = 0
    for o in range(old.shape[0]):
        if old[u(o), 1] == {EMPTY}:
            continue
        alive = False
        for c in range(1, old.shape[1]):
            alive = alive or old[u(o), u(c)] - shifts[u(c - 1)] > least
        if not alive:
            continue
        e = seek(new, old[u(o), 0])
        new[u(e), 0] = old[u(o), 0]
        for c in range(1, old.shape[1]):
            moved = old[u(o), u(c)] - shifts[u(c - 1)]
            new[u(e), u(c)] = moved if moved > least else none
        used += 1
    return used
"""
"""Move the entries of a table whose instances (or clocks) are not all gone: those that, less what
their stack has lost, are above `least`. How many there are."""

POP = f"""

@jit
def kernel(fields, n, count, below, links):
    for i in range(count, n):
        for f in range(fields.shape[1]):
            fields[u(i - count), u(f)] = fields[u(i), u(f)]
        fields[u(i - count), {RIP}] = max(fields[u(i), {RIP}] - below, -1)
        for f in range({LINK}, {LINK} + links):
            fields[u(i - count), u(f)] = max(fields[u(i), u(f)] - count, -1)
"""
"""Move the n instances of a stack down by `count`. The stack before has moved by `below`."""


@dataclass(frozen=True)
class Scan:
    """What the scan of a chain depends on. `keys[c]` are, for class c, the numbers of the columns
    that hold its values of the attributes: first those with chains, then those `awaited` (an
    event is dropped unless the stack before has seen its value). `nullable` are columns with
    NULLs. `windowed`: an event is pushed only if a sequence in the window can reach it. `lasting`:
    events have a start of their own."""

    keys: Sequence[tuple[int, ...]]
    chained: int
    awaited: int
    nullable: frozenset[int]
    windowed: bool
    lasting: bool

    @property
    def width(self) -> int:
        """How many fields an instance has."""
        return self.opened + 2 if self.lasting else self.opened

    @property
    def opened(self) -> int:
        """The field that has the clock of a lasting event's start."""
        return LINK + self.chained

    @property
    def arrays(self) -> tuple[str, ...]:
        """What is given of each class's events."""
        arrays = ("clocks", "positions", "rows")
        return (*arrays, "starts", "firsts") if self.lasting else arrays

    @property
    def last(self) -> int:
        return len(self.keys) - 1

    @property
    def columns(self) -> list[int]:
        return sorted({n for key in self.keys for n in key})

    @property
    def tables(self) -> int:
        return self.chained + self.awaited


@dataclass
class StackLevel:
    """What is tested when the event of a class is bound: lines that end inside the `if`s of the
    predicates, `depth` levels deep."""

    inner: list[str]
    depth: int


Use = Callable[[], None]
"""Write what is done with what was found."""


def scan_and_construct(scan: Scan, pieces: Pieces, levels: Sequence[StackLevel]) -> str:
    """`levels[c]` is for class c; `pieces` has the columns, what is read of the last class's event
    before anything else is bound, and the results, if the kernel writes them."""
    classes = range(scan.last + 1)
    code = Code()
    code.lines += SEEK.rstrip("\n").split("\n")
    if scan.chained > 1:
        _meet(code, scan.chained)
    begin_function(code)
    code.text(_HEAD)
    code.level = 1
    code.add(_names(scan))
    code.add(pieces.unpack)
    code.add(f"next{c} = {_next(c)}" for c in classes)
    with code.block("while True:"):
        code.line(f"now = min({', '.join(f'next{c}' for c in classes)})")
        with code.block(f"if now == {NEVER}:"):
            code.line("break")
        for c in reversed(classes):
            word = "if" if c == scan.last else "elif"
            with code.block(f"{word} next{c} == now:" if c else "else:"):
                if c == scan.last:
                    _event(code, scan, c, partial(_construct, code, scan, pieces, levels))
                else:
                    _event(code, scan, c, partial(_push, code, scan, c))
    code.add([*_save(scan), f"state[{KernelState.FRESH}] = 1", f"state[{KernelState.DONE}] = 1"])
    return code.source


_HEAD = f"""
def kernel(outer, inner, heads, cols, params, out, results, state):
    fresh = state[{KernelState.FRESH}]
    base = state[{KernelState.BASE}]
    window = state[{KernelState.WINDOW}]
    k = state[{KernelState.COUNT}]
    expired = state[{KernelState.EAT}]
    room = state[{KernelState.ROOM}]
    out_start = out.start
    out_end = out.end
    out_first = out.first
    out_last = out.last
    out_slots = out.slots
    places = cols[0]
    construct = places[{CONSTRUCT}]
"""


def kept(scan: Scan) -> list[str]:
    """What `places` holds from `CURSORS` on."""
    classes, below = range(scan.last + 1), range(scan.last)
    return [
        *(f"at{c}" for c in classes),
        *(f"to{c}" for c in classes),
        *(f"size{c}" for c in below),
        *(f"j{c}" for c in below),
        *(f"used{t}" for t in range(scan.tables)),
    ]


def _names(scan: Scan) -> list[str]:
    named = [f"{name} = places[{n}]" for n, name in enumerate(kept(scan), CURSORS)]
    for c in range(scan.last + 1):
        offset = c * len(scan.arrays)
        named += [f"{name}{c} = outer[{offset + n}]" for n, name in enumerate(scan.arrays)]
    named += [f"stack{c} = inner[{c}]" for c in range(scan.last)]
    named += [f"table{t} = heads[{t}]" for t in range(scan.tables)]
    for n in scan.columns:
        named.append(f"values{n} = cols[{1 + 2 * n}]")
        if n in scan.nullable:
            named.append(f"known{n} = cols[{2 + 2 * n}]")
    return named


def _save(scan: Scan) -> list[str]:
    saved = [f"places[{n}] = {name}" for n, name in enumerate(kept(scan), CURSORS)]
    return [*saved, f"state[{KernelState.COUNT}] = k"]


def _next(c: int) -> str:
    return f"positions{c}[u(at{c})] if at{c} < to{c} else {NEVER}"


# ── scan ──


def _at(scan: Scan, c: int, j: str, field: int) -> str:
    """A field of an instance. Without partitions stacks are read from end to end, and each field
    lies by itself; chains jump, and find all of an instance in one place."""
    return f"stack{c}[u({j}), {field}]" if scan.chained else f"stack{c}[{field}, u({j})]"


def _before(scan: Scan, c: int, j: str) -> str:
    """The instance before j in its partitions."""
    if not scan.chained:
        return f"{j} - 1"
    links = [_at(scan, c, j, LINK + a) for a in range(scan.chained)]
    return links[0] if scan.chained == 1 else f"meet(stack{c}, eat, {', '.join(links)})"


def _event(code: Code, scan: Scan, c: int, use: Use) -> None:
    """The event at hand of class c, if its values are known."""
    code.line(f"row = rows{c}[u(at{c})]")
    code.line(f"clock = clocks{c}[u(at{c})]")
    if scan.lasting:
        code.line(f"begin = starts{c}[u(at{c})]")
        code.line(f"first = firsts{c}[u(at{c})]")
    tests = [f"known{n}[u(r{c})]" for n in scan.keys[c] if n in scan.nullable]
    with code.block(f"if {'begin' if scan.lasting else 'clock'} > expired:"):
        code.line("eat = max(clock - window, expired)")
        code.line(f"r{c} = row - base")
        with code.block(f"if {' and '.join(tests)}:") if tests else nullcontext():
            use()
    code.line(f"at{c} += 1")
    code.line(f"next{c} = {_next(c)}")


def _seek(scan: Scan, c: int) -> list[str]:
    return [f"e{t} = seek(table{t}, values{scan.keys[c][t]}[u(r{c})])" for t in range(scan.tables)]


def _push(code: Code, scan: Scan, c: int) -> None:
    """Put the event on its stack: the first class's always, another's if it has a RIP."""
    fields = [
        (ROW, "row"),
        (POSITION, "now"),
        (CLOCK, "clock"),
        (START, "start"),
        (RIP, "rip"),
        *((LINK + a, f"table{a}[u(e{a}), {1 + c}]") for a in range(scan.chained)),
    ]
    put: list[str] = []
    if scan.lasting:
        # One that ends later may have begun earlier: then it is not what is reached.
        fields += [(scan.opened, "begin"), (scan.opened + 1, "first")]
        prior = f"table0[u(e0), {1 + c}]" if scan.chained else f"size{c} - 1"
        put += [
            f"prior = {prior}",
            "if prior >= 0:",
            f"    start = max(start, {_at(scan, c, 'prior', START)})",
        ]
    put += [f"{_at(scan, c, f'size{c}', field)} = {value}" for field, value in fields]
    put += [f"table{a}[u(e{a}), {1 + c}] = size{c}" for a in range(scan.chained)]
    put += [f"table{a}[u(e{a}), {1 + c}] = clock" for a in range(scan.chained, scan.tables)]
    put.append(f"size{c} += 1")
    if c > 0:
        _reached(code, scan, c, lambda: code.add(put))
        return
    opened = _seek(scan, c)
    for t in range(scan.tables):
        none = -1 if t < scan.chained else -NEVER
        opened += [
            f"if table{t}[u(e{t}), 1] == {EMPTY}:",
            f"    table{t}[u(e{t}), 0] = values{scan.keys[0][t]}[u(r0)]",
            *(f"    table{t}[u(e{t}), {1 + d}] = {none}" for d in range(scan.last)),
            f"    used{t} += 1",
        ]
    start = "begin" if scan.lasting else "clock"
    code.add([*opened, f"start = {start}", "rip = -1", *put])


def _reached(code: Code, scan: Scan, c: int, use: Use) -> None:
    """Find the event's RIP: the most recent instance before it in its partitions (the transition
    filter of SASE 4.2.1 and 4.2.2). If there is one, and one that counts: `use`."""
    since = "eat" if scan.windowed else "expired"
    first = "first" if scan.lasting else "now"
    seen = [f"table{t}[u(e{t}), 1] != {EMPTY}" for t in range(scan.tables)]
    seen += [f"table{t}[u(e{t}), {c}] > {since}" for t in range(scan.chained, scan.tables)]
    newest = [f"table{a}[u(e{a}), {c}]" for a in range(scan.chained)]
    if not newest:
        newest = [f"size{c - 1} - 1"]
    rip = newest[0] if len(newest) == 1 else f"meet(stack{c - 1}, eat, {', '.join(newest)})"
    code.add(_seek(scan, c))
    with code.block(f"if {' and '.join(seen)}:") if seen else nullcontext():
        code.line(f"rip = {rip}")
        with code.block(f"while rip >= 0 and {_at(scan, c - 1, 'rip', POSITION)} >= {first}:"):
            code.line(f"rip = {_before(scan, c - 1, 'rip')}")
        with code.block("if rip >= 0:"):
            code.line(f"start = {_at(scan, c - 1, 'rip', START)}")
            with code.block(f"if start > {since}:"):
                use()


def _meet(code: Code, chains: int) -> None:
    """The newest instance that is in all chains, not older than `eat`: from the one at hand of each
    they go back, each as far as the others have come (SASE's intersection of stacks)."""
    a = [f"a{n}" for n in range(chains)]
    begin_function(code)
    with code.block(f"def meet(stack, eat, {', '.join(a)}):"):
        with code.block(f"while a0 >= 0 and stack[u(a0), {CLOCK}] > eat:"):
            for n in range(1, chains):
                with code.block(f"while {a[n]} > a0:"):
                    code.line(f"{a[n]} = stack[u({a[n]}), {LINK + n}]")
                with code.block(f"if {a[n]} < a0:"):
                    with code.block(f"while a0 > {a[n]}:"):
                        code.line(f"a0 = stack[u(a0), {LINK}]")
                    code.line("continue")
            code.line("return a0")
        code.line("return -1")


# ── construction ──


def _construct(code: Code, scan: Scan, pieces: Pieces, levels: Sequence[StackLevel]) -> None:
    """The sequences that end with the event at hand: depth first, from its RIP back."""
    last = scan.last

    def construct() -> None:
        with code.block("if construct and start > eat:"):
            code.add(pieces.outer)
            code.add(levels[last].inner)
            with code.deeper(levels[last].depth):
                walk_back(last - 1)

    def walk_back(c: int) -> None:
        """Each instance of class c that can come before those at hand, and all before it."""
        if c < 0:
            _complete(code, scan, pieces)
            return
        top = "rip" if c == last - 1 else _at(scan, c + 1, f"j{c + 1}", RIP)
        with code.block("if fresh:"):
            code.line(f"j{c} = {top}")
        if c == 0:
            code.line("fresh = 1")
        with code.block(f"while j{c} >= 0 and {_at(scan, c, f'j{c}', START)} > eat:"):
            code.line(f"r{c} = {_at(scan, c, f'j{c}', ROW)} - base")
            code.add(levels[c].inner)
            with code.deeper(levels[c].depth):
                walk_back(c - 1)
            code.line(f"j{c} = {_before(scan, c, f'j{c}')}")

    _reached(code, scan, last, construct)


def _complete(code: Code, scan: Scan, pieces: Pieces) -> None:
    """Write the sequence at hand."""
    begin, first = (scan.opened, scan.opened + 1) if scan.lasting else (START, POSITION)
    times = (_at(scan, 0, "j0", begin), "clock", _at(scan, 0, "j0", first), "now")
    with code.block(f"if {times[0]} > eat:") if scan.lasting else nullcontext():
        with code.block("if k == room:"):
            code.add(_save(scan))
            code.line(f"state[{KernelState.FRESH}] = 0")
            code.line(f"state[{KernelState.DONE}] = 0")
            code.line("return")
        emit(code, pieces, [(c, f"r{c} + base") for c in range(scan.last + 1)], times)
