"""What is known at a place in a program, and which conditions can be checked there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from cepheid.algebra import patterns
from cepheid.algebra.absence import without_absent
from cepheid.algebra.expressions import (
    Aggregate,
    Call,
    Constant,
    Every,
    Expr,
    Previous,
    PreviousOr,
    Reduce,
    Some,
    holds_first,
    reads_before,
    variables,
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
    Unless,
    leaves,
)
from cepheid.algebra.query import Conjunct, Role
from cepheid.algebra.types import Type
from cepheid.engine.automaton.elements import Criterion, Sweep
from cepheid.engine.automaton.instructions import Hold, Instructions
from cepheid.engine.automaton.points import Path, Point
from cepheid.language.ast import SequenceOperator
from cepheid.plan.nodes import Automaton

NEXT, STRICT = SequenceOperator.NEXT, SequenceOperator.STRICT


@dataclass(frozen=True)
class Fringe:
    """A closure without a neighbor on one side: it waits for the whole match's start or end.
    `beside` are the closures before it that wait, too: it comes after those that aren't empty."""

    path: Path
    closure: Closure
    lower: Path | None
    upper: Path | None
    before: SequenceOperator | None
    after: SequenceOperator | None
    beside: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Control:
    """How to search. `unordered`: members of a conjunction may come before what is bound. `quiet`:
    running into the horizon says nothing. `negation`: the forbidden pattern that is looked for.
    `bounded`: there is a position that all must end before. `far`: the events may lie farther apart
    than the window."""

    unordered: bool = False
    quiet: bool = False
    negation: int | None = None
    bounded: bool = False
    far: bool = False

    @property
    def watching(self) -> bool:
        """Whether events to come may count."""
        return not self.quiet and self.negation is None


@dataclass(frozen=True)
class Known:
    """What is known at a place in a program.

    `decided` are all variables that are bound or absent, `hand` those with an element at hand,
    `earlier` those of whose group elements were taken before. `parts` are the events and groups
    that are bound, by path, and whether they always bind something; `rounds` are the closures over
    a pattern among them. `applied` are the conjuncts that hold already. `timed`: there is a reading
    of the clock that the match's start isn't after.
    """

    decided: frozenset[str] = frozenset()
    hand: frozenset[str] = frozenset()
    earlier: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    parts: Mapping[Path, bool] = field(default_factory=dict)
    choices: Mapping[Path, int] = field(default_factory=dict)
    rounds: frozenset[Path] = frozenset()
    applied: frozenset[int] = frozenset()
    fringes: tuple[Fringe, ...] = ()
    exceptions: tuple[tuple[Path, Unless], ...] = ()
    started: bool = False
    timed: bool = False
    control: Control = Control()

    def bind(self, variable: str, path: Path) -> Known:
        """An event is bound; it is one of the match's, unless a negation is looked for."""
        return replace(
            self,
            decided=self.decided | {variable},
            parts={**self.parts, path: True},
            started=True,
            timed=self.timed or self.control.negation is None,
        )

    def bind_group(self, names: Iterable[str], path: Path, certain: bool) -> Known:
        return replace(self, decided=self.decided.union(names), parts={**self.parts, path: certain})

    def at_hand(self, variable: str) -> Known:
        """An element that may be taken after those that were."""
        return replace(
            self,
            decided=self.decided | {variable},
            hand=self.hand | {variable},
            earlier=self.earlier | {variable},
        )

    def under(self, control: Control) -> Known:
        return replace(self, control=control)


Then = Callable[[Known], Instructions]
"""What comes behind a part that has been bound."""

Binder = Callable[["Compilation", Pattern, Path, Known, Point | None, Then], Instructions]
"""All ways to bind a part with its start after the given position, and what comes then."""


class Compilation:
    """A pattern on its way to a program: what is the same everywhere in it, what has been found
    out of the whole, and `bind`, by which parts have the parts below them bound."""

    def __init__(
        self,
        node: Automaton,
        bind: Binder,
        prompt: bool,
        *,
        windowed: bool,
        in_time: bool,
        lasting: bool,
    ) -> None:
        self.node = node
        self.prompt = prompt
        self.windowed = windowed
        self.in_time = in_time
        self.lasting = lasting
        self.grouped = grouped(node.pattern)
        self.negations = _negations(node.pattern)
        self.disjunctions = tuple(_disjunctions(node.pattern, ()))
        self.starts: list[str] = []
        self.looks_back = False
        self.back = 0
        self.waits = False
        self._bind = bind

    def bind(
        self, pattern: Pattern, path: Path, known: Known, after: Point | None, then: Then
    ) -> Instructions:
        return self._bind(self, pattern, path, known, after, then)

    def start(self, variable: str) -> int:
        """One more way in which matches start."""
        self.starts.append(variable)
        return len(self.starts) - 1

    def sweep(
        self, variable: str, known: Known, lower: Point | None = None, upper: Point | None = None
    ) -> Sweep:
        control = known.control
        unordered = known.timed and control.unordered
        return Sweep(
            variable,
            lower,
            upper,
            inside=self.windowed and known.timed and control.negation is None,
            unordered=unordered,
            near=unordered and self.windowed and not control.far,
            awaits=control.watching and upper is None and not control.bounded,
        )


# ── conditions ──


def owner(c: Compilation, conjunct: Conjunct) -> int | None:
    """The negation (or exception) that the conjunct belongs to."""
    indexes = {c.negations[v] for v in conjunct.variables} - {None}
    return indexes.pop() if indexes else None


def ready(c: Compilation, known: Known) -> list[int]:
    """The conjuncts that are evaluable now and haven't been checked."""
    return [
        n
        for n, conjunct in enumerate(c.node.where)
        if n not in known.applied
        and conjunct.role is not Role.MATCH
        and conjunct.variables
        and owner(c, conjunct) == known.control.negation
        and _evaluable(c, conjunct, known)
    ]


def _evaluable(c: Compilation, conjunct: Conjunct, known: Known) -> bool:
    """All its variables are decided. A condition on the elements of a group needs one at hand;
    every other one needs the groups that it reads complete."""
    if not known.decided.issuperset(conjunct.variables):
        return False
    target = element_target(c, conjunct)
    if target is not None:
        return target in known.hand
    return conjunct.role is Role.NEGATION or known.hand.isdisjoint(conjunct.variables)


def element_target(c: Compilation, conjunct: Conjunct) -> str | None:
    """The closure variable whose elements the conjunct tests one by one."""
    match conjunct.role:
        case Role.FILTER | Role.RUNNING | Role.NEGATION:
            return conjunct.target
        case Role.CLASS:
            variable = conjunct.variables[0]
            return variable if variable in c.grouped else None
        case _:
            return None


def applies(c: Compilation, read: Sequence[str], known: Known) -> bool:
    """Whether the branches were taken that the condition is about."""
    names = set(read)
    for path, disjunction, _ in c.disjunctions:
        branches = [n for n, i in enumerate(disjunction.items) if names & set(leaves(i))]
        taken = known.choices.get(path)
        if taken is not None and branches and taken not in branches:
            return False
    return True


def _where_taken(c: Compilation, expr: Expr, read: Iterable[str], known: Known) -> Expr:
    """A disjunction that is repeated is decided in each round: a condition on the complete group
    applies unless rounds took other branches than those that it reads."""
    names = set(read)
    for path, disjunction, repeated in c.disjunctions:
        if (
            not repeated
            or path in known.choices
            or not known.decided.issuperset(patterns.positive(disjunction))
        ):
            continue
        sides = [frozenset(patterns.positive(item)) for item in disjunction.items]
        branch = frozenset[str]().union(*(side for side in sides if names & side))
        others = frozenset[str]().union(*sides) - branch
        if branch and others:
            none = [Call("=", (_size(v), _ZERO), Type.BOOLEAN) for v in sorted(branch)]
            some = [Call(">", (_size(v), _ZERO), Type.BOOLEAN) for v in sorted(others)]
            either = some[0] if len(some) == 1 else Call("or", tuple(some), Type.BOOLEAN)
            away = Call("and", (*none, either), Type.BOOLEAN)
            expr = Call("or", (away, expr), Type.BOOLEAN)
    return expr


_ZERO = Constant(0, Type.INTEGER)


def _size(variable: str) -> Aggregate:
    return Aggregate("count", None, variable, Type.INTEGER)


def present(expr: Expr, known: Known) -> Expr:
    """What the condition says where some variables are absent: they read as NULL. In a round that
    doesn't take a variable, aggregates of it still see the rounds before."""
    return _present(expr, known.decided - known.absent, known.absent & known.earlier)


def criteria(c: Compilation, known: Known, which: list[int]) -> tuple[Criterion, ...]:
    """These conjuncts, as far as they are about the branches taken."""
    return tuple(
        Criterion(
            present(_where_taken(c, conjunct.expression, conjunct.variables, known), known),
            _running(conjunct, known),
            not holds_first(conjunct.expression),
        )
        for conjunct in (c.node.where[n] for n in which)
        if applies(c, conjunct.variables, known)
    )


def hold(c: Compilation, known: Known, which: list[int] | None = None) -> tuple[Hold, Known]:
    """Check all that has become evaluable (or these conjuncts); behind it, that holds."""
    which = ready(c, known) if which is None else which
    return Hold(criteria(c, known, which)), replace(known, applied=known.applied | set(which))


def _running(conjunct: Conjunct, known: Known) -> str | None:
    """The group of a running condition."""
    if conjunct.target is None or conjunct.target not in known.hand:
        return None
    return conjunct.target if reads_before(conjunct.expression) else None


def conditions(c: Compilation, known: Known, given: Iterable[Expr]) -> tuple[Expr, ...]:
    """Conditions on a complete match, as far as they are about the branches taken."""
    return tuple(
        present(_where_taken(c, e, variables(e), known), known)
        for e in given
        if applies(c, tuple(variables(e)), known)
    )


def depends(c: Compilation, closure: Closure, others: frozenset[str]) -> bool:
    """Whether these variables decide which events a group takes."""
    bound = set(patterns.positive(closure.item))
    until = frozenset() if closure.until is None else variables(closure.until)
    return not until.isdisjoint(others) or any(
        element_target(c, conjunct) in bound and not others.isdisjoint(conjunct.variables)
        for conjunct in c.node.where
    )


# ── parts ──


def binds(pattern: Pattern, path: Path, known: Known, absences: bool = True) -> bool | None:
    """Whether the part always binds something; None if it doesn't at all. `absences`: a negation
    with a time of its own counts: it has an end."""
    match pattern:
        case Leaf() | Closure():
            return known.parts.get(path)
        case Absence():
            return known.parts.get(path) if absences else None
        case Negation():
            return None
        case patterns.Sequence() | Conjunction():
            parts = [binds(i, (*path, n), known, absences) for n, i in enumerate(pattern.items)]
            return True if True in parts else False if False in parts else None
        case Disjunction():
            branch = known.choices[path]
            return binds(pattern.items[branch], (*path, branch), known, absences)
        case Unless() | Delay():
            return binds(pattern.item, (*path, 0), known, absences)
        case _:
            assert_never(pattern)


def _present(expr: Expr, present: frozenset[str], earlier: frozenset[str]) -> Expr:
    match expr:
        case Aggregate(argument=argument, variable=v) if v in earlier and argument is not None:
            return replace(expr, argument=_present(argument, present | {v}, earlier))
        case Reduce(variable=v, start=start, step=step) if v in earlier:
            start, step = _present(start, present, earlier), _present(step, present | {v}, earlier)
            return replace(expr, start=start, step=step)
        case Every(variable=v, condition=condition) | Some(variable=v, condition=condition) if (
            v in earlier
        ):
            return replace(expr, condition=_present(condition, present | {v}, earlier))
        case Aggregate(variable=v) | Previous(variable=v) if v in earlier:
            return expr
        case PreviousOr(variable=v, value=value, default=default) if v in earlier:
            value, default = (_present(e, present, earlier) for e in (value, default))
            return replace(expr, value=value, default=default)
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
        case Negation() | Absence():
            return grouped(pattern.item)
        case Unless():
            return grouped(pattern.item, inside) | grouped(pattern.exception)
        case _:
            inside = inside or isinstance(pattern, Closure)
            return frozenset().union(*(grouped(item, inside) for item in patterns.items(pattern)))


def _negations(pattern: Pattern, index: int | None = None) -> dict[str, int | None]:
    """The negation or exception that each variable stands in."""
    match pattern:
        case Leaf():
            return {pattern.variable: index}
        case Negation() | Absence():
            return _negations(pattern.item, pattern.index)
        case Unless():
            return _negations(pattern.item, index) | _negations(pattern.exception, pattern.index)
        case _:
            below = (_negations(item, index) for item in patterns.items(pattern))
            return {v: n for indexes in below for v, n in indexes.items()}


def _disjunctions(
    pattern: Pattern, path: Path, repeated: bool = False
) -> Iterator[tuple[Path, Disjunction, bool]]:
    """Each with whether it is inside a closure."""
    if isinstance(pattern, Disjunction):
        yield path, pattern, repeated
    for n, item in enumerate(patterns.items(pattern)):
        inside = repeated or isinstance(pattern, Closure)
        yield from _disjunctions(item, (*path, n), inside)
