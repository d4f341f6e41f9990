"""What each WHERE conjunct does: the roles of `query.Role`, and HAVING's conjuncts.

The role decides when a conjunct is looked at, and so, with closures and negations, which matches
there are: it is part of the meaning, not an optimization.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from cepheid.algebra.binding.expressions.expression_binder import ExpressionBinder
from cepheid.algebra.binding.findings import Findings
from cepheid.algebra.binding.scope import Scope
from cepheid.algebra.expressions import (
    Aggregate,
    Attribute,
    Call,
    Constant,
    Every,
    Expr,
    MatchDuration,
    Previous,
    PreviousOr,
    Reduce,
    Some,
    TimeSpan,
    children,
    reads_before,
    variables,
    walk,
)
from cepheid.algebra.query import Conjunct, Kind, Role, Variable
from cepheid.algebra.structure import Structure
from cepheid.algebra.types import STREAM_COLUMN, Type
from cepheid.language.ast import Span


@dataclass(frozen=True, slots=True)
class Classifier:
    scope: Scope
    structure: Structure
    findings: Findings

    def classify(self, expr: Expr, span: Span) -> Conjunct:
        read = variables(expr)
        ordered = self._ordered(read)
        negations = {self._variable(v).negation for v in read} - {None}
        if len(negations) > 1:
            shown = [v for v in ordered if self._variable(v).negation is not None]
            message = f"one condition reads two negations: `{shown[0]}` and `{shown[-1]}`"
            hint = "a negation is checked by itself: compare each with a bound event"
            self.findings.add("CEP320", message, span, hint)
        if negations:
            return self._of_negation(expr, ordered, next(iter(negations)), span)
        bare = self._bare_groups(expr)
        if any(isinstance(e, MatchDuration) for e in walk(expr)) or not read:
            self._no_previous(expr, span)
            return Conjunct(self._every(expr, bare), Role.MATCH, ordered)
        elements = bare or self._looking_back(expr)
        if not elements:
            self._no_previous(expr, span)
            return Conjunct(expr, self._role_without_bare(expr), ordered)
        target = self._target(expr, elements)
        if target is None:
            self._no_previous(expr, span)
            return Conjunct(self._every(expr, bare), Role.CHECK, ordered)
        if self._reads_before(expr, target):
            return Conjunct(expr, Role.RUNNING, ordered, target)
        if len(read) == 1:
            return Conjunct(expr, Role.CLASS, ordered)
        return Conjunct(expr, Role.FILTER, ordered, target)

    def _of_negation(
        self, expr: Expr, ordered: tuple[str, ...], index: int | None, span: Span
    ) -> Conjunct:
        """It says which events are forbidden. Inside the negated pattern a closure's filters work
        as outside. A group of the match itself is complete there, so `Every`; but a repeated group
        that the negation stands in is gone through round by round."""
        forbidden = next(v for v in ordered if self._variable(v).negation is not None)
        bound = [v for v in ordered if self._variable(v).negation is None]
        at_hand = {v for v in bound if self.structure.at_hand(v, forbidden)}
        bare = tuple(v for v in self._bare_groups(expr) if v not in at_hand)
        known = self._reads_round(expr, bare, forbidden, span)
        elements = bare or self._looking_back(expr)
        inside = any(self._variable(v).negation is not None for v in elements)
        target = self._target(expr, elements, at_hand) if inside else None
        if target is None and known:
            self._no_previous(expr, span)
        more = reads_before(expr) or self._reads_groups(expr) or self._has_duration(expr)
        if len(ordered) == 1 and not more:
            return Conjunct(expr, Role.CLASS, ordered, negation=index)
        wrapped = expr if target is not None else self._every(expr, bare)
        return Conjunct(wrapped, Role.NEGATION, ordered, target, index)

    def _reads_round(self, expr: Expr, bare: tuple[str, ...], forbidden: str, span: Span) -> bool:
        """Whether a negation in a repeated group reads nothing of it but the round at hand: single
        events, or the elements of one group inside."""
        if forbidden in self.structure.excepted:
            return True  # an exception is checked while the group is built

        def shared(variable: str) -> bool:
            own = self._variable(variable).negation is not None
            return not own and self.structure.shares_rounds(variable, forbidden)

        whole = (Aggregate, Reduce, Every, Some, Previous, PreviousOr)
        read = [v for e in walk(expr) if isinstance(e, whole) for v in variables(e) if shared(v)]
        elements = [v for v in bare if shared(v)]
        if read:
            message = f"a negation is checked in each round, and can't read all of `{read[0]}`"
            hint = f"compare with what it is in the round, as in `{forbidden}.x > {read[0]}.x`"
            self.findings.add("CEP324", message, span, hint)
        elif len(elements) > 1:
            names = f"`{elements[0]}` and `{elements[1]}`"
            message = f"a negation is checked in each round, and can't read two groups: {names}"
            self.findings.add("CEP324", message, span, "compare with one of them")
        return not read

    def having(self, expr: Expr, span: Span) -> Expr:
        """A bare group must hold for every element; an absent optional event is NULL."""
        self._no_previous(expr, span, having=True)
        single = first_of_optional(expr, self.scope)
        return self._every(single, self._bare_groups(single))

    # ── parts ───────────────────────────────────────────────────────────────

    def _variable(self, name: str) -> Variable:
        return self.scope.variables[name]

    def _ordered(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(names, key=self.structure.order.__getitem__))

    def _bare_groups(self, expr: Expr) -> tuple[str, ...]:
        """Closure variables read bare; PREV alone is no such reading."""
        return self._ordered(bare_groups(expr, self.structure))

    def _looking_back(self, expr: Expr) -> tuple[str, ...]:
        """Closure variables of PREV in a condition that reads no group bare: it is about the
        element at hand all the same, unless it is about an event that comes later."""
        groups = self._ordered({e.variable for e in walk(expr) if isinstance(e, Previous)})
        order = self.structure.order
        late = groups and any(order[v] > order[groups[-1]] for v in variables(expr))
        return () if late else groups

    def _role_without_bare(self, expr: Expr) -> Role:
        if self._reads_groups(expr):
            return Role.CHECK
        if len(variables(expr)) == 1:
            return Role.CLASS
        match expr:
            case Call("=", (Attribute() as left, Attribute() as right)) if left.type is right.type:
                return Role.EQUALITY
            case _:
                return Role.MULTI

    def _reads_groups(self, expr: Expr) -> bool:
        """Aggregates, quantifiers, or the time span of a group: they need it complete."""
        return any(
            isinstance(e, Aggregate | Reduce | Every | Some)
            or (isinstance(e, TimeSpan) and any(self._is_group(v) for v in e.variables))
            for e in walk(expr)
        )

    def _is_group(self, name: str) -> bool:
        return self._variable(name).kind is not Kind.SINGLE

    def _has_duration(self, expr: Expr) -> bool:
        return any(isinstance(e, MatchDuration) for e in walk(expr))

    def _target(
        self, expr: Expr, bare: tuple[str, ...], at_hand: Collection[str] = ()
    ) -> str | None:
        """The closure whose elements the conjunct chooses; None if it reads too much for that.

        It may read one closure (all of whose variables move together) and variables up to that
        closure's right neighbor; ALL, SOME and time spans are about complete groups.
        """
        closures = {self.structure.closure[v] for v in bare}
        read = variables(expr).difference(at_hand)
        groups = {self.structure.closure[v] for v in read if self._is_group(v)}
        if len(closures) != 1 or groups != closures:
            return None
        reach = self.structure.reach[next(iter(closures))]
        if any(self.structure.order[v] > reach for v in variables(expr)):
            return None
        complete = (Every, Some, TimeSpan, MatchDuration)
        return None if any(isinstance(e, complete) for e in walk(expr)) else bare[0]

    def _reads_before(self, expr: Expr, target: str) -> bool:
        mine = self.structure.closure[target]
        return any(
            isinstance(e, Previous | Aggregate | Reduce)
            and self.structure.closure[e.variable] == mine
            for e in walk(expr)
        )

    def _every(self, expr: Expr, groups: tuple[str, ...]) -> Expr:
        """`Every` around the condition, innermost for the last; one per closure, since the
        variables of a group closure go through its iterations together. One in a branch stands for
        them: the condition is about the iterations that take it."""
        branches = self.structure.branches
        chosen: dict[int, str] = {}
        for name in groups:
            first = chosen.setdefault(self.structure.closure[name], name)
            if len(branches[name]) > len(branches[first]):
                chosen[self.structure.closure[name]] = name
        for name in reversed(chosen.values()):
            expr = Every(name, expr)
        return expr

    def _no_previous(self, expr: Expr, span: Span, having: bool = False) -> None:
        previous = next((e for e in walk(expr) if isinstance(e, Previous)), None)
        if previous is None:
            return
        group, read = previous.variable, f"{previous.variable}.{previous.name}"
        message = f"`PREV({read})` is outside a running condition"
        order = self.structure.order
        later = [v for v in self._ordered(variables(expr)) if order[v] > order[group]]
        if having:
            hint = f"write it in WHERE, or `LAST({read}, 1)` for the last element but one"
        elif later and group in self._bare_groups(expr):
            hint = f"it can't read `{later[-1]}`, which comes after what ends the group"
        elif later:
            hint = (
                f"`{later[0]}` comes after the group: `LAST({read})` is its last element, "
                f"`LAST({read}, 1)` the one before that"
            )
        else:
            hint = f"compare it in WHERE with `{read}` of the same element"
        self.findings.add("CEP321", message, span, hint)


def bare_groups(expr: Expr, structure: Structure) -> frozenset[str]:
    """Closure variables read outside any aggregate or quantifier over their closure."""
    match expr:
        case Attribute(variable):
            return frozenset((variable,)) & structure.closure.keys()
        case _:
            inner = frozenset[str]().union(*(bare_groups(c, structure) for c in children(expr)))
    if isinstance(expr, Aggregate | Reduce | Every | Some):
        mine = structure.closure[expr.variable]
        return frozenset(v for v in inner if structure.closure[v] != mine)
    return inner


def first_of_optional(expr: Expr, scope: Scope, inside: frozenset[str] = frozenset()) -> Expr:
    """An optional event read bare is the event, or NULL: `first` over its group.

    `inside` are variables whose aggregate or quantifier stands around the expression.
    """
    match expr:
        case Attribute(variable, _, type_) if variable in scope.variables:
            optional = scope.variables[variable].kind is Kind.OPTIONAL and variable not in inside
            return Aggregate("first", expr, variable, type_) if optional else expr
        case Call():
            arguments = tuple(first_of_optional(a, scope, inside) for a in expr.arguments)
            return replace(expr, arguments=arguments)
        case Reduce():
            return replace(expr, start=first_of_optional(expr.start, scope, inside))
        case Every() | Some():
            within = inside | {expr.variable}
            return replace(expr, condition=first_of_optional(expr.condition, scope, within))
        case _:
            return expr


def check_until(
    stop: Expr, repeated: tuple[str, ...], lowering: ExpressionBinder, span: Span
) -> None:
    """UNTIL is checked before anything right of the closure is known."""
    order = lowering.structure.order
    late = [v for v in variables(stop) if v not in repeated and order[v] > order[repeated[0]]]
    groups = [v for v in bare_groups(stop, lowering.structure) if v not in repeated]
    for name in sorted({*late, *groups}, key=order.__getitem__):
        why = "it comes later" if name in late else "it is a group"
        message = f"UNTIL can't read `{name}`: {why}"
        hint = "read the closure or what stands before it"
        lowering.findings.add("CEP322", message, span, hint)


def true_where_absent(expr: Expr, scope: Scope) -> Expr:
    """With several streams, a predicate on an attribute that the event's stream doesn't have is
    true: `type NOT IN (the streams that have it) OR predicate`."""
    if isinstance(expr, Every | Some):
        kind = type(expr)
        expr = kind(expr.variable, true_where_absent(expr.condition, scope))
    column = scope.schema.type or STREAM_COLUMN
    for variable, name in dict.fromkeys(_direct(expr)):
        bound = scope.variables[variable]
        if scope.complete(bound, name):
            continue
        owners = (Constant(t, Type.STRING) for t in scope.owners(bound, name))
        has = Call("in", (Attribute(variable, column, Type.STRING), *owners), Type.BOOLEAN)
        expr = Call("or", (Call("not", (has,), Type.BOOLEAN), expr), Type.BOOLEAN)
    return expr


def _direct(expr: Expr) -> Iterable[tuple[str, str]]:
    """Attributes that the predicate reads itself, not through a group."""
    match expr:
        case Attribute(variable, name, _):
            yield variable, name
        case Call(_, arguments, _):
            for argument in arguments:
                yield from _direct(argument)
        case _:
            return
