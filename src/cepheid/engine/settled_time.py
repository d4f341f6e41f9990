"""How far the matches of an engine are known."""

from __future__ import annotations

import numpy as np

from cepheid.engine.after_match import moves_ends
from cepheid.engine.operators.base import FOREVER
from cepheid.engine.run import Engine


def settled_time(engine: Engine) -> int:
    """Every match that ends before this time has been let out; between batches."""
    context, store, tree = engine.context, engine.store, engine.tree
    known = context.frontier if context.in_time else context.horizon.time
    if tree.sink.holds:
        known = min(known, context.horizon.time)
    undecided = tree.undecided()
    if undecided == FOREVER:
        return known
    if undecided == -FOREVER:
        return undecided
    if moves_ends(engine.plan):  # positions are times, or twice as much
        return min(known, undecided, (undecided - 1) // 2)
    if store.lasting:  # positions are times
        return min(known, undecided)
    row = int(np.searchsorted(store.position, undecided))
    return min(known, int(store.time[row])) if row < store.n else known
