"""Sequences: what `;`, `->` and `=>` let stand right of what is bound.

Items are bound from left to right. An item that isn't a closure is an anchor: the closures before
it form a block, whose groups are gathered when the anchor is known, because a filter may read it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile

from cepheid.algebra.patterns import Closure, Leaf, Negation, Sequence, leaves, positive
from cepheid.engine.automaton.blocks import NEXT, STRICT, Block, Blocks, Item
from cepheid.engine.automaton.code import Env, Limits, Path, Span
from cepheid.engine.automaton.groups import Take, sizes
from cepheid.engine.automaton.searching import Then
from cepheid.engine.lowering import GroupPlace
from cepheid.language.ast import Optional


def bound_items(sequence: Sequence, path: Path) -> list[Item]:
    """The items that bind something; the operator right of a negation relates its neighbors."""
    kept = [n for n, item in enumerate(sequence.items) if not isinstance(item, Negation)]
    before = [None, *(sequence.operators[n - 1] for n in kept[1:])]
    after = [*before[1:], None]
    return [
        Item((*path, n), sequence.items[n], b, a)
        for n, b, a in zip(kept, before, after, strict=True)
    ]


class Sequences(Blocks):
    def sequence_of(
        self, pattern: Sequence | Closure, path: Path, env: Env, after: str | None, then: Then
    ) -> None:
        if isinstance(pattern, Sequence):
            self.sequence(bound_items(pattern, path), env, after, None, then)
        else:
            self.sequence([Item(path, pattern)], env, after, None, then)

    def sequence(
        self, items: list[Item], env: Env, after: str | None, left: Span | None, then: Then
    ) -> None:
        """`left` is what this sequence has bound last."""
        closures = list(takewhile(lambda i: isinstance(i.pattern, Closure), items))
        rest = items[len(closures) :]
        if not items:
            then(env)
            return
        block = self._block(closures, left, after)
        if not rest:
            self._choose(
                block,
                block.free,
                env,
                None,
                frozenset(),
                lambda bound: self._settled(
                    block, None, bound, {}, lambda e, fits: self._fitting(fits, e, then)
                ),
            )
            return

        def go_on(bound: Env) -> None:
            self.sequence(
                rest[1:], bound, after, self.span(rest[0].pattern, rest[0].path, bound), then
            )

        self._anchored(block, rest[0], env, go_on)

    # ── the right anchor ──

    def _anchored(self, block: Block, right: Item, env: Env, then: Then) -> None:
        names = frozenset(leaves(right.pattern))
        if any(self.depends(block.items[n].closure, names) for n in block.free):
            self._right_first(block, right, names, env, then)
        else:
            self._choose(
                block,
                block.free,
                env,
                None,
                frozenset(),
                lambda bound: self._right(block, right, names, bound, then),
            )

    def _right(
        self, block: Block, right: Item, names: frozenset[str], env: Env, then: Then
    ) -> None:
        """Bind the right anchor, when the free groups of the block are bound."""
        lower = self._last(block, block.free, env)
        after = block.after if lower is None else lower
        if isinstance(right.pattern, Leaf) and not self.starting:
            self._leaf_right(block, right, right.pattern, names, env, lower, then)
        elif right.before is NEXT and lower is not None:
            self._first_composite(block, right, env, after, then)
        else:

            def settle(bound: Env) -> None:
                self._settled(block, right, bound, {}, lambda e, fits: self._fitting(fits, e, then))

            self.parts(right.pattern, right.path, env, after, settle)

    def _last(self, block: Block, which: tuple[int, ...], env: Env) -> str | None:
        """The end of the last of these groups, or of the left anchor."""
        bound = [n for n in which if block.items[n].path in env.spans]
        end = len(block.items)
        kept = replace(block, items=tuple(i for n, i in enumerate(block.items) if n in bound))
        return self._lower(kept, min(end, len(kept.items)), env)

    def _leaf_right(
        self,
        block: Block,
        right: Item,
        leaf: Leaf,
        names: frozenset[str],
        env: Env,
        lower: str | None,
        then: Then,
    ) -> None:
        """One loop over the anchor's events in order. Groups that don't depend on it grow with
        it; after `->` the first event for which all holds is taken."""
        code = self.code
        n = self.classes[leaf.variable]
        limits = Limits(block.after if lower is None else lower)
        others = tuple(n for n in block.bound if self._lower(block, n, env) is not None)
        exact = None
        if right.before is STRICT and lower is not None and not others:
            exact = code.let("x", self.following(lower))
            self._awaiting(env, exact)
        # With nothing bound before it, an event comes first as any does.
        found = code.let("f", "FAR") if right.before is NEXT and lower is not None else None
        growing = self._growing(block, names, env)
        unbroken = self._unbroken(block, right, growing)
        with self.candidates(n, env, limits) as (i, row):
            at = f"at{n}[u({i})]"
            if exact is not None:
                code.line(f"if {at} > {exact}: break")
            if found is not None:
                code.line(f"if {at} > {found}: break")

            def settled(settled_env: Env, fits: str | None) -> None:
                if found is not None:
                    code.line(f"{found} = {at}")
                self._fitting(fits, settled_env, then)

            with self.holding(self.bound(env, leaf, row, right.path)) as held:
                for take, index, ended in growing.values():
                    self._grow(take, env, index, ended, f"begin[u({row})]")
                if unbroken is not None:
                    take = growing[unbroken][0]
                    end = self._end_of(take, lower)
                    code.line(f"if {self.following(end)} != {at}: break")
                self._settled(block, right, held, growing, settled)
            self.stopping(env)
        if exact is None:
            if unbroken is not None and self.watching(env) and env.control.upper is None:
                # Once the run is broken no later event can touch it.
                take, index, ended = growing[unbroken]
                with code.block("else:"):
                    self._grow(take, env, index, ended, "FAR")
                    position = code.let("x", self.following(self._end_of(take, lower)))
                    self._awaiting(env, position)
            else:
                self.horizon(env, limits, None if found is None else f"{found} == FAR")

    def _end_of(self, take: Take, lower: str | None) -> str:
        last = f"pos[u({take.rows}[u({take.count} - 1)])]"
        return f"({last} if {take.count} > 0 else {lower})"

    def _growing(
        self, block: Block, names: frozenset[str], env: Env
    ) -> dict[int, tuple[Take, str, str]]:
        """The groups that grow with the right anchor: the group, how far its list has been read,
        and whether it has ended."""
        code = self.code
        found: dict[int, tuple[Take, str, str]] = {}
        for n in block.bound:
            item = block.items[n]
            last = n == len(block.items) - 1
            if not last or not isinstance(item.closure.item, Leaf):
                continue
            if self.depends(item.closure, names) or (n > 0 and n - 1 not in block.free):
                continue
            lower = self._lower(block, n, env)
            if lower is None:
                continue
            touch = None
            if item.before is STRICT:
                touch = code.let("x", self.following(lower))
            limits = Limits(lower)
            take = self.take(item.closure, item.path, limits, item.before is STRICT, touch)
            c = self.classes[take.variable]
            index = code.let("j", f"first_after(at{c}, lo{c}, hi{c}, {lower})")
            found[n] = (take, index, code.let("y", "0"))
        return found

    def _grow(self, take: Take, env: Env, index: str, ended: str, before: str) -> None:
        """Take what qualifies before a position."""
        code = self.code
        c = self.classes[take.variable]
        with code.block(
            f"while {ended} == 0 and {index} < hi{c} and at{c}[u({index})] < {before}:"
        ):
            row = code.let("r", f"rows{c}[u({index})]")
            at = code.let("a", f"at{c}[u({index})]")
            code.line(f"{ended} = 1")
            if self.windowed and env.low is not None and env.control.negation is None:
                code.line(f"if clock[u({row})] - {env.low} >= window: break")
            if self.intervals:
                with code.block(f"if begin[u({row})] <= {take.limits.lower}:"):
                    code.line(f"{ended} = 0")
                    code.line(f"{index} += 1")
                    code.line("continue")
            self.consider(take, env, at, row, "break")
            code.line(f"{ended} = 0")
            code.line(f"{index} += 1")

    def _unbroken(
        self, block: Block, right: Item, growing: dict[int, tuple[Take, str, str]]
    ) -> int | None:
        """The last group, if it is a run from its left neighbor on that the anchor must touch."""
        last = len(block.items) - 1
        if right.before is not STRICT or last not in growing:
            return None
        item = block.items[last]
        optional = isinstance(item.closure.quantifier, Optional)
        return last if item.before is STRICT and not optional else None

    def _settled(
        self,
        block: Block,
        right: Item | None,
        env: Env,
        growing: dict[int, tuple[Take, str, str]],
        then: Callable[[Env, str | None], None],
    ) -> None:
        """The right anchor (if there is one) is bound: gather the groups that follow from their
        neighbors, and test what is evaluable now. `then` gets the test that no maximal group is
        too large."""
        code = self.code
        span = None if right is None else self.span(right.pattern, right.path, env)
        fits: list[str] = []

        def gather(waiting: tuple[int, ...], env: Env) -> None:
            if not waiting:
                finish(env)
                return
            n, rest = waiting[0], waiting[1:]
            item = block.items[n]
            low, high = sizes(item.closure.quantifier)
            if n in growing:
                take = growing[n][0]
                grown, count = self.with_group(take, env), take.count
            else:
                grown, count = self._gathered(block, n, env, span)
            if high is not None:
                fits.append(f"{count} <= {high}")
            with code.block(f"if {count} >= {low}:"), self.holding(grown) as held:
                gather(rest, held)

        def finish(env: Env) -> None:
            with self.holding(self._with_edges(block, env, span)) as held:
                touching = self._touching(block, right, span, held)
                with code.block(f"if {touching}:"):
                    then(held, " and ".join(fits) or None)

        gather(self._others(block, env, span), env)

    def _gathered(self, block: Block, n: int, env: Env, right: Span | None) -> tuple[Env, str]:
        item = block.items[n]
        lower = self._lower(block, n, env)
        behind = self._behind(block, n, env, right)
        assert lower is not None and behind is not None
        limits = Limits(lower, behind.start)
        touch = None
        if item.before is STRICT and (n == 0 or n - 1 in block.free):
            touch = self.code.let("x", self.following(lower))
        strict = item.before is STRICT
        if isinstance(item.closure.item, Leaf):
            take = self.take(item.closure, item.path, limits, strict, touch)
            self.gather(take, env)
            return self.with_group(take, env), take.count
        chain = self.chain(item.closure, item.path, env, limits, strict, touch)
        return self.chosen(chain, env, "0", chain.count, False), chain.count

    def _touching(self, block: Block, right: Item | None, span: Span | None, env: Env) -> str:
        """`=>` before a closure of the block, or before the right anchor."""
        tests: list[str] = []
        end = None if block.left is None else block.left.end
        for item in block.items:
            own = env.spans.get(item.path)
            if own is None:
                continue
            if item.before is STRICT and end is not None:
                touches = f"{self.following(end)} == {own.first}"
                tests.append(touches if own.some is None else f"(not ({own.some}) or {touches})")
            if own.some is None:
                end = own.end
            else:
                end = f"({own.end} if {own.some} else {'-FAR' if end is None else end})"
        if right is not None and span is not None and right.before is STRICT and end is not None:
            tests.append(f"({end} == -FAR or {self.following(end)} == {span.first})")
        return " and ".join(tests) or "True"

    def _fitting(self, fits: str | None, env: Env, then: Then) -> None:
        if fits is None:
            then(env)
        else:
            with self.code.block(f"if {fits}:"):
                then(env)

    # ── the first composite ──

    def _first_composite(
        self, block: Block, right: Item, env: Env, after: str | None, then: Then
    ) -> None:
        """`P -> Q`, Q a composite: find the first by its complete history, then bind all that are
        equally early."""
        code = self.code
        best, one = self.scratch("h"), self.scratch("h")
        size = code.let("n", "0")
        watching = self.watching(env)
        kept = code.let("o", "more") if watching else None

        def measure(bound: Env, fits: str | None) -> None:
            span = self.span(right.pattern, right.path, bound)
            assert span is not None
            with code.block(f"if {span.end} < horizon:" if self.delayed else "if True:"):
                n = self.history(right.pattern, right.path, bound, one)
                test = f"{size} == 0 or compare({one}, {n}, {best}, {size}) < 0"
                with code.block(f"if {test}:"):
                    e = code.name("e")
                    with code.block(f"for {e} in range({n}):"):
                        code.line(f"{best}[u({e})] = {one}[u({e})]")
                    code.line(f"{size} = {n}")
            if self.delayed and watching:
                with code.block("else:"):
                    code.line("more = 1")

        def search(measured: Callable[[Env, str | None], None], env: Env) -> None:
            self.parts(
                right.pattern,
                right.path,
                env,
                after,
                lambda bound: self._settled(block, right, bound, {}, measured),
            )

        search(measure, env)
        with code.block(f"if {size} > 0:"):
            if kept is not None:
                code.line(f"more = {kept}")

            def again(bound: Env, fits: str | None) -> None:
                n = self.history(right.pattern, right.path, bound, one)
                with code.block(f"if compare({one}, {n}, {best}, {size}) == 0:"):
                    self._fitting(fits, bound.under(env.control), then)

            search(again, env.under(replace(env.control, quiet=True, upper=None)))

    # ── groups that depend on the right anchor ──

    def _right_first(
        self, block: Block, right: Item, names: frozenset[str], env: Env, then: Then
    ) -> None:
        code = self.code
        after = block.after if block.left is None else block.left.end
        self.looks_back = self.looks_back or self.starting  # then the groups lie before the start

        def search(env: Env, found: Callable[[Env, str | None], None]) -> None:
            def with_right(bound: Env) -> None:
                span = self.span(right.pattern, right.path, bound)
                self._choose(
                    block,
                    block.free,
                    bound,
                    span,
                    names,
                    lambda e: self._settled(block, right, e, {}, found),
                )

            self.parts(right.pattern, right.path, env, after, with_right)

        if right.before is not NEXT:
            search(env, lambda bound, fits: self._fitting(fits, bound, then))
            return

        def unbeaten(bound: Env, fits: str | None) -> None:
            """The first right anchor for the free groups at hand; if there are none, any."""
            if self._last(block, block.free, bound) is None:
                self._fitting(fits, bound, then)
                return
            mine = self.scratch("h")
            n = self.history(right.pattern, right.path, bound, mine)
            beaten = code.let("x", "False")

            def rival(other: Env, _: str | None) -> None:
                own = self.scratch("h")
                m = self.history(right.pattern, right.path, other, own)
                alike = [f"compare({own}, {m}, {mine}, {n}) < 0"]
                for k in block.free:
                    for v in positive(block.items[k].closure.item):
                        a, b = bound.scope[v], other.scope[v]
                        assert isinstance(a, GroupPlace) and isinstance(b, GroupPlace)
                        alike.append(f"{a.count} == {b.count}")
                        alike.append(
                            f"same({a.array}[{a.start}:], {b.array}[{b.start}:], {a.count})"
                        )
                code.line(f"if {' and '.join(alike)}: {beaten} = True")

            control = replace(env.control, quiet=True, stop=beaten)
            search(env.under(control), rival)
            with code.block(f"if not {beaten}:"):
                self._fitting(fits, bound, then)

        search(env, unbeaten)
