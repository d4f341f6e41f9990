"""The profile of a run: actual figures beside a plan's estimates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce

from cepheid.plan.nodes import Node


@dataclass(frozen=True, slots=True)
class NodeProfile:
    """Records that a node has made, the time that it took for them, and how many its buffer held
    at most."""

    rows: int = 0
    seconds: float = 0.0
    peak: int = 0

    def plus(self, other: NodeProfile) -> NodeProfile:
        """The sum of two runs or partitions, which have separate buffers."""
        return NodeProfile(
            self.rows + other.rows, self.seconds + other.seconds, max(self.peak, other.peak)
        )


@dataclass(frozen=True, slots=True)
class Replan:
    """A decision to change plans, or to stay. `at` is the clock, `before` and `after` are how the
    plans are called, `predicted` and `observed` how many times cheaper the new plan is (None: not
    known yet). `installed` is False where the gain was too small."""

    round: int
    at: int
    before: str
    after: str
    why: str
    predicted: float
    observed: float | None = None
    installed: bool = True


@dataclass(frozen=True)
class Profile:
    """Of one engine; `plus` adds up those of several partitions. `shed` events were dropped because
    of the limit. `seconds` is all the time spent in the engine; of it, `sampling` gathered
    statistics, and `compiling` made kernels ready."""

    events: int = 0
    rejected: int = 0
    matches: int = 0
    rounds: int = 0
    idle: int = 0
    seconds: float = 0.0
    sampling: float = 0.0
    compiling: float = 0.0
    nodes: Mapping[Node, NodeProfile] = field(default_factory=dict)
    replans: tuple[Replan, ...] = ()
    partitions: int = 1
    shed: int = 0

    def plus(self, other: Profile) -> Profile:
        none = NodeProfile()
        nodes = {
            node: self.nodes.get(node, none).plus(other.nodes.get(node, none))
            for node in {**self.nodes, **other.nodes}
        }
        return Profile(
            self.events + other.events,
            self.rejected + other.rejected,
            self.matches + other.matches,
            self.rounds + other.rounds,
            self.idle + other.idle,
            self.seconds + other.seconds,
            self.sampling + other.sampling,
            self.compiling + other.compiling,
            nodes,
            self.replans + other.replans,
            self.partitions + other.partitions,
            self.shed + other.shed,
        )


def total(profiles: Iterable[Profile]) -> Profile:
    """The sum over all partitions; without any, an empty profile."""
    return reduce(Profile.plus, profiles, Profile(partitions=0))
