"""Positions in the stream, by the parts of a pattern that lie there."""

from __future__ import annotations

from dataclasses import dataclass

from cepheid.algebra.patterns import Pattern, items

Path = tuple[int, ...]
"""Where a node stands in the pattern: the child's number at each step down."""


@dataclass(frozen=True, slots=True)
class End:
    """The end of the last of these groups that isn't empty; if all are, of the part."""

    part: Path | None
    groups: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Begin:
    """The start of a part."""

    part: Path


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the search at hand begins: a round, or a forbidden pattern."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The earliest that is inside the window of a match, counted back from its end."""


Point = End | Begin | Origin | Opening


@dataclass(frozen=True, slots=True)
class Beside:
    """Of a closure whose rounds are gone through: the round before the one at hand, or after."""

    closure: Path
    after: bool


@dataclass(frozen=True, slots=True)
class Neighbors:
    """What a forbidden pattern lies between: `before`, the end of the last of these parts that
    binds something, and so for `after`, the farthest parts first. Where none does, the window's
    edge; `opened`: that can be on the left."""

    before: tuple[Path | Beside, ...]
    after: tuple[Path | Beside, ...]
    opened: bool


def part_at(pattern: Pattern, path: Path) -> Pattern:
    """The part of a pattern that stands there."""
    for n in path:
        pattern = items(pattern)[n]
    return pattern
