"""What a plan reads: for runtimes that classify and prune rows before the engine sees them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from cepheid.algebra.expressions import Attribute, Expr, Previous, Whole
from cepheid.algebra.expressions import walk as walk_expression
from cepheid.algebra.patterns import Closure
from cepheid.algebra.patterns import walk as walk_pattern
from cepheid.algebra.text import expression_text
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


def leaves(plan: Plan) -> tuple[LeafNode, ...]:
    """The plan's classes, in the order in which the engine numbers them: bit i of a row's class
    mask stands for the i-th. It is the same for all plans of a query, since rows that were saved
    with one plan are opened with another."""
    places = {variable: place for place, variable in enumerate(plan.variables)}
    nodes = (node for root in plan.alternatives for node in walk(root))
    classes = {node for node in nodes if isinstance(node, LeafNode)}
    return tuple(sorted(classes, key=lambda leaf: (places[leaf.variable], *_texts(leaf.filters))))


def _texts(expressions: Iterable[Expr]) -> Iterator[str]:
    return map(expression_text, expressions)


def final_leaves(node: Node) -> frozenset[LeafNode]:
    """Classes, of one of which the last event of every match is; unless matches wait."""
    match node:
        case LeafNode():
            return frozenset((node,))
        case Seq():
            return final_leaves(node.right)
        case Conj():
            return final_leaves(node.left) | final_leaves(node.right)
        case Run():
            return frozenset((node.element,))
        case Stacks():
            return frozenset((node.classes[-1],))
        case Automaton():
            return frozenset(node.leaves)
        case Nseq() | Neg() | Kseq() | Filter():
            return final_leaves(node.input)
        case _:
            assert_never(node)


def uniform_key(plan: Plan) -> tuple[str, ...]:
    """The columns of a key that has the same names for every variable; else none."""
    names = [set(part.values()) for part in plan.key]
    return tuple(n.pop() for n in names) if all(len(n) == 1 for n in names) else ()


def joined_columns(plan: Plan) -> frozenset[str]:
    """Columns that joins and RETURN read: all that the engine needs, beside time and tie, of
    rows whose classes are known."""
    nodes = (node for root in plan.alternatives for node in walk(root))
    read = columns_of(
        *(expr for node in nodes for expr in _conditions(node)),
        *(output.expression for output in plan.outputs),
    )
    if plan.selection is None:
        return read
    return read.union(*(part.values() for part in plan.key))  # it chooses key by key


def columns_of(*expressions: Expr) -> frozenset[str]:
    """The columns that the expressions read, of any variable."""
    names: set[str] = set()
    for node in (n for expr in expressions for n in walk_expression(expr)):
        match node:
            case Attribute() | Previous():
                names.add(node.name)
            case Whole():
                names.update(node.columns)
            case _:
                pass
    return frozenset(names)


def _conditions(node: Node) -> tuple[Expr, ...]:
    """What is evaluated on the node's records; of an equality, both sides."""
    match node:
        case LeafNode():
            return ()
        case Seq() | Conj() | Nseq() | Neg():
            return (*_sides(node.equalities), *node.predicates)
        case Kseq():
            return (*_sides(node.equalities), *node.predicates, *node.running, *node.checks)
        case Run():
            return (*node.key, *node.running, *node.checks)
        case Filter():
            return node.predicates
        case Stacks():
            return (*(a for agreeing in node.equivalences for a in agreeing), *node.predicates)
        case Automaton():
            return tuple(automaton_conditions(node))
        case _:
            assert_never(node)


def automaton_conditions(node: Automaton) -> Iterator[Expr]:
    """Everything that an automaton evaluates: its conjuncts and checks, its key, and UNTIL."""
    yield from (conjunct.expression for conjunct in node.where)
    yield from node.checks
    yield from (a for part in node.key for a in part if a is not None)
    for pattern in walk_pattern(node.pattern):
        if isinstance(pattern, Closure) and pattern.until is not None:
            yield pattern.until


def _sides(equalities: tuple[Equality, ...]) -> Iterator[Attribute]:
    for equality in equalities:
        yield equality.left
        yield equality.right


def kept_columns(plan: Plan) -> list[str]:
    """What a query reads, except for the type: of that a row's classes tell enough."""
    return [n for n in plan.required if n != plan.schema.type]
