"""What planning leaves behind: the plan, its expected cost, and what it was chosen over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cepheid.plan.amounts import duration
from cepheid.plan.nodes import Node, Plan
from cepheid.planner.choice import Choice
from cepheid.statistics import Statistics


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a node is expected to do in the time of one window. `rows` are the records that it
    makes (CARD of Table 1), `tried` the combinations that it looks at (C_i), `cost` its own cost,
    without its inputs', in nanoseconds (formula 1 with calibrated weights)."""

    rows: float
    tried: float
    cost: float


@dataclass(frozen=True)
class Candidate:
    """A candidate plan: one choice for each alternative of the pattern, and the estimated cost of
    all its operators. `name` describes it to a person."""

    name: str
    choices: tuple[Choice, ...]
    cost: float


@dataclass(frozen=True)
class Planned:
    """The plan that won. `estimates` has every node of it; `losers` are other plans, cheapest
    first; `forced` says that the caller chose."""

    plan: Plan
    winner: Candidate
    estimates: Mapping[Node, Estimate]
    losers: tuple[Candidate, ...] = ()
    statistics: Statistics = field(default_factory=Statistics)
    forced: bool = False

    def __repr__(self) -> str:
        return f"Planned({self.winner.name!r}, {duration(self.winner.cost)} per window)"
