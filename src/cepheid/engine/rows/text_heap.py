"""Texts as kernels read them: bytes behind one another, and for each text the place of its bytes.

A place is one number, so that kernels handle texts as they handle numbers. Equal texts have equal
places, and the order of texts is that of their bytes, as in Spark.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cepheid.engine.arrays.interner import Interner
from cepheid.engine.arrays.window_columns import Growing
from cepheid.errors import DataError
from cepheid.kernels import LENGTH_BITS

Ints = NDArray[np.int64]


class TextHeap:
    """The bytes of the texts that kernels have read so far."""

    def __init__(self, interner: Interner) -> None:
        self._interner = interner
        self.clear()

    def clear(self) -> None:
        """Drop all texts: those that are read again get other places."""
        self._bytes = Growing(np.zeros(0, np.uint8))
        self._size = 0
        self._codes: Ints = np.zeros(0, np.int64)  # in order
        self._places: Ints = np.zeros(0, np.int64)

    @property
    def bytes(self) -> NDArray[np.uint8]:
        return self._bytes.array

    def places(self, codes: Ints) -> Ints:
        """The places of the texts of these codes."""
        self._add(self._new(codes))
        return self._places[np.searchsorted(self._codes, codes)]

    def _new(self, codes: Ints) -> Ints:
        """Those without a place, in order."""
        ordered = np.sort(codes)  # which is faster than numpy's hashes
        distinct = ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(codes) else ordered
        if not len(self._codes):
            return distinct
        at = np.searchsorted(self._codes, distinct).clip(max=len(self._codes) - 1)
        new: Ints = distinct[self._codes[at] != distinct]
        return new

    def _add(self, codes: Ints) -> None:
        if not len(codes):
            return
        array = self._interner.encoded(codes)
        offsets = np.frombuffer(array.buffers()[1], np.int64)[: len(array) + 1]
        lengths = np.diff(offsets)
        if len(lengths) and lengths.max() >> LENGTH_BITS:
            raise DataError("a text of more than 256 MB can't be compared with others")
        places = (self._size + offsets[:-1]) << LENGTH_BITS | lengths
        if offsets[-1]:
            self._bytes.append(np.frombuffer(array.buffers()[2], np.uint8)[: offsets[-1]])
            self._size += int(offsets[-1])
        at = np.searchsorted(self._codes, codes)
        self._codes = np.insert(self._codes, at, codes)
        self._places = np.insert(self._places, at, places)
