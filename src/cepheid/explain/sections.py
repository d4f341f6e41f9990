"""The sections beside the tree, as lines: text and HTML have the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cepheid.explain.quantities import moment, relative
from cepheid.explain.shown_tree import operators
from cepheid.plan.amounts import amount, count, duration, ratio, share
from cepheid.plan.nodes import STREAM, Plan
from cepheid.plan.profile import Profile, Replan
from cepheid.plan.reads import leaves
from cepheid.plan.text import settings
from cepheid.planner.choice import Propagation
from cepheid.planner.planned import Planned
from cepheid.statistics import Statistics

_PROPAGATION: Mapping[Propagation, str] = {
    "push": "every operator in every round",
    "lazy": "only in rounds in which a match can end",
    "pull": "left inputs only as needed",
    "pass-down": "left inputs only as needed, without records that no new event accepts",
}


@dataclass(frozen=True, slots=True)
class Rival:
    """A plan in the list of plans, by how many times it costs the winner's cost."""

    name: str
    cost: float
    times: float
    chosen: bool


def verdict(planned: Planned) -> str:
    """Why this plan: it is the cheapest, it is the only one, or the caller wants it."""
    name, cost = planned.winner.name, duration(planned.winner.cost)
    if planned.forced:
        why = "forced"
        cheaper = [c for c in planned.losers if c.cost < planned.winner.cost]
        if cheaper:
            least = min(cheaper, key=lambda c: c.cost)
            times = ratio(relative(planned.winner.cost, least.cost))
            why += f", {times} the cost of {least.name}"
    elif planned.losers:
        why = "the cheapest"
    else:
        why = "the only one"
    return f"{name}, {why}; estimated cost {cost} per window"


def rivals(planned: Planned) -> tuple[Rival, ...]:
    """The winner and those that it was chosen over, the cheapest first."""
    winner = planned.winner
    named = [(winner, True), *((loser, False) for loser in planned.losers)]
    named.sort(key=lambda pair: pair[0].cost)
    listed = [Rival(c.name, c.cost, relative(c.cost, winner.cost), won) for c, won in named]
    return tuple(listed)


def settings_lines(planned: Planned) -> list[tuple[str, str]]:
    """The settings of the whole plan: key, window, and how results move."""
    kinds = dict.fromkeys(choice.propagation for choice in planned.winner.choices)
    moving = [("propagation", f"{kind}, {_PROPAGATION[kind]}") for kind in kinds]
    return [*settings(planned.plan), *moving]


def statistics_lines(plan: Plan, statistics: Statistics) -> list[tuple[str, str]]:
    """The figures that the costs rest on, and those that had to be assumed."""
    if not (statistics.rates or statistics.selectivities or statistics.distinct):
        return [("assumed", "everything: there are no statistics, so defaults are used")]
    given = (
        ("rates", statistics.rates),
        ("selectivities", statistics.selectivities),
        ("distinct", statistics.distinct),
    )
    lines = [(name, _figures(figures)) for name, figures in given if figures]
    classes = dict.fromkeys(leaf.variable for leaf in leaves(plan) if leaf.variable != STREAM)
    missing = [name for name in classes if name not in statistics.rates]
    if missing:
        rates = "the rate of" if len(missing) == 1 else "the rates of"
        lines.append(("assumed", f"{rates} {', '.join(missing)}"))
    return lines


def _figures(figures: Mapping[str, float]) -> str:
    return ", ".join(f"{name}: {amount(value)}" for name, value in figures.items())


def run_lines(plan: Plan, profile: Profile) -> list[tuple[str, str]]:
    """The summary of the run."""
    rejected = f", {count(profile.rejected)} rejected" if profile.rejected else ""
    shed = f", {count(profile.shed)} dropped because of the limit" if profile.shed else ""
    lines = [
        ("events", f"{count(profile.events)}{rejected}{shed}"),
        ("matches", count(profile.matches)),
        ("rounds", f"{count(profile.rounds)}, {count(profile.idle)} of them idle"),
        ("engine time", duration(profile.seconds * 1e9)),
    ]
    if profile.sampling and profile.seconds:
        part = share(profile.sampling / profile.seconds)
        lines.append(("statistics", f"{duration(profile.sampling * 1e9)}, {part} of it"))
    if profile.compiling and profile.seconds:
        part = share(profile.compiling / profile.seconds)
        lines.append(("kernels", f"{duration(profile.compiling * 1e9)} to get ready, {part} of it"))
    if profile.partitions != 1:
        lines.append(("partitions", count(profile.partitions)))
    current = operators(plan)
    other = [p for node, p in profile.nodes.items() if node not in current and p.seconds]
    if other:
        seconds = duration(sum(p.seconds for p in other) * 1e9)
        noun = "operator" if len(other) == 1 else "operators"
        lines.append(("other plans", f"{seconds} in {len(other)} {noun} that this plan lacks"))
    return lines


def replan_text(plan: Plan, replan: Replan) -> tuple[str, str]:
    """A decision to change plans, or to stay: when, and what, how much and why."""
    when = f"round {replan.round:,}, at {moment(plan, replan.at)}"
    gain = f"predicted gain {ratio(replan.predicted)}"
    if not replan.installed:
        return when, f"{replan.before} stays; {replan.after}: {gain}; {replan.why}"
    seen = "not yet known" if replan.observed is None else ratio(replan.observed)
    return when, f"{replan.before} → {replan.after}: {gain}, observed {seen}; {replan.why}"
