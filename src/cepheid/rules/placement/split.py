"""Cuts groups of rules into pieces that share no steps, and makes groups of such pieces.

What a merged automaton shares is below its first nodes: rules that begin otherwise have nothing in
common but predicates. So a group is cut between them, and rules that begin alike are only cut where
they are much more than a part's share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cepheid.algebra.expressions import Attribute
from cepheid.engine.merged.dag import ROOT
from cepheid.engine.merged.group import RuleGroup, values_of
from cepheid.engine.merged.merge import TemplateRules, merge
from cepheid.engine.merged.subset import branch_places, subset
from cepheid.options import Placement
from cepheid.rules.placement.places import (
    EVERY,
    MOST_NODES,
    Ground,
    Load,
    Piece,
    Place,
    lanes,
    place,
    share,
)

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

EQUAL, BETWEEN = 1 / 100, 1 / 3
"""The assumed selectivity of an equality, and of a range."""
LUMP = 1.5
"""Rules with a common first step aren't cut up to this multiple of a part's share."""
FINE = 8
"""About how many pieces a part has, if the rules can be cut so finely."""


@dataclass(frozen=True)
class Division:
    """A group, and the rules of each piece by their numbers in the automaton."""

    group: RuleGroup
    load: Load
    rules: tuple[Ints, ...]


def divide(
    groups: Sequence[RuleGroup], ground: Ground, placement: Placement = "auto"
) -> tuple[Division, ...]:
    """Cut each group into as many pieces as help."""
    kinds = [_kinds(group) for group in groups]
    known = frozenset[str]().union(*(kind for group_kinds in kinds for kind in group_kinds))
    return tuple(
        _divide(group, group_kinds, known, _ways(group, ground, placement))
        for group, group_kinds in zip(groups, kinds, strict=True)
    )


def _ways(group: RuleGroup, ground: Ground, placement: Placement) -> int:
    """The most parts of a pass."""
    whole = Load(group.key, group.merged.reach, group.single, ())
    match placement:
        case "keys" | "one":
            return 1
        case "split":
            return ground.cores
        case "auto":
            idle = ground.cores if lanes(whole, ground) < ground.cores else 1
            return max(idle, -(-group.merged.graph.nodes // MOST_NODES))


def _divide(
    group: RuleGroup, kinds: Sequence[frozenset[str]], known: frozenset[str], ways: int
) -> Division:
    graph = group.merged.graph
    paths = _Paths.of(group)
    cost = np.append(0.0, _rates(group, kinds, known)[graph.predicate[1:]])
    rules: tuple[Ints, ...] = (np.arange(int(group.merged.begins[-1])),)
    if ways > 1 and len(paths.rule):
        rules = tuple(_cut(paths, paths.shares(cost), ways))
    pieces = tuple(_piece(group, paths, numbers, kinds, cost) for numbers in rules)
    return Division(group, Load(group.key, group.merged.reach, group.single, pieces), rules)


@dataclass(frozen=True)
class _Paths:
    """Paths through the graph: path i is of rule `rule[i]`, and is at `nodes[k][i]` after step k
    (at the root if it has no such step). Rules with different `start` share no step."""

    rule: Ints
    nodes: tuple[Ints, ...]
    start: Ints

    @staticmethod
    def of(group: RuleGroup) -> _Paths:
        graph = group.merged.graph
        rule = graph.rules.values.astype(np.int64)
        nodes = [np.repeat(np.arange(graph.nodes), np.diff(graph.rules.begins))]
        for _ in range(int(graph.depth.max())):
            nodes.append(graph.parent[nodes[-1]].astype(np.int64))  # the root is its own parent
        first = reduce(lambda low, step_nodes: np.where(step_nodes == ROOT, low, step_nodes), nodes)
        return _Paths(rule, tuple(nodes), _connected(first, rule, graph.nodes))

    def shares(self, cost: Floats) -> Floats:
        """The cost of each path, where paths through a node share its cost."""
        through = sum(np.bincount(nodes, minlength=len(cost)) for nodes in self.nodes)
        each = cost / np.maximum(through, 1)
        sums: Floats = np.sum([each[nodes] for nodes in self.nodes], axis=0)
        return sums


def _connected(first: Ints, rule: Ints, nodes: int) -> Ints:
    """The component of each path, as its least first node: a rule may have several paths, and they
    stay together."""
    least = np.arange(nodes)
    while True:
        least_of_rule = np.full(int(rule.max(initial=0)) + 1, nodes)
        np.minimum.at(least_of_rule, rule, least[first])
        lower = least.copy()
        np.minimum.at(lower, first, least_of_rule[rule])
        if (lower == least).all():
            return least[first]
        least = lower


def _cut(paths: _Paths, cost: Floats, ways: int) -> Iterable[Ints]:
    """Sort rules by what they share, and cut them into pieces: between rules that share nothing,
    and elsewhere only if they are much more than a part's share."""
    order = np.lexsort((paths.nodes[0], paths.start))
    start, rule, sums = paths.start[order], paths.rule[order], np.cumsum(cost[order])
    bounds = np.flatnonzero(np.diff(start, prepend=-1))
    ends = np.append(bounds[1:], len(order))
    whole = max(float(sums[-1]), np.finfo(float).tiny)
    begin, done = 0, 0.0
    for first, last in zip(bounds.tolist(), ends.tolist(), strict=True):
        inside = float(sums[last - 1]) - (float(sums[first - 1]) if first else 0.0)
        if inside > LUMP * whole / ways:
            if begin < first:
                yield np.unique(rule[begin:first])
            distinct = np.unique(rule[first:last], return_index=True)
            ordered = distinct[0][np.argsort(distinct[1], kind="stable")]
            yield from (np.sort(chunk) for chunk in np.array_split(ordered, ways) if len(chunk))
            begin, done = last, float(sums[last - 1])
        elif float(sums[last - 1]) - done >= whole / (FINE * ways):
            yield np.unique(rule[begin:last])
            begin, done = last, float(sums[last - 1])
    if begin < len(order):
        yield np.unique(rule[begin:])


def _piece(
    group: RuleGroup, paths: _Paths, rules: Ints, kinds: Sequence[frozenset[str]], cost: Floats
) -> Piece:
    graph = group.merged.graph
    chosen = np.isin(paths.rule, rules)
    nodes = np.unique(np.concatenate([step_nodes[chosen] for step_nodes in paths.nodes]))
    nodes = nodes[nodes != ROOT]
    waiting = np.repeat(np.arange(graph.nodes), np.diff(graph.enders.begins))
    enders = graph.enders.values[np.isin(waiting, nodes)]
    ended = np.repeat(np.arange(len(kinds)), np.diff(graph.endings.begins))
    ends = ended[np.isin(graph.endings.values, enders)]
    predicates = np.unique(np.concatenate((graph.predicate[nodes], ends))).tolist()
    read = frozenset[str]().union(*{kinds[p] for p in predicates})
    if group.counts_all:
        read = frozenset((EVERY,))
    return Piece(len(rules), float(cost[nodes].sum()), len(nodes), read)


# ── predicates ───────────────────────────────────────────────────────────────


def _kinds(group: RuleGroup) -> tuple[frozenset[str], ...]:
    """For each predicate, the row types that can satisfy it."""
    index, type_ = group.merged.index, group.query.schema.type
    every = frozenset((EVERY,))
    kinds = [every] * (len(index.atoms) - 1)
    for n, column in enumerate(group.merged.columns):
        match column.expression:
            case Attribute(name=name) if name == type_:
                exact = np.flatnonzero((index.columns == n) & (index.lows == index.highs))
                predicate = np.searchsorted(index.atoms, exact, "right") - 1
                values = values_of(group, column, index.lows[exact])
                for p, value in zip(predicate.tolist(), values, strict=True):
                    kinds[p] = frozenset((str(value),))
            case _:
                pass
    return tuple(kinds)


def _rates(group: RuleGroup, kinds: Sequence[frozenset[str]], known: frozenset[str]) -> Floats:
    """For each predicate, the share of rows that satisfy it."""
    index, type_ = group.merged.index, group.query.schema.type
    likely = np.where(index.lows == index.highs, EQUAL, BETWEEN)
    for n, column in enumerate(group.merged.columns):
        if isinstance(column.expression, Attribute) and column.expression.name == type_:
            likely[index.columns == n] = 1.0
    predicate = np.repeat(np.arange(len(kinds)), np.diff(index.atoms))
    logs = np.bincount(predicate, np.log(likely), minlength=len(kinds))
    rates: Floats = np.exp(logs) * np.array([share(kind, known) for kind in kinds])
    return rates


# ── passes ───────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class PlacedPass:
    """A pass over the events: its groups, one for each part of the rules. `apart` is the load of
    each group on its own, undivided."""

    place: Place
    ground: Ground
    parts: tuple[RuleGroup, ...]
    apart: tuple[Place, ...]


def passes_of(
    groups: Sequence[RuleGroup], ground: Ground, placement: Placement = "auto"
) -> tuple[PlacedPass, ...]:
    divisions = divide(groups, ground, placement)
    loads = [division.load for division in divisions]
    apart = place(loads, ground, "keys")
    return tuple(
        PlacedPass(
            placed, ground, _parts(placed, divisions), tuple(apart[n] for n in placed.groups)
        )
        for placed in place(loads, ground, placement)
    )


def _parts(at: Place, divisions: Sequence[Division]) -> tuple[RuleGroup, ...]:
    if len(at.groups) == len(at.parts) == 1:
        return (divisions[at.groups[0]].group,)
    return tuple(_part(at, part, divisions) for part in at.parts)


def _part(at: Place, part: Iterable[tuple[int, int]], divisions: Sequence[Division]) -> RuleGroup:
    """Rules of one group are cut out of its automaton; rules of several groups are merged."""
    chosen: dict[int, list[Ints]] = {}
    for division, piece in part:
        chosen.setdefault(division, []).append(divisions[division].rules[piece])
    branches: list[TemplateRules] = []
    numbers: list[Ints] = []
    for division, pieces in chosen.items():
        group, rules = divisions[division].group, np.sort(np.concatenate(pieces))
        for n, places in branch_places(group.merged, rules):
            branches.append(group.merged.branches[n].of(places))
            numbers.append(group.numbers[n][places])
    if len(chosen) == 1:
        return RuleGroup(subset(group.merged, rules), tuple(numbers), at.key)
    merged, refused = merge(branches)
    assert merged is not None and not refused, "they have been merged before"
    return RuleGroup(merged, tuple(numbers), at.key)
