"""What a plan needs from its engine: how far back, by which clock, in what rounds."""

from __future__ import annotations

from cepheid.algebra.expressions import Attribute
from cepheid.algebra.patterns import moves_end
from cepheid.algebra.query import Clock
from cepheid.engine.automaton.settings import Settings
from cepheid.engine.automaton.source.numbered import can_be_numbered
from cepheid.engine.operators.base import FOREVER
from cepheid.language.ast import Exactly
from cepheid.plan.nodes import (
    Automaton,
    Filter,
    Kseq,
    LeafNode,
    Node,
    Plan,
    Run,
    Stacks,
    has_automaton,
    walk,
)

ROUND = 4096
"""Rows of a round: small enough for intermediate results to stay in the processor's caches,
large enough for a round's fixed cost not to count."""

MOST_ROWS = 8 * ROUND
"""Rows of the longest rounds: more wouldn't be noticed in time, and plans change between rounds."""


def longest(plan: Plan) -> int | None:
    """Events that last as long as this take part in nothing. Joins would find that out by
    themselves, but a match may be a single event. They still stand between the events of a run,
    and what `=> !Q` forbids may be longer than the window."""
    if plan.schema.start is None or plan.window is None:
        return None
    nodes = (node for root in plan.alternatives for node in walk(root))
    return None if any(_looks_at_all(node) for node in nodes) else plan.window.size


def _looks_at_all(node: Node) -> bool:
    match node:
        case Automaton() | Run():
            return True
        case Kseq():
            return isinstance(node.quantifier, Exactly)
        case _:
            return False


def round_size(plan: Plan) -> int:
    """Automata lay their rows out anew for every round: the fewer, the better. Stacks alone have
    no intermediate results to keep in the caches."""
    if has_automaton(plan):
        return FOREVER
    return 4 * ROUND if all(isinstance(r, Stacks) for r in plan.alternatives) else ROUND


def next_round_size(size: int, least: int, made: int) -> int:
    """How many rows the next round has, if one of this size has made so many records. Where they
    are few, caches hold those of more rows, and a round costs as much as matching a thousand."""
    if size > MOST_ROWS:
        return size
    if made <= size // 4:
        return min(2 * size, MOST_ROWS)
    return size if made <= size else max(size // 2, least)


def in_time(plan: Plan) -> bool:
    return plan.window is None or plan.window.clock is Clock.TIME


def tie(plan: Plan) -> Attribute | None:
    """The tie-break column, where its values and not only their order count: ends are moved."""
    tie = plan.schema.tie
    nodes = (node for root in plan.alternatives for node in walk(root))
    moved = any(moves_end(node.pattern) for node in nodes if isinstance(node, Automaton))
    return Attribute("", tie, plan.schema.columns[tie]) if tie is not None and moved else None


def reach(plan: Plan) -> int:
    """The window; matches of one event need none, and nothing is kept for them."""
    if plan.window is not None:
        return plan.window.size
    nodes = (node for root in plan.alternatives for node in walk(root))
    return 1 if all(isinstance(node, LeafNode | Filter) for node in nodes) else FOREVER


def matches_at_once(plan: Plan) -> bool:
    """Whether an engine can match all events of finite data at once, numbered key by key, if every
    event has a key and those of a key are all at different positions."""
    (root, *others) = plan.alternatives
    if others or not isinstance(root, Automaton) or plan.limit is not None:
        return False
    if plan.selection is not None and plan.selection.most is not None:
        return False
    if any(leaf.filters or plan.variables[leaf.variable].types for leaf in root.leaves):
        return False
    if any(len({None if a is None else a.name for a in part}) > 1 for part in root.key):
        return False
    lasting = plan.schema.start is not None
    settings = Settings(reach(plan) < FOREVER, in_time(plan), lasting)
    return can_be_numbered(settings.program(root))
