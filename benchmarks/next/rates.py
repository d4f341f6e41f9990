"""NEXT's cost model (NEXT 4.2, Table 1): worst-case figures of a stream, and what operators cost.

Conditions are ignored, so rates are the highest possible. A stream comes in bursts: a next whose
second event is rare holds many first ones, and all of them are completed at once. Costs are events
processed per second; only their ratios mean something.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from benchmarks.next.operators import (
    Delay,
    Filter,
    Iteration,
    Next,
    Operator,
    Source,
    Union,
    Unless,
    inputs,
)
from cepheid.errors import PlanError, UnsupportedError

Rates = Mapping[str, float]
"""Events per second of each source, by its name."""


@dataclass(frozen=True, slots=True)
class Figures:
    """`rate` counts events per second, at worst; `detection` is the mean time between them, in
    seconds; they come in bursts of `burst_size` events, `burst_rate` times per second."""

    rate: float
    detection: float
    burst_size: float
    burst_rate: float


def figures(operator: Operator, rates: Rates) -> Figures:
    """A row of Table 1, from the rows of the inputs."""
    return combined(operator, [figures(i, rates) for i in inputs(operator)], rates)


def cpu(operator: Operator, rates: Rates) -> float:
    """CPU(o) of 4.2: of this operator alone. A source costs nothing."""
    return own_cost(operator, [figures(i, rates) for i in inputs(operator)])


def cost(operator: Operator, rates: Rates) -> float:
    """cost(Q) of 4.2: the sum over all operators; one that is written twice counts twice."""
    return cpu(operator, rates) + sum(cost(i, rates) for i in inputs(operator))


# ── one operator ──


def combined(operator: Operator, of: list[Figures], rates: Rates) -> Figures:
    """The operator's figures, of which only its kind counts, from those of its inputs."""
    match operator:
        case Source(name):
            return source_figures(name, rates)
        case Filter() | Unless():
            return of[0]
        case Delay(_, seconds):
            return replace(of[0], detection=of[0].detection + seconds)
        case Union():
            return union_figures(*of)
        case Next():
            return next_figures(*of)
        case Iteration():
            raise _unbounded()
        case _:
            assert_never(operator)


def own_cost(operator: Operator, of: list[Figures]) -> float:
    """Every operator but next looks at each event once."""
    match operator:
        case Source() | Filter() | Unless() | Delay() | Union():
            return sum(f.rate for f in of)
        case Next():
            return next_cost(*of)
        case Iteration():
            raise _unbounded()
        case _:
            assert_never(operator)


def source_figures(name: str, rates: Rates) -> Figures:
    """Poisson: the mean time between events is 1 / rate, and each is a burst of one."""
    rate = rates.get(name)
    if rate is None:
        known = ", ".join(f"`{n}`" for n in rates) or "none"
        raise PlanError(f"the rate of `{name}` is not given; there are rates of: {known}")
    if not rate > 0:
        raise PlanError(f"the rate of `{name}` is {rate}; give a positive number per second")
    return Figures(rate, 1 / rate, 1.0, rate)


def union_figures(left: Figures, right: Figures) -> Figures:
    """Table 1 prints the burst size as `size * rate + size * rate`, which is a rate; the mean size
    of a burst is that divided by the bursts."""
    bursts = left.burst_rate + right.burst_rate
    events = left.burst_size * left.burst_rate + right.burst_size * right.burst_rate
    return Figures(left.rate + right.rate, 1 / bursts, events / bursts, bursts)


def next_figures(first: Figures, second: Figures) -> Figures:
    """At most one match for each first event; those held since the last second one end together."""
    return Figures(
        rate=first.rate,
        detection=first.detection + second.detection,
        burst_size=first.burst_size * first.burst_rate * second.detection,
        burst_rate=1 / max(first.detection, second.detection),
    )


def next_cost(first: Figures, second: Figures) -> float:
    """Each first event begins an instance; the instances held look at every event of a burst of
    seconds; bursts that find no instance are thrown away."""
    held = second.detection / first.detection * first.burst_size
    looked = held * second.burst_size * second.burst_rate
    vain = max(second.burst_rate - first.burst_rate, 0.0) * second.burst_size
    return first.rate + looked + vain


def _unbounded() -> UnsupportedError:
    return UnsupportedError(
        "an iteration has no bounded rate or cost (Table 1), so it can't be costed or placed; "
        "place its input, and let one node run the rest"
    )
