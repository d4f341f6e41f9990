"""What expressions over groups of matches may name, and what they ask of the matches."""

from __future__ import annotations

from dataclasses import dataclass, field

from cepheid.algebra.answer_shape import (
    ANSWER,
    WINDOW_END,
    WINDOW_START,
    AnswerWindow,
    MatchAggregate,
)
from cepheid.algebra.expressions import Attribute, Expr, transform
from cepheid.algebra.query import Output
from cepheid.algebra.types import Type


@dataclass(frozen=True)
class GroupScope:
    """The group expressions, and the aggregates and the values of matches that it names.
    `time` is the type of a window's ends. `open`: an aggregate over matches may stand here; else
    it is in a clause that comes before there are groups, or inside another one."""

    keys: tuple[Expr, ...] = ()
    window: AnswerWindow | None = None
    time: Type = Type.INTEGER
    open: bool = False
    inside: bool = False
    values: dict[Expr, str] = field(default_factory=dict)
    aggregates: dict[tuple[str, str | None, bool], MatchAggregate] = field(default_factory=dict)

    def window_end(self, name: str) -> Attribute | None:
        """An end of the window, if the name is one and there is a window."""
        named = self.open and self.window is not None and name in (WINDOW_START, WINDOW_END)
        return Attribute(ANSWER, name, self.time) if named else None

    def aggregate(
        self, function: str, argument: Expr | None, type_: Type, distinct: bool
    ) -> Attribute:
        """The value of an aggregate; equal ones are computed once."""
        column = None
        if argument is not None:
            column = self.values.setdefault(argument, f"v{len(self.values)}")
        aggregate = self.aggregates.setdefault(
            (function, column, distinct),
            MatchAggregate(f"m{len(self.aggregates)}", function, column, type_, distinct),
        )
        return Attribute(ANSWER, aggregate.name, type_)

    def grouped(self, expr: Expr) -> Expr:
        """The expression with the group expressions in it replaced by their values."""

        def change(node: Expr) -> Expr | None:
            if node in self.keys:
                return Attribute(ANSWER, key_name(self.keys.index(node)), node.type)
            return None

        return transform(expr, change)

    @property
    def columns(self) -> tuple[Output, ...]:
        """What a match must return."""
        keys = (Output(key_name(n), key) for n, key in enumerate(self.keys))
        return (*keys, *(Output(name, expr) for expr, name in self.values.items()))


def key_name(number: int) -> str:
    return f"g{number}"
