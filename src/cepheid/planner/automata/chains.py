"""`;` chains of single events as stacks: sequence scan and construction (SASE 3.2 and 4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cepheid.algebra.expressions import Attribute, Call, Expr
from cepheid.algebra.patterns import Closure, Leaf, Negation, Pattern
from cepheid.algebra.patterns import Sequence as SequencePattern
from cepheid.language.ast import SequenceOperator
from cepheid.plan.nodes import Stacks
from cepheid.planner.trees.parts import Parts

Place = tuple[str, str]
"""A variable and one of its columns."""


def chain(pattern: Pattern) -> tuple[str, ...] | None:
    """The single events of a plain `;` sequence, at least two, between which only negations and
    closures stand; None if the pattern is anything else."""
    if not isinstance(pattern, SequencePattern):
        return None
    if any(operator is not SequenceOperator.ANY for operator in pattern.operators):
        return None
    if not all(isinstance(item, Leaf | Negation | Closure) for item in pattern.items):
        return None
    events = tuple(item.variable for item in pattern.items if isinstance(item, Leaf))
    return events if len(events) > 1 else None


def stacks_of(parts: Parts, names: Sequence[str], predicates: Iterable[Expr]) -> Stacks:
    """The stacks of a chain. Attributes on which all its classes agree, the key's and those that
    equalities connect, partition them; an equality that follows from that isn't tested again."""
    agreeing = list(_key(parts, names))
    others = list(predicates)
    for attributes in _connected(parts, names, others):
        if attributes not in agreeing:
            agreeing.append(attributes)
    tested = tuple(p for p in others if not any(_implied(p, group) for group in agreeing))
    classes = tuple(parts.leaf(name) for name in names)
    return Stacks(classes, tuple(agreeing), tested)


def _key(parts: Parts, names: Sequence[str]) -> Iterable[tuple[Attribute, ...]]:
    columns = parts.query.schema.columns
    for part in parts.query.key:
        yield tuple(Attribute(v, part.columns[v], columns[part.columns[v]]) for v in names)


def _connected(
    parts: Parts, names: Sequence[str], predicates: Iterable[Expr]
) -> Iterable[tuple[Attribute, ...]]:
    """An attribute of each class for every set of attributes that equalities connect and in which
    all classes have one; the first, if a class has several."""
    groups: list[dict[Place, Attribute]] = []
    for predicate in predicates:
        sides = _sides(parts, predicate, names)
        if sides is None:
            continue
        merged = {(side.variable, side.name): side for side in sides}
        apart = []
        for group in groups:
            if group.keys() & merged.keys():
                merged = {**group, **merged}
            else:
                apart.append(group)
        groups = [*apart, merged]
    for group in groups:
        first: dict[str, Attribute] = {}
        for (variable, _), attribute in group.items():
            first.setdefault(variable, attribute)
        if first.keys() == set(names):
            yield tuple(first[name] for name in names)


def _sides(
    parts: Parts, predicate: Expr, names: Sequence[str]
) -> tuple[Attribute, Attribute] | None:
    """The attributes of two classes that the predicate makes equal."""
    equality = parts.equality(predicate, names, names)
    if equality is None or equality.left.variable == equality.right.variable:
        return None
    return equality.left, equality.right


def _implied(predicate: Expr, agreeing: tuple[Attribute, ...]) -> bool:
    match predicate:
        case Call("=", (Attribute() as left, Attribute() as right)):
            return left in agreeing and right in agreeing
        case _:
            return False
