"""Events held to a query: runs of it, and of parts of it, in which variables bind given rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cepheid.language import ast
from cepheid.language.traversal import walk
from cepheid.reasons.anatomy import Anatomy, WrittenCondition, WrittenNegation, all_of
from cepheid.reasons.local_trials import LocalTrials
from cepheid.reasons.trials import Binding

Rows = Mapping[str, tuple[int, ...]]


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
        query = replace(self.parts.chosen(), where=None)
        for other in self.parts.negations:
            if other is not negation:
                query = replace(query, pattern=self.parts.pattern_without(query.pattern, other))
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
