"""Numbers that Spark's shuffle spreads evenly.

`repartition(n, column)` puts a row where the hash of the column says. A few numbered sections
would so collide in some partitions and leave others empty; salted numbers don't. Only the
balance depends on it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from itertools import count

_WORD = 0xFFFFFFFF


@lru_cache
def salts(partitions: int) -> tuple[int, ...]:
    """One integer for each partition of a shuffle.

    >>> sorted(partition_of(salt, 5) for salt in salts(5))
    [0, 1, 2, 3, 4]
    """
    salt_of: dict[int, int] = {}
    for number in count():
        salt_of.setdefault(partition_of(number, partitions), number)
        if len(salt_of) == partitions:
            return tuple(salt_of[p] for p in range(partitions))
    raise AssertionError


def salted(chosen: Sequence[int], partitions: int) -> list[int]:
    """Different integers, each of which goes to the partition chosen for it.

    >>> [partition_of(salt, 5) for salt in salted([3, 3, 0], 5)]
    [3, 3, 0]
    """
    waiting: dict[int, list[int]] = defaultdict(list)
    for n, partition in enumerate(chosen):
        waiting[partition].append(n)
    numbers = [0] * len(chosen)
    for number in count():
        if not waiting:
            return numbers
        partition = partition_of(number, partitions)
        if partition in waiting:
            numbers[waiting[partition].pop()] = number
            if not waiting[partition]:
                del waiting[partition]
    raise AssertionError


def partition_of(number: int, partitions: int) -> int:
    """The partition to which Spark's hash partitioning assigns a 32-bit integer."""
    return murmur3(number) % partitions


def murmur3(number: int, seed: int = 42) -> int:
    """Spark's `hash` of a 32-bit integer: Murmur3 of its four bytes, signed.

    >>> murmur3(1), murmur3(-7)
    (-559580957, -1618159745)
    """
    word = _rotate((number * 0xCC9E2D51) & _WORD, 15) * 0x1B873593 & _WORD
    mixed = (_rotate(seed ^ word, 13) * 5 + 0xE6546B64) & _WORD
    mixed ^= 4
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _WORD
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _WORD
    mixed ^= mixed >> 16
    return mixed - (1 << 32) if mixed >> 31 else mixed


def _rotate(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _WORD
