"""GROUP BY as written: expressions, a window over the ends of matches, and HAVING for groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from cepheid.language.ast import NOWHERE, Duration, Expression, Span


class WindowKind(Enum):
    """What stands last in GROUP BY; see `cepheid.algebra.answers`."""

    TUMBLE = "TUMBLE"
    HOP = "HOP"
    SESSION = "SESSION"
    RANGE = "RANGE"


@dataclass(frozen=True, slots=True)
class GroupWindow:
    """`TUMBLE(1 hour)`, `HOP(1 minute, 1 hour)`, `SESSION(30 minutes)`, `RANGE(1 day)`. `slide`
    is HOP's first argument."""

    kind: WindowKind
    size: Duration
    slide: Duration | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class GroupBy:
    """`having` is a HAVING that stands after it: it checks groups."""

    expressions: tuple[Expression, ...] = ()
    window: GroupWindow | None = None
    having: Expression | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)
