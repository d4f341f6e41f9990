"""A sample of a stretch of a stream, whose rows are all at hand."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.expressions import Call, Expr
from cepheid.algebra.types import Type
from cepheid.engine.arrays.columns import with_clean_dictionaries
from cepheid.engine.arrays.vector import evaluate
from cepheid.engine.rows.classes import classify
from cepheid.engine.rows.clock import Ticker
from cepheid.engine.sampling.draws import Drawn, Events, Ints, draw
from cepheid.engine.sampling.sketches import sketch
from cepheid.engine.sampling.targets import JointTarget, Targets
from cepheid.plan.reads import leaves
from cepheid.statistics.samples import Interval, Sample, Tally, Values

DRAWS = 4096
"""How many combinations are drawn for conjuncts over the same variables."""


def observe(
    targets: Targets,
    batch: pa.RecordBatch,
    observed: Interval,
    random: np.random.Generator,
    weight: float = 1.0,
) -> Sample:
    """The rows are in order, and all that there are in the interval, or a random part of them:
    then each stands for `weight` rows.

    That a random part is as good as the whole: of the combinations in a window it keeps a random
    part, too.
    """
    if batch.num_rows == 0:
        return Sample((observed,), 0, dict.fromkeys(targets.classes, 0.0))
    return _Stretch(targets, batch, random).sample(observed, weight)


class _Stretch:
    """The rows that belong to some class, and of each class, its events."""

    def __init__(
        self, targets: Targets, batch: pa.RecordBatch, random: np.random.Generator
    ) -> None:
        plan = targets.plan
        batch = with_clean_dictionaries(batch)
        classified = classify(batch, leaves(plan), plan.variables, plan.schema.type, plan.key)
        ticks = Ticker(plan.schema, plan.window, plan.key).read(batch, classified.rows)
        self.targets, self.random = targets, random
        self.rows = batch.num_rows
        self.batch, self.time = classified.batch, ticks.time
        self.counts: dict[str, int] = {}
        self.shares: dict[str, Tally] = {}
        self.events: dict[str, Events] = {}
        for leaf, mask in zip(leaves(plan), classified.masks, strict=True):
            rows = np.flatnonzero(mask)
            self.counts[leaf.variable] = len(rows)
            rows = self._satisfying(leaf.variable, rows)
            self.events[leaf.variable] = Events(ticks.clock[rows], ticks.position[rows], rows)

    def _satisfying(self, variable: str, rows: Ints) -> Ints:
        """The rows that satisfy all conjuncts of a class; each by itself is counted."""
        kept = np.ones(len(rows), np.bool_)
        for condition in self.targets.classes[variable]:
            held = self._holds(condition.expression)[rows]
            self.shares[condition.text] = Tally(len(rows), int(held.sum()))
            kept &= held
        return rows[kept]

    def _holds(self, expr: Expr) -> NDArray[np.bool_]:
        satisfied = evaluate(expr, lambda a: self.batch.column(a.name), self.batch.num_rows)
        return np.asarray(pc.fill_null(satisfied, False).to_numpy(zero_copy_only=False))

    def sample(self, observed: Interval, weight: float) -> Sample:
        equalities: dict[str, Tally] = {}
        values = {
            f"{a.variable}.{a.name}": sketch(
                self.batch.column(a.name).take(pa.array(self.events[a.variable].row)),
                a.type,
                self.random,
            )
            for a in self.targets.columns
        }
        for joint in self.targets.joints:
            drawn = draw(joint, self.events, self.targets.window, DRAWS, self.random)
            if drawn is None:
                continue
            for condition in joint.conditions:
                where = self.shares if condition.equality is None else equalities
                where[condition.text] = self._tally(drawn, condition.expression)
            self._try_key(joint, drawn, values)
        counts = {name: count * weight for name, count in self.counts.items()}
        return Sample((observed,), self.rows * weight, counts, self.shares, equalities, values)

    def _try_key(self, joint: JointTarget, drawn: Drawn, values: dict[str, Values]) -> None:
        for sides in joint.key:
            tally = self._tally(drawn, Call("=", sides, Type.BOOLEAN))
            for side in sides:
                name = f"{side.variable}.{side.name}"
                values[name] = values[name].plus(Values(near=tally))

    def _tally(self, drawn: Drawn, expr: Expr) -> Tally:
        rows: Mapping[str, pa.Array] = {v: pa.array(r) for v, r in drawn.rows.items()}
        return drawn.tally(
            expr,
            lambda a: self.batch.column(a.name).take(rows[a.variable]),
            lambda v: self.time[drawn.rows[v]],
        )
