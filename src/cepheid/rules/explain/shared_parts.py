"""The parts that queries of a joint share, as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from cepheid.algebra.text import condition_text, leaf_text
from cepheid.language.names import quantifier_text
from cepheid.plan.nodes import (
    Automaton,
    Conj,
    Equality,
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
    walk,
)
from cepheid.planner.together import tag


@dataclass(frozen=True)
class Common:
    """A part that several queries of a joint share; the queries are given by their places."""

    takes: str
    members: tuple[int, ...]


@dataclass(frozen=True)
class SharedCounts:
    """The number of operators and classes, summed over the separate queries, and in the joint
    plan."""

    operators: int
    shared_operators: int
    classes: int
    shared_classes: int


def counts(plan: Plan) -> SharedCounts:
    each = [{node for root in roots for node in walk(root)} for roots in _roots(plan)]
    every = frozenset[Node]().union(*each)
    leaves = sum(isinstance(node, LeafNode) for nodes in each for node in nodes)
    distinct = sum(isinstance(node, LeafNode) for node in every)
    return SharedCounts(sum(map(len, each)) - leaves, len(every) - distinct, leaves, distinct)


def commons(plan: Plan) -> tuple[Common, ...]:
    """The largest shared parts of more than one class, those of the most queries first."""
    members: dict[Node, set[int]] = {}
    for n, roots in enumerate(_roots(plan)):
        for root in roots:
            for node in walk(root):
                members.setdefault(node, set()).add(n)
    shared = {
        n: queries
        for n, queries in members.items()
        if len(queries) > 1 and not isinstance(n, LeafNode)
    }
    inside = {
        (below, frozenset(queries))
        for n, queries in shared.items()
        for below in walk(n)
        if below is not n
    }
    largest = [
        (n, queries) for n, queries in shared.items() if (n, frozenset(queries)) not in inside
    ]
    largest.sort(key=lambda part: -len(part[1]))
    return tuple(Common(_takes(node, plan), tuple(sorted(queries))) for node, queries in largest)


def _roots(plan: Plan) -> list[list[Node]]:
    """The alternatives of each query."""
    places = {output.name: place for place, output in enumerate(plan.outputs)}
    roots: list[list[Node]] = []
    while (place := places.get(tag(len(roots)))) is not None:
        pairs = zip(plan.alternatives, plan.returned, strict=True)
        roots.append([root for root, queries in pairs if place in queries])
    return roots


def _takes(node: Node, plan: Plan) -> str:
    checked = [condition for below in walk(node) for condition in _conditions(below, plan)]
    text = _pattern(node, plan)
    return f"{text}, {' AND '.join(dict.fromkeys(checked))}" if checked else text


def _pattern(node: Node, plan: Plan) -> str:
    """The part's text as a person would write it, as far as the tree's order allows."""

    def text(below: Node) -> str:
        return _pattern(below, plan)

    match node:
        case LeafNode(variable):
            return leaf_text(plan.variables[variable])
        case Seq(left, right):
            return f"{text(left)} ; {text(right)}"
        case Conj(left, right):
            return f"({text(left)} & {text(right)})"
        case Nseq(below, negated) | Neg(below, negated):
            return f"{text(below)} without {text(negated)}"
        case Kseq(below, element, quantifier):
            group = leaf_text(plan.variables[element.variable], quantifier_text(quantifier))
            return f"{text(below)} with {group}"
        case Run(element, count):
            return leaf_text(plan.variables[element.variable], f"{{{count}}}")
        case Filter(below):
            return text(below)
        case Stacks(classes):
            return " ; ".join(map(text, classes))
        case Automaton():
            raise AssertionError("what automata run isn't joined")
        case _:
            assert_never(node)


def _conditions(node: Node, plan: Plan) -> Iterator[str]:
    """The conditions that the node itself checks, without the key's equalities."""
    match node:
        case LeafNode(_, filters):
            yield from map(condition_text, filters)
        case Seq() | Conj() | Nseq() | Neg():
            yield from _equalities(node.equalities, plan)
            yield from map(condition_text, node.predicates)
        case Kseq():
            yield from _equalities(node.equalities, plan)
            yield from map(condition_text, (*node.predicates, *node.running, *node.checks))
        case Run():
            yield from map(condition_text, (*node.running, *node.checks))
        case Filter() | Stacks():
            yield from map(condition_text, node.predicates)
        case Automaton():
            raise AssertionError("what automata run isn't joined")
        case _:
            assert_never(node)


def _equalities(equalities: tuple[Equality, ...], plan: Plan) -> Iterator[str]:
    for left, right in ((e.left, e.right) for e in equalities):
        if not any(
            part.get(left.variable) == left.name and part.get(right.variable) == right.name
            for part in plan.key
        ):
            yield f"{condition_text(left)} = {condition_text(right)}"
