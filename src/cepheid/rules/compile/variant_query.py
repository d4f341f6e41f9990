"""One query for rules whose parameters decide which events are taken: its parameters are columns.

The runtime deals the events to the variants (`attribution.variants`), so a parameter is a column of
whichever event a condition reads, and the variant is a part of the key. That is exact wherever a
match depends only on events that some variable takes, near the match's own: not for `=>`, STRICT
and `n EVENTS`, which look at all that the stream has, nor for a LIMIT over all matches.

A condition with parameters on one event is checked when events are dealt; in the query, a column
says what came out. Others read the parameters' columns, of an event that they read anyway: so they
are checked where they were before, on the same events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cepheid.algebra.binding.outputs import required
from cepheid.algebra.expressions import (
    Aggregate,
    Attribute,
    Call,
    Every,
    Expr,
    PreviousOr,
    Reduce,
    Some,
    TimeSpan,
    Varying,
    VaryingList,
    bare_variables,
    transform,
    variables,
    walk,
)
from cepheid.algebra.patterns import (
    Absence,
    Closure,
    Delay,
    Leaf,
    Negation,
    Pattern,
    Sequence,
    Unless,
    items,
    leaves,
    positive,
)
from cepheid.algebra.patterns import walk as walk_pattern
from cepheid.algebra.query import BoundQuery, Clock, Conjunct, KeyPart, Kind, Output, Role
from cepheid.algebra.structure import structure
from cepheid.algebra.types import Schema, Type
from cepheid.engine.attribution.pairs import OF_ROW
from cepheid.engine.attribution.parameters import RuleParameters, as_read
from cepheid.engine.attribution.variants import (
    VARIANT,
    VariantClass,
    Variants,
    parameter_column,
    taken_column,
)
from cepheid.language.ast import Between, Exactly, SequenceOperator
from cepheid.options import Options
from cepheid.plan.nodes import LeafNode
from cepheid.rewrites.condition_roles import classify, has_next
from cepheid.rewrites.surgery import with_items
from cepheid.rules.compile.alert_values import value_of_key
from cepheid.rules.compile.hulls import parameters_of

Ints: TypeAlias = NDArray[np.int64]


class NoVariants(Exception):
    """Why events can't be dealt to the variants of a query."""


def require_variants(query: BoundQuery, options: Options) -> None:
    """Raises `NoVariants` unless a match depends only on events that its variables take."""
    schema = query.schema
    limited = (options.limit, options.until, options.stats, options.start)
    if any(option is not None for option in limited):
        raise NoVariants("a limit, until=, start= and statistics are about the events as they come")
    if schema.streams is not None:
        raise NoVariants("its events are several streams")
    if query.window is not None and query.window.clock is Clock.EVENTS:
        raise NoVariants("its window counts all events of the stream")
    if query.selection is not None and query.selection.counts_all:
        raise NoVariants("LIMIT counts the matches of all keys")
    for part in walk_pattern(query.pattern):
        if isinstance(part, Sequence) and SequenceOperator.STRICT in part.operators:
            raise NoVariants("`=>` looks at every event of the stream")
        if isinstance(part, Closure):
            if part.strict:
                raise NoVariants("STRICT looks at every event of the stream")
            if not isinstance(part.item, Leaf) and part.until is not None:
                raise NoVariants("UNTIL of a group of several events has parameters")


def with_variants(
    query: BoundQuery, names: frozenset[str], rows: RuleParameters, windows: Ints | None = None
) -> tuple[BoundQuery, Variants]:
    """The query in which these parameters are columns, and how events are dealt to the variants,
    whose values are `rows`, and whose windows `windows` are, if they have other ones than the
    query."""
    columns = _Columns(query, names)
    where, classes = list[Conjunct](), {v: list[Expr]() for v in leaves(query.pattern)}
    for conjunct in query.where:
        if not parameters_of(conjunct.expression) & names:
            where.append(conjunct)
        elif conjunct.role is Role.CLASS and parameters_of(conjunct.expression) <= names:
            classes[conjunct.variables[0]].append(conjunct.expression)
        elif _reads_lists(conjunct.expression):
            where.append(conjunct)  # no column of an event: checked on matches, if that will do
        else:
            where.append(columns.conjunct(conjunct))
    for variable, conditions in classes.items():
        if conditions:
            flag = Attribute(variable, taken_column(variable), Type.BOOLEAN)
            where.append(Conjunct(flag, Role.CLASS, (variable,)))
    pattern = columns.pattern(query.pattern)
    having = tuple(
        condition if _reads_lists(condition) else columns.everywhere(condition)
        for condition in query.having
    )
    outputs = tuple(replace(o, expression=columns.inside(o.expression)) for o in query.outputs)
    key = (*query.key, KeyPart(dict.fromkeys(query.variables, VARIANT)))
    schema = _schema(query.schema, columns.types, [v for v in classes if classes[v]])
    dealt = replace(
        query,
        pattern=pattern,
        where=tuple(where),
        having=having,
        outputs=outputs,
        key=key,
        schema=schema,
        required=required(schema, pattern, where, having, key, outputs),
    )
    read = required(query.schema, query.pattern, query.where, query.having, query.key, outputs)
    return dealt, Variants(
        rows,
        tuple(_classes(query, classes)),
        query.variables,
        query.schema,
        tuple(part.columns for part in query.key),
        _reach(query, rows.length, windows),
        tuple(name for name in read if name in query.required),
        tuple(sorted(columns.types)),
    )


def _reads_lists(expr: Expr) -> bool:
    return any(isinstance(node, VaryingList) for node in walk(expr))


def variant_of(query: BoundQuery) -> Output:
    """The variant of a match, as a column."""
    return Output(VARIANT, value_of_key(query.key[-1], query))


def is_variant() -> Expr:
    """The residual condition that a match is of the rule's variant."""
    sides = (Attribute(OF_ROW, VARIANT, Type.INTEGER), Attribute("", VARIANT, Type.INTEGER))
    return Call("=", sides, Type.BOOLEAN)


def decisive(query: BoundQuery, agreed: frozenset[str]) -> frozenset[str]:
    """The parameters that become columns: those that decide about events, and all others that
    WHERE reads, since they say which events a variant needs."""
    read = (parameters_of(conjunct.expression) for conjunct in query.where)
    return agreed.union(*read)


def _schema(schema: Schema, types: Mapping[str, Type], taken: list[str]) -> Schema:
    more = {VARIANT: Type.INTEGER, **{taken_column(v): Type.BOOLEAN for v in taken}}
    more |= {parameter_column(name): type_ for name, type_ in types.items()}
    return replace(schema, columns={**schema.columns, **more})


def _classes(query: BoundQuery, varying: Mapping[str, list[Expr]]) -> Iterator[VariantClass]:
    required = _bound_always(query)
    parts = query.pattern.items if isinstance(query.pattern, Sequence) else ()
    items_of = {variable: n for n, item in enumerate(parts) for variable in leaves(item)}
    until = {
        variable
        for part in walk_pattern(query.pattern)
        if isinstance(part, Closure) and part.until is not None
        for variable in leaves(part)
    }
    for variable, conditions in varying.items():
        constant = (
            conjunct.expression
            for conjunct in query.where
            if conjunct.variables == (variable,)
            and conjunct.role is Role.CLASS
            and not parameters_of(conjunct.expression)
        )
        every = variable in until
        leaf = LeafNode(variable, () if every else tuple(constant))
        read = tuple(as_read(_of_row(condition)) for condition in conditions)
        yield VariantClass(leaf, read, variable in required, every, items_of.get(variable))


def _of_row(condition: Expr) -> Expr:
    return transform(
        condition, lambda e: replace(e, variable=OF_ROW) if isinstance(e, Attribute) else None
    )


def _bound_always(query: BoundQuery) -> frozenset[str]:
    """The variables of which every match has an event."""
    branches = structure(query.pattern).branches

    def bound(pattern: Pattern) -> Iterator[str]:
        match pattern:
            case Leaf(variable):
                yield variable
            case Negation() | Absence():
                return
            case Closure() if not _never_empty(pattern):
                return
            case Unless():
                yield from bound(pattern.item)
            case _:
                for item in items(pattern):
                    yield from bound(item)

    return frozenset(v for v in bound(query.pattern) if not branches.get(v))


def _never_empty(closure: Closure) -> bool:
    match closure.quantifier:
        case Between(low):
            return low > 0
        case Exactly(count):
            return count > 0
        case _:
            return False


def _reach(query: BoundQuery, variants: int, windows: Ints | None) -> Ints | None:
    """How far from any of its events a match depends on others, by variant."""
    if query.window is None:
        return None
    moved = [
        part.duration for part in walk_pattern(query.pattern) if isinstance(part, Absence | Delay)
    ]
    sizes = np.full(variants, query.window.size) if windows is None else windows
    return sizes + sum(moved)


# ── parameters as columns ────────────────────────────────────────────────────


class _Columns:
    """Reads parameters as columns of events, and notes which ones, with their types."""

    def __init__(self, query: BoundQuery, names: frozenset[str]) -> None:
        self.query, self.names = query, names
        self.types: dict[str, Type] = {}
        self._always = [v for v in positive(query.pattern) if v in _bound_always(query)]

    def conjunct(self, old: Conjunct) -> Conjunct:
        """A conjunct of WHERE, checked where it was."""
        new = classify(self.everywhere(old.expression), self.query)
        same = (old.role, old.variables, old.target, old.negation)
        if (new.role, new.variables, new.target, new.negation) == same:
            return new
        whole = new.role is old.role and old.role in (Role.CHECK, Role.MATCH)
        if whole and not has_next(self.query.pattern):
            return new  # a filter on complete matches
        raise NoVariants("a condition on a whole group or match has parameters beside `->`")

    def pattern(self, pattern: Pattern) -> Pattern:
        """With UNTIL's parameters."""
        if isinstance(pattern, Closure) and pattern.until is not None:
            until = self._filled(pattern.until, leaves(pattern)[0])
            return replace(pattern, until=until)
        return with_items(pattern, self.pattern)

    def everywhere(self, expr: Expr) -> Expr:
        """With columns for all of the parameters."""
        if not parameters_of(expr) & self.names:
            return expr
        expr = self.inside(expr)
        return self._filled(expr, None) if parameters_of(expr) & self.names else expr

    def inside(self, expr: Expr) -> Expr:
        """With columns for parameters inside aggregates and tests of elements."""

        def change(node: Expr) -> Expr | None:
            match node:
                case Aggregate(argument=argument) if argument is not None and parameters_of(
                    argument
                ):
                    return replace(node, argument=self._filled(argument, node.variable))
                case Every() | Some() if parameters_of(node.condition):
                    return replace(node, condition=self._filled(node.condition, node.variable))
                case Reduce() | PreviousOr() if parameters_of(node) & self.names:
                    raise NoVariants("`reduce` or PREV with a default has parameters")
                case _:
                    return None

        return transform(expr, change)

    def _filled(self, expr: Expr, carrier: str | None) -> Expr:
        """With a column of the carrier for each parameter."""
        value = self._carrier(expr) if carrier is None else carrier

        def change(node: Expr) -> Expr | None:
            if not isinstance(node, Varying) or node.name not in self.names:
                return None
            if isinstance(node, VaryingList):
                raise NoVariants(
                    f"`:{node.name}` is a list that more than one event is looked up in"
                )
            self.types[node.name] = node.type
            if isinstance(value, str):
                return Attribute(value, parameter_column(node.name), node.type)
            column = Attribute(value[0], parameter_column(node.name), node.type)
            return Aggregate("first", column, value[0], node.type)

        return transform(expr, change)

    def _carrier(self, expr: Expr) -> str | tuple[str]:
        """A variable that the expression reads, or one that every match binds; of a group, in
        parentheses, the first element."""
        kinds = self.query.variables
        spans = {v for e in walk(expr) if isinstance(e, TimeSpan) for v in e.variables}
        bare = sorted(bare_variables(expr) | {v for v in spans if kinds[v].kind is Kind.SINGLE})
        singles = [v for v in bare if kinds[v].kind is Kind.SINGLE]
        if singles or bare:
            return (singles or bare)[0]
        for name in self._always:
            if kinds[name].kind is Kind.SINGLE:
                return name
        for name in self._always:
            return (name,)
        raise NoVariants(f"no event is in every match that could carry {_listed(variables(expr))}")


def _listed(names: frozenset[str]) -> str:
    return f"the parameters of conditions on {', '.join(sorted(names))}"
