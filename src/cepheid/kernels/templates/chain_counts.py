"""How many matches of a chain there are, by a walk from every event of one end of it.

A state that has no live variable is a number, `some_s`: of partial matches. Others are tables of
records: `code_s`, a number for what is read of the live event, `row_s`, one event that has it, and
`weight_s`, the partial matches. `at_s` says where a code is in the table: it counts if it is among
the records, and that record has the code, so nothing needs to be cleared.

A group of events is a state that its own events lead back to: partial matches in it may take a
further element. `done_s` is the number of those whose group is complete, which is all that the next
step reads.

Events of the same position are not before each other: the steps that they may be are gone through
from the last one, so that what is read of a state is what was there before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from cepheid.kernels.code import Code

Test = tuple[Sequence[str], int]
"""Lines of tests, each an `if` around what comes then, and how deep they end."""


@dataclass(frozen=True)
class Loop:
    """A step that is a group. After these tests, of the event and of the record with the element
    before, the event is one more element. `greedy`: it must be taken then, so no partial match
    stays where it was. `first`: so it is with the first element. `every` element completes a group
    of its own, or else the first one does."""

    whole: Test
    each: Test
    greedy: bool
    first: bool
    every: bool


@dataclass(frozen=True)
class WalkStep:
    """What an event of the step does. `before` tests what the anchor and the event decide, `each`
    also reads the record at row `r`. `live` is the step whose events distinguish the records of
    the state after it."""

    bit: int
    before: Test
    each: Test
    live: int | None
    loop: Loop | None = None


@dataclass(frozen=True)
class Kill:
    """An event that is forbidden in a state: partial matches that wait there are none any more."""

    bit: int
    state: int
    before: Test
    each: Test


@dataclass(frozen=True)
class WalkShape:
    """`steps[0]` is the anchor. `ends_at_anchor`: the walk goes back, so that the matches of an
    anchor end there. `pairs`: what is found are records of an anchor, an end and a live event, else
    a number for each event that ends matches."""

    steps: tuple[WalkStep, ...]
    kills: tuple[Kill, ...]
    ends_at_anchor: bool
    pairs: bool
    number: str  # the type of weights
    unpack: tuple[str, ...]
    anchor: tuple[str, ...]  # lines that read the anchor


_HELPERS = """
@jit
def grown(column):
    more = np.empty(2 * column.shape[0], column.dtype)
    more[: column.shape[0]] = column
    return more
"""


def chain_source(shape: WalkShape) -> str:
    """The source of a kernel. Rows are in the order of the walk, key by key. It stops at the next
    anchor once it has found `most` records, and is called again."""
    return _HELPERS + _WalkWriter(shape).source()


class _WalkWriter:
    def __init__(self, shape: WalkShape) -> None:
        self.shape = shape
        self.code = Code()

    @property
    def _tables(self) -> list[int]:
        return [s for s, step in enumerate(self.shape.steps) if step.live is not None]

    def source(self) -> str:
        code = self.code
        code.line(f"NUMBER = {self.shape.number}")
        code.line("ZERO, ONE = NUMBER(0), NUMBER(1)")
        code.line("")
        code.line("")
        code.line("@jit")
        with code.block(
            "def kernel(bits, places, clock, bounds, window, codes, sizes, cols, params, out, "
            "state, most):"
        ):
            code.add(self.shape.unpack)
            for s in self._tables:
                size = f"sizes[{self.shape.steps[s].live}]"
                code.line(
                    f"code_{s}, row_{s} = np.empty({size}, np.int64), np.empty({size}, np.int64)"
                )
                code.line(
                    f"at_{s}, weight_{s} = np.zeros({size}, np.int64), np.empty({size}, NUMBER)"
                )
            for name in ("anchors", "ends", "rows"):
                code.line(f"{name} = np.empty(1024, np.int64)")
            code.line("weights = np.empty(1024, NUMBER)")
            code.line("n = 0")
            code.line("key, p = state[0], state[1]")
            with code.block("while key < bounds.shape[0] - 1 and n < most:"):
                code.line("end = bounds[u(key + 1)]")
                with code.block("while p < end and n < most:"):
                    with code.block("if bits[u(p)] & 1:"):
                        self._from_anchor()
                    code.line("p += 1")
                with code.block("if p >= end:"):
                    code.line("key += 1")
            code.line("state[0], state[1] = key, p")
            code.line("return anchors[:n], ends[:n], rows[:n], weights[:n]")
        return code.source

    def _from_anchor(self) -> None:
        code, last = self.code, len(self.shape.steps) - 1
        code.add(self.shape.anchor)
        for s, step in enumerate(self.shape.steps):
            if step.live is not None:
                code.line(f"n_{s} = 0")
            else:
                code.line(f"some_{s} = {'ONE' if s == 0 and not step.loop else 'ZERO'}")
            if step.loop:
                code.line(f"done_{s} = ZERO")
        if self.shape.steps[0].loop:
            self._complete(0, "ONE", "p")
            self._add(0, "ONE", "p")
        code.line("limit = clock[u(p)] + window")
        code.line("q = p + 1")
        with code.block("while q < end and places[u(q)] == places[u(p)]:"):
            code.line("q += 1")
        if self.shape.steps[0].loop:
            code.line("first = p + 1")
            self._event(self.shape.steps[0].bit, partial(self._element, 0))
        with code.block("while q < end and clock[u(q)] < limit:"):
            code.line("first, place = q, places[u(q)]")
            code.line("q += 1")
            with code.block("while q < end and places[u(q)] == place:"):
                code.line("q += 1")
            for s in range(last, -1, -1):
                if s < last:
                    for kill in self.shape.kills:
                        if kill.state == s:
                            self._event(kill.bit, partial(self._kill, kill))
                if self.shape.steps[s].loop:
                    self._event(self.shape.steps[s].bit, partial(self._element, s))
                elif s:
                    self._event(self.shape.steps[s].bit, partial(self._step, s))
        if self.shape.ends_at_anchor:
            if self.shape.steps[last].live is None:
                self._counted("p", "p", "-1", f"some_{last}")
            else:
                with code.block(f"for i in range(n_{last}):"):
                    self._counted("p", "p", f"row_{last}[u(i)]", f"weight_{last}[u(i)]")

    def _event(self, bit: int, write: Callable[[], None]) -> None:
        """For each of the events of this position that may be the step."""
        code = self.code
        with code.block("for e in range(first, q):"), code.block(f"if bits[u(e)] & {1 << bit}:"):
            write()

    def _tested(self, test: Test, write: Callable[[], None]) -> None:
        lines, depth = test
        self.code.add(lines)
        with self.code.deeper(depth):
            write()

    def _kill(self, kill: Kill) -> None:
        s, code = kill.state, self.code

        def each() -> None:
            with code.block(f"for i in range(n_{s}):"):
                code.line(f"r = row_{s}[u(i)]")
                self._tested(kill.each, lambda: code.line(f"weight_{s}[u(i)] = ZERO"))

        if self.shape.steps[s].live is None:
            self._tested(kill.before, lambda: code.line(f"some_{s} = ZERO"))
        else:
            self._tested(kill.before, each)

    def _step(self, s: int) -> None:
        step, before, code = self.shape.steps[s], self.shape.steps[s - 1], self.code
        records = before.live is not None and before.loop is None
        rowwise = records and (step.live == before.live or (self._ends(s) and self.shape.pairs))

        def add(weight: str, row: str) -> None:
            if self._ends(s):
                self._counted("p", "e", "r" if row == "r" else "-1", weight)
            else:
                self._add(s, weight, row)

        def whole() -> None:
            if not rowwise:
                add(self._arriving(s), "e")
                return
            with code.block(f"for i in range(n_{s - 1}):"):
                code.line(f"r = row_{s - 1}[u(i)]")
                self._tested(step.each, lambda: add(f"weight_{s - 1}[u(i)]", "r"))

        self._tested(step.before, whole)

    def _ends(self, s: int) -> bool:
        """Whether the step completes matches at its event."""
        return s == len(self.shape.steps) - 1 and not self.shape.ends_at_anchor

    def _arriving(self, s: int) -> str:
        """The number of partial matches that go on with the event."""
        before, step, code = self.shape.steps[s - 1], self.shape.steps[s], self.code
        if before.loop is not None:
            return f"done_{s - 1}"
        if before.live is None:
            return f"some_{s - 1}"
        code.line("total = ZERO")
        with code.block(f"for i in range(n_{s - 1}):"):
            code.line(f"r = row_{s - 1}[u(i)]")
            self._tested(step.each, lambda: code.line(f"total += weight_{s - 1}[u(i)]"))
        return "total"

    def _element(self, s: int) -> None:
        """The event is a further element of groups, and the first one of others. Elements of one
        position are in the order of their rows."""
        code, step = self.code, self.shape.steps[s]
        loop = step.loop
        assert loop is not None
        code.line("looped, entered = ZERO, ZERO")
        self._tested(loop.whole, lambda: self._taken(s, loop))
        if s:
            self._tested(step.before, lambda: self._entered(s, loop))
        self._complete(s, "looped + entered" if loop.every else "entered", "e")
        stays = step.live is None and loop.greedy  # whatever their last elements are
        self._add(s, "entered" if stays else "(looped + entered)", "e")

    def _taken(self, s: int, loop: Loop) -> None:
        """Partial matches that take the event into their group."""
        code = self.code
        if self.shape.steps[s].live is None:
            code.line(f"looped = some_{s}")
            return

        def taken() -> None:
            code.line(f"looped += weight_{s}[u(i)]")
            if loop.greedy:
                code.line(f"n_{s} -= 1")
                code.line(f"c = code_{s}[u(n_{s})]")
                code.line(f"at_{s}[u(c)] = i")
                for column in ("code", "row", "weight"):
                    code.line(f"{column}_{s}[u(i)] = {column}_{s}[u(n_{s})]")

        with code.block(f"for i in range(n_{s} - 1, -1, -1):"):
            code.line(f"r = row_{s}[u(i)]")
            self._tested(loop.each, taken)

    def _entered(self, s: int, loop: Loop) -> None:
        """Partial matches whose group begins with the event."""
        before = self.shape.steps[s - 1]
        self.code.line(f"entered = {self._arriving(s)}")
        if loop.first:
            waiting = f"some_{s - 1} = ZERO" if before.live is None else f"n_{s - 1} = 0"
            self.code.line(waiting)

    def _complete(self, s: int, weight: str, row: str) -> None:
        """So many groups are complete with the event."""
        if self._ends(s):
            self._counted("p", row, "-1", f"({weight})")
        else:
            self.code.line(f"done_{s} += {weight}")

    def _add(self, s: int, weight: str, row: str) -> None:
        """Partial matches come into a state; of those with a live event, this is its row."""
        code, step = self.code, self.shape.steps[s]
        if step.live is None:
            code.line(f"some_{s} += {weight}")
            return
        with code.block(f"if {weight} > ZERO:"):
            code.line(f"c = codes[{step.live}, u({row})]")
            code.line(f"at = at_{s}[u(c)]")
            with code.block(f"if at >= n_{s} or code_{s}[u(at)] != c:"):
                code.line(f"at = n_{s}")
                code.line(f"n_{s} += 1")
                code.line(f"at_{s}[u(c)] = at")
                code.line(f"code_{s}[u(at)], row_{s}[u(at)] = c, {row}")
                code.line(f"weight_{s}[u(at)] = ZERO")
            code.line(f"weight_{s}[u(at)] += {weight}")

    def _counted(self, anchor: str, end: str, row: str, weight: str) -> None:
        code = self.code
        if not self.shape.pairs:
            code.line(f"out[u({end})] += {weight}")
            return
        with code.block(f"if {weight} > ZERO:"):
            with code.block("if n == anchors.shape[0]:"):
                for name in ("anchors", "ends", "rows", "weights"):
                    code.line(f"{name} = grown({name})")
            code.line(f"anchors[u(n)], ends[u(n)], rows[u(n)] = {anchor}, {end}, {row}")
            code.line(f"weights[u(n)] = {weight}")
            code.line("n += 1")
