"""The choices of a plan search, each of which the caller can force."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cepheid.planner.trees.shapes import Shape

Propagation = Literal["push", "lazy", "pull", "pass-down"]
"""How an alternative's results move (thesis 4): `push` runs every operator in every round, `lazy`
only in rounds in which a match can end (ZStream 4.3), `pull` evaluates left inputs only as far as
right ones demand it, `pass-down` also filters by the triggering event what is below."""


@dataclass(frozen=True)
class Choice:
    """One way to evaluate an alternative. `shape` is a tree over its variables, or a style
    (`left-deep`). `top` are the indices of the negations that are filters on top; all others go
    down as far as they can, as NSEQ where that is correct. `stacks`: the alternative is a chain
    that stacks evaluate, with all that hangs on it above them; it has no tree then."""

    shape: Shape
    top: frozenset[int] = frozenset()
    propagation: Propagation = "lazy"
    stacks: bool = False
