"""Assigns the matches of a shared query to rules.

The query finds whatever one of the rules finds, and each rule still checks its own conditions on a
match (`pairs`). With AFTER MATCH SKIP FOR or LIMIT PER KEY, each rule then chooses among its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.expressions import Attribute, Expr
from cepheid.algebra.query import Output
from cepheid.engine.after_match import Memory
from cepheid.engine.arrays.vector import evaluate
from cepheid.engine.attribution.json_rows import KEY_PARTS, alert_rows
from cepheid.engine.attribution.pairs import OF_ROW, Near, compared, holding, nearest, reading
from cepheid.engine.attribution.parameters import RuleParameters
from cepheid.engine.match_schema import MATCH_END, MATCH_START, computed_type
from cepheid.engine.match_values import typed
from cepheid.engine.rows.clock import times
from cepheid.kernels.templates.after_match import COUNT

Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class RuleChoice:
    """What each rule keeps of its matches of a key: none that ends within the pause after one that
    was kept, and the first `most`."""

    pause: int | None
    most: int | None
    jit: bool

    def kept(self, keys: Ints, ends: Ints) -> Mask:
        """Which of these matches, in the order in which they are considered, are kept; `keys` has
        the rule and the parts of the key of each."""
        kept = np.ones(len(ends), np.bool_)
        if self.pause is not None:
            kept = Memory(self.jit).admit(keys, ends, ends + self.pause)
        if self.most is not None:
            left = np.flatnonzero(kept)
            none, most = np.zeros_like(left), np.full_like(left, self.most)
            kept[left] = Memory(self.jit, COUNT).admit(keys[left], none, most)
        return kept


@dataclass(frozen=True)
class Residual:
    """What each rule checks on a match and returns of it. `windows` are the rules' windows, if they
    differ. With a `choice`, all matches must come at once."""

    rows: RuleParameters
    conditions: tuple[Expr, ...]
    outputs: tuple[Output, ...]
    windows: Ints | None = None
    choice: RuleChoice | None = None

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
    if residual.choice is not None:
        keys = np.column_stack((rule, *(codes[at] for codes in _key_codes(residual, matches))))
        kept = residual.choice.kept(keys, times(matches.column(MATCH_END))[at])
        at, rule = at[kept], rule[kept]
    return alert_rows(rules, numbers[rule], _returned(residual, matches, at, rule), schema)


def _key_codes(residual: Residual, matches: pa.RecordBatch) -> Iterator[Ints]:
    """A number for each value of the parts of the matches' keys."""
    for output in residual.outputs:
        if output.name.startswith(KEY_PARTS):
            assert isinstance(output.expression, Attribute)
            values = matches.column(output.expression.name)
            values = pc.add(values, 0.0) if pa.types.is_floating(values.type) else values
            codes = pc.fill_null(values.dictionary_encode().indices, -1)
            yield codes.to_numpy(zero_copy_only=False).astype(np.int64)


def satisfied(residual: Residual, matches: pa.RecordBatch) -> tuple[Ints, Ints]:
    """The pairs of a match and a rule that satisfy the rule's conditions, in the order of the
    matches."""
    spans = times(matches.column(MATCH_END)) - times(matches.column(MATCH_START))
    bits = residual.rows.length.bit_length()
    pairs = [np.zeros(0, np.int64)]
    for at, rule in worth_asking(residual, matches, spans).chunks():
        if residual.windows is not None:
            short = np.flatnonzero(spans[at] < residual.windows[rule])
            at, rule = at[short], rule[short]
        at, rule = holding(residual.conditions, residual.rows, matches, at, rule)
        pairs.append(at << bits | rule)
    whole = np.sort(np.concatenate(pairs))
    return whole >> bits, whole & ((1 << bits) - 1)


def worth_asking(residual: Residual, matches: pa.RecordBatch, spans: Ints) -> Near:
    """The pairs to check by the condition, or the window, that leaves the fewest."""
    near = nearest(residual.conditions, residual.rows, matches)
    if residual.windows is None:
        return near
    known = np.ones(matches.num_rows, np.bool_)
    every = np.ones(residual.rows.length, np.bool_)
    by_window = compared(spans, known, "<", residual.windows, every)
    return min(near, by_window, key=lambda near: near.pairs)


def _returned(residual: Residual, matches: pa.RecordBatch, at: Ints, rule: Ints) -> pa.RecordBatch:
    time = matches.schema.field(MATCH_START).type
    read = reading(residual.rows, matches, at, rule)
    columns: dict[str, pa.Array] = {}
    for output in residual.outputs:
        match output.expression:
            case Attribute(variable) as column if variable == OF_ROW:
                columns[output.name] = read(column)
            case expression:
                values = evaluate(expression, read, len(at))
                columns[output.name] = typed(values, computed_type(expression.type, time))
    for name in (MATCH_START, MATCH_END):
        columns[name] = matches.column(name).take(pa.array(at))
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
