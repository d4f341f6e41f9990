"""Closures: how their groups are taken, and those that stand beside each other.

Closures between two anchors, or at an edge, are a block. Groups that are choices of their own
(`{n}`, PREFIXES, SUBSETS, RUNS) are bound from the left, here. The others follow from their
neighbors; those that lack one wait for the whole match.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cepheid.algebra.aggregates import AGGREGATES
from cepheid.algebra.expressions import Aggregate, bare_variables, variables
from cepheid.algebra.expressions import walk as walk_expression
from cepheid.algebra.patterns import (
    Closure,
    Delay,
    Leaf,
    Negation,
    Pattern,
    Sequence,
    Unless,
    positive,
    sizes,
    walk,
)
from cepheid.algebra.types import Type
from cepheid.engine.automaton.elements import EventGroup, RoundChain, Sweep, element
from cepheid.engine.automaton.instructions import (
    Choose,
    ChooseRounds,
    Complete,
    Defer,
    Empty,
    FirstRun,
    Fork,
    Instructions,
)
from cepheid.engine.automaton.knowledge import (
    NEXT,
    STRICT,
    Compilation,
    Fringe,
    Known,
    Then,
    criteria,
    grouped,
    hold,
    present,
    ready,
)
from cepheid.engine.automaton.points import Begin, End, Origin, Path, Point
from cepheid.language.ast import Exactly, Mode, SequenceOperator

# ── how groups are taken ──


def event_group(
    c: Compilation,
    closure: Closure,
    path: Path,
    known: Known,
    sweep: Sweep,
    strict: bool,
    touch: End | None,
) -> EventGroup:
    variable = element(closure)
    hand = known.at_hand(variable)
    return EventGroup(
        path,
        closure,
        sweep,
        strict or closure.strict,
        touch,
        None if closure.until is None else present(closure.until, hand),
        criteria(c, hand, ready(c, hand)),
        tuple(_aggregates(c, variable)),
    )


def _aggregates(c: Compilation, variable: str) -> Iterator[Aggregate]:
    """The aggregates over a group of events that conditions read, each once."""
    until = (p.until for p in walk(c.node.pattern) if isinstance(p, Closure))
    conditions = [
        *(conjunct.expression for conjunct in c.node.where),
        *c.node.checks,
        *(u for u in until if u is not None),
    ]
    read: dict[Aggregate, None] = {}
    for expr in (e for condition in conditions for e in walk_expression(condition)):
        match expr:
            case Aggregate(function, argument, v) if (
                v == variable
                and AGGREGATES[function].folds
                and argument is not None
                and variables(argument) == {variable}
            ):
                text = argument.type in (Type.STRING, Type.BINARY, Type.BOOLEAN)
                if (expr.distinct or not text) and bare_variables(argument) == {variable}:
                    read[expr] = None
            case _:
                pass
    yield from read


def round_chain(
    c: Compilation,
    closure: Closure,
    path: Path,
    known: Known,
    limits: tuple[Point | None, Point | None],
    strict: bool,
    touch: End | None,
    anchor: str | None = None,
) -> RoundChain:
    lower, upper = limits
    inner = (*path, 0)
    names = positive(closure.item)
    control = replace(known.control, quiet=True, unordered=False, bounded=upper is not None)
    inside = replace(
        known,
        hand=known.hand.union(names) - grouped(closure.item),
        earlier=known.earlier.union(names),
        control=control,
    )

    def complete(bound: Known) -> Instructions:
        return (Complete(None if closure.until is None else present(closure.until, bound)),)

    return RoundChain(
        path,
        closure,
        lower,
        upper,
        strict or closure.strict,
        touch,
        known.control.watching and upper is None,
        c.bind(closure.item, inner, inside, Origin(), complete),
        tuple(at for at, *_ in c.disjunctions if at[: len(inner)] == inner),
        anchor,
    )


def with_group(group: EventGroup | RoundChain, known: Known, some: bool = False) -> Known:
    """The group is complete; `some`: it isn't empty."""
    certain = some or sizes(group.closure.quantifier)[0] > 0
    bound = known.bind_group(positive(group.closure.item), group.path, certain)
    if isinstance(group, EventGroup):
        return bound
    return replace(bound, rounds=bound.rounds | {group.path})


# ── blocks ──


@dataclass(frozen=True)
class Bound:
    """An item of a sequence that binds something, with the operators that relate it to its
    neighbors."""

    path: Path
    pattern: Pattern
    before: SequenceOperator | None = None
    after: SequenceOperator | None = None

    @property
    def closure(self) -> Closure:
        assert isinstance(self.pattern, Closure)
        return self.pattern

    @property
    def least(self) -> int:
        return sizes(self.closure.quantifier)[0]


@dataclass(frozen=True)
class Block:
    """Closures between two anchors: the left one, or the position that all must come after.
    `free` are choices of their own; the others follow from their neighbors."""

    items: tuple[Bound, ...]
    left: Path | None
    after: Point | None
    free: tuple[int, ...]

    @property
    def bound(self) -> tuple[int, ...]:
        """Those that follow from their neighbors."""
        return tuple(n for n in range(len(self.items)) if n not in self.free)

    def beside(self, n: int) -> bool:
        """Whether what stands left of the n-th closure is bound before it is."""
        return n == 0 or n - 1 in self.free

    def decided_before(self, n: int, known: Known) -> bool:
        """Whether what stands left of the n-th closure is bound, or known to be empty."""
        return n == 0 or known.decided.issuperset(positive(self.items[n - 1].closure.item))


def make_block(items: list[Bound], left: Path | None, after: Point | None) -> Block:
    free: list[int] = []
    for n, item in enumerate(items):
        closure = item.closure
        separate = isinstance(closure.quantifier, Exactly) or closure.mode.independent
        if separate or (closure.mode is Mode.PREFIXES and (left is not None or free)):
            free.append(n)
    return Block(tuple(items), left, after, tuple(free))


def end_before(block: Block, n: int, known: Known) -> End | None:
    """The end of what is bound before the n-th closure of the block; None if nothing is."""
    end = None if block.left is None else End(block.left)
    for item in block.items[:n]:
        certain = known.parts.get(item.path)
        if certain:
            end = End(None, (item.path,))
        elif certain is False and end is not None:
            end = replace(end, groups=(*end.groups, item.path))
    return end


def end_of_free(block: Block, known: Known) -> End | None:
    """The end of the last of the free groups, or of the left anchor."""
    items = tuple(block.items[n] for n in block.free if block.items[n].path in known.parts)
    return end_before(replace(block, items=items), len(items), known)


def part_behind(block: Block, n: int, known: Known, right: Path | None) -> Path | None:
    """The nearest part after the n-th closure that is bound already."""
    later = (item.path for item in block.items[n + 1 :])
    return next((path for path in later if path in known.parts), right)


def _part_before(block: Block, n: int, known: Known) -> Path | None:
    earlier = (item.path for item in reversed(block.items[:n]))
    return next((path for path in earlier if path in known.parts), block.left)


def defer(block: Block, known: Known, right: Path | None) -> tuple[Instructions, Known]:
    """The closures that aren't bound yet wait for the whole match."""
    waiting = [
        n
        for n, item in enumerate(block.items)
        if known.decided.isdisjoint(positive(item.closure.item))
    ]
    fringes = tuple(
        Fringe(
            item.path,
            item.closure,
            _part_before(block, n, known),
            part_behind(block, n, known, right),
            item.before,
            item.after,
            tuple(block.items[m].path for m in waiting if m < n and block.left is not None),
        )
        for n, item in ((n, block.items[n]) for n in waiting)
    )
    steps = tuple(Defer(f.path, f.lower, f.upper) for f in fringes)
    return steps, replace(known, fringes=(*known.fringes, *fringes))


# ── groups that are choices ──


def choose(
    c: Compilation,
    block: Block,
    waiting: tuple[int, ...],
    known: Known,
    right: Path | None,
    right_names: frozenset[str],
    then: Then,
) -> Instructions:
    """Bind these free groups, from left to right. `right` is the right anchor, if it is bound
    already; conditions that read it are left for later."""
    if not waiting:
        return then(known)
    n, rest = waiting[0], waiting[1:]
    item = block.items[n]
    lower = end_before(block, n, known)
    if lower is None and item.closure.mode is Mode.PREFIXES:
        # What could stand before it is empty: it leads, and waits for the whole match.
        return choose(c, block, rest, known, right, right_names, then)
    first = item.before is NEXT and lower is not None  # after nothing, any is next
    runs = first and isinstance(item.closure.quantifier, Exactly)

    def go_on(bound: Known) -> Instructions:
        which = [k for k in ready(c, bound) if right_names.isdisjoint(c.node.where[k].variables)]
        held, inside = hold(c, bound, which)
        return (held, *choose(c, block, rest, inside, right, right_names, then))

    def chosen(bound: Known) -> Instructions:
        held, *others = go_on(bound)
        run = (FirstRun(item.path, positive(item.closure.item)[0]),) if runs else ()
        return (held, *run, *others)

    way = _groups(c, block, n, known, lower, right, first, runs, chosen)
    if item.least > 0:
        return way
    names = positive(item.closure.item)
    empty = replace(known, decided=known.decided.union(names))
    return (Fork((way, (Empty(names), *go_on(empty)))),)


def _groups(
    c: Compilation,
    block: Block,
    n: int,
    known: Known,
    end: End | None,
    right: Path | None,
    first: bool,
    runs: bool,
    then: Then,
) -> Instructions:
    item, closure = block.items[n], block.items[n].closure
    lower = block.after if end is None else end
    upper = None if right is None else Begin(right)
    strict = item.before is STRICT or (end is None and item.after is STRICT)
    touch = end if item.before is STRICT and block.beside(n) else None
    awaits = touch is not None and known.control.watching and not known.control.bounded
    member = known.control.negation is None
    if isinstance(closure.item, Leaf):
        sweep = c.sweep(element(closure), known, lower, upper)
        group = event_group(c, closure, item.path, known, sweep, strict, touch)
        began = replace(known, timed=known.timed or member)
        prefixes = closure.mode is Mode.PREFIXES and not isinstance(closure.quantifier, Exactly)
        start = None if known.started or prefixes else c.start(element(closure))
        bound = with_group(group, known if prefixes else began, some=True)
        rest = c.sweep(element(closure), began, lower, upper)
        choice = Choose(group, rest, first, start, member, awaits, runs)
        return (choice, *then(replace(bound, started=True)))
    start, anchors, anchor = None, None, None
    if lower is None:
        # With nothing before it, its rounds count from every event that one can start with.
        anchor = first_variable(closure.item)
        if known.started:
            c.looks_back = True  # the right neighbor was bound first
            anchors = replace(c.sweep(anchor, known, lower, upper), inside=False)
        else:
            start = c.start(anchor)
        known = replace(known, started=True, timed=True)
        first, lower = True, Origin()
    limits = (lower, upper)
    chain = round_chain(c, closure, item.path, known, limits, strict, touch, anchor)
    bound = with_group(chain, known, some=True)
    return (ChooseRounds(chain, first, start, anchors, awaits, runs), *then(bound))


def first_variable(pattern: Pattern) -> str:
    """Of a pattern that starts with an event: its variable."""
    match pattern:
        case Leaf():
            return pattern.variable
        case Sequence():
            bound = next(item for item in pattern.items if not isinstance(item, Negation))
            return first_variable(bound)
        case Unless() | Delay():
            return first_variable(pattern.item)
        case _:
            raise AssertionError(f"a group that leads starts with {type(pattern).__name__}")
