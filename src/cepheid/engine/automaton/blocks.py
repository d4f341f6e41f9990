"""Closures that stand beside each other: a block between two anchors, or at an edge.

Groups that are choices of their own (`{n}`, PREFIXES, SUBSETS, RUNS) are bound from the left, here.
The others follow from their neighbors; those that lack one wait for the whole match.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from cepheid.algebra.patterns import Closure, Leaf, Pattern, positive
from cepheid.engine.automaton.code import Edge, Env, Limits, Path, Span
from cepheid.engine.automaton.groups import sizes
from cepheid.engine.automaton.rounds import Repeated, first_variable
from cepheid.engine.automaton.searching import Then
from cepheid.engine.lowering import GroupPlace
from cepheid.language.ast import Exactly, Mode, SequenceOperator

NEXT, STRICT = SequenceOperator.NEXT, SequenceOperator.STRICT


@dataclass(frozen=True)
class Item:
    """A part that binds something, with the operators that relate it to its neighbors."""

    path: Path
    pattern: Pattern
    before: SequenceOperator | None = None
    after: SequenceOperator | None = None

    @property
    def closure(self) -> Closure:
        assert isinstance(self.pattern, Closure)
        return self.pattern


@dataclass(frozen=True)
class Block:
    """Closures between two anchors: the left one, or the position that all must come after.
    `free` are choices of their own; the others follow from their neighbors."""

    items: tuple[Item, ...]
    left: Span | None
    after: str | None
    free: tuple[int, ...]

    @property
    def bound(self) -> tuple[int, ...]:
        """Those that follow from their neighbors."""
        return tuple(n for n in range(len(self.items)) if n not in self.free)


class Blocks(Repeated):
    def _block(self, items: list[Item], left: Span | None, after: str | None) -> Block:
        free: list[int] = []
        for n, item in enumerate(items):
            closure = item.closure
            own = isinstance(closure.quantifier, Exactly) or closure.mode in (
                Mode.SUBSETS,
                Mode.RUNS,
            )
            if own or (closure.mode is Mode.PREFIXES and (left is not None or free)):
                free.append(n)
        return Block(tuple(items), left, after, tuple(free))

    def _others(self, block: Block, env: Env, right: Span | None) -> tuple[int, ...]:
        """The groups that lie between two neighbors. The rest waits for the whole match."""
        return tuple(
            n
            for n in block.bound
            if self._lower(block, n, env) is not None
            and self._behind(block, n, env, right) is not None
        )

    @staticmethod
    def _low(item: Item) -> int:
        return sizes(item.closure.quantifier)[0]

    # ── groups that are choices ──

    def _choose(
        self,
        block: Block,
        waiting: tuple[int, ...],
        env: Env,
        right: Span | None,
        right_names: frozenset[str],
        then: Then,
    ) -> None:
        """Bind these free groups, from left to right. `right` is the right anchor, if it is bound
        already; conditions that read it are left for later."""
        if not waiting:
            then(env)
            return
        n, rest = waiting[0], waiting[1:]
        item = block.items[n]
        starting = self.starting
        lower = self._lower(block, n, env)
        if lower is None and item.closure.mode is Mode.PREFIXES:
            # What could stand before it is empty: it leads, and waits for the whole match.
            self._choose(block, rest, env, right, right_names, then)
            return
        neighbor = lower is not None and (n == 0 or n - 1 in block.free)
        limits = Limits(
            block.after if lower is None else lower, None if right is None else right.start
        )
        unbroken = item.before is STRICT or (lower is None and item.after is STRICT)
        touch = None
        if item.before is STRICT and neighbor and lower is not None:
            touch = self.code.let("x", self.following(lower))
            self._awaiting(env, touch)
        first = item.before is NEXT and lower is not None  # after nothing, any is next

        def checked(bound: Env) -> None:
            ready = [
                c for c in self.ready(bound) if right_names.isdisjoint(self.node.where[c].variables)
            ]
            with self.holding(bound, ready) as held:
                if first and isinstance(item.closure.quantifier, Exactly):
                    self._first_run(item, held, positions, more)
                else:
                    more(held)

        def more(bound: Env) -> None:
            self._choose(block, rest, bound, right, right_names, then)

        positions = None
        if first and isinstance(item.closure.quantifier, Exactly):
            positions = (self.scratch("h"), self.code.let("f", "0"))
        self._groups(item, env, limits, unbroken, touch, first, checked)
        if self._low(item) == 0:
            self.starting = starting
            empty = self.without_group(item.closure, env)
            ready = [
                c for c in self.ready(empty) if right_names.isdisjoint(self.node.where[c].variables)
            ]
            with self.holding(empty, ready) as held:
                self._choose(block, rest, held, right, right_names, then)

    def _groups(
        self,
        item: Item,
        env: Env,
        limits: Limits,
        strict: bool,
        touch: str | None,
        first: bool,
        body: Then,
    ) -> None:
        closure = item.closure
        if isinstance(closure.item, Leaf):
            take = self.take(closure, item.path, limits, strict, touch)
            self.choices(take, env, first, body)
        elif limits.lower is not None:
            chain = self.chain(closure, item.path, env, limits, strict, touch)
            self.round_choices(chain, env, first, body)
        else:
            # With nothing before it, its rounds count from every event that one can start with.
            with self._anchors(self.classes[first_variable(closure.item)], env, limits) as row:
                began = replace(env, low=f"clock0[u({row})]", high=f"clock[u({row})]")
                limits = replace(limits, lower=f"(begin[u({row})] - 1)")
                chain = self.chain(closure, item.path, began, limits, strict, touch, row)
                self.round_choices(chain, began, True, body)

    @contextmanager
    def _anchors(self, n: int, env: Env, limits: Limits) -> Iterator[str]:
        """A loop over the events of class n that a group can start with."""
        if self.starting:
            with self.starts(n) as row:
                yield row
        else:
            self.looks_back = True  # the right neighbor was bound first
            with self.candidates(n, replace(env, low=None), limits) as (_, row):
                yield row

    def _first_run(
        self, item: Item, env: Env, positions: tuple[str, str] | None, then: Then
    ) -> None:
        """After `->`, only the first run (all that are simultaneous with it)."""
        assert positions is not None
        code = self.code
        array, found = positions
        names = positive(item.closure.item)
        place = env.scope[names[0]]
        assert isinstance(place, GroupPlace)
        e = code.name("e")
        at = f"pos[u({place.array}[u({place.start} + {e})])]"
        fine = code.let("x", "1")
        with code.block(f"if {found}:"), code.block(f"for {e} in range({place.count}):"):
            code.line(f"if {array}[u({e})] != {at}: {fine} = 0")
        with code.block(f"if {fine}:"):
            with code.block(f"for {e} in range({place.count}):"):
                code.line(f"{array}[u({e})] = {at}")
            code.line(f"{found} = 1")
            then(env)

    def _lower(self, block: Block, n: int, env: Env) -> str | None:
        """The end of what is bound before the n-th closure of the block; None if nothing is."""
        lower = None if block.left is None else block.left.end
        for m in range(n):
            span = env.spans.get(block.items[m].path)
            if span is not None:
                if span.some is None:
                    lower = span.end
                elif lower is not None:
                    lower = f"({span.end} if {span.some} else {lower})"
        return lower

    def _awaiting(self, env: Env, position: str) -> None:
        """The next position of the stream is not known yet."""
        if self.watching(env) and env.control.upper is None:
            inside = ""
            if self.windowed and env.low is not None:
                inside = f" and frontier - {env.low} < window"
            self.code.line(f"if {position} == -FAR{inside}: more = 1")

    def _with_edges(self, block: Block, env: Env, right: Span | None) -> Env:
        edges = tuple(
            Edge(
                block.items[n].path,
                block.items[n].closure,
                self._before(block, n, env),
                self._behind(block, n, env, right),
                block.items[n].before,
                block.items[n].after,
            )
            for n, item in enumerate(block.items)
            if env.decided.isdisjoint(positive(item.closure.item))
        )
        return replace(env, edges=(*env.edges, *edges))

    def _before(self, block: Block, n: int, env: Env) -> Span | None:
        """The nearest part before that is bound already."""
        near = block.left
        for m in range(n):
            near = env.spans.get(block.items[m].path, near)
        return near

    def _behind(self, block: Block, n: int, env: Env, right: Span | None) -> Span | None:
        for m in range(n + 1, len(block.items)):
            span = env.spans.get(block.items[m].path)
            if span is not None:
                return span
        return right
