"""Sequences: what `;`, `->` and `=>` let stand right of what is bound.

Items are bound from left to right. Closures that stand beside each other form a block between
two anchors (items that aren't closures, or an edge): a group is known when its right neighbor
is, because a filter may read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from operator import attrgetter
from typing import Any

from cepheid.algebra.patterns import Absence, Closure, Negation, Pattern, Sequence, positive
from cepheid.language.ast import Exactly, Mode, Optional, SequenceOperator

from . import patterns
from .closures import Group, Limits, groups, size_range
from .conditions import Search
from .events import Position
from .state import Edge, Path, Span, State, span_of

NEXT, STRICT = SequenceOperator.NEXT, SequenceOperator.STRICT


@dataclass(frozen=True)
class Item:
    """A part that binds something, with the operators that relate it to its neighbors."""

    path: Path
    pattern: Pattern
    before: SequenceOperator | None = None
    after: SequenceOperator | None = None


def bound_items(sequence: Sequence, path: Path) -> list[Item]:
    """ "The operator right of the negation relates its neighbors (`a ; !b -> c` is `a -> c`
    without b between)"."""
    kept = [n for n, item in enumerate(sequence.items) if not isinstance(item, Negation)]
    before = [None, *(sequence.operators[n - 1] for n in kept[1:])]
    after = [*before[1:], None]
    return [
        Item((*path, n), sequence.items[n], b, a)
        for n, b, a in zip(kept, before, after, strict=True)
    ]


def sequence(
    search: Search,
    items: list[Item],
    state: State,
    after: Position | None,
    left: Position | None = None,
) -> Iterator[State]:
    """`left` is the end of what this sequence has bound so far."""
    block = list(takewhile(lambda i: isinstance(i.pattern, Closure), items))
    rest = items[len(block) :]
    if not items:
        yield state
    elif not rest:
        for choice in resolve(search, block, Anchors(state, None, left, after, None)):
            if choice.fits:
                yield choice.state
    elif isinstance(rest[0].pattern, Absence):
        for choice in resolve(search, block, Anchors(state, None, left, after, None)):
            if choice.fits:
                yield from waited(search, rest, choice.state, after, choice.end)
    else:
        for bound in anchored(search, block, rest[0], state, after, left):
            end = span_of(rest[0].pattern, rest[0].path, bound)
            assert end is not None
            # Time that passes beside it may be over later than it ends.
            behind = end.end if left is None else max(left, end.end)
            yield from sequence(search, rest[1:], bound, after, behind)


def waited(
    search: Search,
    items: list[Item],
    state: State,
    after: Position | None,
    left: Position | None,
) -> Iterator[State]:
    """ "two of them side by side both count from the same end": what is right of them comes after
    the latest."""
    (bound,) = patterns.parts(search, items[0].pattern, items[0].path, state, after)
    span = span_of(items[0].pattern, items[0].path, bound)
    ends = [end for end in (left, None if span is None else span.end) if end is not None]
    yield from sequence(search, items[1:], bound, after, max(ends, default=None))


def anchored(
    search: Search,
    block: list[Item],
    right: Item,
    state: State,
    after: Position | None,
    left: Position | None,
) -> Iterator[State]:
    """Bind the item right of a block (which may be empty), and the block's groups with it."""
    found: list[tuple[Any, Any, Choice]] = []
    lower = after if left is None else left
    for with_right in patterns.parts(search, right.pattern, right.path, state, lower):
        at = span_of(right.pattern, right.path, with_right)
        assert at is not None
        for choice in resolve(search, block, Anchors(state, with_right, left, after, at)):
            both = choice.state.join(with_right)
            if not search.holds(both, [choice.state, with_right]):
                continue
            if right.before is STRICT and not touches(search, choice.end, at):
                continue
            first = patterns.history(search, right.pattern, right.path, with_right)
            found.append((choice.free, first, replace(choice, state=both)))
    for free, first, choice in found:
        # "q is the first (earliest end) that comes after p and satisfies every WHERE predicate
        # over q and what is bound left of it; all that tie at that earliest end qualify." Of a
        # maximal group only the size is bound left of it: "c is the first qualifying event after
        # the group's first n elements, and the group is maximal before that c".
        # With nothing bound left of it, every q is as good as any.
        follows = right.before is NEXT and choice.end is not None
        beaten = follows and any(f == free and h < first for f, h, _ in found)
        if choice.fits and not beaten:
            yield choice.state


def touches(search: Search, end: Position | None, right: Span) -> bool:
    """ "q is at the next position after p's end at which the stream has an event ...; of a
    composite q, its first member is". Both are only asked of a q that starts after p's end. A q
    without events touches everything."""
    return (
        end is None
        or right.first == patterns.NEVER
        or search.stream.next_position(end) == right.first
    )


@dataclass(frozen=True)
class Anchors:
    """What a block stands between: the state left of it and, if there is a right anchor, the
    state with that; the end of the left one (or the position that all must come after), and
    where the right one lies."""

    state: State
    with_right: State | None
    left: Position | None
    after: Position | None
    right: Span | None


@dataclass(frozen=True)
class Choice:
    """Groups for a block. `free` are those that don't follow from their neighbors, `end` the end
    of the last thing bound, `fits`: no maximal group is too large."""

    state: State
    free: tuple[Any, ...]
    end: Position | None
    fits: bool = True


def is_free(block: list[Item], n: int, anchors: Anchors) -> bool:
    """A choice of its own, looked for from the left: `{n}`, SUBSETS, RUNS, and PREFIXES that has
    something on its left. The others follow from their neighbors."""
    closure = block[n].pattern
    assert isinstance(closure, Closure)
    if isinstance(closure.quantifier, Exactly) or closure.mode in (Mode.SUBSETS, Mode.RUNS):
        return True
    has_left = anchors.left is not None or any(is_free(block, m, anchors) for m in range(n))
    return closure.mode is Mode.PREFIXES and has_left


def takes_prefixes(item: Item) -> bool:
    return isinstance(item.pattern, Closure) and item.pattern.mode is Mode.PREFIXES


def resolve(search: Search, block: list[Item], anchors: Anchors) -> Iterator[Choice]:
    """The `{n}` runs (and other free groups) are chosen first; a maximal group then lies between
    its chosen neighbors."""
    free = [n for n in range(len(block)) if is_free(block, n, anchors)]
    other = [n for n in range(len(block)) if n not in free]

    def choose(
        waiting: list[int], state: State, spans: dict[int, Span], fits: bool
    ) -> Iterator[tuple[State, dict[int, Span], bool]]:
        if not waiting:
            yield state, spans, fits
            return
        n = waiting[0]
        item = block[n]
        closure = item.pattern
        assert isinstance(closure, Closure)
        lower = max((spans[m].end for m in spans if m < n), default=anchors.left)
        behind = min((spans[m] for m in spans if m > n), key=attrgetter("start"), default=None)
        neighbor = anchors.right if behind is None else behind
        upper = None if neighbor is None else neighbor.start
        leads = lower is None and closure.mode is Mode.PREFIXES  # what stood before it is empty
        if leads and any(m > n and not takes_prefixes(block[m]) for m in waiting):
            # It lies before what is chosen right of it.
            yield from choose([*waiting[1:], n], state, spans, fits)
            return
        if leads or (n in other and waits(closure, lower, upper)):
            if lower is None and item.after is NEXT:
                raise AssertionError("binding refuses a leading closure before `->`")
            touched = None if neighbor is None else neighbor.first
            beside = tuple(e.path for e in state.edges if lower is not None and e.upper is None)
            edge = Edge(item.path, closure, lower, upper, touched, item.before, item.after, beside)
            edged = replace(state, edges=(*state.edges, edge))
            yield from choose(waiting[1:], edged, spans, fits)
            return
        limits = Limits(anchors.after if lower is None else lower, upper)
        # "`s => d+ => u+` takes the longest run of d from s on, then the longest run of u that
        # touches it": what is left of u is known, then.
        neighbor_known = lower is not None and (n == 0 or n - 1 in free or n in other)
        found = groups(
            search,
            item.path,
            closure,
            state if anchors.with_right is None else state.join(anchors.with_right),
            limits,
            unbroken=item.before is STRICT or (lower is None and item.after is STRICT),
            touch_left=lower if item.before is STRICT and neighbor_known else None,
        )
        bound: list[tuple[Group, State]] = []
        for group in found:
            grown = search.extend(state, group.bindings, {})
            if grown is not None:
                spans_ = {} if group.span is None else {item.path: group.span}
                rounds = {item.path: group.rounds}
                bound.append(
                    (
                        group,
                        replace(
                            grown,
                            spans={**grown.spans, **spans_},
                            iterations={**grown.iterations, **rounds},
                        ),
                    )
                )
        if n in free and item.before is NEXT and lower is not None:
            bound = first_ones(closure, found, bound)
        low, high = size_range(closure)
        for group, grown in bound:
            if group.size >= low:
                here = spans if group.span is None else {**spans, n: group.span}
                small = high is None or group.size <= high
                yield from choose(waiting[1:], grown, here, fits and small)

    for state, spans, fits in choose(free + other, anchors.state, {}, True):
        end = anchors.left
        broken = False
        for n in sorted(spans):
            if block[n].before is STRICT and not touches(search, end, spans[n]):
                broken = True
            end = spans[n].end
        if not broken:
            key = tuple(tuple(state.env.get(v) for v in positive(block[n].pattern)) for n in free)
            yield Choice(state, key, end, fits)


def waits(closure: Closure, lower: Position | None, upper: Position | None) -> bool:
    """ "With no neighbor on a side: leading, the group is taken from `(end - window,
    next.start)`; trailing, from `(last.end, start + window)`"."""
    trailing = closure.mode is Mode.MAXIMAL or isinstance(closure.quantifier, Optional)
    return lower is None or (upper is None and trailing)


def first_ones(
    closure: Closure, found: list[Group], bound: list[tuple[Group, State]]
) -> list[tuple[Group, State]]:
    """ "Where `->` stands left of a group, its first event is the first that qualifies; for
    `{n}`, the first run."""
    if isinstance(closure.quantifier, Exactly):
        first = min((g.positions for g, _ in bound), default=None)
        return [(g, s) for g, s in bound if g.positions == first]
    starts = [g.positions[0] for g in found if g.positions]
    return [(g, s) for g, s in bound if not g.positions or g.positions[0] == min(starts)]
