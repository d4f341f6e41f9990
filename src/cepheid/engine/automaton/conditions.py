"""When a conjunct becomes evaluable, and its test as lines of the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from cepheid.algebra.absence import without_absent
from cepheid.algebra.expressions import (
    Aggregate,
    Call,
    Every,
    Expr,
    MatchDuration,
    Previous,
    Some,
    variables,
    walk,
)
from cepheid.algebra.patterns import (
    Closure,
    Disjunction,
    Leaf,
    Negation,
    Pattern,
    Unless,
    items,
    leaves,
)
from cepheid.algebra.query import Conjunct, Role
from cepheid.engine.automaton.code import Code, Env, Path
from cepheid.engine.lowering import Event, GroupPlace, Inputs, Lowering, Place, Term, finalized
from cepheid.plan.nodes import Automaton


@dataclass(frozen=True)
class Fold:
    """An aggregate that is carried along while a group is built (Cayuga's α: initialize,
    accumulate, finalize): `totals[n]` and `counts[n]` are of its first n elements."""

    totals: str
    counts: str


Folds = dict[tuple[str, str, Expr], Fold]
"""By the array that holds the group, the function, and what it is over."""


class Reading(Lowering):
    """Lowers expressions over what an automaton has bound. `companions` are the variables of a
    closure over a pattern, which go through its rounds together. `folds` are aggregates that need
    no loop."""

    def __init__(
        self,
        inputs: Inputs,
        scope: dict[str, Place],
        prefix: str,
        duration: str | None,
        companions: Mapping[str, frozenset[str]],
        folds: Folds,
    ) -> None:
        super().__init__(inputs, scope, prefix)
        self.duration = duration
        self.companions = companions
        self.folds = folds

    def term(self, expr: Expr) -> Term:
        if isinstance(expr, MatchDuration) and self.duration is not None:
            return Term(self.duration)
        return super().term(expr)

    def _fold(self, function: str, variable: str, argument: Expr) -> Term:
        group = self._group(variable)
        fold = self.folds.get((group.array, function, argument))
        if fold is None or group.start != "0":
            return super()._fold(function, variable, argument)
        count = self.let(f"{fold.counts}[u({group.count})]")
        total = self.let(f"{fold.totals}[u({group.count})]")
        return finalized(function, total, count)

    @contextmanager
    def _elements(self, variable: str) -> Iterator[None]:
        others = self.companions.get(variable, frozenset())
        places = {v: p for v in others if isinstance(p := self.scope.get(v), GroupPlace)}
        group = self._group(variable)
        at = self.name()
        with self.block(f"for {at} in range({group.count}):"):
            row = self.let(f"{group.array}[{group.start} + {at}]")
            kept, kept_cache = self.scope, self._cache
            bound: dict[str, Place] = {variable: Event(row, False)}
            bound |= {
                v: Event(f"{p.array}[u({p.start} + {at})]", False)
                for v, p in places.items()
                if v != variable
            }
            groups = {f"{v}…": kept[v] for v in bound if isinstance(kept.get(v), GroupPlace)}
            self._cache = {k: t for k, t in kept_cache.items() if k[0] not in bound}
            self.scope = {**kept, **groups, **bound}
            yield
            self.scope, self._cache = kept, kept_cache


class Conditions:
    """Tests conjuncts where they become evaluable."""

    def __init__(self, node: Automaton, inputs: Inputs) -> None:
        self.node = node
        self.inputs = inputs
        self.code = Code()
        self.grouped = grouped(node.pattern)
        self.negation = _negations(node.pattern)
        self.companions = _companions(node.pattern)
        self.disjunctions = tuple(_disjunctions(node.pattern, ()))
        self.folds: Folds = {}

    def owner(self, conjunct: Conjunct) -> int | None:
        """The negation (or exception) that the conjunct belongs to."""
        found = {self.negation[v] for v in conjunct.variables} - {None}
        return found.pop() if found else None

    # ── which ──

    def ready(self, env: Env) -> list[int]:
        """The conjuncts that are evaluable now and haven't been tested."""
        return [
            n
            for n, conjunct in enumerate(self.node.where)
            if n not in env.applied
            and conjunct.role is not Role.MATCH
            and conjunct.variables
            and self.owner(conjunct) == env.control.negation
            and self._evaluable(conjunct, env)
        ]

    def _evaluable(self, conjunct: Conjunct, env: Env) -> bool:
        """All its variables are decided. A condition on the elements of a group needs one at
        hand; every other one needs the groups that it reads complete."""
        if not env.decided.issuperset(conjunct.variables):
            return False
        target = self.element_target(conjunct)
        if target is not None:
            return target in env.hand
        return conjunct.role is Role.NEGATION or env.hand.isdisjoint(conjunct.variables)

    def element_target(self, conjunct: Conjunct) -> str | None:
        """The closure variable whose elements the conjunct tests one by one."""
        match conjunct.role:
            case Role.FILTER | Role.RUNNING | Role.NEGATION:
                return conjunct.target
            case Role.CLASS:
                variable = conjunct.variables[0]
                return variable if variable in self.grouped else None
            case _:
                return None

    def applies(self, read: Sequence[str], env: Env) -> bool:
        """Whether the branches were taken that the condition is about."""
        names = set(read)
        for path, disjunction in self.disjunctions:
            branches = [n for n, i in enumerate(disjunction.items) if names & set(leaves(i))]
            if len(branches) == 1 and env.choices.get(path) != branches[0]:
                return False
        return True

    def present(self, expr: Expr, env: Env) -> Expr:
        """What the condition says where some variables are absent: they read as NULL. In a round
        that doesn't take a variable, aggregates of it still see the rounds before."""
        earlier = frozenset(v for v in env.absent if f"{v}…" in env.scope)
        return _present(expr, env.decided - env.absent, earlier)

    # ── tests ──

    def lowering(self, env: Env, duration: str | None = None) -> Reading:
        prefix = self.code.name("t") + "_"
        return Reading(self.inputs, dict(env.scope), prefix, duration, self.companions, self.folds)

    @contextmanager
    def holding(self, env: Env, which: list[int] | None = None) -> Iterator[Env]:
        """Inside, all conjuncts that have become evaluable (or those given) hold."""
        which = self.ready(env) if which is None else which
        low = self.lowering(env)
        for n in which:
            conjunct = self.node.where[n]
            if not self.applies(conjunct.variables, env):
                continue
            condition = self.present(conjunct.expression, env)
            before = self._first_holds(conjunct, env)
            if before is None:
                low.require([condition])
            else:
                holds = low.let("True")
                with low.block(f"if {before}:"):
                    low.line(f"{holds} = {low.true(condition)}")
                low.require_source(holds)
        with self.inside(low):
            yield replace(env, applied=env.applied | set(which))

    def _first_holds(self, conjunct: Conjunct, env: Env) -> str | None:
        """A running condition holds for the first element: it is tested if there are others."""
        if conjunct.target is None or conjunct.target not in env.hand:
            return None
        if not any(isinstance(e, Previous | Aggregate) for e in walk(conjunct.expression)):
            return None
        group = env.scope[f"{conjunct.target}…"]
        assert isinstance(group, GroupPlace)
        return f"{group.count} > 0"

    @contextmanager
    def satisfying(
        self, env: Env, conditions: Sequence[Expr], duration: str | None = None
    ) -> Iterator[None]:
        """Inside, these conditions hold, as far as they are about the branches taken."""
        low = self.lowering(env, duration)
        for condition in conditions:
            if self.applies(tuple(variables(condition)), env):
                low.require([self.present(condition, env)])
        with self.inside(low):
            yield

    @contextmanager
    def inside(self, low: Lowering) -> Iterator[None]:
        for text in low.inner:
            self.code.line(text)
        self.code.level += low.depth
        before = len(self.code.lines)
        yield
        if low.depth and len(self.code.lines) == before:
            self.code.line("pass")
        self.code.level -= low.depth


def _present(expr: Expr, present: frozenset[str], earlier: frozenset[str]) -> Expr:
    match expr:
        case Aggregate(argument=argument, variable=v) if v in earlier and argument is not None:
            return replace(expr, argument=_present(argument, present | {v}, earlier))
        case Every(variable=v, condition=condition) | Some(variable=v, condition=condition) if (
            v in earlier
        ):
            return replace(expr, condition=_present(condition, present | {v}, earlier))
        case Aggregate(variable=v) | Previous(variable=v) if v in earlier:
            return expr
        case Call():
            arguments = tuple(_present(a, present, earlier) for a in expr.arguments)
            return replace(expr, arguments=arguments)
        case _:
            return without_absent(expr, present)


def grouped(pattern: Pattern, inside: bool = False) -> frozenset[str]:
    """Variables that bind groups: those in a closure. What a closure forbids, it does in each of
    its rounds anew."""
    match pattern:
        case Leaf():
            return frozenset((pattern.variable,)) if inside else frozenset()
        case Negation():
            return grouped(pattern.item)
        case Unless():
            return grouped(pattern.item, inside) | grouped(pattern.exception)
        case _:
            inside = inside or isinstance(pattern, Closure)
            return frozenset().union(*(grouped(item, inside) for item in items(pattern)))


def _negations(pattern: Pattern, index: int | None = None) -> dict[str, int | None]:
    """The negation or exception that each variable stands in."""
    match pattern:
        case Leaf():
            return {pattern.variable: index}
        case Negation():
            return _negations(pattern.item, pattern.index)
        case Unless():
            return _negations(pattern.item, index) | _negations(pattern.exception, pattern.index)
        case _:
            return {v: n for item in items(pattern) for v, n in _negations(item, index).items()}


def _companions(pattern: Pattern) -> dict[str, frozenset[str]]:
    """For the variables of closures over patterns, all of the same closure."""
    match pattern:
        case Closure(item=item) if not isinstance(item, Leaf):
            together = frozenset(leaves(item))
            return dict.fromkeys(together, together)
        case _:
            return {v: t for item in items(pattern) for v, t in _companions(item).items()}


def _disjunctions(pattern: Pattern, path: Path) -> Iterator[tuple[Path, Disjunction]]:
    if isinstance(pattern, Disjunction):
        yield path, pattern
    for n, item in enumerate(items(pattern)):
        yield from _disjunctions(item, (*path, n))
