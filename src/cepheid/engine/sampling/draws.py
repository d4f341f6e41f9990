"""Random combinations of events inside a window, in the order of the pattern.

The last variable's event is drawn first, then, backwards, one event of each other variable from
those that fit what is drawn: they are a range of its events, found by binary search. A
combination is so drawn with a probability that depends on how many others there were to choose
from. The weight takes that back: a weighted share is the share of all combinations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cepheid.algebra.expressions import Expr, TimeSpan
from cepheid.engine.arrays.vector import Read, evaluate
from cepheid.engine.sampling.targets import JointTarget
from cepheid.statistics.samples import Tally

Ints = NDArray[np.int64]


class Events(NamedTuple):
    """The events of a class, in order: their clock, position, and row wherever their values
    are."""

    clock: Ints
    position: Ints
    row: Ints


@dataclass(frozen=True)
class Drawn:
    """The rows of some combinations, by variable, and their weights; `most` is about how many
    combinations there are at all: a few that are drawn again and again are still a few."""

    rows: Mapping[str, Ints]
    weight: NDArray[np.float64]
    most: float

    def tally(self, expr: Expr, read: Read, times: Callable[[str], Ints]) -> Tally:
        """The weighted number of combinations that satisfy the expression."""

        def special(node: Expr) -> pa.Array:
            assert isinstance(node, TimeSpan)
            moments = np.stack([times(v) for v in node.variables])
            return pa.array(moments.max(axis=0) - moments.min(axis=0))

        satisfied = evaluate(expr, read, len(self.weight), special)
        return self.counted(pc.fill_null(satisfied, False).to_numpy(zero_copy_only=False))

    def counted(self, held: NDArray[np.bool_]) -> Tally:
        """A tally of combinations by their weights."""
        share = float((self.weight @ held) / self.weight.sum())
        tried = min(float(len(self.weight)), self.most)
        return Tally(tried, min(1.0, share) * tried)


def draw(
    joint: JointTarget,
    events: Mapping[str, Events],
    window: int,
    count: int,
    random: np.random.Generator,
) -> Drawn | None:
    """Draw at most `count` combinations; None if there is none."""
    last, *others = reversed(joint.variables)
    if any(len(events[v].clock) == 0 for v in joint.variables):
        return None
    picks: dict[str, Ints] = {last: random.integers(len(events[last].clock), size=count)}
    earliest = latest = events[last].clock[picks[last]]
    weight = np.ones(count)
    for name in others:
        candidates = events[name]
        low = np.searchsorted(candidates.clock, latest - window, "right")
        followers = [events[v].position[p] for v, p in picks.items() if (name, v) in joint.before]
        if followers:
            limit = followers[0] if len(followers) == 1 else np.minimum.reduce(followers)
            high = np.searchsorted(candidates.position, limit, "left")
        else:
            high = np.searchsorted(candidates.clock, earliest + window, "left")
        room = high - low
        fits = room > 0
        if not fits.all():
            if not fits.any():
                return None
            low, room, weight = low[fits], room[fits], weight[fits]
            earliest, latest = earliest[fits], latest[fits]
            picks = {v: p[fits] for v, p in picks.items()}
        pick = low + (random.random(len(room)) * room).astype(np.int64)
        picks[name] = pick
        weight = weight * room
        earliest = np.minimum(earliest, candidates.clock[pick])
        latest = np.maximum(latest, candidates.clock[pick])
    kept = _distinct(joint, {v: events[v].row[p] for v, p in picks.items()})
    if kept is not None:
        if not kept.any():
            return None
        picks, weight = {v: p[kept] for v, p in picks.items()}, weight[kept]
    most = float(weight.sum()) * len(events[last].clock) / count
    return Drawn({v: events[v].row[p] for v, p in picks.items()}, weight, most)


def _distinct(joint: JointTarget, rows: dict[str, Ints]) -> NDArray[np.bool_] | None:
    """Members of a conjunction are different events; None if there is no conjunction."""
    free = [
        (u, v)
        for i, u in enumerate(joint.variables)
        for v in joint.variables[i + 1 :]
        if (u, v) not in joint.before
    ]
    if not free:
        return None
    return np.asarray(np.logical_and.reduce([rows[u] != rows[v] for u, v in free]))
