"""How a query is run: everything that isn't the query itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Partitioning = Literal["auto", "key", "partial", "slices", "single"]
Unit = Literal["us", "ms", "s", "min", "h", "d"]


@dataclass(frozen=True)
class Options:
    """Options of a run. `time` is the only one that is always needed.

    time          column of the event time: a timestamp, a date or an integer
    type          column of the event type, if one stream holds several types
    tie           column that orders events of the same time; without it they are simultaneous
    unit          what one tick of an integer time column is, to allow `WITHIN 10 seconds`
    params        values of the query's `:parameters`
    plan          `left-deep`, `right-deep`, or a tree such as `((a b) c)`
    negation      `push` (NSEQ where it is correct) or `top` (filters on top)
    partitioning  on Spark: `auto`, `key`, `partial` (events without the key are copied to all
                  partitions), `slices` of time, or `single`; the matches are always the same
    partitions    on Spark: how many partitions; by default as many as the session shuffles into
    jit           compile the kernels; without it the same code runs as plain Python

    >>> Options(time="ts", type="name").plan
    'left-deep'
    """

    time: str
    type: str | None = None
    tie: str | None = None
    unit: Unit | None = None
    params: Mapping[str, object] = field(default_factory=dict)
    plan: str = "left-deep"
    negation: Literal["push", "top"] = "push"
    partitioning: Partitioning = "auto"
    partitions: int | None = None
    jit: bool = True

    def __post_init__(self) -> None:
        _one_of("negation", self.negation, ("push", "top"))
        _one_of("partitioning", self.partitioning, ("auto", "key", "partial", "slices", "single"))
        if self.unit is not None:
            _one_of("unit", self.unit, ("us", "ms", "s", "min", "h", "d"))
        if self.partitions is not None and self.partitions < 1:
            raise ValueError(f"partitions must be at least 1, not {self.partitions}")


def _one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}; not {value!r}")
