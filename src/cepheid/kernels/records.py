"""The arrays that kernels see."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Records(NamedTuple):
    """Composite events as columns, in the order of their ends (ZStream 4.2).

    `start` and `end` are clock values, for windows; `first` and `last` are positions, for order.
    `slots[s, i]` holds what record i binds: the row of an event, or offset and length of a group,
    or an NSEQ bound. `link[i]` is the absolute number of the record before i in its hash chain.
    """

    start: Ints
    end: Ints
    first: Ints
    last: Ints
    slots: Any  # int64[:, :]
    link: Ints


class KernelState:
    """Indexes into the int64 array with which a kernel is called and resumed."""

    OUTER = 0  # record of the outer input at hand
    INNER = 1  # record of the inner input at hand
    FRESH = 2  # 1: OUTER is to be begun; 0: it is resumed at INNER
    OUTER_END = 3  # number of visible records of the outer input
    INNER_END = 4  # number of visible records of the inner input
    INNER_BASE = 5  # absolute number of the inner input's record 0
    BASE = 6  # absolute number of the store's row 0
    WINDOW = 7
    COUNT = 8  # records written to the output
    DONE = 9  # 1: finished; 0: the output is full; 2: the pool is full
    POOL_COUNT = 10  # elements written to the group pool
    POOL_BASE = 11  # absolute number of the group pool's element 0
    OUTER_BASE = 12  # absolute number of the outer input's record 0
    SIDE = 13  # conjunction: whether the record at hand is the left (1) or the right (0)
    EAT = 14  # a record that starts at or before this clock has expired
    ROOM = 15  # how many records the output takes
    SIZE = 16
