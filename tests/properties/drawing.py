"""Drawing choices, and what is remembered of a variable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")
COMPARISONS = ("<", "<=", "=", "<>", ">=", ">")


class Kind(Enum):
    SINGLE = "event"
    GROUP = "group"
    OPTIONAL = "optional event"


@dataclass(frozen=True)
class Variable:
    """`negation` numbers the negations, since one condition can't read two of them."""

    name: str
    kind: Kind
    negation: int | None


@dataclass
class Drawing:
    """The variables drawn so far, in the order of the pattern, and their types."""

    draw: Callable[[st.SearchStrategy[Any]], Any]
    variables: list[Variable] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    negations: int = 0

    def choose(self, *options: T) -> T:
        chosen: T = self.draw(st.sampled_from(options))
        return chosen

    def chance(self, percent: int) -> bool:
        return bool(self.draw(st.integers(0, 99)) >= 100 - percent)

    def fill(self, *templates: str, **names: str) -> str:
        """One of the templates, with `{op}` a comparison and `{k}` a small number."""
        chosen = self.choose(*templates)
        if "{op}" in chosen:
            names["op"] = self.choose(*COMPARISONS)
        if "{k}" in chosen:
            names["k"] = str(self.draw(st.integers(0, 3)))
        return chosen.format(**names)
