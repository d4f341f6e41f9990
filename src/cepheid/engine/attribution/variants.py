"""Events dealt to the variants of a query: one run for rules that take different events.

Rules of a template whose parameters decide which events are taken, such as `p.amount > :low` on
the elements of a group, can't share the matches of one query. They share a run of it nonetheless:
each event is copied to the *variants*, the distinct values of those parameters, that can take it,
and the variant is one more part of the key. Then every variant has a stream of its own, and
parameters are columns.

To copy all events to all variants would be as expensive as a run for each. So a variable that every
match binds, and whose conditions few events satisfy, is the *anchor*: other events are copied only
to variants that have an anchor with the same key, no further away in time than a match reaches, and
on the side on which the pattern has them. What a match depends on, forbidden events too, lies
within that distance of each of its events. If few events satisfy another variable's own conditions,
those are copied without looking for anchors.
In a stream the anchor may come later, so there every variant gets all events that it can take.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.expressions import Expr
from cepheid.algebra.query import Variable
from cepheid.algebra.types import Schema
from cepheid.engine.arrays.vector import seen
from cepheid.engine.attribution.pairs import Near, holding, nearest
from cepheid.engine.attribution.parameters import RuleParameters
from cepheid.engine.rows.classes import classify
from cepheid.engine.rows.clock import times, unplaced
from cepheid.plan.nodes import LeafNode

Ints: TypeAlias = NDArray[np.int64]

VARIANT = "__variant"
"""The column with the number of a row's variant."""

MOST_ROWS = 1 << 20
"""About how many copies of events are made at once: for more, the variants are divided."""


def parameter_column(name: str) -> str:
    return f"__variant {name}"


def taken_column(variable: str) -> str:
    """The column that says whether the event satisfies the variant's conditions on the variable."""
    return f"__variant takes {variable}"


@dataclass(frozen=True)
class VariantClass:
    """The events of a variable: those that satisfy the constant conditions of `leaf`. Of these, a
    variant takes the ones that satisfy `conditions`, over columns of the event and parameters.
    `anchor`: every match binds such an event. With `every`, events that don't satisfy the
    conditions are copied as well, since they decide where a group ends. `item` is the item of the
    sequence that the pattern is: events of an earlier one come before those of a later one. None if
    nothing is known of their order."""

    leaf: LeafNode
    conditions: tuple[Expr, ...]
    anchor: bool
    every: bool
    item: int | None

    def comes_before(self, other: VariantClass) -> bool:
        """Whether its events come before those of the other in every match."""
        return self.item is not None and other.item is not None and self.item < other.item


@dataclass(frozen=True)
class Variants:
    """The variants' parameters, the classes of the query, and what limits the events that a variant
    needs: the key's columns by variable, and the time that a match reaches, if it has a limit, by
    variant. `schema` is that of the events as they come, `parameters` are those that become
    columns."""

    rows: RuleParameters
    classes: tuple[VariantClass, ...]
    variables: Mapping[str, Variable]
    schema: Schema
    key: tuple[Mapping[str, str], ...]
    reach: Ints | None
    required: tuple[str, ...]
    parameters: tuple[str, ...]

    @property
    def farthest(self) -> int | None:
        """How far a match of any variant reaches."""
        return None if self.reach is None else int(self.reach.max())

    def dealt(self, table: pa.Table) -> Iterator[pa.Table]:
        """Copies of the events, which must be in order, with the columns of their variants; each
        table has some of the variants."""
        table = table.select(self.required)
        dead = unplaced(table, self.schema.time, None)
        table = table if dead is None else table.filter(pc.invert(dead))
        if table.num_rows:
            batch = _one_batch(table)
            stretch = _ClassifiedBatch(self, batch)
            stretch.keep_possible()
            yield from _dealt(stretch, 0, self.rows.length)

    def dealt_as_they_come(self, table: pa.Table) -> Iterator[pa.Table]:
        """Copies of events of which more will follow: tables in their order, at least one. Whether
        an anchor comes later isn't known, so that a variant gets all events that it can take."""
        table = table.select(self.required)
        size = max(1, MOST_ROWS // max(1, self.rows.length))
        for begin in range(0, max(1, table.num_rows), size):
            stretch = _ClassifiedBatch(self, _one_batch(table.slice(begin, size)))
            conditions = (member.class_.conditions for member in stretch.members)
            near = [
                nearest(of_member, self.rows, member.batch)
                for of_member, member in zip(conditions, stretch.members, strict=True)
            ]
            pairs = [_class_pairs(m, n, self.rows, 0) for m, n in _each(stretch, near)]
            yield _copied(stretch, pairs)

    def schema_of(self, events: pa.Schema) -> pa.Schema:
        """The columns of dealt events."""
        (none,) = self.dealt_as_they_come(events.empty_table())
        return none.schema

    @property
    def digest(self) -> str:
        """The same for the same variants with the same numbers: saved events have these."""
        digest = hashlib.blake2b(digest_size=16)
        for name in sorted(self.rows.parameters):
            digest.update(repr((name, self.rows.parameters[name].to_pylist())).encode())
        return digest.hexdigest()


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    columns = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _ordered(numbers: Ints) -> Ints:
    """The stable order of numbers from 0 on; small ones are sorted in linear time."""
    small = np.uint16 if numbers.max(initial=0) < 1 << 16 else np.int64
    return np.argsort(numbers.astype(small), kind="stable")


@dataclass(frozen=True)
class _ClassRows:
    """The rows of a class, each with the code of its key, in the order of key and row."""

    class_: VariantClass
    rows: Ints
    keys: Ints
    batch: pa.RecordBatch

    def places(self, keys: Ints, rows: Ints, size: int) -> Ints:
        """Where in the class the first of these rows or later ones of these keys are; `size` is the
        number of all rows."""
        places = self.keys * (size + 1) + self.rows
        return np.searchsorted(places, keys * (size + 1) + rows, "left")

    def where(self, mask: NDArray[np.bool_]) -> _ClassRows:
        batch = self.batch.filter(pa.array(mask))
        return _ClassRows(self.class_, self.rows[mask], self.keys[mask], batch)


class _ClassifiedBatch:
    """The events, classified once for all variants."""

    def __init__(self, variants: Variants, batch: pa.RecordBatch) -> None:
        self.variants, self.batch = variants, batch
        self.times = times(batch.column(variants.schema.time))
        leaves = [class_.leaf for class_ in variants.classes]
        type_ = variants.schema.type
        classified = classify(batch, leaves, variants.variables, type_, variants.key)
        codes = self._codes()
        self.members = [
            self._member(class_, classified.rows[mask], codes)
            for class_, mask in zip(variants.classes, classified.masks, strict=True)
        ]

    def _member(self, class_: VariantClass, rows: Ints, codes: Mapping[str, Ints]) -> _ClassRows:
        keys = np.zeros(len(rows), np.int64)
        for part in self.variants.key:
            column = codes[part[class_.leaf.variable]]
            keys = keys * (1 + int(column.max(initial=0))) + column[rows]
        order = _ordered(keys)
        return _ClassRows(class_, rows[order], keys[order], self.batch.take(pa.array(rows[order])))

    def first(
        self, member: _ClassRows, other: _ClassRows, at: Ints, reach: Ints | int | None
    ) -> Ints:
        """Where in `other` the rows begin on which a match with these rows of `member` can depend,
        if it reaches so far."""
        low, moments = np.zeros_like(at), self.times[member.rows[at]]
        if member.class_.comes_before(other.class_):
            low = np.searchsorted(self.times, moments, "left")
        elif reach is not None:
            low = np.searchsorted(self.times, moments - reach, "left")
        return other.places(member.keys[at], low, len(self.times))

    def last(
        self, member: _ClassRows, other: _ClassRows, at: Ints, reach: Ints | int | None
    ) -> Ints:
        """Where they end."""
        high, moments = np.full_like(at, len(self.times)), self.times[member.rows[at]]
        if other.class_.comes_before(member.class_):
            high = np.searchsorted(self.times, moments, "right")
        elif reach is not None:
            high = np.searchsorted(self.times, moments + reach, "right")
        return other.places(member.keys[at], high, len(self.times))

    def keep_possible(self) -> None:
        """Drop the rows that no match of any variant can depend on: those that have no event near
        them of a variable that every match binds."""
        bound = [n for n, member in enumerate(self.members) if member.class_.anchor]
        for n in sorted(bound, key=lambda n: len(self.members[n].rows)):
            needed = self.members[n]
            for other, member in enumerate(self.members):
                if other != n and len(needed.rows) < len(member.rows):
                    every = np.arange(len(member.rows))
                    begins = self.first(member, needed, every, self.variants.farthest)
                    ends = self.last(member, needed, every, self.variants.farthest)
                    self.members[other] = member.where(ends > begins)

    def _codes(self) -> dict[str, Ints]:
        """A number for each value of the key's columns; the columns of one part share them."""
        codes: dict[str, Ints] = {}
        for part in self.variants.key:
            names = sorted(set(part.values()))
            kinds = self.variants.schema.columns
            values = [seen(name, self.batch.column(name), kinds[name]) for name in names]
            floats = pa.types.is_floating(values[0].type)
            whole = pa.chunked_array([pc.add(v, 0.0) if floats else v for v in values])
            numbers = whole.combine_chunks().dictionary_encode().indices
            known = pc.fill_null(numbers.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
            codes |= dict(zip(names, np.split(known, len(names)), strict=True))
        return codes


# ── pairs of an event and a variant ──────────────────────────────────────────


@dataclass(frozen=True)
class _Pairs:
    """Rows of the events and variants, and whether the variant's conditions hold there."""

    rows: Ints
    variants: Ints
    holds: NDArray[np.bool_]


def _dealt(stretch: _ClassifiedBatch, begin: int, end: int) -> Iterator[pa.Table]:
    """The copies for the variants from `begin` to before `end`."""
    pairs = _pairs(stretch, begin, end)
    if pairs is not None:
        table = _copied(stretch, pairs)
        if table.num_rows:
            yield table
        return
    middle = (begin + end) // 2
    yield from _dealt(stretch, begin, middle)
    yield from _dealt(stretch, middle, end)


def _pairs(stretch: _ClassifiedBatch, begin: int, end: int) -> list[_Pairs] | None:
    """The pairs of each class; None if there would be too many."""
    room = MOST_ROWS if end - begin > 1 else None
    rows = stretch.variants.rows.of(np.arange(begin, end))
    near = [nearest(m.class_.conditions, rows, m.batch) for m in stretch.members]
    anchors = [n for n, m in enumerate(stretch.members) if m.class_.anchor and m.class_.conditions]
    if not anchors:
        if room is not None and sum(_size(m, n, rows) for m, n in _each(stretch, near)) > room:
            return None
        return [_class_pairs(member, n, rows, begin) for member, n in _each(stretch, near)]
    anchor = min(anchors, key=lambda n: near[n].pairs)
    if room is not None and near[anchor].pairs > room:
        return None
    chosen = _class_pairs(stretch.members[anchor], near[anchor], rows, begin, every=False)
    others = {
        n: member for n, member in enumerate(stretch.members) if n != anchor or member.class_.every
    }
    if not others:
        return [chosen]
    around = _Around(stretch, stretch.members[anchor], chosen)
    counts = {n: around.count(member) for n, member in others.items()}
    by_own = {n for n, member in others.items() if _size(member, near[n], rows) < counts[n]}
    sizes = (near[n].pairs if n in by_own else counts[n] for n in others)
    if room is not None and sum(sizes) > room:
        return None
    of_others = {
        n: _class_pairs(member, near[n], rows, begin)
        if n in by_own
        else around.pairs(member, rows, begin)
        for n, member in others.items()
    }
    return [of_others.get(n, chosen) for n in range(len(stretch.members))]


def _each(stretch: _ClassifiedBatch, near: list[Near]) -> Iterator[tuple[_ClassRows, Near]]:
    return zip(stretch.members, near, strict=True)


def _size(member: _ClassRows, near: Near, rows: RuleParameters) -> int:
    return len(member.rows) * rows.length if member.class_.every else near.pairs


def _class_pairs(
    member: _ClassRows, near: Near, rows: RuleParameters, begin: int, every: bool | None = None
) -> _Pairs:
    """The pairs of a class by its own conditions."""
    if member.class_.every if every is None else every:
        at = np.repeat(np.arange(len(member.rows)), rows.length)
        variant = np.tile(np.arange(rows.length), len(member.rows))
        return _needed(member, rows, at, variant, begin)
    parts = [
        holding(member.class_.conditions, rows, member.batch, at, variant)
        for at, variant in near.chunks()
    ]
    none = np.zeros(0, np.int64)
    at = np.concatenate([none, *(at for at, _ in parts)])
    variant = np.concatenate([none, *(variant for _, variant in parts)])
    return _Pairs(member.rows[at], variant + begin, np.ones(len(at), np.bool_))


def _needed(
    member: _ClassRows, rows: RuleParameters, at: Ints, variant: Ints, begin: int
) -> _Pairs:
    """Of these pairs, given by places in the class, those that the variants need."""
    class_ = member.class_
    kept, of = holding(class_.conditions, rows, member.batch, at, variant)
    if not class_.every:
        return _Pairs(member.rows[kept], of + begin, np.ones(len(kept), np.bool_))
    known = np.isin(at * rows.length + variant, kept * rows.length + of)
    return _Pairs(member.rows[at], variant + begin, known)


Side: TypeAlias = Callable[[_ClassRows, _ClassRows, Ints, Ints | int | None], Ints]


class _Around:
    """The rows of a class that are near an anchor of a variant, each once."""

    def __init__(self, stretch: _ClassifiedBatch, anchor: _ClassRows, pairs: _Pairs) -> None:
        self._stretch, self._anchor = stretch, anchor
        place = np.zeros(len(stretch.times), np.int64)
        place[anchor.rows] = np.arange(len(anchor.rows))
        variant = pairs.variants
        order = _ordered(variant)  # pairs come in the order of their places
        self._at, self._variant = place[pairs.rows[order]], variant[order]
        self._known: dict[str, tuple[Ints, Ints]] = {}

    def _ranges(self, member: _ClassRows) -> tuple[Ints, Ints]:
        """Where in the class the rows near each anchor begin and end, without those that are near
        the anchor before it. The anchors of a variant come in the order of their keys and rows, as
        the rows of the class do."""
        name = member.class_.leaf.variable
        if name not in self._known:
            anchor, stretch = self._anchor.class_, self._stretch
            begins = self._near(stretch.first, member, anchor.comes_before(member.class_))
            ends = self._near(stretch.last, member, member.class_.comes_before(anchor))
            same = self._variant[1:] == self._variant[:-1]
            begins[1:] = np.where(same, np.maximum(begins[1:], ends[:-1]), begins[1:])
            self._known[name] = begins, ends
        return self._known[name]

    def _near(self, side: Side, member: _ClassRows, is_fixed: bool) -> Ints:
        """`side` of the rows near each anchor; `is_fixed` if the reach doesn't matter there."""
        reach = self._stretch.variants.reach
        if reach is None or is_fixed or (reach == reach[0]).all():
            same = None if reach is None else int(reach[0])
            return side(self._anchor, member, np.arange(len(self._anchor.rows)), same)[self._at]
        return side(self._anchor, member, self._at, reach[self._variant])

    def count(self, member: _ClassRows) -> int:
        begins, ends = self._ranges(member)
        return int((ends - begins).sum())

    def pairs(self, member: _ClassRows, rows: RuleParameters, begin: int) -> _Pairs:
        begins, ends = self._ranges(member)
        counts = ends - begins
        skipped = np.repeat(begins - (np.cumsum(counts) - counts), counts)
        at = np.arange(int(counts.sum())) + skipped
        return _needed(member, rows, at, np.repeat(self._variant, counts) - begin, begin)


# ── copies ───────────────────────────────────────────────────────────────────


def _copied(stretch: _ClassifiedBatch, pairs: list[_Pairs]) -> pa.Table:
    """A row for each event and variant with a pair, in the order of the events."""
    bits = stretch.variants.rows.length.bit_length()
    codes = [np.sort(p.rows << bits | p.variants) for p in pairs]
    every = np.sort(np.concatenate(codes)) if len(codes) > 1 else codes[0]
    every = every[np.append(True, every[1:] != every[:-1])] if len(every) else every
    at, variant = every >> bits, every & ((1 << bits) - 1)
    events = stretch.batch.take(pa.array(at))
    columns = dict(zip(events.schema.names, events.columns, strict=True))
    columns[VARIANT] = pa.array(variant)
    for name in stretch.variants.parameters:
        values = stretch.variants.rows.parameters[name]
        columns[parameter_column(name)] = values.take(pa.array(variant))
    for member, code, of_member in zip(stretch.members, codes, pairs, strict=True):
        if member.class_.conditions:
            if not of_member.holds.all():
                code = np.sort((of_member.rows << bits | of_member.variants)[of_member.holds])
            taken = np.zeros(len(every), np.bool_)
            taken[np.searchsorted(every, code)] = True
            columns[taken_column(member.class_.leaf.variable)] = pa.array(taken)
    return pa.table(columns)
