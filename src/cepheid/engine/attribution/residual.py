"""Assigns the matches of a shared query to rules.

The query finds whatever one of the rules finds, and each rule still checks its own conditions on a
match. They are checked on pairs of a match and a rule, many at once. If one of them compares a
value of the match with a parameter, the rules in the order of that parameter say which pairs are
worth asking: those of a match are next to each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.expressions import FLIPPED, Attribute, Call, Expr, walk
from cepheid.algebra.query import Output
from cepheid.engine.arrays.ordered_codes import ordered
from cepheid.engine.arrays.vector import Read, evaluate
from cepheid.engine.attribution.json_rows import alert_rows
from cepheid.engine.attribution.parameters import RuleParameters
from cepheid.engine.match_schema import MATCH_END, MATCH_START, computed_type
from cepheid.engine.match_values import typed
from cepheid.engine.rows.clock import times

Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

OF_MATCH = "match"
"""The variable of attributes that are columns of the match; parameters have none."""

PAIRS = 1 << 18
"""The most pairs of a match and a rule that are checked at once, unless a single match has more."""


@dataclass(frozen=True)
class Residual:
    """What each rule checks on a match and returns of it. `windows` are the rules' windows, if they
    differ."""

    rows: RuleParameters
    conditions: tuple[Expr, ...]
    outputs: tuple[Output, ...]
    windows: Ints | None = None

    def of(self, rules: Ints) -> Residual:
        """For the rules with these places."""
        windows = None if self.windows is None else self.windows[rules]
        return replace(self, rows=self.rows.of(rules), windows=windows)


def alerts_of_query(
    rules: pa.Table,
    numbers: Ints,
    residual: Residual | None,
    matches: pa.RecordBatch,
    schema: pa.Schema,
) -> pa.RecordBatch:
    """The alerts of the rules with these numbers, from the matches of their shared query: every
    match for every rule, or what the residual leaves to each."""
    if residual is None:
        at = np.repeat(np.arange(matches.num_rows), len(numbers))
        rule = np.tile(numbers, matches.num_rows)
        return alert_rows(rules, rule, matches.take(pa.array(at)), schema)
    at, rule = satisfied(residual, matches)
    return alert_rows(rules, numbers[rule], _returned(residual, matches, at, rule), schema)


def satisfied(residual: Residual, matches: pa.RecordBatch) -> tuple[Ints, Ints]:
    """The pairs of a match and a rule that satisfy the rule's conditions, in the order of the
    matches."""
    spans = times(matches.column(MATCH_END)) - times(matches.column(MATCH_START))
    pairs = [np.zeros((2, 0), np.int64)]
    for at, rule in nearest(residual, matches, spans).chunks():
        if residual.windows is not None:
            short = np.flatnonzero(spans[at] < residual.windows[rule])
            at, rule = at[short], rule[short]
        for condition in residual.conditions:
            holds = evaluate(condition, _read(residual, matches, at, rule), len(at))
            kept = np.flatnonzero(pc.fill_null(holds, False).to_numpy(zero_copy_only=False))
            at, rule = at[kept], rule[kept]
        pairs.append(np.stack((at, rule)))
    whole = np.concatenate(pairs, axis=1)
    order = np.lexsort((whole[1], whole[0]))
    return whole[0][order], whole[1][order]


def _returned(residual: Residual, matches: pa.RecordBatch, at: Ints, rule: Ints) -> pa.RecordBatch:
    time = matches.schema.field(MATCH_START).type
    read = _read(residual, matches, at, rule)
    columns: dict[str, pa.Array] = {}
    for output in residual.outputs:
        match output.expression:
            case Attribute(variable) as column if variable == OF_MATCH:
                columns[output.name] = read(column)
            case expression:
                values = evaluate(expression, read, len(at))
                columns[output.name] = typed(values, computed_type(expression.type, time))
    for name in (MATCH_START, MATCH_END):
        columns[name] = matches.column(name).take(pa.array(at))
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _read(residual: Residual, matches: pa.RecordBatch, at: Ints, rule: Ints) -> Read:
    matched, ruled = pa.array(at), pa.array(rule)

    def read(attribute: Attribute) -> pa.Array:
        if attribute.variable == OF_MATCH:
            return matches.column(attribute.name).take(matched)
        return residual.rows.parameters[attribute.name].take(ruled)

    return read


# ── which pairs ──────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Near:
    """The rules to check on match i: `first[i]` to before `last[i]` in this order."""

    order: Ints
    first: Ints
    last: Ints

    @property
    def pairs(self) -> int:
        return int((self.last - self.first).sum())

    def chunks(self) -> Iterator[tuple[Ints, Ints]]:
        """The matches and the rules of the pairs."""
        counts = self.last - self.first
        ends = np.cumsum(counts)
        begin = 0
        while begin < len(ends):
            before = int(ends[begin] - counts[begin])
            end = max(begin + 1, int(np.searchsorted(ends, before + PAIRS, "right")))
            sizes = counts[begin:end]
            at = np.repeat(np.arange(begin, end), sizes)
            within = np.arange(len(at)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            yield at, self.order[self.first[at] + within]
            begin = end


def nearest(residual: Residual, matches: pa.RecordBatch, spans: Ints) -> Near:
    """The candidates by the condition that leaves the fewest pairs."""
    n, rules = matches.num_rows, residual.rows.length
    chosen = Near(np.arange(rules), np.zeros(n, np.int64), np.full(n, rules))
    if residual.windows is not None:
        every = np.ones(rules, np.bool_)
        by_window = _compared(spans, np.ones(n, np.bool_), "<", residual.windows, every)
        chosen = min(chosen, by_window, key=lambda near: near.pairs)
    for condition in residual.conditions:
        near = _near_by(condition, residual, matches)
        if near is not None and near.pairs < chosen.pairs:
            chosen = near
    return chosen


def _near_by(condition: Expr, residual: Residual, matches: pa.RecordBatch) -> Near | None:
    """The candidates by a condition that compares the match with the rule; None if it doesn't."""
    match condition:
        case Call(operator, (left, right)) if operator in FLIPPED and operator != "<>":
            if _sides(left) == {""}:
                left, right, operator = right, left, FLIPPED[operator]
        case _:
            return None
    if _sides(left) != {OF_MATCH} or _sides(right) != {""}:
        return None
    values = evaluate(left, lambda a: matches.column(a.name), matches.num_rows)
    bounds = residual.rows.evaluate(right)
    if values.type != bounds.type:
        return None
    if not (pa.types.is_int64(values.type) or pa.types.is_float64(values.type)):
        if operator != "=":
            return None
        distinct = pc.unique(bounds.drop_null())
        values, bounds = (pc.index_in(side, value_set=distinct) for side in (values, bounds))
    return _compared(*_codes(values), operator, *_codes(bounds))


def _sides(expr: Expr) -> set[str]:
    return {node.variable for node in walk(expr) if isinstance(node, Attribute)}


def _codes(array: pa.Array) -> tuple[Ints, Mask]:
    """The values as integers of the same order, and the mask of those that aren't NULL."""
    known = array.is_valid().to_numpy(zero_copy_only=False)
    return ordered(pc.fill_null(array, 0).to_numpy(zero_copy_only=False)), known


def _compared(values: Ints, known: Mask, operator: str, bounds: Ints, live: Mask) -> Near:
    """The rules for whose bound `value operator bound` holds."""
    order = np.flatnonzero(live)
    order = order[np.argsort(bounds[order], kind="stable")]
    below, through = (np.searchsorted(bounds[order], values, side) for side in ("left", "right"))
    none, every = np.zeros_like(below), np.full_like(below, len(order))
    first, last = {
        "=": (below, through),
        ">": (none, below),
        ">=": (none, through),
        "<": (through, every),
        "<=": (below, every),
    }[operator]
    return Near(order, np.where(known, first, 0), np.where(known, last, 0))
