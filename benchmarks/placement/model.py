"""How many queries a cluster of modeled nodes supports (NEXT 6, distributed case).

The model, in words:

- **Load.** A node's load is that of NEXT 4.2: the CPU cost of its operators, and the rate of every
  input that comes from another node or from a source. So receiving an event costs as much as
  processing one, and sending is free. Sources and sinks are on machines of their own. Of a Poisson
  source, its mean rate enters, and nothing else.
- **Capacity.** Every machine does 15,000 events per second. That is the paper's: a sink proxy was
  overloaded by 80 queries that send 191 events per second each. Costs of operators are counted in
  the same events, which the paper doesn't say of its machines.
- **Overload.** The paper calls the system overloaded when the 80th percentile of the delay goes
  above a second in ten. Here a node with more load than capacity falls ever more behind, so all
  events that pass it are late; the system is overloaded when more than a fifth of the events that
  reach the sinks are late.
- **Supported.** Queries come one at a time, none is moved or refused, until every node is
  overloaded. Supported is the largest number at which the system was not.
- **Sinks.** Each query sends its results to a sink proxy, whether its operators are shared or not.
  Where sinks count, an overloaded one makes all late.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate, islice, takewhile
from typing import Literal

from benchmarks.next.deploy import Deployment, Item, Policy, deploy, empty

Workload = Literal["next", "mix", "union"]
WORKLOADS: tuple[Workload, ...] = ("next", "mix", "union")
CAPACITY = 15_000.0
TOLERATED = 0.2


@dataclass(frozen=True)
class Way:
    """A curve of figure 11."""

    name: str
    policy: Policy
    reuse: bool = False
    rewritten: bool = False


ROBIN = Way("round robin", Policy.ROUND_ROBIN)
GREEDY = Way("greedy", Policy.GREEDY)
GREEDY_REWRITE = Way("greedy, rewrite", Policy.GREEDY, rewritten=True)
REUSE = Way("reuse", Policy.GREEDY, reuse=True)
REUSE_REWRITE = Way("reuse, rewrite", Policy.GREEDY, reuse=True, rewritten=True)
WAYS = (ROBIN, GREEDY, GREEDY_REWRITE, REUSE, REUSE_REWRITE)


def supported(queries: Iterable[Item], nodes: int, way: Way, limit: int) -> int:
    """The most queries at which the system isn't overloaded; no more than `limit` are tried."""
    deployment = empty(nodes)
    overloaded: set[int] = set()
    total = late = 0.0
    most = 0
    for number, query in enumerate(islice(queries, limit), 1):
        deployment = deploy(deployment, query, way.policy, way.reuse)
        total += query.rate
        full = {node for node, load in enumerate(deployment.loads) if load > CAPACITY}
        # Only if another node is full, older queries have to be looked at again.
        if full == overloaded:
            late += _late(deployment, deployment.queries[-1:], full)
        else:
            late = _late(deployment, deployment.queries, full)
        overloaded = full
        if late <= TOLERATED * total:
            most = number
        if len(overloaded) == nodes:
            break
    return most


def _late(deployment: Deployment, queries: Iterable[int], overloaded: set[int]) -> float:
    """The rate of results that have passed an overloaded node."""
    results = (deployment.placed[place] for place in queries)
    return sum(made.item.rate for made in results if made.through & overloaded)


def supported_by_sinks(queries: Iterable[Item], sinks: int, limit: int) -> int:
    """How many queries so many sink proxies can receive the results of."""
    received = accumulate(query.rate for query in islice(queries, limit))
    return sum(1 for _ in takewhile(lambda rate: rate <= sinks * CAPACITY, received))


def operators_placed(queries: Iterable[Item], way: Way, count: int) -> int:
    """How many operators run for the first so many queries: fewer if some are shared."""
    deployment = empty(1)
    for query in islice(queries, count):
        deployment = deploy(deployment, query, way.policy, way.reuse)
    return len(deployment.placed)


def total_cost(query: Item) -> float:
    """Of its operators, without what is received."""
    return query.cost + sum(total_cost(i) for i in query.inputs if isinstance(i, Item))


def too_heavy(query: Item) -> bool:
    """Whether one operator of the query is more than a node can do."""
    below = [i for i in query.inputs if isinstance(i, Item)]
    return query.cost > CAPACITY or any(map(too_heavy, below))
