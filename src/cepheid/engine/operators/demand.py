"""The demand of a SEQ on its left input: pull and pass-down (thesis 4.1 to 4.4).

In every round, the SEQ's right input is evaluated first. Its new records say of which left records
a result can come: of those that end before such a record begins, and start inside its window.
Older records demand nothing: they have met all left records that lie before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cepheid.kernels.compile import load_ask

if TYPE_CHECKING:
    from cepheid.engine.operators.base import Cursor, Operator

Ints = NDArray[np.int64]


class Demanded(NamedTuple):
    """Of the records that end before the position `until[d]`, and not before `until[d - 1]`, those
    that start after the clock `floor[d]`. Positions rise, and floors don't fall."""

    until: Ints
    floor: Ints


NOTHING = Demanded(np.zeros(0, np.int64), np.zeros(0, np.int64))
EVERYTHING = Demanded(np.full(1, 1 << 62), np.full(1, -(1 << 62)))


class Demand:
    """What the new records of a SEQ's right input demand.

    Floors never fall, neither along the records of a round nor from one round to the next: a
    record's floor is where its window begins, and records come in the order of their ends. If only
    some records of the SEQ are demanded, the floor is also theirs, which never falls either. This
    is why a left record that is covered now, and starts too early, is never needed again.

    `renewed` are operators that are evaluated anew whenever there is something new, because
    predicates are passed down to them (thesis 4.4.2): what was made for one set of triggering
    records is of no use to the next.
    """

    def __init__(
        self, seq: Operator, right: Operator, cursor: Cursor, renewed: Sequence[Operator] = ()
    ) -> None:
        self.right = right
        self.cursor = cursor
        self._seq = seq
        self._renewed = renewed
        self._ask = load_ask(seq.context.jit)
        self._state: tuple[int, int] | None = None
        self._above = EVERYTHING
        self._demanded = NOTHING

    def demanded(self) -> Demanded:
        """The demand of this round; computed once for all operators below."""
        above = self._seq.demand.demanded() if self._seq.demand else EVERYTHING
        state = (self.cursor.done, self.right.out.base + self.right.out.visible)
        if state != self._state or above is not self._above:
            self._state, self._above = state, above
            self._demanded = self._new(above)
            if len(self._demanded.floor):
                for operator in self._renewed:
                    operator.renew(int(self._demanded.floor[0]))
        return self._demanded

    def _new(self, above: Demanded) -> Demanded:
        """The demand of the records that the SEQ has not read, as far as they are demanded
        themselves."""
        out = self.right.out
        new = slice(self.cursor.begin, out.visible)
        if new.start >= new.stop or not len(above.until):
            return NOTHING
        until, floor = np.empty((2, new.stop - new.start), np.int64)
        columns = (column[new] for column in out.records[:4])
        n = self._ask(*columns, self._seq.window, *above, until, floor)
        return Demanded(until[:n], floor[:n])


def wanted(limits: Demanded, start: Ints, last: Ints) -> tuple[NDArray[np.intp], Ints]:
    """Which of these records, in the order of their ends, are demanded; the floor of each."""
    covered = covered_by(limits, last)
    floors = limits.floor[np.searchsorted(limits.until, last[:covered], "right")]
    places = np.flatnonzero(start[:covered] > floors)
    return places, floors[places]


def covered_by(limits: Demanded, last: Ints) -> int:
    """How many of these records end before the last position that is demanded."""
    return int(np.searchsorted(last, limits.until[-1], "left")) if len(limits.until) else 0
