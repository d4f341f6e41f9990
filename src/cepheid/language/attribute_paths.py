"""Paths into nested values: `request.ip`, `tags[0]`, `headers['x-id']`.

An attribute that is a path has the path's text as its name, so that everything behind the parser
sees one more column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cepheid.language.names import quoted_field


@dataclass(frozen=True, slots=True)
class Field:
    """`.ip`: of a struct, of a map with this key, or of each struct of an array."""

    name: str


@dataclass(frozen=True, slots=True)
class Element:
    """`[0]` of an array, from 0; `['x']` or `[7]` of a map."""

    key: str | int


PathStep: TypeAlias = Field | Element


@dataclass(frozen=True, slots=True)
class AttributePath:
    """A column, and the steps from it to a value inside.

    >>> str(AttributePath("request", (Field("user agent"), Element(0), Element("x"))))
    "request.`user agent`[0]['x']"
    """

    column: str
    steps: tuple[PathStep, ...]

    def __str__(self) -> str:
        return quoted_field(self.column) + "".join(map(_step_text, self.steps))


def _step_text(step: PathStep) -> str:
    match step:
        case Field(name):
            return f".{quoted_field(name)}"
        case Element(int() as index):
            return f"[{index}]"
        case Element(key):
            return "['" + str(key).replace("'", "''") + "']"


_NAME = r"[^\W\d]\w*|`(?:[^`]|``)+`"
_STEP = re.compile(rf"\.(?P<field>{_NAME})|\[(?P<index>\d+)\]|\['(?P<key>(?:[^']|'')*)'\]")
_PATH = re.compile(rf"(?P<column>{_NAME})(?P<steps>(?:{_STEP.pattern.replace('?P<', '?P<_')})+)")


def read_path(name: str) -> AttributePath | None:
    """The path that an attribute's name is; None if it is a plain name.

    >>> read_path("tags[0].id")
    AttributePath(column='tags', steps=(Element(key=0), Field(name='id')))
    >>> read_path("unit price") is None
    True
    """
    parts = _PATH.fullmatch(name)
    if parts is None:
        return None
    steps = tuple(map(_read_step, _STEP.finditer(parts["steps"])))
    path = AttributePath(_plain(parts["column"]), steps)
    return path if str(path) == name else None


def _read_step(step: re.Match[str]) -> PathStep:
    if step["field"] is not None:
        return Field(_plain(step["field"]))
    if step["index"] is not None:
        return Element(int(step["index"]))
    return Element(step["key"].replace("''", "'"))


def _plain(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def attribute_name(column: str, steps: Sequence[PathStep]) -> str:
    """The name of an attribute as the query has it."""
    return str(AttributePath(column, tuple(steps))) if steps else column


def quoted_attribute(name: str) -> str:
    """The name as it stands after a dot or in `[id]`."""
    return quoted_field(name) if read_path(name) is None else name
