"""Work laid on nodes, a query at a time (NEXT 4.4).

Nothing here knows what the work is. An item has a cost, inputs, and a rate at which it sends what
it makes; equal keys mean equal work. A node's load is the cost of its items, and the rates of all
they read from elsewhere: receiving an event costs as much as processing one (NEXT 4.2, where the
printed delta, 1 on the same node, must be meant the other way round).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias, assert_never

from cepheid.errors import PlanError
from cepheid.rules.placement.places import cheapest


@dataclass(frozen=True, slots=True)
class Feed:
    """What comes from outside. It is on no node: whoever reads it receives it."""

    rate: float


@dataclass(frozen=True, slots=True)
class Item:
    """A piece of work that isn't divided. Its inputs are placed with it, each once."""

    key: Hashable
    cost: float
    rate: float
    inputs: tuple[Input, ...] = ()


Input: TypeAlias = Feed | Item


class Policy(Enum):
    """How a node is chosen for an item.

    GREEDY takes the node whose load, with the item on it, is the least. ROUND_ROBIN takes one node
    after the other, and looks at nothing.
    """

    GREEDY = "greedy"
    ROUND_ROBIN = "round robin"


@dataclass(frozen=True, slots=True)
class Placed:
    """An item on its node. `sources` are the places of those inputs that are items; `received`
    is the rate of all that comes from elsewhere; `through` are all nodes on which something is
    done for what it makes."""

    item: Item
    node: int
    sources: tuple[int, ...]
    received: float
    through: frozenset[int]

    @property
    def load(self) -> float:
        return self.item.cost + self.received


@dataclass(frozen=True)
class Deployment:
    """What each node carries. `placed` is in order of placement, `found` says where in it a key
    was placed first, and `queries` where the result of each query is made."""

    loads: tuple[float, ...]
    placed: tuple[Placed, ...] = ()
    found: Mapping[Hashable, int] = field(default_factory=dict)
    queries: tuple[int, ...] = ()

    def carried(self, node: int) -> tuple[Placed, ...]:
        return tuple(p for p in self.placed if p.node == node)

    def received(self) -> float:
        """All that goes over the network, from outside or between nodes."""
        return sum(p.received for p in self.placed)


def empty(nodes: int) -> Deployment:
    if nodes < 1:
        raise PlanError(f"{nodes} nodes can't carry anything; give at least 1")
    return Deployment((0.0,) * nodes)


def deploy(
    deployment: Deployment, query: Item, policy: Policy = Policy.GREEDY, reuse: bool = True
) -> Deployment:
    """The deployment with one more query, whose items go bottom-up, each to the node of the policy.

    With `reuse`, the query is searched from the top for what is deployed already, the largest parts
    first: those are read from where they are. Parts that occur twice in the query are placed once.
    """
    draft = _Draft([*deployment.loads], [*deployment.placed], dict(deployment.found))
    root = draft.place(query, policy, reuse)
    return replace(
        deployment,
        loads=tuple(draft.loads),
        placed=tuple(draft.placed),
        found=draft.found,
        queries=(*deployment.queries, root),
    )


@dataclass
class _Draft:
    """A deployment while one query is laid out."""

    loads: list[float]
    placed: list[Placed]
    found: dict[Hashable, int]

    def place(self, item: Item, policy: Policy, reuse: bool) -> int:
        """Where in `placed` the item is."""
        if reuse and item.key in self.found:
            return self.found[item.key]
        sources = [self.place(i, policy, reuse) for i in item.inputs if isinstance(i, Item)]
        read = [(self.placed[s].node, self.placed[s].item.rate) for s in sources]
        node = self.choose(policy, read)
        outside = sum(i.rate for i in item.inputs if isinstance(i, Feed))
        received = outside + sum(rate for place, rate in read if place != node)
        through = frozenset({node}).union(*(self.placed[s].through for s in sources))
        made = Placed(item, node, tuple(sources), received, through)
        self.loads[node] += made.load
        self.found.setdefault(item.key, len(self.placed))
        self.placed.append(made)
        return len(self.placed) - 1

    def choose(self, policy: Policy, inputs: Sequence[tuple[int, float]]) -> int:
        match policy:
            case Policy.GREEDY:
                return cheapest(self.loads, inputs)
            case Policy.ROUND_ROBIN:
                return len(self.placed) % len(self.loads)
            case _:
                assert_never(policy)
