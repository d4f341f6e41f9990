"""Sequences: what `;`, `->` and `=>` let stand right of what is bound.

Items are bound from left to right. An item that isn't a closure is an anchor: the closures before
it form a block, whose groups are gathered when the anchor is known, because a filter may read it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile

from cepheid.algebra.patterns import (
    Absence,
    Closure,
    Leaf,
    Negation,
    Sequence,
    leaves,
    positive,
    sizes,
)
from cepheid.engine.automaton.closures import (
    Block,
    Bound,
    choose,
    defer,
    end_before,
    end_of_free,
    event_group,
    make_block,
    part_behind,
    round_chain,
    with_group,
)
from cepheid.engine.automaton.elements import EventGroup, RoundChain, element
from cepheid.engine.automaton.instructions import (
    Earliest,
    Equal,
    Fit,
    Gather,
    Grow,
    Grown,
    Instruction,
    Instructions,
    Remember,
    Search,
    TakeFirst,
    Touch,
    Touching,
    Unbeaten,
    Unbroken,
)
from cepheid.engine.automaton.knowledge import (
    NEXT,
    STRICT,
    Compilation,
    Known,
    Then,
    binds,
    depends,
    hold,
)
from cepheid.engine.automaton.points import Begin, End, Path, Point
from cepheid.language.ast import Optional

Fits = tuple[tuple[Path, int], ...]
"""How many elements maximal groups may have at most."""

Settled = Callable[[Known, Fits], Instructions]


def sequence_of(
    c: Compilation,
    pattern: Sequence | Closure,
    path: Path,
    known: Known,
    after: Point | None,
    then: Then,
) -> Instructions:
    bound = _bound_items(pattern, path) if isinstance(pattern, Sequence) else [Bound(path, pattern)]
    return _sequence(c, bound, known, after, None, then)


def _bound_items(sequence: Sequence, path: Path) -> list[Bound]:
    """The items that bind something; the operator right of a negation relates its neighbors."""
    kept = [n for n, item in enumerate(sequence.items) if not isinstance(item, Negation)]
    before = [None, *(sequence.operators[n - 1] for n in kept[1:])]
    after = [*before[1:], None]
    return [
        Bound((*path, n), sequence.items[n], b, a)
        for n, b, a in zip(kept, before, after, strict=True)
    ]


def _sequence(
    c: Compilation,
    items: list[Bound],
    known: Known,
    after: Point | None,
    left: Path | None,
    then: Then,
) -> Instructions:
    """`left` is what this sequence has bound last."""
    if not items:
        return then(known)
    closures = list(takewhile(lambda i: isinstance(i.pattern, Closure), items))
    rest = items[len(closures) :]
    block = make_block(closures, left, after)
    if not rest:
        return _unanchored(c, block, known, then)
    right = rest[0]

    def go_on(bound: Known) -> Instructions:
        return _sequence(c, rest[1:], bound, after, _place(right, bound), then)

    if isinstance(right.pattern, Absence):
        return _unanchored(
            c, block, known, lambda k: c.bind(right.pattern, right.path, k, after, go_on)
        )
    names = frozenset(leaves(right.pattern))
    if any(depends(c, block.items[n].closure, names) for n in block.free):
        return _right_first(c, block, right, names, known, go_on)
    return choose(
        c,
        block,
        block.free,
        known,
        None,
        frozenset(),
        lambda bound: _right(c, block, right, names, bound, go_on),
    )


def _unanchored(c: Compilation, block: Block, known: Known, then: Then) -> Instructions:
    """Bind a block that nothing right of it bounds."""

    def settle(bound: Known) -> Instructions:
        return _settled(c, block, None, bound, {}, lambda k, fits: (*_fit(fits), *then(k)))

    return choose(c, block, block.free, known, None, frozenset(), settle)


def _place(item: Bound, known: Known) -> Path | None:
    """Where the item stands, if it binds anything."""
    return None if binds(item.pattern, item.path, known) is None else item.path


# ── the right anchor ──


def _right(
    c: Compilation, block: Block, right: Bound, names: frozenset[str], known: Known, then: Then
) -> Instructions:
    """Bind the right anchor, when the free groups of the block are bound."""
    left = end_of_free(block, known)
    after = block.after if left is None else left
    if isinstance(right.pattern, Leaf) and known.started:
        return _leaf_right(c, block, right, right.pattern, names, known, left, then)
    if right.before is NEXT and left is not None:
        return _first_composite(c, block, right, known, after, then)
    return c.bind(
        right.pattern,
        right.path,
        known,
        after,
        lambda bound: _settled(c, block, right, bound, {}, lambda k, fits: (*_fit(fits), *then(k))),
    )


def _leaf_right(
    c: Compilation,
    block: Block,
    right: Bound,
    leaf: Leaf,
    names: frozenset[str],
    known: Known,
    left: End | None,
    then: Then,
) -> Instructions:
    """One loop over the anchor's events in order. Groups that don't depend on it grow with it;
    after `->` the first event for which all holds is taken."""
    between = any(end_before(block, n, known) is not None for n in block.bound)
    # With nothing bound before it, an event comes first as any does.
    first = right.before is NEXT and left is not None
    growing = _growing(c, block, names, known)
    unbroken = _unbroken(block, right, growing)
    search = Search(
        c.sweep(leaf.variable, known, block.after if left is None else left),
        right.path,
        known.control.negation is None,
        exact=left if right.before is STRICT and not between else None,
        first=first,
        growing=tuple(growing.values()),
        unbroken=unbroken,
    )
    held, inside = hold(c, known.bind(leaf.variable, right.path))
    steps: list[Instruction] = [search, held]
    steps += [Grow(group.path, leaf.variable) for group in growing.values()]
    if unbroken is not None:
        assert left is not None
        steps.append(Unbroken(unbroken, left, right.path))

    def settled(bound: Known, fits: Fits) -> Instructions:
        taken = (TakeFirst(right.path),) if first else ()
        return (*taken, *_fit(fits), *then(bound))

    return (*steps, *_settled(c, block, right, inside, growing, settled))


def _growing(
    c: Compilation, block: Block, names: frozenset[str], known: Known
) -> dict[int, EventGroup]:
    """The last group of the block, if it can grow with the right anchor: it follows from its
    neighbors, what is left of it is bound, and the anchor doesn't decide what it takes."""
    n = len(block.items) - 1
    if n not in block.bound or not block.beside(n):
        return {}
    item, left = block.items[n], end_before(block, n, known)
    if left is None or not isinstance(item.closure.item, Leaf) or depends(c, item.closure, names):
        return {}
    strict = item.before is STRICT
    sweep = c.sweep(element(item.closure), known, left)
    touch = left if strict else None
    return {n: event_group(c, item.closure, item.path, known, sweep, strict, touch)}


def _unbroken(block: Block, right: Bound, growing: dict[int, EventGroup]) -> Path | None:
    """The last group, if it is a run from its left neighbor on that the anchor must touch."""
    last = len(block.items) - 1
    if right.before is not STRICT or last not in growing:
        return None
    item = block.items[last]
    optional = isinstance(item.closure.quantifier, Optional)
    return item.path if item.before is STRICT and not optional else None


def _settled(
    c: Compilation,
    block: Block,
    right: Bound | None,
    known: Known,
    growing: dict[int, EventGroup],
    then: Settled,
) -> Instructions:
    """The right anchor (if there is one) is bound: gather the groups that follow from their
    neighbors, and check what is evaluable now."""
    place = None if right is None else _place(right, known)
    waiting = [
        n
        for n in block.bound
        if end_before(block, n, known) is not None
        and part_behind(block, n, known, place) is not None
    ]
    steps: list[Instruction] = []
    fits: list[tuple[Path, int]] = []
    for n in waiting:
        item = block.items[n]
        low, high = sizes(item.closure.quantifier)
        if n in growing:
            group: EventGroup | RoundChain = growing[n]
            steps.append(Grown(growing[n], low))
        else:
            group = _gathered(c, block, n, known, place)
            steps.append(Gather(group, low))
        if high is not None:
            fits.append((item.path, high))
        held, known = hold(c, with_group(group, known))
        steps.append(held)
    deferred, known = defer(block, known, place)
    held, known = hold(c, known)
    touch = Touch(tuple(_touching(block, right, place, known)))
    return (*steps, *deferred, held, touch, *then(known, tuple(fits)))


def _gathered(
    c: Compilation, block: Block, n: int, known: Known, right: Path | None
) -> EventGroup | RoundChain:
    item = block.items[n]
    left, behind = end_before(block, n, known), part_behind(block, n, known, right)
    assert left is not None and behind is not None
    strict = item.before is STRICT
    touch = left if strict and block.decided_before(n, known) else None
    upper = Begin(behind)
    if isinstance(item.closure.item, Leaf):
        sweep = c.sweep(element(item.closure), known, left, upper)
        return event_group(c, item.closure, item.path, known, sweep, strict, touch)
    return round_chain(c, item.closure, item.path, known, (left, upper), strict, touch)


def _touching(
    block: Block, right: Bound | None, place: Path | None, known: Known
) -> list[Touching]:
    """`=>` before a closure of the block, or before the right anchor."""
    touching: list[Touching] = []
    end = None if block.left is None else End(block.left)
    for item in block.items:
        certain = known.parts.get(item.path)
        if certain is None:
            continue
        if item.before is STRICT and end is not None:
            touching.append(Touching(end, item.path))
        if certain or end is None:
            end = End(None, (item.path,))
        else:
            end = replace(end, groups=(*end.groups, item.path))
    if right is not None and place is not None and right.before is STRICT and end is not None:
        touching.append(Touching(end, place, anchor=True))
    return touching


def _fit(fits: Fits) -> Instructions:
    return (Fit(fits),) if fits else ()


# ── the first composite ──


def _first_composite(
    c: Compilation, block: Block, right: Bound, known: Known, after: Point | None, then: Then
) -> Instructions:
    """`P -> Q`, Q a composite: find the first by its complete history, then bind all that are
    equally early."""

    def search(known: Known, settled: Settled) -> Instructions:
        return c.bind(
            right.pattern,
            right.path,
            known,
            after,
            lambda bound: _settled(c, block, right, bound, {}, settled),
        )

    def again(bound: Known, fits: Fits) -> Instructions:
        return (Equal(right.path), *_fit(fits), *then(bound.under(known.control)))

    first = Earliest(right.path, search(known, lambda bound, fits: ()), known.control.watching)
    quiet = replace(known.control, quiet=True, bounded=False)
    return (first, *search(known.under(quiet), again))


# ── groups that depend on the right anchor ──


def _right_first(
    c: Compilation, block: Block, right: Bound, names: frozenset[str], known: Known, then: Then
) -> Instructions:
    after = block.after if block.left is None else End(block.left)
    c.looks_back = c.looks_back or not known.started  # then the groups lie before the start

    def search(known: Known, settled: Settled) -> Instructions:
        def with_right(bound: Known) -> Instructions:
            return choose(
                c,
                block,
                block.free,
                bound,
                _place(right, bound),
                names,
                lambda k: _settled(c, block, right, k, {}, settled),
            )

        return c.bind(right.pattern, right.path, known, after, with_right)

    if right.before is not NEXT:
        return search(known, lambda bound, fits: (*_fit(fits), *then(bound)))

    def unbeaten(bound: Known, fits: Fits) -> Instructions:
        """The first right anchor for the free groups at hand; if there are none, any."""
        if end_of_free(block, bound) is None:
            return (*_fit(fits), *then(bound))
        quiet = replace(known, started=True, control=replace(known.control, quiet=True))
        rivals = search(quiet, lambda other, fits: ())
        groups = tuple(v for n in block.free for v in positive(block.items[n].closure.item))
        return (Unbeaten(right.path, groups, rivals), *_fit(fits), *then(bound))

    return (Remember(right.path), *search(known, unbeaten))
