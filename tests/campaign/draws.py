"""Random draws in which everything has its turn."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


class Draws:
    """What was drawn least often comes next, at random among several: whatever can happen has
    happened once before anything happens twice."""

    def __init__(self) -> None:
        self._counts = Counter[Hashable]()

    def draw(self, options: Sequence[T], chance: random.Random) -> T:
        least = min(self._counts[option] for option in options)
        drawn = chance.choice([o for o in options if self._counts[o] == least])
        self._counts[drawn] += 1
        return drawn

    def never(self, options: Sequence[T]) -> list[T]:
        return [option for option in options if not self._counts[option]]
