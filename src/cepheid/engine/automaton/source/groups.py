"""Groups of events while they are being built, and once they are complete."""

from __future__ import annotations

from dataclasses import replace

from cepheid.algebra.aggregates import AGGREGATES
from cepheid.algebra.patterns import sizes
from cepheid.algebra.types import Type
from cepheid.engine.automaton.elements import EventGroup
from cepheid.engine.automaton.source.places import (
    Env,
    Extent,
    Fold,
    GroupInProgress,
    Limits,
)
from cepheid.engine.automaton.source.writer import SourceWriter
from cepheid.engine.lowering import (
    Event,
    FoldPart,
    GroupPlace,
    Seen,
    accumulate,
    accumulate_distinct,
)
from cepheid.engine.lowering.terms import DOUBLES
from cepheid.language.ast import Optional


def take(w: SourceWriter, group: EventGroup, limits: Limits, touch: str | None) -> GroupInProgress:
    """Begin a group: its array, and those of the aggregates that go along."""
    rows = w.scratch("g")
    count = w.code.let("m", "0")
    for aggregate in group.aggregates:
        assert aggregate.argument is not None
        type_ = aggregate.argument.type
        if w.inputs.objects and type_ in (Type.STRING, Type.BINARY):
            continue  # arrays hold numbers

        def values(prefix: str, double: bool = type_ in DOUBLES) -> str:
            return w.sum_scratch() if double else w.scratch(prefix)

        seen = None
        if aggregate.distinct:
            seen = Seen(w.table_scratch(), w.scratch("places"), values("values"))
        fold = Fold(values("f"), w.scratch("n"), seen)
        w.folds[rows, aggregate] = fold
        w.code.line(f"{fold.totals}[0] = 0")
        w.code.line(f"{fold.counts}[0] = 0")
    return GroupInProgress(group, limits, touch, rows, count)


def push(w: SourceWriter, taken: GroupInProgress, hand: Env) -> None:
    """Take the element at hand; aggregates go along."""
    place = hand.scope[taken.group.variable]
    assert isinstance(place, Event)
    low = w.lowering(hand)
    for (rows, aggregate), fold in w.folds.items():
        function, argument = AGGREGATES[aggregate.function], aggregate.argument
        if rows != taken.rows or argument is None:
            continue
        total = low.let(f"{fold.totals}[u({taken.count})]")
        part = FoldPart(total, low.let(f"{fold.counts}[u({taken.count})]"))
        value, type_ = low.term(argument), argument.type
        if fold.seen is None:
            accumulate(low, function, part, value, type_)
        else:
            accumulate_distinct(low, function, part, value, type_, fold.seen, taken.count)
        low.line(f"{fold.totals}[u({taken.count} + 1)] = {part.total}")
        low.line(f"{fold.counts}[u({taken.count} + 1)] = {part.count}")
    for text in low.inner:
        w.code.line(text)
    w.code.line(f"{taken.rows}[u({taken.count})] = {place.row}")
    w.code.line(f"{taken.count} += 1")


# ── elements ──


def at_hand(taken: GroupInProgress, env: Env, row: str) -> Env:
    """An element that may be taken after those that were."""
    v = taken.group.variable
    return replace(env, scope={**env.scope, v: Event(row, False), f"{v}…": taken.place})


def ends(w: SourceWriter, taken: GroupInProgress, hand: Env) -> str | None:
    """UNTIL: whether the event at hand ends the group."""
    until = taken.group.until
    return None if until is None else w.truth(until, hand)


def connects(w: SourceWriter, taken: GroupInProgress, at: str, row: str) -> str | None:
    """STRICT: at the position of the one before, or the next; the first touches its neighbor."""
    tests: list[str] = []
    if taken.group.strict:
        last = w.events.position(f"{taken.rows}[u({taken.count} - 1)]")
        follows = f"{at} == {w.following(last)}"
        if w.program.lasting:
            follows = f"({follows} and {w.events.begin(row)} > {last})"
        tests.append(f"({taken.count} == 0 or {at} == {last} or {follows})")
    if taken.touch is not None:
        tests.append(f"({taken.count} > 0 or {at} == {taken.touch})")
    return " and ".join(tests) or None


def consider(w: SourceWriter, taken: GroupInProgress, env: Env, at: str, row: str) -> None:
    """Take the event if it qualifies; leave the loop if it ends the group."""
    code = w.code
    hand = at_hand(taken, env, row)
    ended = ends(w, taken, hand)
    if ended is not None:
        code.line(f"if {ended}: break")
    connected = connects(w, taken, at, row)
    if connected is not None:
        code.line(f"if not ({connected}): break")
    with w.holding(hand, taken.group.criteria):
        push(w, taken, hand)
        if isinstance(taken.group.closure.quantifier, Optional):
            code.line("break")


# ── complete groups ──


def with_taken(w: SourceWriter, taken: GroupInProgress, env: Env, count: str | None = None) -> Env:
    """The group is complete."""
    group = taken.group
    low, _ = sizes(group.closure.quantifier)
    place = taken.place if count is None else GroupPlace(taken.rows, "0", count)
    some = f"{place.count} > 0" if low == 0 else None
    return replace(
        env,
        scope={**env.scope, group.variable: place},
        extents={**env.extents, group.path: group_extent(w, place, some)},
        counts={**env.counts, group.path: taken.count},
    )


def group_extent(w: SourceWriter, place: GroupPlace, some: str | None) -> Extent:
    first = f"{place.array}[u({place.start})]"
    last = f"{place.array}[u({place.start} + {place.count} - 1)]"
    extent = w.events.extent(first, last, some)
    if not w.program.lasting:
        return extent
    # Elements may overlap: one that ends later may start earlier.
    least = [
        f"least({array}, {place.array}, {place.start}, {place.count}, 0)"
        for array in ("begin", "clock0", "time0")
    ]
    return replace(extent, start=least[0], clock_start=least[1], time_start=least[2])
