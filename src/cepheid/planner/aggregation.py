"""How answers are made: their matches are counted, or found and folded, whichever is cheaper."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cepheid.algebra.answer_shape import AnswerWindow
from cepheid.algebra.query import BoundQuery, Role
from cepheid.answers.counted.chain_walks import ChainWalk
from cepheid.answers.counted.countable import CountedBranches, Counting, Way, steps_of, ways
from cepheid.answers.counted.counting_automaton import NotCounted
from cepheid.answers.counted.neighbor_pair import NeighborPair
from cepheid.answers.counted.step_rows import step_classes
from cepheid.language.ast import Mode
from cepheid.language.group_clause import WindowKind
from cepheid.plan.amounts import duration
from cepheid.plan.nodes import LeafNode
from cepheid.planner.cost.figures import Figures, figures_of
from cepheid.planner.cost.flows import power
from cepheid.planner.planned import Planned
from cepheid.planner.search import search
from cepheid.statistics import Statistics

READ = 30.0
"""Nanoseconds to read an event that is counted, and to fold what it comes to."""
EDGE = 3.0
"""Nanoseconds to move partial matches along an edge of a counting automaton."""
RESULT = 60.0
"""Nanoseconds to fold a record that a walk has found."""
LEVEL = 10.0
"""Nanoseconds at each level of a tree of compared values, of its events."""
VISIT = 1.5
"""Nanoseconds of a walk at an event."""
RECORD = 1.5
"""Nanoseconds to look at a record of a walk, and at each condition on it."""
FOLD = 18.0
"""Nanoseconds to fold a match that was found."""
GROUP = 60.0
"""Nanoseconds to find its group. `benchmarks.counting` has what these come to."""


@dataclass(frozen=True)
class Aggregation:
    """How answers are made. Without a `way`, matches are found: because of the `reason`, or since
    that is cheaper. Costs are nanoseconds per window of time."""

    way: Way | None
    cost: float
    enumerated: float
    reason: str | None = None

    def text(self) -> str:
        """In words."""
        folded = "enumerated, every match is found and folded into its group"
        if self.reason is not None:
            return f"{folded}: {self.reason}"
        cost, enumerated = duration(self.cost), duration(self.enumerated)
        match self.way:
            case None:
                return f"{folded}: {enumerated} per window, counting would take {cost}"
            case Counting():
                how = "counted from the events, no match is found"
            case NeighborPair():
                how = "counted from the events, with a tree of the values that are compared"
            case ChainWalk() as walk:
                how = f"counted in pairs, from each {walk.steps[0]} on"
            case CountedBranches(branches):
                how = f"counted in {len(branches)} branches, each by itself"
        return f"{how}: {cost} per window, enumerating {enumerated}"


def aggregate(query: BoundQuery, planned: Planned, *, prompt: bool) -> Aggregation:
    """How answers are made of whole data; if they are wanted as time passes (`prompt`), every
    answer needs a round over the events of the window.

    Saved state depends on the way, so a query that continues must have the way it had: then the
    choice is made without statistics.
    """
    assert query.answers is not None
    if prompt and planned.statistics != Statistics():
        planned = search(query, Statistics(), limit=planned.plan.limit)
    fold = FOLD + GROUP * bool(query.answers.groups)
    enumerated = planned.winner.cost + fold * _matches(planned)
    try:
        rounds = _rounds(query, planned) if prompt else 1.0
        choices = ways(query)
        for way in choices:
            step_classes(query, planned.plan, steps_of(way))
    except NotCounted as reason:
        return Aggregation(None, math.inf, enumerated, str(reason))
    figures = figures_of(query, planned.statistics)
    cost, way = min(
        ((_cost(way, query, figures) * rounds, way) for way in choices), key=lambda pair: pair[0]
    )
    if planned.forced or cost <= enumerated:
        return Aggregation(way, cost, enumerated)
    return Aggregation(None, cost, enumerated)


def _rounds(query: BoundQuery, planned: Planned) -> float:
    """How often an event is counted."""
    assert query.answers is not None
    if planned.plan.limit is not None:
        raise NotCounted("the limit is on the events that matches may need")
    match query.answers.window:
        case None:
            raise NotCounted("no time ends a group")
        case AnswerWindow(WindowKind.TUMBLE | WindowKind.HOP, size, slide):
            step = slide or size
        case _:
            raise NotCounted("any event may complete an answer, and counting is done in rounds")
    return 1.0 if query.window is None else 1.0 + query.window.size / step


def _matches(planned: Planned) -> float:
    """Matches per window."""
    return sum(planned.estimates[root].rows for root in dict.fromkeys(planned.plan.alternatives))


def _cost(way: Way, query: BoundQuery, figures: Figures) -> float:
    match way:
        case Counting(automaton):
            events = {step: _events(step, query, figures) for step in automaton.steps}
            edges = sum(events[automaton.steps[edge.step]] for edge in automaton.shape.edges)
            return READ * sum(events.values()) + EDGE * edges
        case NeighborPair(walk):
            events = {step: _events(step, query, figures) for step in walk.steps}
            deep = math.log2(2 + sum(events.values()))
            compared = events[walk.steps[way.step]] + events[walk.steps[way.step + 1]]
            return READ * sum(events.values()) + LEVEL * deep * compared
        case ChainWalk():
            return _walk_cost(way, query, figures)
        case CountedBranches(branches):
            return sum(_cost(of_branch, branch.query, figures) for branch, of_branch in branches)


def _walk_cost(walk: ChainWalk, query: BoundQuery, figures: Figures) -> float:
    """A walk meets the events of its key; a state with a live event has a record for each."""
    negated = [variable for variable, _ in walk.negations]
    events = {step: _events(step, query, figures) for step in (*walk.steps, *negated)}
    keys = sum(figures.values(walk.steps[0], part.columns[walk.steps[0]]) for part in query.key)
    share = power(-keys)
    each = VISIT * sum(events.values())
    for step, variable in enumerate(walk.steps):
        live = walk.live_before(step)
        if live is not None:
            tests = len(walk.conditions_at(step))
            records = events[walk.steps[live]] * share / 2
            each += events[variable] * records * RECORD * (1 + tests)
        if walk.live[step] == step and variable in walk.loops:
            tests = len(walk.conditions_of_loop(step))
            records = _last_elements(walk, step, events[variable] * share)
            each += events[variable] * records * RECORD * (1 + tests)
    if walk.pairs:
        each += RESULT * _results(walk, events, share)
    return READ * sum(events.values()) + events[walk.steps[0]] * share * each


def _last_elements(walk: ChainWalk, step: int, events: float) -> float:
    """How many events are the last elements of groups. A group that must take what it can leaves
    its last element, and groups that have come to the same one go on as one."""
    mode = walk.loops[walk.steps[step]]
    if mode is Mode.SUBSETS:
        return events / 2
    return 1.0 if step == 0 or (step == 1 and not mode.independent) else math.log2(2 + events)


def _results(walk: ChainWalk, events: dict[str, float], share: float) -> float:
    """Records that a walk from one anchor finds; fewer, if events agree on what is read."""
    ends = events[walk.steps[-1]] * share if walk.forwards else 1.0
    return ends * (1.0 if walk.kept is None else events[walk.kept] * share / 2)


def _events(variable: str, query: BoundQuery, figures: Figures) -> float:
    filters = (
        c.expression for c in query.where if c.role is Role.CLASS and c.variables == (variable,)
    )
    return power(figures.events(LeafNode(variable, tuple(filters))))
