"""Chains with one condition between several events, a comparison of two neighbors."""

from __future__ import annotations

from dataclasses import dataclass

from cepheid.algebra.expressions import Call, Expr, variables
from cepheid.algebra.types import Type
from cepheid.answers.counted.chain_walks import ChainWalk

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
_ORDERED = (Type.INTEGER, Type.FLOAT, Type.TIMESTAMP, Type.DATE, Type.DURATION)


@dataclass(frozen=True)
class NeighborPair:
    """`first` of step number `step` is compared with `second` of the next one. `walk` is another
    way, for counts beyond 64 bits."""

    walk: ChainWalk
    step: int
    operator: str
    first: Expr
    second: Expr

    @property
    def hashed(self) -> bool:
        return self.operator in ("=", "<>")


def neighbor_pair(walk: ChainWalk) -> NeighborPair | None:
    """None if the walk's conditions aren't one such comparison, or answers read more than the last
    event."""
    single = len(walk.conditions) == 1 and not walk.loops
    if not walk.forwards or walk.negations or walk.pairs or not single:
        return None
    match walk.conditions[0]:
        case Call(operator, (first, second)) if operator in _MIRRORED:
            pass
        case _:
            return None
    if len(variables(first)) != 1 or len(variables(second)) != 1:
        return None
    places = [walk.steps.index(next(iter(variables(side)))) for side in (first, second)]
    if first.type != second.type or first.type not in _ORDERED:
        return None
    match places[1] - places[0]:
        case 1:
            return NeighborPair(walk, places[0], operator, first, second)
        case -1:
            return NeighborPair(walk, places[1], _MIRRORED[operator], second, first)
        case _:
            return None
