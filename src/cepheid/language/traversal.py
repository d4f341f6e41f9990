"""The nodes of a query as written: all of them, the parameters, the conjuncts of a condition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from cepheid.language import ast


def walk(node: object) -> Iterator[object]:
    """The node and all below it, from left to right: nodes are dataclasses and tuples of them."""
    if isinstance(node, tuple):
        for item in node:
            yield from walk(item)
    elif is_dataclass(node) and not isinstance(node, ast.Span):
        yield node
        for part in fields(node):
            yield from walk(getattr(node, part.name))


def parameters(node: object) -> dict[str, ast.Span]:
    """The names of the parameters, each with the place where it stands first.

    >>> from cepheid.language import parse
    >>> list(parameters(parse("PATTERN A a ; B b WHERE b.x > :low WITHIN :long minutes")))
    ['low', 'long']
    """
    places: dict[str, ast.Span] = {}
    for part in walk(node):
        if isinstance(part, ast.Parameter):
            places.setdefault(part.name, part.span)
    return places


def written_conjuncts(condition: ast.Expression | None) -> Iterator[ast.Expression]:
    """The top-level conjuncts as written, so that each keeps its place in the text."""
    match condition:
        case None:
            return
        case ast.Logical("AND", operands):
            for operand in operands:
                yield from written_conjuncts(operand)
        case _:
            yield condition
