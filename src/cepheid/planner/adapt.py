"""Adaptation: another plan when the data have changed (ZStream 5.3, thesis 3.5.5).

At the end of a round, as often as a budget allows, the leaves are sampled. If a statistic has
moved by more than t from what the running plan was made with, plans are searched again; one that
promises to be cheaper by more than c is installed, at this round's boundary.

A plan whose kernels were never compiled costs seconds before it saves anything. It is installed
once the run has lasted long enough to have wasted as much (the rule of whoever rents skis): a
short run never pays for a plan that it has no time to use.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import Literal

from cepheid.algebra.query import BoundQuery
from cepheid.engine.run import Engine
from cepheid.engine.sampling import Sampler, Targets, Windowed, targets
from cepheid.options import Adaptation, EngineChoice
from cepheid.plan.amounts import amount
from cepheid.plan.nodes import Plan, waits
from cepheid.plan.profile import Replan
from cepheid.planner.choice import Propagation
from cepheid.planner.cost.plan_cost import cost_of
from cepheid.planner.planned import Planned
from cepheid.planner.search import search
from cepheid.statistics import Statistics

logger = logging.getLogger(__name__)

SAMPLING = 0.02
"""The share of a run's time that gathering statistics may take."""

SAMPLES = 8
"""How many samples are averaged: more are steadier, fewer notice changes sooner."""

SEARCHING = 0.05
"""The share of a run's time that searching for plans may take."""

FEWEST = 1000
"""How many events come before the first sample. Fewer say little about the data, and any plan
matches them at once; a stream that counts events per key has an engine for every key, and most end
before."""

COMPILING = 0.7
"""About how many seconds it takes to compile a kernel."""


@dataclass(frozen=True)
class Adaptive:
    """What an engine needs to search for another plan, also on workers."""

    query: BoundQuery
    planned: Planned
    adaptation: Adaptation
    negation: str = "auto"
    propagation: Propagation | Literal["auto"] = "auto"
    engine: EngineChoice = "auto"

    @property
    def targets(self) -> Targets:
        """The statistics to gather."""
        return targets(self.query)

    def search(self, statistics: Statistics) -> Planned:
        """The best plan for these statistics that can replace the running one."""
        negation = self.negation
        if any(waits(root) for root in self.planned.plan.alternatives):
            # What waits must wait for the same in all plans: negations stay where they are.
            negation = "top" if any(c.top for c in self.planned.winner.choices) else "push"
        return search(
            self.query,
            statistics,
            engine=self.engine,
            negation=negation,
            propagation=self.propagation,
            limit=self.planned.plan.limit,
            brief=True,
        )


class Adapter:
    """Advises an engine. `sampling` and `searching` are shares of the engine's time, `fewest` the
    events that it must have had."""

    def __init__(
        self,
        adaptive: Adaptive,
        sampling: float = SAMPLING,
        searching: float = SEARCHING,
        fewest: int = FEWEST,
    ) -> None:
        self.planned = adaptive.planned
        self.replans: tuple[Replan, ...] = ()
        self.seconds = 0.0
        self.looks = 0
        self._last = 0.0
        self._adaptive = adaptive
        self._shares = sampling, searching
        self._fewest = fewest
        self._known = Windowed(SAMPLES)
        self._searching = 0.0
        self._pace = Pace()

    @cached_property
    def _targets(self) -> Targets:
        return self._adaptive.targets

    @cached_property
    def _sampler(self) -> Sampler:
        return Sampler(self._targets)

    @cached_property
    def _basis(self) -> Statistics:
        """The statistics of the last search."""
        return self._comparable(self._adaptive.planned.statistics)

    def advise(self, engine: Engine) -> Plan | None:
        """Sample, if the budget allows; return another plan, if one takes over."""
        self._pace.begin(engine)
        if engine.counts.events < self._fewest:
            return None
        if self.seconds + self._last > self._shares[0] * engine.seconds:
            return None  # another look like the last one would go beyond the budget
        began = perf_counter()
        self.looks += 1
        statistics = self._look(engine)
        self._last = perf_counter() - began
        self.seconds += self._last
        pace = self._pace.lap(engine)
        self._note_gain(pace)
        now = self._comparable(statistics)
        why = moved(self._basis, now, self._adaptive.adaptation.change)
        if why is None or self._searching > self._shares[1] * engine.seconds:
            return None
        began = perf_counter()
        plan = self._reconsider(engine, statistics, why, pace)
        self._searching += perf_counter() - began
        return plan

    def _look(self, engine: Engine) -> Statistics:
        buffers = {leaf.variable: operator.out for leaf, operator in engine.leaves.items()}
        context = engine.context
        sample = self._sampler.sample(buffers, context.store, context.window, context.frontier)
        self._known.add(sample)
        return self._known.statistics(self._targets.ticks)

    def _comparable(self, statistics: Statistics) -> Statistics:
        """Leaves hold events that satisfy their class's conditions, so only the product of rate and
        selectivities can be compared."""
        rates = dict(statistics.rates)
        shares = dict(statistics.selectivities)
        for name, conditions in self._targets.classes.items():
            for condition in conditions:
                share = shares.pop(condition.text, 1.0)
                if name in rates:
                    rates[name] *= share
        return Statistics(rates, shares, statistics.distinct)

    def _reconsider(
        self, engine: Engine, statistics: Statistics, why: str, pace: float | None
    ) -> Plan | None:
        best = self._adaptive.search(statistics)
        gain = cost_of(self.planned.plan, statistics) / best.winner.cost
        enough = gain > 1 + self._adaptive.adaptation.gain
        if enough and not self._worth_compiling(engine, best.plan, gain):
            return None  # the basis stays: it is looked at again
        self._basis = self._comparable(statistics)
        if best.plan == self.planned.plan:
            return None
        self.replans += (
            Replan(
                round=engine.counts.rounds,
                at=engine.context.frontier,
                before=self.planned.winner.name,
                after=best.winner.name,
                why=why,
                predicted=gain,
                installed=enough,
            ),
        )
        last = self.replans[-1]
        words = "%s replaces %s" if enough else "%s is hardly better than %s"
        logger.info(
            f"round %d: {words}, predicted gain ×%.2g; %s",
            last.round,
            last.after,
            last.before,
            gain,
            why,
        )
        if not enough:
            return None
        self.planned = best
        self._pace.change(pace)
        return best.plan

    def _worth_compiling(self, engine: Engine, plan: Plan, gain: float) -> bool:
        wasted = engine.seconds * (1 - 1 / gain)
        return wasted >= COMPILING * engine.cold(plan)

    def _note_gain(self, pace: float | None) -> None:
        """How much faster rounds are than they were before the last change."""
        before, last = self._pace.before, self.replans[-1] if self.replans else None
        if last is not None and last.installed and last.observed is None and before and pace:
            self.replans = (*self.replans[:-1], replace(last, observed=before / pace))


class Pace:
    """Seconds per round, lap by lap."""

    def __init__(self) -> None:
        self._mark: tuple[float, int] | None = None
        self.before: float | None = None  # of the last lap of the plan before

    def begin(self, engine: Engine) -> None:
        """The first round of a plan, which makes records for a whole window, doesn't count."""
        if self._mark is None:
            self._mark = engine.seconds, engine.counts.rounds

    def lap(self, engine: Engine) -> float | None:
        """The pace since the last lap."""
        assert self._mark is not None
        seconds, rounds = engine.seconds - self._mark[0], engine.counts.rounds - self._mark[1]
        self._mark = engine.seconds, engine.counts.rounds
        return seconds / rounds if rounds else None

    def change(self, before: float | None) -> None:
        """Start a new plan."""
        self.before, self._mark = before, None


def moved(basis: Statistics, now: Statistics, change: float) -> str | None:
    """The statistic that has changed most, if by more than the given share; else None."""
    far: list[tuple[float, str]] = []
    for what, before, after in (
        ("rate of", basis.rates, now.rates),
        ("selectivity of", basis.selectivities, now.selectivities),
        ("distinct values of", basis.distinct, now.distinct),
    ):
        for name, value in after.items():
            old = before.get(name)
            if old is None:
                return "first look at the data"
            distance = abs(value - old) / max(old, 1e-12)
            if distance > change:
                far.append((distance, f"{what} {name} {amount(old)} → {amount(value)}"))
    return max(far)[1] if far else None
