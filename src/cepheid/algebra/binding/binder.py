"""A query as written, bound to a schema: names, types, roles, key, window, outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import assert_never

from cepheid.algebra import patterns
from cepheid.algebra.binding import windows
from cepheid.algebra.binding.absences import check_absences
from cepheid.algebra.binding.conjuncts import Classifier, check_until, true_where_absent
from cepheid.algebra.binding.expressions.expression_binder import ExpressionBinder
from cepheid.algebra.binding.expressions.resolution import Clause
from cepheid.algebra.binding.findings import Findings
from cepheid.algebra.binding.group_by import bind_groups, is_grouped
from cepheid.algebra.binding.group_scope import GroupScope
from cepheid.algebra.binding.keys import Place, equality, find_key, implied
from cepheid.algebra.binding.outputs import outputs, required
from cepheid.algebra.binding.scope import Scope, declare, labelled, listed, restrict
from cepheid.algebra.binding.shape import Shape, normalize
from cepheid.algebra.expressions import TRUE, Expr, conjuncts
from cepheid.algebra.kinds import check_readable
from cepheid.algebra.nested_columns import with_paths
from cepheid.algebra.query import BoundQuery, Clock, Conjunct, KeyPart, Selection, Window
from cepheid.algebra.structure import Structure, structure
from cepheid.algebra.types import Schema, Type
from cepheid.algebra.values import integer_time
from cepheid.language import ast
from cepheid.language.diagnostics import Source
from cepheid.language.traversal import written_conjuncts


def bind(
    query: ast.Query,
    schema: Schema,
    params: Mapping[str, object] | None = None,
    source: Source | None = None,
) -> BoundQuery:
    """What the query means over events of this schema; `QueryError` with all that is wrong with
    it, `DataError` if it reads a column that can't be read."""
    findings = Findings(source or Source(""))
    streams = schema.streams or {}
    schema = restrict(with_paths(schema, query), query, findings)
    left_out = streams.keys() - (schema.streams or {}).keys()
    written = labelled(query, schema)
    pattern = normalize(written.pattern, query.using)
    Shape(findings).check(pattern)
    check_absences(pattern, findings)
    shapeless = len(findings) > 0
    scope = declare(pattern, schema, findings, left_out)
    # Conditions inside the pattern (UNTIL) need the pattern's structure, which doesn't need them.
    skeleton = _build(pattern, scope)
    facts = structure(skeleton)
    early = GroupScope() if is_grouped(query, scope) else None
    lowering = ExpressionBinder(scope, facts, params or {}, findings, Clause.WHERE, early)
    bound = _build(pattern, scope, replace(lowering, clause=Clause.UNTIL))
    binder = _Binder(query, scope, facts, lowering, findings)
    where, key = binder.where()
    having = binder.having()
    window = windows.window(query.within, lowering)
    windows.check_delays(bound, window, query, lowering)
    if not shapeless:
        binder.check_window(bound, pattern)
    selection = binder.selection(key, window)
    if early is None:
        returned, answers = outputs(query, replace(lowering, clause=Clause.RETURN)), None
    else:
        returned, answers = bind_groups(query, lowering)
    findings.check()
    read = required(schema, bound, where, having, key, returned)
    check_readable(schema.unreadable, read)
    return BoundQuery(
        pattern=bound,
        variables=scope.variables,
        schema=schema,
        where=where,
        having=having,
        window=window,
        key=key,
        outputs=returned,
        required=read,
        selection=selection,
        into=query.into,
        answers=answers,
    )


def bind_windows(
    query: ast.Query,
    schema: Schema,
    each: Iterable[Mapping[str, object]],
    source: Source | None = None,
) -> list[Window | None]:
    """The query's window for each of these parameters. Nothing else of the query is bound."""
    findings = Findings(source or Source(""))
    schema = restrict(with_paths(schema, query), query, findings)
    pattern = normalize(labelled(query, schema).pattern, query.using)
    scope = declare(pattern, schema, findings, frozenset())
    facts = structure(_build(pattern, scope))
    lowering = ExpressionBinder(scope, facts, {}, findings, Clause.WHERE)
    found = [windows.window(query.within, replace(lowering, params=params)) for params in each]
    findings.check()
    return found


def _build(
    pattern: ast.Pattern, scope: Scope, until: ExpressionBinder | None = None
) -> patterns.Pattern:
    """The bound pattern; its leaves meet the declared variables in order. Without a lowering its
    structure alone: no UNTIL, no delays."""
    names = iter(scope.variables)
    indexes = count()

    def build(item: ast.Pattern) -> patterns.Pattern:
        match item:
            case ast.Atom() | ast.AnyOf():
                return patterns.Leaf(next(names))
            case ast.Sequence():
                return patterns.Sequence(tuple(map(build, item.items)), item.operators)
            case ast.Conjunction():
                return patterns.Conjunction(tuple(map(build, item.items)))
            case ast.Disjunction():
                return patterns.Disjunction(tuple(map(build, item.items)))
            case ast.Negation():
                index = next(indexes)
                if item.duration is None:
                    return patterns.Negation(build(item.item), index)
                lasts = 1 if until is None else windows.absence(item.duration, until)
                return patterns.Absence(build(item.item), index, lasts)
            case ast.Closure():
                inner = build(item.item)
                stop = None
                if item.until is not None and until is not None:
                    stop = until.condition(item.until)
                    check_until(stop, patterns.leaves(inner), until, item.until.span)
                return patterns.Closure(inner, item.quantifier, item.mode, item.strict, stop)
            case ast.Unless():
                index = next(indexes)
                return patterns.Unless(build(item.item), build(item.exception), index)
            case ast.Delay():
                duration = 0 if until is None else windows.delay(item.duration, until)
                return patterns.Delay(build(item.item), duration)
            case _:
                assert_never(item)

    return build(pattern)


@dataclass(frozen=True, slots=True)
class _Binder:
    """The clauses of one query over its variables."""

    query: ast.Query
    scope: Scope
    facts: Structure
    lowering: ExpressionBinder
    findings: Findings

    @property
    def _classifier(self) -> Classifier:
        return Classifier(self.scope, self.facts, self.findings)

    def where(self) -> tuple[tuple[Conjunct, ...], tuple[KeyPart, ...]]:
        written: list[tuple[Expr, ast.Span]] = []
        links: list[tuple[Place, ...]] = []
        for node in written_conjuncts(self.query.where):
            places = self._whole_key(node)
            if places:
                links.append(places)
                continue
            for expr in conjuncts(self.lowering.condition(node)):
                if expr != TRUE:
                    written.append((true_where_absent(expr, self.scope), node.span))
        equalities = [equality(expr, self.facts) for expr, _ in written]
        links.extend(link for link in equalities if link is not None)
        key = find_key(links, tuple(self.scope.variables))
        kept = tuple(
            self._classifier.classify(expr, span)
            for (expr, span), link in zip(written, equalities, strict=True)
            if link is None or not implied(link, key)
        )
        return kept, key

    def _whole_key(self, node: ast.Expression) -> tuple[Place, ...]:
        """`[id]` over events that all have the attribute is a key, whatever the branches."""
        if not isinstance(node, ast.KeyTest) or node.value is not None:
            return ()
        places: list[Place] = []
        for variable in self.scope.variables.values():
            column = self.scope.column(variable, node.attribute)
            if column is None or self.scope.schema.columns[column] is Type.OTHER:
                return ()
            if not self.scope.complete(variable, column):
                return ()
            places.append((variable.name, column))
        return tuple(places)

    def having(self) -> tuple[Expr, ...]:
        lowering = replace(self.lowering, clause=Clause.HAVING)
        return tuple(
            self._classifier.having(true_where_absent(expr, self.scope), node.span)
            for node in written_conjuncts(self.query.having)
            for expr in conjuncts(lowering.condition(node))
        )

    def check_window(self, pattern: patterns.Pattern, written: ast.Pattern) -> None:
        reason = windows.needs_window(pattern)
        if self.query.within is not None or reason is None:
            return
        plain = integer_time(self.scope.schema) and self.scope.schema.unit is None
        hint = f"add WITHIN 10 {'units' if plain else 'minutes'}"
        if self.query.relational:
            message = "combinations of several streams need a window"
            self.findings.add("CEP401", message, self.query.pattern.span, hint)
            return
        endless = windows.never_ending(written)
        if endless is not None and reason == windows.CLOSURE_AT_EDGE:
            message = (
                "this strict closure never ends: nothing stands after it, and there is no window"
            )
            hint += ", or put an event after it"
            self.findings.add("CEP406", message, endless.span, hint)
        else:
            message = f"a pattern with {reason} needs a window"
            self.findings.add("CEP401", message, self.query.pattern.span, hint)

    def selection(self, key: tuple[KeyPart, ...], window: Window | None) -> Selection | None:
        """AFTER MATCH and LIMIT, unless all matches are kept."""
        after, limit = self.query.after_match, self.query.limit
        chosen = Selection()
        if after is not None and after.duration is not None:
            chosen = Selection(after.skip, pause=windows.pause(after.duration, self.lowering))
        elif after is not None:
            if after.variable is not None:
                self._check_target(after, after.variable)
            chosen = Selection(after.skip, after.variable)
        if limit is not None and self.lowering.groups is None:  # else it counts answers
            self._check_limit(limit, key, window)
            most = windows.most(limit.most, self.lowering)
            chosen = replace(chosen, most=most, per_key=limit.per_key)
        return None if chosen == Selection() else chosen

    def _check_limit(
        self, limit: ast.MatchLimit, key: tuple[KeyPart, ...], window: Window | None
    ) -> None:
        if limit.per_key and not key:
            message = "PER KEY needs a key: WHERE connects no attribute of every variable"
            hint = "write `[user]` in WHERE for a key `user`, or leave PER KEY out"
            self.findings.add("CEP333", message, limit.span, hint)
        counted = window is not None and window.clock is Clock.EVENTS
        if counted and key and not limit.per_key:
            message = "a window of EVENTS is counted key by key, and this LIMIT over all keys"
            hint = "write LIMIT … PER KEY, or give the window as a duration"
            self.findings.add("CEP334", message, limit.span, hint)

    def _check_target(self, after: ast.AfterMatch, variable: str) -> None:
        target = self.scope.lookup(variable, after.span, self.findings)
        if target is not None and target.negation is not None:
            message = f"AFTER MATCH can't skip to `{target.name}`: it is negated"
            hint = f"skip to one of {listed([v.name for v in self.scope.positive])}"
            self.findings.add("CEP332", message, after.span, hint)
