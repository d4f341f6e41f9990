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
from cepheid.reasons.steps import Component, WrittenNegation, part_of, steps_of
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


@dataclass(frozen=True)
class Anatomy:
    """A query and its parts. `syntax` has USING applied; `ending` are the negations after the last
    step."""

    syntax: ast.Query
    bound: BoundQuery
    conditions: tuple[WrittenCondition, ...]
    having: tuple[ast.Expression, ...]
    negations: tuple[WrittenNegation, ...]
    steps: tuple[Component, ...]
    ending: tuple[WrittenNegation, ...]

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
        pattern = part_of(self.syntax.pattern, [negation.node])
        return replace(self.syntax, pattern=pattern, where=all_of(dict.fromkeys(kept)))

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
        held = [n for n in self._held(length) if n not in left_out]
        dead = [n.node for n in self.negations if n not in held]
        pattern = part_of(self.syntax.pattern, dead, self.steps[length - 1].path)
        inside = self._bound_by(length).union(*(n.variables for n in held))
        wanted = self.conditions if conditions is None else conditions
        kept = [c.node for c in wanted if c.variables <= inside and not c.match and not c.key]
        keys = [test for part in self.bound.key for test in _key_tests(part, inside)]
        return ast.Query(
            pattern,
            streams=self.syntax.streams,
            where=all_of([*keys, *kept]),
            within=self.syntax.within,
        )

    def _bound_by(self, length: int) -> frozenset[str]:
        """The variables of the first steps."""
        return frozenset(v for step in self.steps[:length] for v in step.variables)

    def _held(self, length: int) -> list[WrittenNegation]:
        """The negations that the first steps are held to: those between them whose conditions read
        nothing that comes later. Exceptions forbid events between others, so they are left to the
        second step."""
        inside = [n for step in self.steps[:length] for n in step.between]
        if length > 1:
            inside += [n for step in self.steps[:length] for n in step.exceptions]
        known = self._bound_by(length).union(*(n.variables for n in inside))
        late = [c for c in self.conditions if not c.key and (c.match or not c.variables <= known)]
        return [
            n
            for n in dict.fromkeys(inside)
            if all(n.variables.isdisjoint(c.variables) for c in late)
        ]

    def forbidden(self, length: int) -> list[WrittenNegation]:
        """The negations that may stop a partial match at this step."""
        before = self._held(length - 1) if length > 1 else []
        here = self.steps[length - 1].exceptions
        return [n for n in self._held(length) if n not in before or n in here]

    @property
    def trailing(self) -> list[WrittenNegation]:
        """The negations that only complete matches are held to."""
        held = self._held(len(self.steps))
        return [n for n in self.negations if n not in held]

    def variables(self, length: int) -> frozenset[str]:
        """Those of the first steps and of the negations that these are held to."""
        return self._bound_by(length).union(*(n.variables for n in self._held(length)))

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
    steps, ending = steps_of(pattern, bound.pattern, negations)
    return Anatomy(
        syntax,
        bound,
        conditions,
        tuple(written_conjuncts(syntax.having)),
        negations,
        steps,
        ending,
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
            yield WrittenNegation(written, f"\\ {text}", names, patterns.positive(bound.item))
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


def _key_tests(part: KeyPart, names: Collection[str]) -> Iterator[ast.Expression]:
    """That these variables have the same key, and one."""
    columns = {v: column for v, column in part.columns.items() if v in names}
    if len(set(columns.values())) == 1:
        yield ast.KeyTest(next(iter(columns.values())))
    elif columns:
        values = tuple(ast.Attribute(v, column) for v, column in columns.items())
        yield ast.Comparison(values, ("=",) * (len(values) - 1))
