"""The steps of a pattern: its parts that bind events, one after the other; and the pattern up to a
step."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from cepheid.algebra import patterns
from cepheid.language import ast
from cepheid.language.render import render_pattern


@dataclass(frozen=True, slots=True)
class WrittenNegation:
    """A negation or exception: the node as normalized, its text and its variables. An exception
    also has those of the events that it is an exception from."""

    node: ast.Negation | ast.Unless
    text: str
    variables: frozenset[str]
    guarded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Component:
    """A step: a part of the top-level sequence or conjunction that binds events, also inside
    `( … ) \\ X`. `path` leads to it: its place among the items, and so on inwards. `between` are
    the negations between it and the step before, or in it; `exceptions` those that it is inside
    of."""

    text: str
    variables: tuple[str, ...]
    path: tuple[int, ...]
    operator: ast.SequenceOperator | None
    between: tuple[WrittenNegation, ...]
    exceptions: tuple[WrittenNegation, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the pattern as written and as bound: a step or a negation."""

    written: ast.Pattern
    bound: patterns.Pattern
    path: tuple[int, ...]
    operator: ast.SequenceOperator | None
    exceptions: tuple[ast.Unless, ...]


def steps_of(
    pattern: ast.Pattern, bound: patterns.Pattern, negations: tuple[WrittenNegation, ...]
) -> tuple[tuple[Component, ...], tuple[WrittenNegation, ...]]:
    """The steps, and the negations after the last of them."""
    steps: list[Component] = []
    waiting: list[WrittenNegation] = []
    for part in _parts(_Part(pattern, bound, (), None, ())):
        leaves = set(patterns.leaves(part.bound))
        waiting += [n for n in negations if n.variables <= leaves]
        names = patterns.positive(part.bound)
        if names:
            text = render_pattern(part.written)
            outer = tuple(n for n in negations if n.node in part.exceptions)
            steps.append(Component(text, names, part.path, part.operator, tuple(waiting), outer))
            waiting = []
    return tuple(steps), tuple(waiting)


def _parts(part: _Part) -> Iterator[_Part]:
    """Its items, if it is a sequence or exceptions from one; of the whole pattern also those of a
    conjunction."""
    match part.written, part.bound:
        case ast.Unless(), patterns.Unless():
            exceptions = (*part.exceptions, part.written)
            inner = replace(
                part, written=part.written.item, bound=part.bound.item, exceptions=exceptions
            )
            yield from _parts(inner)
        case ast.Sequence(items, operators), patterns.Sequence(bound_items):
            between: tuple[ast.SequenceOperator | None, ...] = (part.operator, *operators)
            for n, (item, bound) in enumerate(zip(items, bound_items, strict=True)):
                yield from _item(_Part(item, bound, (*part.path, n), between[n], part.exceptions))
        case ast.Conjunction(items), patterns.Conjunction(bound_items) if not part.path:
            for n, (item, bound) in enumerate(zip(items, bound_items, strict=True)):
                yield _Part(item, bound, (n,), None, part.exceptions)
        case _:
            yield part


def _item(part: _Part) -> Iterator[_Part]:
    """Of items only those with exceptions are taken apart."""
    if isinstance(part.written, ast.Unless):
        yield from _parts(part)
    else:
        yield part


def part_of(
    pattern: ast.Pattern,
    dead: Collection[ast.Negation | ast.Unless],
    path: tuple[int, ...] = (),
) -> ast.Pattern:
    """The pattern up to the step that the path leads to, or all of it, without some negations. The
    operator right of a negation relates its neighbors. Of an exception, what it is from is left."""
    match pattern:
        case ast.Unless(item):
            inner = part_of(item, dead, path)
            return inner if pattern in dead else replace(pattern, item=inner)
        case ast.Sequence(items, operators):
            kept, parts = _kept(items, dead, path)
            if len(parts) == 1:
                return parts[0]
            return ast.Sequence(parts, tuple(operators[n - 1] for n in kept[1:]))
        case ast.Conjunction(items):
            _, parts = _kept(items, dead, path)
            return parts[0] if len(parts) == 1 else ast.Conjunction(parts)
        case ast.Disjunction(items):
            return ast.Disjunction(tuple(part_of(item, dead) for item in items))
        case ast.Closure() | ast.Delay() | ast.Negation():
            return replace(pattern, item=part_of(pattern.item, dead))
        case _:
            return pattern


def _kept(
    items: tuple[ast.Pattern, ...],
    dead: Collection[ast.Negation | ast.Unless],
    path: tuple[int, ...],
) -> tuple[list[int], tuple[ast.Pattern, ...]]:
    """The places of the items that are left, and these."""
    last = path[0] if path else len(items) - 1
    kept = [
        n
        for n, item in enumerate(items[: last + 1])
        if not (isinstance(item, ast.Negation) and item in dead)
    ]
    return kept, tuple(part_of(items[n], dead, path[1:] if n == last else ()) for n in kept)
