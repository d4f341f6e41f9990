"""The parts of a query that can be left out: conditions, negations, steps; and the query without
them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import assert_never

from cepheid.algebra import patterns
from cepheid.algebra.binding.shape import normalize
from cepheid.algebra.query import BoundQuery, Clock, KeyPart, Kind, Role
from cepheid.algebra.types import Type
from cepheid.language import ast
from cepheid.language.render import render_expression, render_pattern
from cepheid.language.traversal import walk, written_conjuncts
from cepheid.reasons.trials import Trials


@dataclass(frozen=True, slots=True)
class WrittenCondition:
    """A conjunct of WHERE. `element`: it is about one event alone. `match`: it needs the complete
    match. `key`: the partition key says the same."""

    node: ast.Expression
    text: str
    variables: frozenset[str]
    element: bool
    match: bool
    key: bool


@dataclass(frozen=True, slots=True)
class WrittenNegation:
    """A negation or exception: the node as normalized, its text and its variables."""

    node: ast.Negation | ast.Unless
    text: str
    variables: frozenset[str]


@dataclass(frozen=True, slots=True)
class Component:
    """A step: a part of the top-level sequence or conjunction that binds events. `end` is its place
    among the items of that, `forbidden` are the negations between it and the step before."""

    text: str
    variables: tuple[str, ...]
    end: int
    operator: ast.SequenceOperator | None
    forbidden: tuple[WrittenNegation, ...]


@dataclass(frozen=True)
class Anatomy:
    """A query and its parts. `syntax` has USING applied."""

    syntax: ast.Query
    bound: BoundQuery
    conditions: tuple[WrittenCondition, ...]
    having: tuple[ast.Expression, ...]
    negations: tuple[WrittenNegation, ...]
    steps: tuple[Component, ...]
    trailing: tuple[WrittenNegation, ...]

    @property
    def ticks(self) -> bool:
        """Whether times are plain integers."""
        schema = self.bound.schema
        return schema.columns[schema.time] is Type.INTEGER

    @property
    def leaves(self) -> dict[str, ast.Atom | ast.AnyOf]:
        """The leaf of each variable."""
        return leaves_of(self.syntax.pattern, self.bound)

    @property
    def closures(self) -> tuple[ast.Closure, ...]:
        return tuple(n for n in walk(self.syntax.pattern) if isinstance(n, ast.Closure))

    @property
    def singles(self) -> frozenset[str]:
        """Variables that bind one event, or none."""
        return frozenset(n for n, v in self.bound.variables.items() if v.kind is not Kind.GROUP)

    @property
    def step_variables(self) -> tuple[tuple[str, ...], ...]:
        return tuple(step.variables for step in self.steps)

    # ── variations ──────────────────────────────────────────────────────────

    def without(self, condition: WrittenCondition) -> ast.Query:
        kept = (c.node for c in self.conditions if c is not condition)
        return replace(self.syntax, where=all_of(kept))

    def with_condition(self, old: WrittenCondition, new: ast.Expression) -> ast.Query:
        changed = (new if c is old else c.node for c in self.conditions)
        return replace(self.syntax, where=all_of(changed))

    def without_having(self, left_out: ast.Expression | None = None) -> ast.Query:
        """Without one conjunct of HAVING, or without all of them."""
        kept = (h for h in self.having if left_out is not None and h is not left_out)
        return replace(self.syntax, having=all_of(kept))

    def with_having(self, old: ast.Expression, new: ast.Expression) -> ast.Query:
        changed = (new if h is old else h for h in self.having)
        return replace(self.syntax, having=all_of(changed))

    def without_negation(self, negation: WrittenNegation) -> ast.Query:
        """Without the conditions on it, too; the others keep their key."""
        rest = set(self.bound.variables) - negation.variables
        kept: list[ast.Expression] = []
        for condition in self.conditions:
            if isinstance(condition.node, ast.KeyTest) or condition.variables <= rest:
                kept.append(condition.node)
            elif condition.key:
                kept += [test for part in self.bound.key for test in _key_tests(part, rest)]
        pattern = _removed(self.syntax.pattern, negation.node)
        return replace(self.syntax, pattern=pattern, where=all_of(dict.fromkeys(kept)))

    def pattern_without(self, pattern: ast.Pattern, negation: WrittenNegation) -> ast.Pattern:
        return _removed(pattern, negation.node)

    def chosen(self) -> ast.Query:
        """Without what only chooses among complete matches."""
        return replace(self.syntax, having=None, after_match=None, limit=None)

    def with_window(self, size: int) -> ast.Query:
        return replace(self.syntax, within=self.window(size))

    def window(self, size: int) -> ast.Duration | ast.EventCount:
        window = self.bound.window
        if window is not None and window.clock is Clock.EVENTS:
            return ast.EventCount(size)
        unit = ast.Unit.UNITS if self.ticks else ast.Unit.MICROSECONDS
        return ast.Duration(size, unit)

    def prefix(
        self,
        length: int,
        conditions: Collection[WrittenCondition] | None = None,
        left_out: Collection[WrittenNegation] = (),
    ) -> ast.Query:
        """The first steps alone, under the conditions that read no more than them: all of those, or
        the given ones. Negations may be left out."""
        pattern = self._cut(self.steps[length - 1].end)
        inside = self.variables(length)
        for negation in left_out:
            pattern = _removed(pattern, negation.node)
            inside -= negation.variables
        wanted = self.conditions if conditions is None else conditions
        kept = [c.node for c in wanted if c.variables <= inside and not c.match and not c.key]
        keys = [test for part in self.bound.key for test in _key_tests(part, inside)]
        return ast.Query(
            pattern,
            streams=self.syntax.streams,
            where=all_of([*keys, *kept]),
            within=self.syntax.within,
        )

    def variables(self, length: int) -> frozenset[str]:
        """Those of the first steps and of the negations between them."""
        parts: set[str] = set()
        for step in self.steps[:length]:
            parts.update(step.variables, *(n.variables for n in step.forbidden))
        return frozenset(parts)

    def new_conditions(self, length: int) -> list[WrittenCondition]:
        """Those that a partial match meets at this step first."""
        inside = self.variables(length)
        before = self.variables(length - 1) if length > 1 else frozenset()
        negated = {v for n in self.negations for v in n.variables}
        return [
            c
            for c in self.conditions
            if not (c.match or c.key or c.variables & negated)
            and c.variables <= inside
            and not c.variables <= before
        ]

    def _cut(self, end: int) -> ast.Pattern:
        pattern = self.syntax.pattern
        match pattern:
            case ast.Sequence(items, operators):
                kept = items[: end + 1]
                return kept[0] if len(kept) == 1 else ast.Sequence(kept, operators[:end])
            case ast.Conjunction(items):
                kept = items[: end + 1]
                return kept[0] if len(kept) == 1 else ast.Conjunction(kept)
            case _:
                return pattern


def anatomy(query: ast.Query, trials: Trials) -> Anatomy:
    """The parts of a query that can be bound to these events. Of a query that returns answers, the
    parts are those of its matches: LIMIT counts answers there."""
    pattern = normalize(query.pattern, query.using)
    syntax = replace(query, pattern=pattern, using=None)
    if trials.bound(syntax).answers is not None:
        syntax = replace(syntax, group_by=None, returns=(), limit=None)
    bound = trials.bound(syntax)
    conditions = tuple(
        _condition(node, syntax, bound, trials) for node in written_conjuncts(syntax.where)
    )
    negations = tuple(_negations(pattern, bound.pattern))
    steps, trailing = _steps(pattern, bound, negations)
    return Anatomy(
        syntax,
        bound,
        conditions,
        tuple(written_conjuncts(syntax.having)),
        negations,
        steps,
        trailing,
    )


def leaves_of(pattern: ast.Pattern, bound: BoundQuery) -> dict[str, ast.Atom | ast.AnyOf]:
    """The leaf of each variable."""
    written = (n for n in walk(pattern) if isinstance(n, ast.Atom | ast.AnyOf))
    return dict(zip(patterns.leaves(bound.pattern), written, strict=True))


def all_of(conditions: Iterable[ast.Expression]) -> ast.Expression | None:
    kept = tuple(conditions)
    if len(kept) < 2:
        return kept[0] if kept else None
    return ast.Logical("AND", kept)


def _condition(
    node: ast.Expression, syntax: ast.Query, whole: BoundQuery, trials: Trials
) -> WrittenCondition:
    """What the condition reads is known from binding it alone."""
    alone = trials.bound(
        replace(syntax, where=node, having=None, after_match=None, limit=None, returns=())
    )
    read = {v for c in alone.where for v in c.variables}
    read.update(v for part in alone.key for v in part.columns)
    known = {c.expression for c in whole.where}
    return WrittenCondition(
        node,
        render_expression(node),
        frozenset(read),
        element=bool(alone.where) and all(c.role is Role.CLASS for c in alone.where),
        match=any(c.role is Role.MATCH for c in alone.where),
        key=bool(alone.key or alone.where) and not any(c.expression in known for c in alone.where),
    )


# ── the pattern ──────────────────────────────────────────────────────────────


def _negations(written: ast.Pattern, bound: patterns.Pattern) -> Iterator[WrittenNegation]:
    """All of them, with the variables that binding gave them."""
    match written, bound:
        case ast.Negation(), patterns.Negation() | patterns.Absence():
            yield WrittenNegation(
                written, render_pattern(written), frozenset(patterns.leaves(bound))
            )
        case ast.Unless(item, exception), patterns.Unless():
            names = frozenset(patterns.leaves(bound.exception))
            parts = ast.Sequence | ast.Conjunction | ast.Disjunction
            text = render_pattern(exception)
            text = f"({text})" if isinstance(exception, parts) else text
            yield WrittenNegation(written, f"\\ {text}", names)
            yield from _negations(item, bound.item)
        case _:
            for written_item, bound_item in zip(
                _items(written), patterns.items(bound), strict=True
            ):
                yield from _negations(written_item, bound_item)


def _items(pattern: ast.Pattern) -> tuple[ast.Pattern, ...]:
    match pattern:
        case ast.Atom() | ast.AnyOf():
            return ()
        case ast.Sequence() | ast.Conjunction() | ast.Disjunction():
            return pattern.items
        case ast.Negation() | ast.Closure() | ast.Delay():
            return (pattern.item,)
        case ast.Unless():
            return (pattern.item, pattern.exception)
        case _:
            assert_never(pattern)


def _steps(
    pattern: ast.Pattern, bound: BoundQuery, negations: tuple[WrittenNegation, ...]
) -> tuple[tuple[Component, ...], tuple[WrittenNegation, ...]]:
    """The steps, and the negations after the last of them."""
    match pattern, bound.pattern:
        case ast.Sequence(items, operators), patterns.Sequence(bound_items):
            pairs = list(zip(items, bound_items, strict=True))
            between: tuple[ast.SequenceOperator | None, ...] = (None, *operators)
        case ast.Conjunction(items), patterns.Conjunction(bound_items):
            pairs = list(zip(items, bound_items, strict=True))
            between = (None,) * len(pairs)
        case _:
            pairs, between = [(pattern, bound.pattern)], (None,)
    steps: list[Component] = []
    waiting: list[WrittenNegation] = []
    for place, (written, part) in enumerate(pairs):
        inside = [n for n in negations if n.variables <= set(patterns.leaves(part))]
        waiting += inside
        names = patterns.positive(part)
        if names:
            text = render_pattern(written)
            steps.append(Component(text, names, place, between[place], tuple(waiting)))
            waiting = []
    return tuple(steps), tuple(waiting)


def _removed(pattern: ast.Pattern, dead: ast.Negation | ast.Unless) -> ast.Pattern:
    """The pattern without a negation. The operator right of it relates its neighbors."""
    match pattern:
        case ast.Unless() if pattern == dead:
            return pattern.item
        case ast.Sequence(items, operators):
            kept = [n for n, item in enumerate(items) if not _is_dead(item, dead)]
            parts = tuple(_removed(items[n], dead) for n in kept)
            if len(parts) == 1:
                return parts[0]
            return ast.Sequence(parts, tuple(operators[n - 1] for n in kept[1:]))
        case ast.Conjunction(items):
            parts = tuple(_removed(item, dead) for item in items if not _is_dead(item, dead))
            return parts[0] if len(parts) == 1 else ast.Conjunction(parts)
        case ast.Disjunction(items):
            return ast.Disjunction(tuple(_removed(item, dead) for item in items))
        case ast.Closure() | ast.Delay() | ast.Negation():
            return replace(pattern, item=_removed(pattern.item, dead))
        case ast.Unless():
            return replace(pattern, item=_removed(pattern.item, dead))
        case _:
            return pattern


def _is_dead(item: ast.Pattern, dead: ast.Negation | ast.Unless) -> bool:
    """Whether nothing is left of it. Of an exception, what it is an exception from is."""
    return isinstance(item, ast.Negation) and item == dead


def _key_tests(part: KeyPart, names: Collection[str]) -> Iterator[ast.Expression]:
    """That these variables have the same key, and one."""
    columns = {v: column for v, column in part.columns.items() if v in names}
    if len(set(columns.values())) == 1:
        yield ast.KeyTest(next(iter(columns.values())))
    elif columns:
        values = tuple(ast.Attribute(v, column) for v, column in columns.items())
        yield ast.Comparison(values, ("=",) * (len(values) - 1))
