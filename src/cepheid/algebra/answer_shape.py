"""Answers: what a query returns about its matches, instead of the matches.

The query itself finds matches, with the values of group expressions and of what is aggregated as
its columns. This describes how they are folded into answers. Expressions here read no events, but
`Attribute(ANSWER, …)`: a group expression, an aggregate, or an end of the group's window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cepheid.algebra.expressions import Expr
from cepheid.algebra.types import Type
from cepheid.language.group_clause import WindowKind

if TYPE_CHECKING:
    from cepheid.algebra.query import Output

ANSWER = ""
"""The variable of expressions over groups: no event has this name."""

WINDOW_START, WINDOW_END = "window_start", "window_end"


@dataclass(frozen=True, slots=True)
class AnswerWindow:
    """A window over the ends of matches, in ticks of the time column.

    TUMBLE  `[k * size, (k + 1) * size)`, for every whole k
    HOP     `[k * slide, k * slide + size)`
    SESSION as long as the next match of the group ends less than `size` after the last one
    RANGE   for every match that ends at t, the matches of its group that end in `(t - size, t]`
    """

    kind: WindowKind
    size: int
    slide: int = 0


@dataclass(frozen=True, slots=True)
class MatchAggregate:
    """An aggregate over the matches of a group: its name among the values of an answer, and the
    column of the matches that it is over. `count(*)` has none: it counts the matches."""

    name: str
    function: str
    column: str | None
    type: Type
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class Answers:
    """`groups` are columns of the matches. `most` answers are returned, if there is a LIMIT."""

    groups: tuple[str, ...]
    window: AnswerWindow | None
    aggregates: tuple[MatchAggregate, ...]
    having: tuple[Expr, ...]
    outputs: tuple[Output, ...]
    most: int | None = None
    text: str = ""

    @property
    def whole(self) -> bool:
        """Whether all matches are one group, which is there even if there are none."""
        return not self.groups and self.window is None

    @property
    def has_empty_windows(self) -> bool:
        """Whether there are answers about windows without matches, between others with some."""
        kinds = (WindowKind.TUMBLE, WindowKind.HOP)
        return not self.groups and self.window is not None and self.window.kind in kinds
