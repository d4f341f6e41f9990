"""Plan shapes that a caller can force: `left-deep`, `right-deep`, `((IBM Sun) (Oracle Google))`."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from typing import assert_never

from cepheid.errors import PlanError


@dataclass(frozen=True, slots=True)
class ShapePair:
    left: Shape
    right: Shape


Shape = str | ShapePair
"""A variable's name, or two shapes joined."""

LEFT_DEEP = "left-deep"
RIGHT_DEEP = "right-deep"


def names(shape: Shape) -> tuple[str, ...]:
    match shape:
        case str():
            return (shape,)
        case ShapePair():
            return names(shape.left) + names(shape.right)
        case _:
            assert_never(shape)


def parse_shape(text: str, variables: Collection[str], dropped: Collection[str] = ()) -> Shape:
    """Read an explicit shape; every variable that a match binds stands in it once. Those that
    rewrites have dropped from the pattern may stand in it, too.

    >>> parse_shape("((a b) c)", ["a", "b", "c"])
    ShapePair(left=ShapePair(left='a', right='b'), right='c')
    """
    tokens = re.findall(r"\(|\)|`[^`]+`|[^\s();,]+|[;,]", text)
    tokens = [t.strip("`") for t in tokens if t not in (";", ",")]
    position = 0

    def group(opened: bool) -> Shape:
        nonlocal position
        parts: list[Shape] = []
        while position < len(tokens):
            token = tokens[position]
            position += 1
            if token == "(":
                parts.append(group(True))
            elif token == ")":
                if not opened:
                    raise PlanError(f"the plan {text!r} closes a parenthesis that it never opened")
                break
            else:
                parts.append(token)
        else:
            if opened:
                raise PlanError(f"the plan {text!r} lacks a closing parenthesis")
        if not parts:
            raise PlanError(f"the plan {text!r} has an empty pair of parentheses")
        shape = parts[0]
        for part in parts[1:]:
            shape = ShapePair(shape, part)
        return shape

    shape = group(False)
    given = names(shape)
    for name in given:
        if name not in variables and name not in dropped:
            close = get_close_matches(name, list(variables), n=1)
            hint = f"; did you mean `{close[0]}`?" if close else ""
            raise PlanError(f"the plan {text!r} names `{name}`, which the pattern doesn't{hint}")
        if given.count(name) > 1:
            raise PlanError(f"the plan {text!r} names `{name}` twice")
    missing = [v for v in variables if v not in given]
    if missing:
        raise PlanError(
            f"the plan {text!r} leaves out {', '.join(f'`{m}`' for m in missing)}; "
            f"write `{LEFT_DEEP}`, `{RIGHT_DEEP}` or a tree over {' '.join(variables)}"
        )
    return restrict(shape, variables) or shape


def restrict(shape: Shape, keep: Collection[str]) -> Shape | None:
    """The shape without the variables that an alternative doesn't bind."""
    match shape:
        case str():
            return shape if shape in keep else None
        case ShapePair():
            left, right = restrict(shape.left, keep), restrict(shape.right, keep)
            if left is None or right is None:
                return left if right is None else right
            return ShapePair(left, right)
        case _:
            assert_never(shape)


def fold(parts: list[Shape], style: str) -> Shape:
    """The parts joined left-deep or right-deep."""
    if style == LEFT_DEEP:
        shape = parts[0]
        for part in parts[1:]:
            shape = ShapePair(shape, part)
        return shape
    shape = parts[-1]
    for part in reversed(parts[:-1]):
        shape = ShapePair(part, shape)
    return shape
