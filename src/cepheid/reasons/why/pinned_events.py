"""Events held to a query: runs of it, and of parts of it, in which variables bind given rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from typing import Any

from cepheid.algebra.values import MICROSECONDS
from cepheid.language import ast
from cepheid.language.traversal import walk
from cepheid.options import TICK_US
from cepheid.reasons.anatomy import Anatomy, WrittenCondition, all_of
from cepheid.reasons.local_trials import LocalTrials
from cepheid.reasons.steps import WrittenNegation, part_of
from cepheid.reasons.trials import MOST, Binding

Rows = Mapping[str, tuple[int, ...]]

SUSPECTS = 1_000
"""Events among which the one that a negation forbids is looked for."""


@dataclass(frozen=True, slots=True)
class QueryChange:
    text: str
    query: ast.Query


@dataclass(frozen=True)
class PinnedEvents:
    """Events, by the rows of their variables, in front of a query."""

    parts: Anatomy
    trials: LocalTrials
    rows: Rows

    def match_of(self, query: ast.Query) -> Binding | None:
        """A match of the query that binds all of these events."""
        return next((m for m in self.matches_of(query) if self.binds(m)), None)

    def matches_of(self, query: ast.Query) -> tuple[Binding, ...]:
        """At least the matches in which single variables bind some of their rows. HAVING kills
        other matches without looking for another, so it leaves the choice of events alone; that of
        AFTER MATCH and LIMIT it doesn't. Where no choice is made, WHERE is the same, and other
        events aren't combined at all."""
        if query.after_match is None and query.limit is None:
            pins = self.pins(singles=True)
            if _chooses(query.pattern):
                having = [h for h in (query.having,) if h is not None]
                query = replace(query, having=all_of([*having, *pins]))
            else:
                where = [w for w in (query.where,) if w is not None]
                query = replace(query, where=all_of([*where, *pins]))
            if self._single:
                return self.trials.run(query, most=1).matches
        return self.trials.run(query, most=None).matches

    @property
    def _single(self) -> bool:
        """Whether each variable has one row, so that every match that binds some binds all."""
        one = all(len(rows) == 1 for rows in self.rows.values())
        return one and self.rows.keys() <= self.parts.singles

    def binds(self, match: Binding) -> bool:
        return all(set(rows) <= set(match.rows.get(v, ())) for v, rows in self.rows.items())

    def pins(
        self, singles: bool = False, of: Collection[str] | None = None
    ) -> list[ast.Expression]:
        names = [v for v in self.rows if of is None or v in of]
        if singles:
            names = [v for v in names if v in self.parts.singles]
        return [self.pin(v, self.rows[v]) for v in names]

    def pin(self, variable: str, rows: tuple[int, ...]) -> ast.Expression:
        return ast.InList(
            ast.Attribute(variable, self.trials.row), tuple(ast.Literal(row) for row in rows)
        )

    def held(
        self,
        wide: bool,
        conditions: Sequence[WrittenCondition] = (),
        negation: WrittenNegation | None = None,
    ) -> ast.Query:
        """The pattern held to these events, with `;` for every operator, these conditions and no
        negation but one; `wide`: in a window that all events are in."""
        syntax = self.parts.syntax
        dead = [other.node for other in self.parts.negations if other is not negation]
        chosen = self.parts.chosen()
        query = replace(chosen, pattern=part_of(chosen.pattern, dead), where=None)
        where = [*self.pins(), *(c.node for c in conditions)]
        within = self.parts.window(self.trials.longest(self.parts.bound.window)) if wide else None
        query = replace(query, pattern=any_order_of_choice(query.pattern), where=all_of(where))
        return replace(query, within=within or syntax.within)

    def leaves_held(self, names: Sequence[str]) -> ast.Query:
        """The events of these variables alone, in any order."""
        leaves = tuple(self.parts.leaves[v] for v in names)
        pattern = leaves[0] if len(leaves) == 1 else ast.Conjunction(leaves)
        within = self.parts.window(self.trials.longest(self.parts.bound.window))
        where = all_of(self.pins(of=names))
        return ast.Query(pattern, streams=self.parts.syntax.streams, where=where, within=within)

    def values(self, expression: ast.Expression) -> list[Any]:
        """The values of an expression for these events; of a group, those of its elements."""
        read = {n.variable for n in walk(expression) if isinstance(n, ast.Attribute)}
        plain = not any(isinstance(n, ast.Call) and not n.arguments for n in walk(expression))
        if plain and read and read <= self.parts.singles & self.rows.keys():
            return self.trials.values(self.leaves_held(sorted(read)), expression)
        return self.trials.values(self.held(wide=True), expression)

    def values_beside(self, expression: ast.Expression, negated: Collection[str]) -> list[Any]:
        """The values of an expression for these events and each of the events of negated
        variables."""
        read = {n.variable for n in walk(expression) if isinstance(n, ast.Attribute)}
        known = self.parts.singles & self.rows.keys() | set(negated)
        if read.isdisjoint(negated) or not read <= known:
            return []
        pinned = replace(self, rows={**self.rows, **{v: self.suspects([v]) for v in negated}})
        return self.trials.values(pinned.leaves_held(sorted(read)), expression, MOST)

    def suspects(self, variables: Collection[str]) -> tuple[int, ...]:
        """Events of the types of negated variables, in the order of time: those closest to the
        given ones."""
        moments = self.trials.moments
        given = [int(moments[row]) for rows in self.rows.values() for row in rows]
        leaves = [self.parts.leaves[v] for v in sorted(variables)]
        queries = [ast.Query(leaf, streams=self.parts.syntax.streams) for leaf in leaves]
        matches = [m for query in queries for m in self.trials.run(query, most=None).matches]
        rows = {row for match in matches for part in match.rows.values() for row in part}

        def away(row: int) -> int:
            return max(min(given) - int(moments[row]), int(moments[row]) - max(given), 0)

        return tuple(sorted(nsmallest(SUSPECTS, rows, key=away), key=lambda r: (moments[r], r)))

    # ── amounts ─────────────────────────────────────────────────────────────

    def fits(
        self, query_of: Callable[[int], ast.Query], match: bool = True
    ) -> Callable[[int], bool]:
        """Whether there is a match with an amount, or isn't."""
        return lambda amount: (self.match_of(query_of(amount)) is not None) is match

    def duration(self, size: int) -> ast.Duration:
        """In its largest whole unit."""
        if self.parts.ticks:
            return ast.Duration(size, ast.Unit.UNITS)
        units = reversed(MICROSECONDS.items())
        unit, long = next((u, long) for u, long in units if size % long == 0)
        return ast.Duration(size // long, unit)

    def ticks(self, duration: ast.Duration) -> int | None:
        """Its size in microseconds, or in the units of an integer time."""
        if isinstance(duration.amount, ast.Parameter):
            return None
        if duration.unit is ast.Unit.UNITS:
            return int(duration.amount)
        unit = self.trials.options.unit
        tick = TICK_US[unit] if self.parts.ticks and unit is not None else 1
        return int(duration.amount * MICROSECONDS[duration.unit]) // tick


def least(fits: Callable[[int], bool], low: int, high: int) -> int:
    """The least amount above `low` that fits; `high` does."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def any_order_of_choice(pattern: ast.Pattern) -> ast.Pattern:
    """The top-level sequence with `;` alone."""
    match pattern:
        case ast.Sequence(_, operators):
            return replace(pattern, operators=(ast.SequenceOperator.ANY,) * len(operators))
        case _:
            return pattern


def with_part(pattern: ast.Pattern, old: ast.Pattern, new: ast.Pattern) -> ast.Pattern:
    """The pattern with a part in the place of another."""
    if pattern == old:
        return new
    match pattern:
        case ast.Sequence(items) | ast.Conjunction(items) | ast.Disjunction(items):
            return replace(pattern, items=tuple(with_part(item, old, new) for item in items))
        case ast.Closure(item) | ast.Unless(item) | ast.Delay(item):
            return replace(pattern, item=with_part(item, old, new))
        case _:
            return pattern


def _chooses(pattern: ast.Pattern) -> bool:
    """Whether conditions decide which events are taken, and not only whether they match."""
    return any(
        isinstance(node, ast.Closure | ast.Disjunction)
        or (
            isinstance(node, ast.Sequence)
            and any(o is not ast.SequenceOperator.ANY for o in node.operators)
        )
        for node in walk(pattern)
    )
