"""Comparisons of texts that are numbers: as text, 10 is below 9, and no answer would show it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.aggregates import AGGREGATES
from cepheid.language import ast
from cepheid.language.render import render_expression
from cepheid.language.traversal import walk

_ORDER = frozenset(("<", "<=", ">", ">="))
_VALUES = {"prev", *(a.name for a in AGGREGATES.values() if a.chooses)}
_NUMBER = r"^\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*$"
_ROWS = 100
"""How many rows of a table are checked."""


def compared_by_order(query: ast.Query) -> dict[str, frozenset[str]]:
    """Comparisons of the query, as they are written, and the attributes that they compare.

    >>> from cepheid.language import parse
    >>> found = compared_by_order(parse("PATTERN a ; b WHERE b.x > a.y AND a.x = b.x WITHIN 5"))
    >>> [(text, sorted(names)) for text, names in found.items()]
    [('b.x > a.y', ['x', 'y'])]
    """
    comparisons = {}
    for node in walk(query):
        if isinstance(node, ast.Comparison) and _ORDER.intersection(node.operators):
            names = [_attribute(operand) for operand in node.operands]
            if None not in names:
                comparisons[render_expression(node)] = frozenset(filter(None, names))
    return comparisons


def _attribute(operand: object) -> str | None:
    """The attribute that an operand reads."""
    match operand:
        case ast.Attribute(name=name):
            return name
        case ast.Call(name=name, arguments=(ast.Attribute(name=attribute), *_)):
            return attribute if name.lower() in _VALUES else None
        case _:
            return None


def as_texts(comparison: str, instead: str) -> str:
    """The warning for a comparison whose attributes are texts that look like numbers."""
    return (
        f"`{comparison}` compares texts that look like numbers: as texts, 10 comes before 9; "
        f"{instead}"
    )


def looks_numeric(texts: pa.ChunkedArray | pa.Array) -> bool:
    """Whether most of the first texts are numbers.

    >>> looks_numeric(pa.array(["7", "10", None, "?"])), looks_numeric(pa.array(["a", "1"]))
    (True, False)
    """
    first = pc.drop_null(texts.slice(0, _ROWS))
    numbers = pc.sum(pc.match_substring_regex(first, _NUMBER)).as_py() or 0
    return bool(numbers * 2 > len(first))
