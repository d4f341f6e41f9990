"""What was made of an object, for as long as nothing else pushes it out."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Source = TypeVar("Source")
Made = TypeVar("Made")

MOST = 256


class Remembered(Generic[Source, Made]):
    """By the object itself: equal ones may differ, as 0.0 and -0.0 do. An entry holds its object,
    so that no other can have its id."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, Hashable], tuple[Source, Made]] = OrderedDict()
        self._lock = Lock()

    def get(self, source: Source, use: Hashable, make: Callable[[], Made]) -> Made:
        """What was made of the object for this use."""
        key = id(source), use
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known[1]
        made = make()
        with self._lock:
            self._known[key] = source, made
            if len(self._known) > MOST:
                self._known.popitem(last=False)
        return made
