"""Types and values of a query that no event has, with the nearest that occur."""

from __future__ import annotations

from collections.abc import Iterator

from cepheid.engine.rows.event_types import no_such_type
from cepheid.language import ast
from cepheid.language.diagnostics import nearest
from cepheid.language.traversal import walk
from cepheid.reasons.anatomy import Anatomy
from cepheid.reasons.trials import Trials


def misspelled_types(parts: Anatomy, trials: Trials) -> Iterator[str]:
    """Of one stream with a type column; of several, binding knows the names."""
    column = trials.options.type
    if column is None or trials.streams:
        return
    present = trials.types(column)
    named = dict.fromkeys(t for v in parts.bound.variables.values() for t in v.types)
    for name in named:
        if present is not None and name not in present:
            yield no_such_type(name, present, column)


def misspelled_values(parts: Anatomy, trials: Trials) -> Iterator[str]:
    """Texts that are compared with a column for equality and don't occur in it."""
    for condition in parts.conditions:
        for column, text in dict.fromkeys(_equalities(condition.node)):
            values = trials.texts(column)
            if values and text not in values:
                close = nearest(text, values)
                hint = f"; did you mean '{close}'?" if close else ""
                yield f"no event has '{text}' in `{column}`{hint}"


def _equalities(node: ast.Expression) -> Iterator[tuple[str, str]]:
    for part in walk(node):
        match part:
            case ast.Comparison((ast.Attribute(_, column), ast.Literal(str(text))), ("=",)):
                yield column, text
            case ast.Comparison((ast.Literal(str(text)), ast.Attribute(_, column)), ("=",)):
                yield column, text
            case ast.InList(ast.Attribute(_, column), options, False):
                for option in options:
                    if isinstance(option, ast.Literal) and isinstance(option.value, str):
                        yield column, option.value
            case ast.KeyTest(column, ast.Literal(str(text))):
                yield column, text
            case _:
                pass
