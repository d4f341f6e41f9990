"""The plan's tree as it is shown: what every drawing of it has in common."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from cepheid.plan.amounts import amount, count, duration
from cepheid.plan.nodes import Automaton, Node, Plan, children, walk
from cepheid.plan.profile import NodeProfile, Profile
from cepheid.plan.states import State, states
from cepheid.plan.text import inputs_of, label
from cepheid.planner.planned import Estimate, Planned


@dataclass(frozen=True, slots=True)
class Shown:
    """An operator as it is shown. `uses` is how often the plan has it: it is drawn at each use,
    and runs once. The share is of the estimated cost of all operators, `busy` of all the time in
    the engine. DISJ has neither estimate nor actuals, since nothing is done for it. An automaton
    has `states`."""

    name: str
    conditions: tuple[str, ...] = ()
    inputs: tuple[Shown, ...] = ()
    leaf: bool = False
    negated: bool = False
    uses: int = 1
    estimate: Estimate | None = None
    share: float = 0.0
    actual: NodeProfile | None = None
    busy: float = 0.0
    states: tuple[State, ...] = ()

    @property
    def title(self) -> str:
        return f"!{self.name}" if self.negated else self.name


def show(planned: Planned, profile: Profile | None = None) -> Shown:
    """The tree of the plan; several alternatives stand under one DISJ."""
    return _Showing(planned, profile).root()


def walk_shown(shown: Shown) -> Iterator[Shown]:
    """It and all below it, from the top."""
    yield shown
    for part in shown.inputs:
        yield from walk_shown(part)


def figure_lines(node: Shown) -> list[str]:
    """What was estimated for a window, and what the run counted."""
    lines = []
    if node.estimate is not None:
        rows, cost = amount(node.estimate.rows), duration(node.estimate.cost)
        lines.append(f"≈ {rows} rows · {cost} per window")
    if node.actual is not None:
        time = f" · {duration(node.actual.seconds * 1e9)}" if node.actual.seconds else ""
        rows = "1 row" if node.actual.rows == 1 else f"{count(node.actual.rows)} rows"
        lines.append(f"{rows}{time} in the run")
        if node.actual.peak:
            lines.append(f"peak {count(node.actual.peak)}")
    return lines


def operators(plan: Plan) -> frozenset[Node]:
    """What runs: a node that occurs twice is one operator."""
    return frozenset(node for root in plan.alternatives for node in walk(root))


class _Showing:
    """The figures beside which the tree is drawn."""

    def __init__(self, planned: Planned, profile: Profile | None) -> None:
        self._plan = planned.plan
        self._estimates = planned.estimates
        self._profile = profile
        self._uses = _uses(planned.plan)
        costs = (self._estimates.get(node) for node in operators(planned.plan))
        cost = sum(estimate.cost for estimate in costs if estimate is not None)
        self._cost = cost if math.isfinite(cost) else 0.0

    def root(self) -> Shown:
        roots = tuple(self._shown(root, False, 1) for root in self._plan.alternatives)
        return roots[0] if len(roots) == 1 else Shown("DISJ", inputs=roots)

    def _shown(self, node: Node, negated: bool, above: int) -> Shown:
        """`above` is how often the parent is used: what is shared with it goes without saying."""
        name, conditions = label(node, self._plan.variables)
        uses = self._uses[node]
        estimate = self._estimates.get(node)
        actual, busy = None, 0.0
        if self._profile is not None:
            actual = self._profile.nodes.get(node)
            # Kernels are made ready once; what operators do with them is what counts.
            working = self._profile.seconds - self._profile.compiling
            if actual is not None and working > 0:
                busy = min(1.0, actual.seconds / working)
        return Shown(
            name,
            tuple(conditions),
            tuple(self._shown(part, neg, uses) for part, neg in inputs_of(node)),
            leaf=not children(node),
            negated=negated,
            uses=uses if uses > above else 1,
            estimate=estimate,
            share=estimate.cost / self._cost if estimate is not None and self._cost > 0 else 0.0,
            actual=actual,
            busy=busy,
            states=states(node, self._plan.variables) if isinstance(node, Automaton) else (),
        )


def _uses(plan: Plan) -> Counter[Node]:
    """How often each node is in the plan."""
    return Counter(node for root in plan.alternatives for node in walk(root))
