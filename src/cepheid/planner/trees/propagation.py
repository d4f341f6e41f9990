"""How results move through a plan: push, pull and pass-down (thesis 4), set on a built plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from cepheid.algebra.expressions import Call, Expr, variables
from cepheid.algebra.query import Kind, Variable
from cepheid.algebra.types import Type
from cepheid.plan.nodes import (
    Automaton,
    Conj,
    Filter,
    Kseq,
    LeafNode,
    Neg,
    Node,
    Nseq,
    Plan,
    Run,
    Seq,
    Stacks,
    bound,
    walk,
)
from cepheid.planner.choice import Propagation

Selectivity = Callable[[Expr], float]
"""The share of pairs that satisfy a predicate."""


@dataclass(frozen=True, slots=True)
class Passable:
    """A predicate that `seq` could pass down: it reads the event `variable` of the left input,
    and otherwise only the right one. `levels` is how many operators there are from the event's
    leaf up to the SEQ, all of which have less to do."""

    seq: Seq
    variable: str
    predicate: Expr
    levels: int


def propagate(plan: Plan, mode: Propagation, selectivity: Selectivity | None = None) -> Plan:
    """The plan with all its alternatives propagating in one way."""
    roots = tuple(propagated(r, mode, plan.variables, selectivity) for r in plan.alternatives)
    return replace(plan, alternatives=roots, eager=mode == "push")


def propagated(
    root: Node,
    mode: Propagation,
    known: Mapping[str, Variable],
    selectivity: Selectivity | None = None,
) -> Node:
    """One alternative. Push and lazy leave no trace in it: they say in which rounds it runs."""
    root = set_pull(root, mode in ("pull", "pass-down"))
    if mode != "pass-down":
        return root
    best = choose(eligible(root, known), selectivity)
    return root if best is None else pass_down(root, best)


def set_pull(node: Node, pull: bool) -> Node:
    """Every SEQ pulls, or none does; there is nothing to be pulled from a leaf, and an automaton
    decides by itself what it makes."""
    node = mapped(node, lambda child: set_pull(child, pull))
    if isinstance(node, Seq):
        willing = pull and not isinstance(node.left, LeafNode) and not _has_automaton(node.left)
        if node.pull is not willing or node.passed:
            return replace(node, pull=willing, passed=())
    return node


def _has_automaton(node: Node) -> bool:
    return any(isinstance(part, Automaton | Stacks) for part in walk(node))


def eligible(root: Node, known: Mapping[str, Variable]) -> Iterator[Passable]:
    """What can be passed down, from the top: only SEQs on the rightmost path pass down, since the
    triggering event comes in at its end (thesis 4.4.1). Into a lone leaf nothing is passed: its
    events are tested with the same records at once."""
    for node in _rightmost(root):
        if (
            not isinstance(node, Seq)
            or isinstance(node.left, LeafNode)
            or _has_automaton(node.left)
        ):
            continue
        levels = dict(_levels(node.left, 1))
        for predicate in _across(node):
            read = variables(predicate)
            left = [v for v in bound(node.left) if v in read]
            if len(left) == 1 < len(read) and known[left[0]].kind is Kind.SINGLE:
                yield Passable(node, left[0], predicate, levels[left[0]])


def choose(
    candidates: Iterator[Passable], selectivity: Selectivity | None = None
) -> Passable | None:
    """The predicate that saves most (thesis 4.4.3): the share of events that it leaves out, on
    all levels above them. If shares aren't known, they count as equal; then the deepest event is
    chosen, and of equally deep ones the first."""

    def gain(candidate: Passable) -> float:
        kept = 0.5 if selectivity is None else selectivity(candidate.predicate)
        return (1 - kept) * candidate.levels

    best = max(candidates, key=gain, default=None)
    return best if best is not None and gain(best) > 0 else None


def pass_down(root: Node, chosen: Passable) -> Node:
    """Let the chosen SEQ pass the predicate down."""
    if root == chosen.seq:
        return replace(chosen.seq, pull=True, passed=(*chosen.seq.passed, chosen.predicate))
    return mapped(root, lambda child: pass_down(child, chosen))


def _rightmost(node: Node) -> Iterator[Node]:
    """From the root to where the event comes in that ends a match."""
    yield node
    match node:
        case Seq():
            yield from _rightmost(node.right)
        case Nseq() | Neg() | Kseq() | Filter():
            yield from _rightmost(node.input)
        case LeafNode() | Conj() | Run() | Stacks() | Automaton():
            pass
        case _:
            assert_never(node)


def _levels(node: Node, above: int) -> Iterator[tuple[str, int]]:
    """The events that a node's records bind, and how many operators there are above each."""
    match node:
        case LeafNode():
            yield node.variable, above
        case Seq() | Conj():
            yield from _levels(node.left, above + 1)
            yield from _levels(node.right, above + 1)
        case Nseq() | Neg() | Kseq() | Filter():
            yield from _levels(node.input, above + 1)
        case Run() | Stacks() | Automaton():
            pass
        case _:
            assert_never(node)


def _across(node: Seq) -> Iterator[Expr]:
    for e in node.equalities:
        yield Call("=", (e.left, e.right), Type.BOOLEAN)
    yield from node.predicates


def mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """The node with other inputs; itself, if none changes."""
    match node:
        case LeafNode() | Run() | Stacks() | Automaton():
            return node
        case Seq() | Conj():
            left, right = change(node.left), change(node.right)
            same = left is node.left and right is node.right
            return node if same else replace(node, left=left, right=right)
        case Nseq() | Kseq() | Filter():
            below = change(node.input)
            return node if below is node.input else replace(node, input=below)
        case Neg():
            below, negated = change(node.input), change(node.negated)
            same = below is node.input and negated is node.negated
            return node if same else replace(node, input=below, negated=negated)
        case _:
            assert_never(node)
