"""One query for many rules of a template: what all of them find, and more.

A condition with a parameter is left out of the query, or made so wide that it holds whenever it
holds for one of the rules; each rule then checks its own on the matches (`attribution.residual`).
That is exact only if the condition is a plain filter on matches: if, left out, it changes nothing
about the matches that satisfy it. It is one where it

- stands in HAVING, which kills matches and looks for no others; or needs the complete match, as
  `duration()` does;
- or reads single events, and groups only as a whole, by aggregates. `;`, `&` and `=>` take every
  such event, whatever else is checked on it, and a group follows from its neighbors and its own
  filters; in modes other than the maximal one, every choice of a group is a match of its own. With
  `->`, which takes the first event that satisfies everything, only what is read before any `->` has
  chosen is free: each such beginning continues by itself.

It is none where it reads elements of a group one by one, a forbidden event, an optional one in
WHERE or UNTIL, or variables of a branch that a match may not have taken; nor after `AFTER MATCH`
with a SKIP, where a match that goes makes room for another; unless matches are single events, and
each rule can choose among its own (`choice_of_rules`). A window is a filter, too, unless a
closure or a negation at an edge of the pattern reaches as far as the window does, or it counts
events.

Rules share a query if they agree in all parameters that are read anywhere else. What a rule checks
and returns is computed from values of the match, so a parameter inside an aggregate,
`sum(b.x * :rate)`, or in a test of every element, is one in which they have to agree as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cepheid.algebra.binding.outputs import required
from cepheid.algebra.expressions import (
    Attribute,
    Call,
    Every,
    Expr,
    MatchDuration,
    Previous,
    Some,
    TimeSpan,
    Varying,
    variables,
    walk,
)
from cepheid.algebra.patterns import (
    Absence,
    Closure,
    Conjunction,
    Delay,
    Disjunction,
    Leaf,
    Negation,
    Pattern,
    Sequence,
    Unless,
    positive,
)
from cepheid.algebra.patterns import walk as walk_pattern
from cepheid.algebra.query import BoundQuery, Clock, Conjunct, Kind, Output, Role
from cepheid.algebra.structure import structure
from cepheid.algebra.text import condition_text
from cepheid.engine.attribution.pairs import OF_ROW
from cepheid.engine.attribution.parameters import RuleParameters, as_read
from cepheid.engine.attribution.residual import Ints, Residual, RuleChoice
from cepheid.language import ast
from cepheid.language.ast import SequenceOperator, Skip
from cepheid.language.traversal import parameters
from cepheid.rewrites.condition_roles import classify, has_next
from cepheid.rules.compile.hulls import parameters_of, wide

# ── the law ──────────────────────────────────────────────────────────────────


def agreed(query: BoundQuery) -> frozenset[str]:
    """The parameters whose values rules must have in common to share a query."""
    names: set[str] = set()
    for conjunct in query.where:
        if not (_is_filter(conjunct, query) and _separable(conjunct.expression, query)):
            names |= parameters_of(conjunct.expression)
    for condition in query.having:
        if not (_kills(condition, query) and _separable(condition, query)):
            names |= parameters_of(condition)
    for output in query.outputs:
        if not _separable(output.expression, query):
            names |= parameters_of(output.expression)
    for part in walk_pattern(query.pattern):
        if isinstance(part, Closure) and part.until is not None:
            names |= parameters_of(part.until)
    return frozenset(names)


def choice_of_rules(query: BoundQuery, jit: bool) -> RuleChoice | None:
    """What each rule can choose among its own matches, which are single events, so that the query
    has no choice left. Of several events, an engine that knows the choice looks for fewer."""
    chosen = query.selection
    if chosen is None or chosen.counts_all or not isinstance(query.pattern, Leaf):
        return None
    match chosen.skip:
        case Skip.FOR:
            return RuleChoice(chosen.pause, chosen.most, jit)
        case Skip.NONE:
            return RuleChoice(None, chosen.most, jit)
        case _:
            return None


def window_is_filter(query: BoundQuery) -> bool:
    """Whether a longer window only adds matches that are longer."""
    timed = query.window is not None and query.window.clock is Clock.TIME
    return timed and not _skips(query) and not _open(query.pattern)


def window_parameters(query: ast.Query) -> list[str]:
    """The parameters that only the window reads."""
    others = parameters(replace(query, within=None))
    return [name for name in parameters(query.within) if name not in others]


def _is_filter(conjunct: Conjunct, query: BoundQuery) -> bool:
    if not _kills(conjunct.expression, query):
        return False
    match conjunct.role:
        case Role.MATCH:
            return True
        case Role.CLASS | Role.EQUALITY | Role.MULTI | Role.CHECK:
            kinds = {query.variables[v].kind for v in conjunct.variables}
            whole = {Kind.GROUP} if conjunct.role is Role.CHECK else set()
            if has_next(query.pattern):
                whole = set()
            free = _before_next(query.pattern)
            return kinds <= {Kind.SINGLE, *whole} and free.issuperset(conjunct.variables)
        case Role.FILTER | Role.RUNNING | Role.NEGATION:
            return False


def _kills(condition: Expr, query: BoundQuery) -> bool:
    """Whether the condition is a plain filter: checked on every match, and a match that fails it
    affects no other."""
    branches = structure(query.pattern).branches
    return not _skips(query) and not any(branches.get(v) for v in variables(condition))


def _skips(query: BoundQuery) -> bool:
    return query.selection is not None


def _before_next(pattern: Pattern) -> frozenset[str]:
    """The variables that are bound before any `->` chooses; all, if the pattern has no `->`."""
    if not has_next(pattern):
        return frozenset(positive(pattern))
    names: set[str] = set()
    if isinstance(pattern, Sequence):
        for item, operator in zip(
            pattern.items, (SequenceOperator.ANY, *pattern.operators), strict=True
        ):
            if operator is SequenceOperator.NEXT or has_next(item):
                break
            names.update(positive(item))
    return frozenset(names)


def _open(pattern: Pattern) -> bool:
    """Whether a closure or negation at an edge of the pattern extends to the window's end."""
    match pattern:
        case Leaf():
            return False
        case Negation() | Absence() | Closure():
            return True
        case Sequence(items):
            return _open(items[0]) or _open(items[-1])
        case Conjunction(items) | Disjunction(items):
            return any(map(_open, items))
        case Unless(item) | Delay(item):
            return _open(item)


def _separable(expr: Expr, query: BoundQuery) -> bool:
    """Whether the expression reads only parameters and values that the query can return."""
    if not parameters_of(expr):
        return all(_returnable(node, query) for node in walk(expr))
    match expr:
        case Varying():
            return True
        case Call():
            return all(_separable(argument, query) for argument in expr.arguments)
        case _:
            return False


def _returnable(node: Expr, query: BoundQuery) -> bool:
    match node:
        case Every() | Some() | Previous():
            return False
        case TimeSpan(names):
            return all(query.variables[v].kind is Kind.SINGLE for v in names)
        case _:
            return True


# ── the query and what is left ───────────────────────────────────────────────


@dataclass(frozen=True)
class Widened:
    """The shared query, which returns the match values that the rules need; what each rule checks
    on a match; and the same as text."""

    query: BoundQuery
    residual: Residual
    tested: tuple[str, ...]


def widened(query: BoundQuery, rows: RuleParameters, windows: Ints) -> Widened:
    """The rules agree in the parameters that `agreed` names; the query gets their longest
    window."""
    varying = [c for c in query.where if parameters_of(c.expression)]
    killing = [h for h in query.having if parameters_of(h)]
    values = _Values()
    conditions = [*(c.expression for c in varying), *killing]
    tested = tuple(values.as_output(condition) for condition in conditions)
    outputs = tuple(Output(o.name, values.as_output(o.expression)) for o in query.outputs)
    where = tuple(c for old in query.where for c in _wide_where(old, query, rows))
    having = tuple(h for old in query.having for h in wide(old, rows))
    needed = values.outputs()
    widest = replace(
        query,
        where=where,
        having=having,
        outputs=needed,
        required=required(query.schema, query.pattern, where, having, query.key, needed),
    )
    texts = [condition_text(condition) for condition in conditions]
    if (windows == windows[0]).all():
        return Widened(widest, Residual(rows, tested, outputs), tuple(texts))
    texts.append("the window")
    return Widened(widest, Residual(rows, tested, outputs, windows), tuple(texts))


class _Values:
    """The match values that the rules read, each once."""

    def __init__(self) -> None:
        self._names: dict[Expr, str] = {}

    def outputs(self) -> tuple[Output, ...]:
        return tuple(Output(name, expr) for expr, name in self._names.items())

    def as_output(self, expr: Expr) -> Expr:
        """The expression in terms of match values and parameters."""
        if parameters_of(expr):
            match expr:
                case Call():
                    return replace(expr, arguments=tuple(map(self.as_output, expr.arguments)))
                case _:
                    return as_read(expr)
        if not variables(expr) and not any(isinstance(e, MatchDuration) for e in walk(expr)):
            return expr
        name = self._names.setdefault(expr, f"value {len(self._names) + 1}")
        return Attribute(OF_ROW, name, expr.type)


def _wide_where(old: Conjunct, query: BoundQuery, rows: RuleParameters) -> Iterator[Conjunct]:
    """The condition's hull, if it is checked on the same events at the same point; else nothing."""
    if not parameters_of(old.expression):
        yield old
        return
    for expr in wide(old.expression, rows, old.role is Role.CLASS):
        new = classify(expr, query)
        if (new.role, new.variables) == (old.role, old.variables):
            yield new
