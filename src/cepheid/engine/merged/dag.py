"""The paths of all rules, merged into one graph (Cayuga 4.2).

A node is a prefix: the node before it, the predicate that its event satisfies, the links of that
event to earlier ones, and what its instances wait for and are ended by. Rules with equal prefixes
share their nodes, so the graph is a forest below one root; a node in which rules end has no
instances. All this is columns: a node is a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from cepheid.engine.arrays.columns import Column
from cepheid.engine.merged.intervals import Boxes
from cepheid.engine.merged.paths import Link, Path, common_key

Ints: TypeAlias = NDArray[np.int64]
Short: TypeAlias = NDArray[np.int32]
"""The type of node numbers: 32 bits, so that more of them fit into the cache."""

ROOT = 0
OPERATORS = {"<": 1, "=": 2, "<=": 3, ">": 4, "<>": 5, ">=": 6}
"""Comparisons as sums of 1, 2 and 4: holds for less, equal, greater."""
NEVER = -1
_ODD = np.uint64(0x9E3779B97F4A7C15)


T = TypeVar("T")


class Numbers(Generic[T]):
    """Numbers distinct things in the order in which they come."""

    def __init__(self, *known: T) -> None:
        self._of: dict[T, int] = {thing: n for n, thing in enumerate(known)}

    def number(self, thing: T) -> int:
        return self._of.setdefault(thing, len(self._of))

    def __len__(self) -> int:
        return len(self._of)

    def __iter__(self) -> Iterator[T]:
        return iter(self._of)


Shape: TypeAlias = tuple[int, ...]
"""The columns for which a predicate has intervals, in order."""


class Predicates:
    """Distinct conjunctions of intervals by shape: the bytes of all bounds, lowest and highest by
    column, map to a predicate's number."""

    def __init__(self) -> None:
        self.columns: Numbers[Column] = Numbers()
        self._shapes: dict[Shape, dict[bytes, int]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def of(self, boxes: Boxes) -> Ints:
        """The number of each box."""
        order = np.array([self.columns.number(c) for c in boxes.columns], np.int64)
        sort = np.argsort(order)
        bounds = np.stack([boxes.low[:, sort], boxes.high[:, sort]], axis=2)
        shapes, place = distinct(boxes.bound[:, sort].astype(np.int64))
        groups = Ragged.grouped(place, np.arange(len(place)), len(shapes))
        numbers = np.zeros(len(place), np.int64)
        for n, shape in enumerate(shapes):
            members = groups.values[groups.begins[n] : groups.begins[n + 1]]
            bound = np.flatnonzero(shape)
            rows = bounds[np.ix_(members, bound)].reshape(len(members), 2 * len(bound))
            numbers[members] = self._numbered(tuple(order[sort][bound].tolist()), rows)
        return numbers

    def _numbered(self, shape: Shape, rows: Ints) -> Ints:
        known = self._shapes.setdefault(shape, {})
        # Rules of a template are often alike: what is left is looked at one by one.
        kinds, place = distinct(rows)
        whole, size = kinds.tobytes(), kinds.itemsize * kinds.shape[1]
        numbers = []
        for n in range(len(kinds)):
            number = known.setdefault(whole[n * size : (n + 1) * size], self._count)
            self._count += number == self._count
            numbers.append(number)
        numbered: Ints = np.array(numbers, np.int64)[place]
        return numbered

    @cached_property
    def settled(self) -> Ints:
        """The final number of each predicate, by the number that `of` returned. Predicates with
        equal values get neighboring numbers: an event that satisfies one of them likely satisfies
        the others, and finds them in the cache."""
        alike = np.zeros(len(self), np.uint64)
        for shape, numbers, bounds in self._by_shape():
            for k, column in enumerate(shape):
                low, high = bounds[:, k, 0], bounds[:, k, 1]
                mixed = (low.astype(np.uint64) + np.uint64(column << 48)) * _ODD
                alike[numbers] += np.where(low == high, mixed ^ mixed >> np.uint64(29), 0)
        settled = np.empty(len(self), np.int64)
        settled[np.argsort(alike, kind="stable")] = np.arange(len(self))
        return settled

    def by_shape(self) -> Iterator[tuple[Shape, Ints, Ints]]:
        """The final numbers of the predicates, and for each predicate and column the lowest and
        highest value."""
        for shape, numbers, bounds in self._by_shape():
            yield shape, self.settled[numbers], bounds

    def _by_shape(self) -> Iterator[tuple[Shape, Ints, Ints]]:
        for shape, known in self._shapes.items():
            bounds = np.frombuffer(b"".join(known), np.int64)
            numbers = np.fromiter(known.values(), np.int64, len(known))
            yield shape, numbers, bounds.reshape(len(known), len(shape), 2)


def distinct(rows: Ints) -> tuple[Ints, Ints]:
    """The distinct rows, sorted, and the place of each row among them."""
    if not rows.shape[1]:
        return rows[:1], np.zeros(len(rows), np.int64)
    bytes_ = np.ascontiguousarray(rows, ">i8")  # so that they compare as numbers do, if not below 0
    whole = bytes_.view(np.dtype((np.void, bytes_.itemsize * rows.shape[1]))).reshape(-1)
    _, first, place = np.unique(whole, return_index=True, return_inverse=True)
    return rows[first], place.reshape(-1)


@dataclass(frozen=True)
class Ragged:
    """Lists of various lengths: list i is `values[begins[i]:begins[i + 1]]`."""

    begins: Short
    values: Short

    @staticmethod
    def of(lists: Iterable[Sequence[int]]) -> Ragged:
        held = list(lists)
        begins = np.zeros(len(held) + 1, np.int32)
        np.cumsum([len(values) for values in held], out=begins[1:])
        return Ragged(begins, np.array([v for values in held for v in values], np.int32))

    @staticmethod
    def grouped(groups: Ints, values: Ints, count: int) -> Ragged:
        """A list for each group, with its values in order."""
        order = np.argsort(groups, kind="stable")
        begins = np.zeros(count + 1, np.int32)
        np.cumsum(np.bincount(groups, minlength=count), out=begins[1:])
        return Ragged(begins, values[order].astype(np.int32))

    def chosen(self, lists: Ints) -> Ragged:
        """Select these lists, in this order."""
        lengths = np.diff(self.begins)[lists]
        begins = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
        at = np.repeat(self.begins[lists] - begins[:-1], lengths) + np.arange(begins[-1])
        return Ragged(begins, self.values[at])


@dataclass(frozen=True)
class TemplatePaths:
    """The rules of one template as paths through the graph: path i is of rule `rule[i]`, and takes
    predicate `steps[k][i]` at step k. A rule may have several paths, since a condition may have
    alternatives. Row i of `ends[k]` lists the predicates that end its instances before step k, one
    for each forbidden event; NEVER pads the row."""

    path: Path
    rule: Ints
    steps: tuple[Ints, ...]
    ends: tuple[tuple[Ints, ...], ...]
    window: Ints


class _Links:
    """Sets of links, and the keys of lookups in indexes of instances, as numbers."""

    def __init__(self, columns: Numbers[Column]) -> None:
        self.columns = columns
        self.sets: Numbers[tuple[tuple[int, int, int, int], ...]] = Numbers(())
        self.keys: Numbers[tuple[tuple[int, int], ...]] = Numbers(())
        self.probes: Numbers[tuple[int, ...]] = Numbers(())

    def links(self, links: Iterable[Link]) -> int:
        rows = (
            (
                self.columns.number(link.column),
                OPERATORS[link.operator],
                link.step,
                self.columns.number(link.other),
            )
            for link in links
        )
        return self.sets.number(tuple(sorted(rows)))

    def key(self, key: Key) -> int:
        return self.keys.number(tuple((step, self.columns.number(c)) for step, c in key))

    def probe(self, key: Key, links: Sequence[Link]) -> int:
        """The columns of the current event that must equal the key, in its order."""
        equal = {(link.step, link.other): link.column for link in links if link.operator == "="}
        return self.probes.number(tuple(self.columns.number(equal[place]) for place in key))


Key: TypeAlias = tuple[tuple[int, Column], ...]


@dataclass(frozen=True)
class Graph:
    """Nodes by their numbers; the root is 0, and has no event.

    `parent`, `depth`, `predicate` and `links` say how a node is entered, `probe` by which columns
    of the event its parent's instances are looked up; `key` by what its own instances are.
    `reach` is the longest window of the rules below it, `restless` is set where only the next
    position can bring an instance further. `rules` are those that end here. `edges` are the nodes
    that a predicate enters; `endings` the enders that it is, and `enders` those of each node.
    """

    parent: Short
    depth: Short
    predicate: Short
    links: Short
    probe: Short
    key: Short
    strict: NDArray[np.bool_]
    reach: Ints
    restless: NDArray[np.bool_]
    rules: Ragged
    edges: Ragged
    endings: Ragged
    enders: Ragged
    ender_links: Short
    ender_probe: Short
    link_sets: Ragged
    keys: Ragged
    probes: Ragged

    @property
    def nodes(self) -> int:
        return len(self.parent)


def restless_nodes(parent: Ints, strict: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Nodes that have successors, all of them strict."""
    restless = np.zeros(len(parent), np.bool_)
    restless[parent[1:]] = True
    restless[parent[1:][~strict[1:]]] = False
    return restless


def merged(members: Sequence[TemplatePaths], predicates: Predicates) -> Graph:
    """One graph of all paths."""
    builder = _GraphBuilder(members, predicates)
    for step in range(max(len(member.steps) for member in members)):
        builder.level(step)
    return builder.graph()


class _GraphBuilder:
    """Builds the graph level by level: paths that are at the same node and continue alike go to the
    same node."""

    def __init__(self, members: Sequence[TemplatePaths], predicates: Predicates) -> None:
        self.members = members
        self.predicates = predicates
        self.links = _Links(predicates.columns)
        self.enders: Numbers[tuple[int, int, int]] = Numbers()
        self.width = max(
            (sum(end.shape[1] for end in ends) for m in members for ends in m.ends if ends),
            default=0,
        )
        self.at = [np.zeros(len(member.rule), np.int64) for member in members]
        root = np.full((1, 8 + self.width), NEVER)
        root[0, :8] = (NEVER, 0, 0, 0, 0, 0, 0, 0)
        self.tables = [root]
        self.count = 1
        self.finals: list[tuple[Ints, Ints]] = []
        self.reaches: list[tuple[Ints, Ints]] = []

    def level(self, step: int) -> None:
        going = [n for n, member in enumerate(self.members) if step < len(member.steps)]
        rows = [self._rows(n, step) for n in going]
        kinds, place = distinct(np.concatenate(rows))
        self.tables.append(kinds)
        ends = np.cumsum([len(part) for part in rows])
        for n, part in zip(going, np.split(place + self.count, ends[:-1]), strict=True):
            member = self.members[n]
            self.at[n] = part
            self.reaches.append((part, member.window[member.rule]))
            if step == len(member.steps) - 1:
                self.finals.append((part, member.rule))
        self.count += len(kinds)

    def _rows(self, n: int, step: int) -> Ints:
        """The next step of each path of a member: predicate, parent, links, probe, key, strict,
        final, depth, and the predicates that end it there."""
        member = self.members[n]
        path_step = member.path.steps[step]
        key = common_key(path_step.forbidden, path_step) if step else ()
        rows = np.full((len(member.rule), 8 + self.width), NEVER)
        rows[:, 0], rows[:, 1] = self.predicates.settled[member.steps[step]], self.at[n]
        rows[:, 2], rows[:, 3] = (
            self.links.links(path_step.links),
            self.links.probe(key, path_step.links),
        )
        rows[:, 4] = 0
        rows[:, 5], rows[:, 6], rows[:, 7] = path_step.strict, True, step
        if step + 1 < len(member.steps):
            after = member.path.steps[step + 1]
            waits = common_key(after.forbidden, after)
            rows[:, 4], rows[:, 6] = self.links.key(waits), False
            begin = 8
            for forbidden, ends in zip(after.forbidden, member.ends[step + 1], strict=True):
                links = self.links.links(forbidden.links)
                probe = self.links.probe(waits, forbidden.links)
                kinds, place = np.unique(ends, return_inverse=True)
                known = [
                    NEVER
                    if kind == NEVER
                    else self.enders.number((int(self.predicates.settled[kind]), links, probe))
                    for kind in kinds.tolist()
                ]
                numbers = np.array(known, np.int64)[place.reshape(ends.shape)]
                rows[:, begin : begin + ends.shape[1]] = numbers
                begin += ends.shape[1]
            rows[:, 8:] = np.sort(rows[:, 8:], axis=1)
        return rows

    def graph(self) -> Graph:
        table = np.concatenate(self.tables)
        nodes, predicates = len(table), len(self.predicates)
        reach = np.zeros(nodes, np.int64)
        for node, window in self.reaches:
            np.maximum.at(reach, node, window)
        final = np.concatenate([np.column_stack(pair) for pair in self.finals])
        final = distinct(final)[0]
        inner = np.arange(1, nodes)
        enders = np.array(list(self.enders), np.int64).reshape(-1, 3)
        endings = table[:, 8:]
        at, places = np.nonzero(endings != NEVER)
        return Graph(
            parent=table[:, 1].astype(np.int32),
            depth=table[:, 7].astype(np.int32),
            predicate=table[:, 0].astype(np.int32),
            links=table[:, 2].astype(np.int32),
            probe=table[:, 3].astype(np.int32),
            key=table[:, 4].astype(np.int32),
            strict=table[:, 5] == 1,
            reach=reach,
            restless=restless_nodes(table[:, 1], table[:, 5] == 1),
            rules=Ragged.grouped(final[:, 0], final[:, 1], nodes),
            edges=Ragged.grouped(table[inner, 0], inner, predicates),
            endings=Ragged.grouped(enders[:, 0], np.arange(len(enders)), predicates),
            enders=Ragged.grouped(at, endings[at, places], nodes),
            ender_links=enders[:, 1].astype(np.int32),
            ender_probe=enders[:, 2].astype(np.int32),
            link_sets=Ragged.of([v for row in links for v in row] for links in self.links.sets),
            keys=Ragged.of([v for place in key for v in place] for key in self.links.keys),
            probes=Ragged.of(self.links.probes),
        )
