"""Physical plans: trees of join operators, as data (ZStream 4).

A node's records bind the variables of its subtree. Expressions hang on the lowest node that can
evaluate them. Nodes are compared by structure: two alternatives of a disjunction that contain
the same subtree share one operator at run time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from cepheid.algebra.expressions import Attribute, Expr
from cepheid.algebra.hashed_once import HashedOnce, hashed_once
from cepheid.algebra.patterns import Absence, Pattern, positive
from cepheid.algebra.patterns import walk as walk_pattern
from cepheid.algebra.query import Conjunct, Output, Renamed, Selection, Variable, Window
from cepheid.algebra.types import Schema
from cepheid.language.ast import Quantifier
from cepheid.options import Limit


@dataclass(frozen=True, slots=True)
class Equality:
    """`left.x = right.y`: found through hash chains (ZStream 5.2.2).

    `left` is read in the first input of the operator, `right` in the second.
    """

    left: Attribute
    right: Attribute


@dataclass(frozen=True, slots=True)
class Gap:
    """Where a negated or repeated event may lie: after all of `before`, before all of `after`.

    Variables that bind an empty group are passed over. If that leaves none on a side, the edge
    is the window's; only an `open` side may come to that.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    open_before: bool = False
    open_after: bool = False


@hashed_once
@dataclass(frozen=True, slots=True)
class LeafNode(HashedOnce):
    """Events of one class: its types, and its single-class predicates."""

    variable: str
    filters: tuple[Expr, ...] = ()


@hashed_once
@dataclass(frozen=True, slots=True)
class Seq(HashedOnce):
    """left before right (ZStream 4.4.1).

    `pull`: the left input is evaluated only as far as records of the right input demand it
    (thesis 4.1). `passed` are predicates between one event of the left input and the right
    input's records that are passed down (thesis 4.4): the events that no new record of the right
    accepts are left out below, and the left input is evaluated anew for every round. They stand
    among the predicates or equalities above, too: passing down decides nothing. `scan`: equalities
    are tested like other predicates, since chains would be long and walking them is slow.
    """

    left: Node
    right: Node
    equalities: tuple[Equality, ...] = ()
    predicates: tuple[Expr, ...] = ()
    pull: bool = False
    passed: tuple[Expr, ...] = ()
    scan: bool = False


@hashed_once
@dataclass(frozen=True, slots=True)
class Conj(HashedOnce):
    """left and right in any order (4.4.3). `distinct`: pairs whose events may be the same row."""

    left: Node
    right: Node
    equalities: tuple[Equality, ...] = ()
    predicates: tuple[Expr, ...] = ()
    distinct: tuple[tuple[str, str], ...] = ()


@hashed_once
@dataclass(frozen=True, slots=True)
class Nseq(HashedOnce):
    """Each record of `input` with the position of the negated event nearest to it (4.4.2).

    `before`: the negation stands left of the input, and the bound says how early the left
    neighbor may end; otherwise it stands right, and the bound says how late the right one may
    start. The parent is the `Seq` that joins the two neighbors.
    """

    input: Node
    negated: LeafNode
    before: bool
    equalities: tuple[Equality, ...] = ()
    predicates: tuple[Expr, ...] = ()


@hashed_once
@dataclass(frozen=True, slots=True)
class Neg(HashedOnce):
    """Records of `input` without a record of `negated` in the gap (NEG on top, 4.4.2)."""

    input: Node
    negated: Node
    gap: Gap
    equalities: tuple[Equality, ...] = ()
    predicates: tuple[Expr, ...] = ()
    distinct: tuple[tuple[str, str], ...] = ()


@hashed_once
@dataclass(frozen=True, slots=True)
class Kseq(HashedOnce):
    """Records of `input` with a group of `element` events in the gap (4.4.5).

    `predicates` say which elements qualify, `running` are tested left to right inside the
    group, `checks` on the complete group.
    """

    input: Node
    element: LeafNode
    quantifier: Quantifier
    gap: Gap
    equalities: tuple[Equality, ...] = ()
    predicates: tuple[Expr, ...] = ()
    running: tuple[Expr, ...] = ()
    checks: tuple[Expr, ...] = ()


@hashed_once
@dataclass(frozen=True, slots=True)
class Run(HashedOnce):
    """KSEQ with both neighbors missing: every run of `count` consecutive events of a class,
    or of a class and key."""

    element: LeafNode
    count: int
    key: tuple[Attribute, ...] = ()
    running: tuple[Expr, ...] = ()
    checks: tuple[Expr, ...] = ()


@hashed_once
@dataclass(frozen=True, slots=True)
class Filter(HashedOnce):
    """Records of `input` that satisfy the predicates."""

    input: Node
    predicates: tuple[Expr, ...]


class Equivalence(Enum):
    """How stacks use equivalence tests, attributes on which all classes agree (SASE 4.2)."""

    # Stacks are partitioned on the first; the others are tested in the construction.
    PARTITION = "PAIS"
    # A chain per attribute, followed together.
    MULTIPLE = "Multi-PAIS"
    # As the first, and events whose other values no stack has seen are dropped in the scan: more
    # than the paper's, which is the first.
    FILTERING = "Dynamic Filtering"


@hashed_once
@dataclass(frozen=True, slots=True)
class Stacks(HashedOnce):
    """A `;` chain of single events by sequence scan and construction (SASE 3.2 and 4).

    The scan keeps an active instance stack per class, whose instances point to the most recent
    one of the class before (RIP); every event of the last class starts the construction, which
    walks the pointers back. `equivalences` are attributes that agree, each with one attribute per
    class: stacks are partitioned on them as `strategy` says. `predicates` are tested in the
    construction as soon as all they read is there. `scan_window` keeps the window in the scan
    (expired instances are popped); it always bounds the construction.
    """

    classes: tuple[LeafNode, ...]
    equivalences: tuple[tuple[Attribute, ...], ...] = ()
    predicates: tuple[Expr, ...] = ()
    strategy: Equivalence = Equivalence.PARTITION
    scan_window: bool = True


STREAM = "…stream"
"""The variable of a leaf that takes every event: what `=>` and STRICT look at. No variable of a
query can be called so."""


@hashed_once
@dataclass(frozen=True, slots=True)
class Automaton(HashedOnce):
    """A pattern, or a self-contained part of one, that an event automaton evaluates (Cayuga 3 and
    4, NEXT 3, SASE+): its items are bound from left to right, and what is bound decides what is
    taken next.

    `leaves` are the classes of the pattern's variables in their order, negated ones too, with
    their single-class predicates; if the pattern is strict somewhere, then one for `STREAM`.
    `where` are all other conjuncts, `checks` is HAVING. `key` has, for each part of the partition
    key, the attribute of each leaf (None: the leaf isn't partitioned by it).
    """

    pattern: Pattern
    leaves: tuple[LeafNode, ...]
    where: tuple[Conjunct, ...] = ()
    checks: tuple[Expr, ...] = ()
    key: tuple[tuple[Attribute | None, ...], ...] = ()


Node = LeafNode | Seq | Conj | Nseq | Neg | Kseq | Run | Filter | Stacks | Automaton


@dataclass(frozen=True)
class Plan:
    """What an engine runs: one tree for each alternative of the pattern's disjunctions (DISJ,
    never materialized), and what it must know of the query. `eager`: operators run in every
    round, also if no match can end in it (push, thesis 4.1). `renamed` says which of RETURN's
    variables are called otherwise in the trees. `selection` chooses among the matches (None: all
    are kept), `limit` bounds what is held. `returned` says, in a plan of several
    queries, which outputs the matches of each alternative have, by their places: all others are
    NULL in them. Without it, all have all."""

    alternatives: tuple[Node, ...]
    variables: Mapping[str, Variable]
    outputs: tuple[Output, ...]
    window: Window | None
    key: tuple[Mapping[str, str], ...]
    schema: Schema
    required: tuple[str, ...]
    eager: bool = False
    renamed: tuple[Renamed, ...] = ()
    selection: Selection | None = None
    limit: Limit | None = None
    returned: tuple[frozenset[int], ...] = ()

    def __repr__(self) -> str:
        roots = [type(root).__name__ for root in self.alternatives]
        return f"Plan({' | '.join(roots)} over {', '.join(self.variables)})"


def children(node: Node) -> tuple[Node, ...]:
    """Inputs, in the order in which `Equality` means them."""
    match node:
        case LeafNode():
            return ()
        case Seq() | Conj():
            return (node.left, node.right)
        case Nseq() | Neg():
            return (node.input, node.negated)
        case Kseq():
            return (node.input, node.element)
        case Run():
            return (node.element,)
        case Filter():
            return (node.input,)
        case Stacks():
            return node.classes
        case Automaton():
            return node.leaves
        case _:
            assert_never(node)


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, inputs first."""
    outermost_first: list[Node] = []
    waiting = [node]
    while waiting:
        outermost_first.append(waiting.pop())
        waiting.extend(children(outermost_first[-1]))
    return reversed(outermost_first)


def bound(node: Node) -> tuple[str, ...]:
    """The variables that the node's records bind, in slot order."""
    match node:
        case LeafNode():
            return (node.variable,)
        case Seq() | Conj():
            return bound(node.left) + bound(node.right)
        case Nseq() | Neg() | Filter():
            return bound(node.input)
        case Kseq():
            return (*bound(node.input), node.element.variable)
        case Run():
            return (node.element.variable,)
        case Stacks():
            return tuple(leaf.variable for leaf in node.classes)
        case Automaton():
            return positive(node.pattern)
        case _:
            assert_never(node)


def has_automaton(plan: Plan) -> bool:
    """Whether an automaton runs the query, or a part of it."""
    return any(isinstance(node, Automaton) for root in plan.alternatives for node in walk(root))


def lookback(plan: Plan) -> int:
    """How long before the first event of a match its negations with a time of their own may look,
    at most: whatever the window."""
    nodes = (node for root in plan.alternatives for node in walk(root))
    patterns = (node.pattern for node in nodes if isinstance(node, Automaton))
    parts = (part for pattern in patterns for part in walk_pattern(pattern))
    return max((part.duration for part in parts if isinstance(part, Absence)), default=0)


def waits(node: Node) -> bool:
    """Whether the node's records are known only when the window has passed."""
    match node:
        case Neg() | Kseq():
            return node.gap.open_after or waits(node.input)
        case Filter():
            return waits(node.input)
        case Automaton():
            return True  # it decides by itself what is known
        case _:
            return False
