"""Single changes of a query, one of which may make given events match: the smallest first.

First amounts that the query has: a threshold, by its relative change; then a window, a time, a
size, LIMIT. Then the query without one of its parts, and with a looser operator. Whether one
is enough is for a run to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from cepheid.algebra.query import Clock
from cepheid.language import ast
from cepheid.language.render import render_after_match, render_expression, render_pattern
from cepheid.language.traversal import walk
from cepheid.reasons.longer_windows import readable, window_words
from cepheid.reasons.why.negated_thresholds import thresholds_of_negated
from cepheid.reasons.why.pinned_events import (
    PinnedEvents,
    QueryChange,
    any_order_of_choice,
    least,
    with_part,
)
from cepheid.reasons.why.thresholds import thresholds

_LOOSER = {
    ast.SequenceOperator.STRICT: (ast.SequenceOperator.NEXT, ast.SequenceOperator.ANY),
    ast.SequenceOperator.NEXT: (ast.SequenceOperator.ANY,),
}


def changes(events: PinnedEvents, outcomes: Mapping[str, str]) -> Iterator[QueryChange]:
    """`outcomes` are those of the conditions, by their texts: the ones that are true come last."""
    moved = [*thresholds(events, outcomes), *thresholds_of_negated(events)]
    yield from (change for _, change in sorted(moved, key=lambda found: found[0]))
    yield from _amounts(events)
    yield from _without(events, outcomes)
    yield from _operators(events)


# ── other amounts ────────────────────────────────────────────────────────────


def _amounts(events: PinnedEvents) -> Iterator[QueryChange]:
    yield from _windows(events)
    yield from _times(events)
    yield from _sizes(events)
    yield from _limits(events)


def _windows(events: PinnedEvents) -> Iterator[QueryChange]:
    parts, window = events.parts, events.parts.bound.window
    if window is None:
        return
    shortest: int | None = None
    if window.clock is Clock.TIME:
        wide = events.trials.run(events.held(wide=True)).matches
        spans = [m.end - m.start + 1 for m in wide]
        shortest = readable(parts, min(spans)) if spans else None
    elif events.match_of(parts.with_window(events.trials.longest(window))) is not None:
        fits = events.fits(parts.with_window)
        shortest = least(fits, window.size, events.trials.longest(window))
    if shortest is not None and shortest > window.size:
        now = window_words(parts, window.size)
        yield QueryChange(
            f"{window_words(parts, shortest)} instead of {now}", parts.with_window(shortest)
        )


def _times(events: PinnedEvents) -> Iterator[QueryChange]:
    """A shorter time of a negation, in which no forbidden event falls, or of a delay."""
    syntax = events.parts.syntax
    for node in walk(syntax.pattern):
        if not isinstance(node, ast.Negation | ast.Delay) or node.duration is None:
            continue
        size = events.ticks(node.duration)

        def shorter(ticks: int, node: ast.Negation | ast.Delay = node) -> ast.Query:
            new = replace(node, duration=events.duration(ticks))
            return replace(syntax, pattern=with_part(syntax.pattern, node, new))

        if size is not None and size > 1 and events.match_of(shorter(1)) is not None:
            longest = least(events.fits(shorter, False), 1, size) - 1
            new = replace(node, duration=events.duration(longest))
            text = f"{render_pattern(new)} instead of {render_pattern(node)}"
            yield QueryChange(text, shorter(longest))


def _sizes(events: PinnedEvents) -> Iterator[QueryChange]:
    """A group of as few or as many events as these are."""
    leaves = {leaf: v for v, leaf in events.parts.leaves.items()}
    syntax = events.parts.syntax
    for node in events.parts.closures:
        if node.item not in leaves:
            continue
        size = len(events.rows.get(leaves[node.item], ()))
        match node.quantifier:
            case ast.Between(low, high) if 0 < size < low:
                new = replace(node, quantifier=ast.Between(size, high))
            case ast.Between(low, int(high)) if size > high:
                new = replace(node, quantifier=ast.Between(low, size))
            case ast.Exactly(number) if size not in (0, number):
                new = replace(node, quantifier=ast.Exactly(size))
            case _:
                continue
        pattern = with_part(syntax.pattern, node, new)
        text = f"{render_pattern(new)} instead of {render_pattern(node)}"
        yield QueryChange(text, replace(syntax, pattern=pattern))


def _limits(events: PinnedEvents) -> Iterator[QueryChange]:
    syntax = events.parts.syntax
    limit = syntax.limit
    if limit is None:
        return

    def larger(number: int) -> ast.Query:
        return replace(syntax, limit=replace(limit, most=ast.EventCount(number)))

    every = events.trials.run(replace(syntax, limit=None), most=None).matches
    place = next((n for n, match in enumerate(every, 1) if events.binds(match)), None)
    if place is not None:
        enough = least(events.fits(larger), 0, place)
        per_key = " PER KEY" if limit.per_key else ""
        yield QueryChange(f"LIMIT {enough}{per_key}", larger(enough))


# ── without a part ───────────────────────────────────────────────────────────


def _without(events: PinnedEvents, outcomes: Mapping[str, str]) -> Iterator[QueryChange]:
    parts, syntax = events.parts, events.parts.syntax
    for condition in sorted(parts.conditions, key=lambda c: outcomes[c.text] == "true"):
        yield QueryChange(f"without {condition.text}", parts.without(condition))
    for negation in parts.negations:
        yield QueryChange(f"without {negation.text}", parts.without_negation(negation))
    for closure in events.parts.closures:
        if closure.until is not None:
            free = with_part(syntax.pattern, closure, replace(closure, until=None))
            text = f"without UNTIL ({render_expression(closure.until)})"
            yield QueryChange(text, replace(syntax, pattern=free))
    for having in parts.having:
        text = f"without HAVING {render_expression(having)}"
        yield QueryChange(text, parts.without_having(having))
    if syntax.after_match is not None:
        text = f"without {render_after_match(syntax.after_match)}"
        yield QueryChange(text, replace(syntax, after_match=None))
    if syntax.limit is not None:
        yield QueryChange("without LIMIT", replace(syntax, limit=None))


def _operators(events: PinnedEvents) -> Iterator[QueryChange]:
    """Each of the top-level operators as a looser one, and all of them as `;`."""
    syntax = events.parts.syntax
    if not isinstance(syntax.pattern, ast.Sequence):
        return
    operators = syntax.pattern.operators
    others = [n for n, o in enumerate(operators) if o is not ast.SequenceOperator.ANY]
    for place in others:
        right = render_pattern(syntax.pattern.items[place + 1])
        for looser in _LOOSER[operators[place]]:
            new = (*operators[:place], looser, *operators[place + 1 :])
            text = f"`{looser.value} {right}` instead of `{operators[place].value} {right}`"
            pattern = replace(syntax.pattern, operators=new)
            yield QueryChange(text, replace(syntax, pattern=pattern))
    if len(others) > 1:
        loose = any_order_of_choice(syntax.pattern)
        yield QueryChange("`;` instead of the other operators", replace(syntax, pattern=loose))
