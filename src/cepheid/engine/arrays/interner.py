"""Codes for strings and arrays, so that kernels compare numbers."""

from __future__ import annotations

from collections.abc import Container, Hashable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]
Coded: TypeAlias = str | bytes | tuple[Hashable, ...]

NO_TEXT = 0
"""What rows have of which no text is known; those that are NULL may also have another's code."""

FEW = 16
"""Up to so many strings are looked up one by one: encoding them first takes longer."""

MANY = 1024
"""From so many strings on they may stay with Arrow, which needs no Python object for each."""

SHARE = 4
"""They do if those that are known are at most so many times as many: they are hashed anew."""

SCANS = 8
"""So often few strings are looked for among those of Arrow. Another time, all get a dictionary,
which costs more than these scans."""


@dataclass(frozen=True, slots=True)
class ManyTexts:
    """Texts that came many at once, each once, and their codes, which rise."""

    texts: pa.Array
    codes: Ints

    def __len__(self) -> int:
        return len(self.codes)

    def plus(self, texts: pa.Array, codes: Ints) -> ManyTexts:
        if not len(self):
            return ManyTexts(texts, codes)
        both, numbers = pa.concat_arrays([self.texts, texts]), np.append(self.codes, codes)
        if self.codes[-1] < codes[0]:
            return ManyTexts(both, numbers)
        order = np.argsort(numbers)
        return ManyTexts(both.take(pa.array(order)), numbers[order])

    def known(self, texts: pa.Array) -> Ints:
        """Their codes, -1 for those that aren't among these."""
        if not len(self):
            return np.full(len(texts), -1, np.int64)
        at = pc.fill_null(pc.index_in(texts, value_set=self.texts), -1).to_numpy()
        return np.where(at < 0, -1, self.codes[at])

    def code(self, text: str) -> int | None:
        at = pc.index(self.texts, text).as_py()
        return None if at < 0 else int(self.codes[at])

    def codes_of(self, texts: list[str]) -> dict[Coded, int]:
        """The codes of those that are among these."""
        at = pc.index_in(self.texts, value_set=pa.array(texts, pa.large_string()))
        held = np.flatnonzero(pc.is_valid(at).to_numpy(zero_copy_only=False))
        found = at.take(pa.array(held)).to_pylist()
        codes = self.codes[held].tolist()
        return {texts[place]: code for place, code in zip(found, codes, strict=True)}

    def places(self, codes: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """The place of each of these codes, and whether it is among these."""
        if not len(self):
            return np.zeros(len(codes), np.int64), np.zeros(len(codes), np.bool_)
        at = np.searchsorted(self.codes, codes).clip(max=len(self) - 1)
        return at, self.codes[at] == codes

    def among(self, codes: Ints) -> ManyTexts:
        kept = np.isin(self.codes, codes)
        return ManyTexts(self.texts.filter(pa.array(kept)), self.codes[kept])

    def items(self) -> zip[tuple[str, int]]:
        return zip(self.texts.to_pylist(), self.codes.tolist(), strict=True)


NONE = ManyTexts(pa.array([], pa.large_string()), np.zeros(0, np.int64))


class Interner:
    """Codes for strings, and for arrays, as tuples: equal ones have equal codes, and a code is
    never given twice.

    `forget` drops the strings that no retained event has: one that comes again gets a new code,
    which can't be wrong, since nothing is left to compare it with. So memory follows the window.

    Texts that come many at once stay with Arrow until few have come several times, which then get
    a dictionary to be looked up in.
    """

    def __init__(self) -> None:
        self._codes: dict[Coded, int] = {}
        self._many = NONE  # what isn't among `_codes`
        self._scans = 0
        self._strings: dict[int, Coded] | None = None  # the reverse, made on first use
        self._next = NO_TEXT + 1

    def __len__(self) -> int:
        return len(self._codes) + len(self._many)

    @property
    def codes(self) -> Ints:
        """All codes."""
        few = np.fromiter(self._codes.values(), np.int64, len(self._codes))
        return np.append(few, self._many.codes)

    def copy(self) -> Interner:
        """A copy with the same codes."""
        other = Interner()
        other._codes, other._many, other._next = dict(self._codes), self._many, self._next
        return other

    def code(self, value: Coded) -> int:
        code = self._codes.get(value)
        if code is None and len(self._many) and isinstance(value, str):
            code = self._many.code(value)
        if code is None:
            code = self._codes[value] = self._next
            self._next += 1
            if self._strings is not None:
                self._strings[code] = value
        return code

    def encode(self, array: pa.Array) -> tuple[Ints, NDArray[np.bool_] | None]:
        if pa.types.is_dictionary(array.type) and len(array.dictionary) > len(array):
            array = array.cast(array.type.value_type)  # most of the dictionary is of other batches
        if not pa.types.is_dictionary(array.type):
            if len(array) <= FEW and not array.null_count:
                self._fold()
                codes = (self.code(value) for value in array.to_pylist())
                return np.fromiter(codes, np.int64, len(array)), None
            array = pc.dictionary_encode(array)
        known = self._known(array.dictionary)
        indices = array.indices
        valid = validity(indices)
        positions = pc.fill_null(indices, 0).to_numpy(zero_copy_only=False)
        if not len(known):
            return np.full(len(array), NO_TEXT), valid
        return known[positions], valid

    def _known(self, values: pa.Array) -> Ints:
        """The codes of distinct values; of NULL, -1."""
        texts = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
        if texts and not values.null_count and len(values) >= max(MANY, len(self) // SHARE):
            return self._known_of_many(values.cast(pa.large_string()))
        return self._known_of_few(values.to_pylist())

    def _known_of_many(self, texts: pa.Array) -> Ints:
        self._unfold()
        codes = self._many.known(texts)
        new = np.flatnonzero(codes < 0)
        if len(new):
            codes[new] = np.arange(self._next, self._next + len(new))
            coming = texts if len(new) == len(texts) else texts.take(pa.array(new))
            self._many = self._many.plus(coming, codes[new])
            self._next += len(new)
        return codes

    def _known_of_few(self, values: list[Coded | None]) -> Ints:
        if len(self._many) and self._scans == SCANS:
            self._fold()
        given = self._codes
        new = [value for value in values if value is not None and value not in given]
        held = self._held(new)
        if held:
            new = [value for value in new if value not in held]
        self._add(new)
        if len(new) == len(values):
            return np.arange(self._next - len(new), self._next)
        numbers = (-1 if v is None else held[v] if v in held else given[v] for v in values)
        return np.fromiter(numbers, np.int64, len(values))

    def _held(self, values: list[Coded]) -> dict[Coded, int]:
        """The codes of those that Arrow has."""
        texts = [value for value in values if isinstance(value, str)] if len(self._many) else []
        if not texts:
            return {}
        self._scans += 1
        return self._many.codes_of(texts)

    def _add(self, values: list[Coded]) -> None:
        """Give codes to new values, all at once."""
        numbers = range(self._next, self._next + len(values))
        self._codes.update(zip(values, numbers, strict=True))
        if self._strings is not None:
            self._strings.update(zip(numbers, values, strict=True))
        self._next += len(values)

    def _fold(self) -> None:
        """Take all texts from Arrow."""
        if len(self._many):
            self._codes.update(self._many.items())
            self._many, self._strings = NONE, None
        self._scans = 0

    def _unfold(self) -> None:
        """Leave all texts to Arrow."""
        texts = {value: code for value, code in self._codes.items() if isinstance(value, str)}
        if texts:
            codes = np.fromiter(texts.values(), np.int64, len(texts))
            order = np.argsort(codes)
            array = pa.array(list(texts), pa.large_string()).take(pa.array(order))
            self._many = self._many.plus(array, codes[order])
            self._codes = {v: code for v, code in self._codes.items() if not isinstance(v, str)}
            self._strings = None

    def decode(
        self, codes: NDArray[np.generic], valid: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.object_], NDArray[np.bool_] | None]:
        """The strings of these codes, as Python objects."""
        self._fold()
        return self._objects(codes), valid

    def _objects(self, codes: NDArray[np.generic]) -> NDArray[np.object_]:
        """The strings of codes in the dictionary."""
        if self._strings is None:
            self._strings = dict(zip(self._codes.values(), self._codes, strict=True))
        return np.fromiter(map(self._strings.get, codes.tolist()), np.object_, len(codes))

    def encoded(self, codes: Ints) -> pa.Array:
        """The bytes of the texts of these codes, none for NO_TEXT."""
        at, held = self._many.places(codes)
        texts = self._many.texts.take(pa.array(at[held]))
        if held.all():
            return texts
        others = self._encoded_objects(self._objects(codes[~held]))
        if not len(texts):
            return others
        both = pa.concat_arrays([texts.cast(others.type), others])
        order = np.where(held, np.cumsum(held) - 1, len(texts) + np.cumsum(~held) - 1)
        return both.take(pa.array(order))

    @staticmethod
    def _encoded_objects(texts: NDArray[np.object_]) -> pa.Array:
        if set(map(type, texts)) == {str}:
            return pa.array(texts, pa.large_string())  # several times as fast as one by one
        encoded = [text.encode() if isinstance(text, str) else text for text in texts]
        return pa.array([e if isinstance(e, bytes) else b"" for e in encoded], pa.large_binary())

    def strings(self, codes: Container[int]) -> dict[int, str | bytes]:
        """The strings of these codes."""
        few = self._codes.items()
        found = {c: v for v, c in few if c in codes and isinstance(v, str | bytes)}
        return {**found, **{c: text for text, c in self._many.items() if c in codes}}

    def forget(self, live: ArrayLike) -> None:
        """Drop the strings of all codes but these, which may repeat."""
        codes = np.asarray(live, np.int64)
        self._many = self._many.among(codes)
        keep = set(codes.tolist()) if self._codes else ()
        self._codes = {value: code for value, code in self._codes.items() if code in keep}
        self._strings = None


def validity(array: pa.Array) -> NDArray[np.bool_] | None:
    """Which values are not NULL; None if all are."""
    if array.null_count == 0:
        return None
    return np.asarray(pc.is_valid(array).to_numpy(zero_copy_only=False))
