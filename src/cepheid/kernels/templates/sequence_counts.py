"""What the matches that end at each event come to, without finding them.

A pattern is an automaton whose states count partial matches. An event of a step moves them along
edges, which is a matrix: 1 on the diagonal, where partial matches wait, and the weights of edges.
The product of the matrices of the events in a window has, at (0, j), the partial matches that wait
in state j. With other weights the same product gives sums over matches, and with minima for sums
and sums for products, minima.

The product slides by two stacks. The *back* is one matrix, the product since the last flip. The
*front* holds, for every older event in the window, the first row of the product from there to the
flip. When the front has run empty, the back is gone through from its newest event, and becomes the
front. An event is moved once, so the cost depends on neither the window nor the matches.

The matrices of single events are written out, over local variables: those of every step, and of the
`kinds` of events that may be several. Simultaneous events and other kinds are rare: loops over the
edges make their matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from cepheid.kernels.code import Code

NO_VALUE = -1


class Semiring(Enum):
    """How weights are added and multiplied. Doubles are exact up to 2**53, integers wrap around 64
    bits and are right in those."""

    DOUBLES = "doubles"
    INTEGERS = "integers"
    LEAST = "least"

    @property
    def zero(self) -> str:
        return {"doubles": "0.0", "integers": "np.int64(0)", "least": "np.inf"}[self.value]

    @property
    def unit(self) -> str:
        return {"doubles": "1.0", "integers": "np.int64(1)", "least": "0.0"}[self.value]

    @property
    def dtype(self) -> str:
        return "np.int64" if self is Semiring.INTEGERS else "np.float64"

    def plus(self, a: str, b: str) -> str:
        return f"min({a}, {b})" if self is Semiring.LEAST else f"{a} + {b}"

    def times(self, a: str, b: str) -> str:
        return f"({a} + {b})" if self is Semiring.LEAST else f"{a} * {b}"


@dataclass(frozen=True, slots=True)
class WeightedEdge:
    """An event of the step moves partial matches from one state to another. `value` is the row of
    the values that weigh it, or NO_VALUE. An edge to its source comes on top of waiting."""

    step: int
    source: int
    target: int
    value: int = NO_VALUE


@dataclass(frozen=True, slots=True)
class Out:
    """An event of the step ends the partial matches that wait in a state."""

    step: int
    source: int
    output: int
    value: int = NO_VALUE


@dataclass(frozen=True)
class CountingShape:
    """An automaton; state 0 is the first. After an event of the step in `clears`, no partial match
    waits in that state any more. Steps of one of the `blocks` take simultaneous events one after
    the other, those of different blocks don't see each other's."""

    states: int
    edges: tuple[WeightedEdge, ...]
    outs: tuple[Out, ...]
    clears: tuple[tuple[int, int], ...]
    blocks: tuple[int, ...]

    def is_sum(self, steps: tuple[int, ...]) -> bool:
        """Whether the matrix of an event that may be these steps is the sum of theirs: whether no
        two blocks of them change how many wait in the same state."""
        changed = {(state, self.blocks[by]) for by, state in self.clears if by in steps}
        loops = (e for e in self.edges if e.source == e.target and e.step in steps)
        changed |= {(e.source, self.blocks[e.step]) for e in loops}
        return len({state for state, _ in changed}) == len(changed)

    @cached_property
    def live(self) -> frozenset[tuple[int, int]]:
        """Pairs of states of which one leads to the other, and that to an end."""
        following: dict[int, set[int]] = {i: {i} for i in range(self.states)}
        for _ in range(self.states):
            for edge in self.edges:
                for reached in following.values():
                    if edge.source in reached:
                        reached |= following[edge.target]
        ending = {out.source for out in self.outs}
        return frozenset(
            (i, j) for i in following[0] for j in following[i] if following[j] & ending
        )

    @cached_property
    def looping(self) -> bool:
        """Whether counts may grow beyond all doubles."""
        return any(edge.source == edge.target for edge in self.edges)

    def waits(self, state: int) -> bool:
        """Whether the diagonal is 1 for good."""
        loops = any(edge.source == edge.target == state for edge in self.edges)
        return not loops and all(state != cleared for _, cleared in self.clears)


_HELPERS = """
@jit
def unit_matrix(matrix, states):
    for i in range(states):
        for j in range(states):
            matrix[u(i), u(j)] = ONE if i == j else ZERO


@jit
def product(left, right, found, states):
    for i in range(states):
        for j in range(states):
            total = ZERO
            for m in range(states):
                a = left[u(i), u(m)]
                b = right[u(m), u(j)]
                if a != ZERO and b != ZERO:
                    total = PLUS(total, TIMES(a, b))
            found[u(i), u(j)] = total


@jit
def together(bits, p, q, edges, clears, blocks, values, states, moved, part, after):
    unit_matrix(moved, states)
    for block in range(blocks[u(blocks.shape[0] - 1)] + 1):
        unit_matrix(part, states)
        for e in range(p, q):
            step_matrix(bits[u(e)], e, block, edges, clears, blocks, values, states, part, after)
        for i in range(states):
            for j in range(states):
                if i == j:
                    moved[u(i), u(i)] = TIMES(moved[u(i), u(i)], part[u(i), u(i)])
                else:
                    moved[u(i), u(j)] = PLUS(moved[u(i), u(j)], part[u(i), u(j)])


@jit
def step_matrix(own, e, block, edges, clears, blocks, values, states, part, after):
    for i in range(states):
        for j in range(states):
            after[u(i), u(j)] = part[u(i), u(j)]
    for n in range(clears.shape[0]):
        step = clears[u(n), 0]
        if blocks[u(step)] == block and (own >> step) & 1:
            for i in range(states):
                after[u(i), u(clears[u(n), 1])] = ZERO
    for n in range(edges.shape[0]):
        step = edges[u(n), 0]
        if blocks[u(step)] == block and (own >> step) & 1:
            source = edges[u(n), 1]
            target = edges[u(n), 2]
            weight = ONE
            if edges[u(n), 3] >= 0:
                weight = values[u(edges[u(n), 3]), u(e)]
            for i in range(states):
                if weight != ZERO and part[u(i), u(source)] != ZERO:
                    more = TIMES(weight, part[u(i), u(source)])
                    after[u(i), u(target)] = PLUS(after[u(i), u(target)], more)
    for i in range(states):
        for j in range(states):
            part[u(i), u(j)] = after[u(i), u(j)]


@jit
def end_together(
    bits, p, q, edges, clears, outs, blocks, values, states, waiting, part, after, out
):
    for block in range(blocks[u(blocks.shape[0] - 1)] + 1):
        ending = False
        for n in range(outs.shape[0]):
            ending = ending or blocks[u(outs[u(n), 0])] == block
        if not ending:
            continue
        unit_matrix(part, states)
        for e in range(p, q):
            for n in range(outs.shape[0]):
                step = outs[u(n), 0]
                if blocks[u(step)] == block and (bits[u(e)] >> step) & 1:
                    total = ZERO
                    for i in range(states):
                        a = waiting[u(i)]
                        b = part[u(i), u(outs[u(n), 1])]
                        if a != ZERO and b != ZERO:
                            total = PLUS(total, TIMES(a, b))
                    if outs[u(n), 3] >= 0 and total != ZERO:
                        weight = values[u(outs[u(n), 3]), u(e)]
                        total = TIMES(total, weight) if weight != ZERO else ZERO
                    out[u(outs[u(n), 2]), u(e)] = PLUS(out[u(outs[u(n), 2]), u(e)], total)
            step_matrix(bits[u(e)], e, block, edges, clears, blocks, values, states, part, after)
"""

_HEAD = """
@jit
def kernel(bits, places, clock, bounds, window, edges, clears, outs, blocks, values, out):
    states = STATES
    front = np.empty((1024, STATES), DTYPE)
    back = np.empty((STATES, STATES), DTYPE)
    moved = np.empty((STATES, STATES), DTYPE)
    part = np.empty((STATES, STATES), DTYPE)
    after = np.empty((STATES, STATES), DTYPE)
    waiting = np.empty(STATES, DTYPE)
    for key in range(bounds.shape[0] - 1):
        begin = bounds[u(key)]
        end = bounds[u(key + 1)]
        flip = begin
        base = begin
        p = begin
        RESET
        while p < end:
            place = places[u(p)]
            own = bits[u(p)]
            q = p + 1
            while q < end and places[u(q)] == place:
                q += 1
            while begin < p and clock[u(begin)] <= clock[u(p)] - window:
                begin += 1
            if begin > flip:
                base = begin
                if p - begin > front.shape[0]:
                    front = np.empty((2 * (p - begin), STATES), DTYPE)
                RESET_FULL
                e = p
                while e > begin:
                    first = e - 1
                    while first > begin and places[u(first - 1)] == places[u(e - 1)]:
                        first -= 1
                    before = bits[u(first)]
                    if e - first == 1 and IS_WRITTEN(before):
                        FULL_STEPS
                    else:
                        FULL_TOGETHER
                    FRONT
                    e = first
                flip = p
                RESET
            if q - p == 1 and IS_WRITTEN(own):
                STEPS
            else:
                TOGETHER
            p = q
    return 0
"""


Steps = tuple[int, ...]


def counting_source(shape: CountingShape, ring: Semiring, kinds: tuple[Steps, ...] = ()) -> str:
    """The source of a kernel. `bits` says which steps an event may be. Rows are in the order of
    their places, key by key: key n has those from `bounds[n]` to `bounds[n + 1]`. The window is
    measured on the clock. `out` gets the outputs, and begins as zeros."""
    return _KernelSource(shape, ring, kinds).source


def _bits(steps: Steps) -> int:
    return sum(1 << step for step in steps)


@dataclass(frozen=True)
class _KernelSource:
    shape: CountingShape
    ring: Semiring
    kinds: tuple[Steps, ...]

    @property
    def source(self) -> str:
        parts = {
            "RESET": self._reset("b"),
            "RESET_FULL": self._reset("f"),
            "FULL_STEPS": self._switch("before", self._full_step),
            "FULL_TOGETHER": self._full_together(),
            "FRONT": [
                f"front[u(first - base), {j}] = {self._name('f', 0, j)}" for j in self._reached
            ],
            "STEPS": self._switch("own", self._step),
            "TOGETHER": self._together(),
        }
        code = Code()
        for line in _HEAD.split("\n"):
            text = line.strip()
            if text in parts:
                code.level = (len(line) - len(line.lstrip())) // 4
                code.add(parts[text] or ["pass"])
            else:
                code.level = 0
                code.line(line)
        written = "".join(f" or x == {_bits(steps)}" for steps in self.kinds)
        test = f"\n@jit\ndef IS_WRITTEN(x):\n    return x & (x - 1) == 0{written}\n\n"
        return self._operations() + _HELPERS + test + code.source

    def _operations(self) -> str:
        ring = self.ring
        return (
            f"\nSTATES = {self.shape.states}\n"
            f"DTYPE = {ring.dtype}\nZERO = {ring.zero}\nONE = {ring.unit}\n\n\n"
            f"@jit\ndef PLUS(a, b):\n    return {ring.plus('a', 'b')}\n\n\n"
            f"@jit\ndef TIMES(a, b):\n    return {ring.times('a', 'b')}\n"
        )

    @property
    def _reached(self) -> list[int]:
        return sorted(j for i, j in self.shape.live if i == 0)

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return sorted(self.shape.live)

    def _name(self, matrix: str, i: int, j: int) -> str:
        if (i, j) not in self.shape.live:
            return self.ring.zero
        if i == j and self.shape.waits(i):
            return self.ring.unit
        return f"{matrix}_{i}_{j}"

    def _reset(self, matrix: str) -> list[str]:
        return [
            f"{self._name(matrix, i, j)} = {self.ring.unit if i == j else self.ring.zero}"
            for i, j in self._pairs
            if self._name(matrix, i, j) != self.ring.unit
        ]

    def _sum(self, terms: Iterable[str]) -> str:
        some = [term for term in terms if term != self.ring.zero]
        if not some:
            return self.ring.zero
        total = some[0]
        for term in some[1:]:
            total = self.ring.plus(total, term)
        return total

    def _times(self, a: str, b: str) -> str:
        """With counts beyond all doubles, nothing times infinity would be NaN."""
        ring = self.ring
        if ring.zero in (a, b):
            return ring.zero
        if ring.unit in (a, b):
            return b if a == ring.unit else a
        product = ring.times(a, b)
        if ring is Semiring.DOUBLES and self.shape.looping:
            return f"({product} if {a} != 0.0 and {b} != 0.0 else 0.0)"
        return product

    def _weight(self, value: int, event: str) -> str:
        return self.ring.unit if value == NO_VALUE else f"values[{value}, u({event})]"

    def _switch(self, bits: str, step_lines: Callable[[Steps], list[str]]) -> list[str]:
        code = Code()
        head = "if"
        for steps in (*((step,) for step in range(len(self.shape.blocks))), *self.kinds):
            with code.block(f"{head} {bits} == {_bits(steps)}:"):
                code.add(step_lines(steps))
            head = "elif"
        return code.lines

    def _assigned(self, new: dict[str, str]) -> list[str]:
        """All at once, from the old values."""
        changed = {name: value for name, value in new.items() if name != value}
        if not changed:
            return []
        return [f"{', '.join(changed)} = {', '.join(changed.values())}"]

    def _step(self, steps: Steps) -> list[str]:
        """Matches that end here, and then the back times the event's matrix."""
        shape = self.shape
        code = Code()
        outs = [out for out in shape.outs if out.step in steps]
        if outs:
            sources = sorted({out.source for out in outs})
            code.add(self._waiting_sums(sources))
            for output in sorted({out.output for out in outs}):
                total = self._sum(
                    self._times(self._weight(out.value, "p"), f"w_{out.source}")
                    for out in outs
                    if out.output == output
                )
                code.line(f"out[{output}, u(p)] = {total}")
        cleared = {state for by, state in shape.clears if by in steps}
        edges = [edge for edge in shape.edges if edge.step in steps]
        new: dict[str, str] = {}
        for i, j in self._pairs:
            into = [edge for edge in edges if edge.target == j]
            if not into and j not in cleared:
                continue
            stay = self.ring.zero if j in cleared else self._name("b", i, j)
            moves = (
                self._times(self._weight(edge.value, "p"), self._name("b", i, edge.source))
                for edge in into
            )
            new[self._name("b", i, j)] = self._sum((stay, *moves))
        code.add(self._assigned(new))
        return code.lines

    def _waiting_sums(self, states: list[int]) -> list[str]:
        """How much waits in these states, of matches that begin in the window."""
        code = Code()
        with code.block("if begin < flip:"):
            for j in states:
                terms = (
                    self._times(f"front[u(begin - base), {i}]", self._name("b", i, j))
                    for i in self._reached
                    if (i, j) in self.shape.live
                )
                code.line(f"w_{j} = {self._sum(terms)}")
        with code.block("else:"):
            for j in states:
                code.line(f"w_{j} = {self._name('b', 0, j)}")
        return code.lines

    def _full_step(self, steps: Steps) -> list[str]:
        """The event's matrix times that of the events after it."""
        shape = self.shape
        cleared = {state for by, state in shape.clears if by in steps}
        edges = [edge for edge in shape.edges if edge.step in steps]
        new: dict[str, str] = {}
        for i, j in self._pairs:
            out_of = [edge for edge in edges if edge.source == i]
            if not out_of and i not in cleared:
                continue
            stay = self.ring.zero if i in cleared else self._name("f", i, j)
            moves = (
                self._times(self._weight(edge.value, "first"), self._name("f", edge.target, j))
                for edge in out_of
            )
            name = self._name("f", i, j)
            if name != self.ring.unit:
                new[name] = self._sum((stay, *moves))
        return self._assigned(new)

    def _packed(self, matrix: str) -> list[str]:
        return [
            "unit_matrix(back, states)",
            *(
                f"back[{i}, {j}] = {self._name(matrix, i, j)}"
                for i, j in self._pairs
                if self._name(matrix, i, j) != self.ring.unit
            ),
        ]

    def _unpacked(self, matrix: str) -> Iterator[str]:
        for i, j in self._pairs:
            if self._name(matrix, i, j) != self.ring.unit:
                yield f"{self._name(matrix, i, j)} = after[{i}, {j}]"

    def _full_together(self) -> list[str]:
        return [
            "together(bits, first, e, edges, clears, blocks, values, states, moved, part, after)",
            *self._packed("f"),
            "product(moved, back, after, states)",
            *self._unpacked("f"),
        ]

    def _together(self) -> list[str]:
        waiting = sorted({i for _, i in self.shape.live if (0, i) in self.shape.live})
        return [
            *self._waiting_sums(waiting),
            "waiting[:] = ZERO",
            *(f"waiting[{i}] = w_{i}" for i in waiting),
            "end_together(bits, p, q, edges, clears, outs, blocks, values, states, waiting, part, "
            "after, out)",
            "together(bits, p, q, edges, clears, blocks, values, states, moved, part, after)",
            *self._packed("b"),
            "product(back, moved, after, states)",
            *self._unpacked("b"),
        ]
