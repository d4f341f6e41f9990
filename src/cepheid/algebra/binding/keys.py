"""The partition key: equalities that connect an attribute of every variable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cepheid.algebra.expressions import Attribute, Call, Expr
from cepheid.algebra.query import KeyPart
from cepheid.algebra.structure import Structure

Place = tuple[str, str]
"""A variable and one of its columns."""


def equality(expr: Expr, structure: Structure) -> tuple[Place, Place] | None:
    """The two attributes that a conjunct makes equal, if a key may be built on it.

    Not between variables that exclude each other: that one is never true.
    """
    match expr:
        case Call("=", (Attribute() as left, Attribute() as right)) if left.type is right.type:
            if structure.exclusive(left.variable, right.variable):
                return None
            return (left.variable, left.name), (right.variable, right.name)
        case _:
            return None


def find_key(links: Iterable[Sequence[Place]], variables: Sequence[str]) -> tuple[KeyPart, ...]:
    """Every class of connected attributes that has one of each variable is a part of the key.

    A variable may have several in a class; the column that all share is taken first, so that the
    key is uniform where it can be.
    """
    parent: dict[Place, Place] = {}

    def root(place: Place) -> Place:
        parent.setdefault(place, place)
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    for link in links:
        for place in link:
            parent[root(place)] = root(link[0])
    classes: dict[Place, list[Place]] = {}
    for place in parent:
        classes.setdefault(root(place), []).append(place)
    parts = (_part(places, variables) for places in classes.values())
    return tuple(part for part in parts if part is not None)


def _part(places: Sequence[Place], variables: Sequence[str]) -> KeyPart | None:
    members = set(places)
    for _, column in places:
        if all((v, column) in members for v in variables):
            return KeyPart({v: column for v in variables})
    first: dict[str, str] = {}
    for variable, column in places:
        first.setdefault(variable, column)
    if first.keys() != set(variables):
        return None
    return KeyPart({v: first[v] for v in variables})


def implied(link: tuple[Place, Place], key: Sequence[KeyPart]) -> bool:
    """Keys are kept apart, so an equality between the columns of one part always holds."""
    (left, left_column), (right, right_column) = link
    return left != right and any(
        part.columns[left] == left_column and part.columns[right] == right_column for part in key
    )
