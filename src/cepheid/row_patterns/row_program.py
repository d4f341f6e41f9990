"""The program of a pattern: what the matcher runs.

A pattern is normalized first: permutations become choices, and a loop goes around only after it
has taken a row. An iteration without a row ends its loop, as in Perl's expressions. So the program
never goes around in a circle, and whether the rest of it fails at a row depends on nothing that was
matched before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from math import factorial
from typing import assert_never

from cepheid.row_patterns.syntax import (
    Alternation,
    Anchor,
    Concatenation,
    EmptyPattern,
    Exclusion,
    Label,
    PartitionEdge,
    Permutation,
    Quantified,
    RowPattern,
    labels_of,
)

MOST_INSTRUCTIONS = 10_000


@dataclass(frozen=True, slots=True)
class Take:
    """The row at hand, if it satisfies the label; then the next instruction. `shown`: it is not
    inside `{- -}`."""

    label: int
    shown: bool = True


@dataclass(frozen=True, slots=True)
class Split:
    """`first` is tried before `second`."""

    first: int
    second: int


@dataclass(frozen=True, slots=True)
class Jump:
    to: int


@dataclass(frozen=True, slots=True)
class At:
    """Holds only at this edge of the partition."""

    edge: PartitionEdge


@dataclass(frozen=True, slots=True)
class Accept:
    """The rows taken so far are the match."""


Instruction = Take | Split | Jump | At | Accept


class TooLong(ValueError):
    """The pattern would have more instructions than are allowed."""


@dataclass(frozen=True)
class RowProgram:
    """Instructions by their numbers; the first is where a match begins."""

    labels: tuple[str, ...]
    instructions: tuple[Instruction, ...]

    def __str__(self) -> str:
        width = len(str(len(self.instructions) - 1))
        return "\n".join(
            f"{number:>{width}}  {self._line(instruction)}"
            for number, instruction in enumerate(self.instructions)
        )

    def _line(self, instruction: Instruction) -> str:
        match instruction:
            case Take(label, shown):
                return f"take {self.labels[label]}" + ("" if shown else ", not shown")
            case Split(first, second):
                return f"try {first}, then {second}"
            case Jump(to):
                return f"go to {to}"
            case At(edge):
                return "only at the " + ("start" if edge is PartitionEdge.START else "end")
            case Accept():
                return "match"
            case _:
                assert_never(instruction)

    def successors(self, number: int) -> tuple[int, ...]:
        match self.instructions[number]:
            case Take() | At():
                return (number + 1,)
            case Split(first, second):
                return (first, second)
            case Jump(to):
                return (to,)
            case Accept():
                return ()

    @cached_property
    def may_be_empty(self) -> bool:
        """Whether a match may have no rows."""
        return not _always_takes(self, 0, set())

    @cached_property
    def rows_before(self) -> tuple[int, ...]:
        """For each instruction the least number of rows that are taken before it."""
        least = [len(self.instructions)] * len(self.instructions)
        waiting = [(0, 0)]
        while waiting:
            number, rows = waiting.pop()
            if rows < least[number]:
                least[number] = rows
                more = rows + isinstance(self.instructions[number], Take)
                waiting.extend((n, more) for n in self.successors(number))
        return tuple(least)

    def rows_before_labels(self, labels: Iterable[int]) -> int:
        """The least number of rows that are taken before one with one of these labels."""
        chosen = frozenset(labels)
        return min(
            before
            for before, instruction in zip(self.rows_before, self.instructions, strict=True)
            if isinstance(instruction, Take) and instruction.label in chosen
        )

    @cached_property
    def first_labels(self) -> frozenset[int]:
        """The labels that the first row of a match may have."""
        return frozenset(
            instruction.label
            for before, instruction in zip(self.rows_before, self.instructions, strict=True)
            if before == 0 and isinstance(instruction, Take)
        )

    @cached_property
    def later_labels(self) -> frozenset[int]:
        """The labels that other rows of a match may have."""
        takes = [n for n, i in enumerate(self.instructions) if isinstance(i, Take)]
        waiting, seen, labels = [n + 1 for n in takes], set[int](), set[int]()
        while waiting:
            number = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            instruction = self.instructions[number]
            if isinstance(instruction, Take):
                labels.add(instruction.label)
            waiting.extend(self.successors(number))
        return frozenset(labels)

    def reaching(self, chosen: frozenset[int]) -> frozenset[int]:
        """The instructions after which one of these labels may still have to be taken."""
        reaching = {
            number
            for number, instruction in enumerate(self.instructions)
            if isinstance(instruction, Take) and instruction.label in chosen
        }
        while True:
            more = {
                number
                for number in range(len(self.instructions))
                if number not in reaching and reaching.intersection(self.successors(number))
            }
            if not more:
                return frozenset(reaching)
            reaching |= more


def _always_takes(program: RowProgram, number: int, seen: set[int]) -> bool:
    if number in seen:
        return True
    seen.add(number)
    match program.instructions[number]:
        case Take():
            return True
        case Accept():
            return False
        case _:
            return all(_always_takes(program, n, seen) for n in program.successors(number))


def compile_pattern(pattern: RowPattern) -> RowProgram:
    """>>> from cepheid.row_patterns.clause import parse_pattern
    >>> print(compile_pattern(parse_pattern("A B*? (C | D)")))
    0  take A
    1  try 4, then 2
    2  take B
    3  go to 1
    4  try 5, then 7
    5  take C
    6  go to 8
    7  take D
    8  match
    """
    labels = tuple(dict.fromkeys(label.name for label in labels_of(pattern)))
    numbers = {name: number for number, name in enumerate(labels)}
    writer = _Writer()
    writer.write(_normal(pattern, numbers, shown=True))
    writer.add(Accept())
    return RowProgram(labels, tuple(writer.instructions))


# ── normal form ──────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Chain:
    items: tuple[_Part, ...] = ()


@dataclass(frozen=True, slots=True)
class _Choice:
    items: tuple[_Part, ...]


@dataclass(frozen=True, slots=True)
class _Alternative:
    """`takes`: it always takes a row; else it never does."""

    part: _Part
    takes: bool


@dataclass(frozen=True, slots=True)
class _Loop:
    """At most so many iterations, each of which is one of the alternatives. One that takes no row
    ends the loop."""

    alternatives: tuple[_Alternative, ...]
    most: int | None
    greedy: bool


_Part = Take | At | _Chain | _Choice | _Loop


def _normal(pattern: RowPattern, numbers: dict[str, int], shown: bool) -> _Part:
    match pattern:
        case Label(name):
            return Take(numbers[name], shown)
        case EmptyPattern():
            return _Chain()
        case Anchor(edge):
            return At(edge)
        case Concatenation(items):
            return _Chain(tuple(_normal(item, numbers, shown) for item in items))
        case Alternation(items):
            return _Choice(tuple(_normal(item, numbers, shown) for item in items))
        case Exclusion(item):
            return _normal(item, numbers, shown=False)
        case Permutation(items):
            if factorial(len(items)) * len(items) > MOST_INSTRUCTIONS:
                raise TooLong
            parts = [_normal(item, numbers, shown) for item in items]
            return _Choice(tuple(_Chain(order) for order in permutations(parts)))
        case Quantified(item, low, high, greedy):
            inner = _normal(item, numbers, shown)
            if low > MOST_INSTRUCTIONS:
                raise TooLong
            more = None if high is None else high - low
            loop = _Loop(tuple(_alternatives(inner)), more, greedy)
            return _Chain((*(inner,) * low, *(() if more == 0 else (loop,))))
        case _:
            assert_never(pattern)


def _nullable(part: _Part) -> bool:
    match part:
        case Take():
            return False
        case At() | _Loop():
            return True
        case _Chain(items):
            return all(map(_nullable, items))
        case _Choice(items):
            return any(map(_nullable, items))
        case _:
            assert_never(part)


def _alternatives(part: _Part) -> list[_Alternative]:
    """What the part stands for, in order of preference."""
    match part:
        case Take():
            return [_Alternative(part, True)]
        case At():
            return [_Alternative(part, False)]
        case _Choice(items):
            return [alternative for item in items for alternative in _alternatives(item)]
        case _Loop():
            return _iterated(part)
        case _Chain(items) if not all(map(_nullable, items)):
            return [_Alternative(part, True)]
        case _Chain(()):
            return [_Alternative(part, False)]
        case _Chain((first, *rest)):
            return _joined(first, tuple(rest))
        case _:
            raise AssertionError(part)


def _joined(first: _Part, rest: tuple[_Part, ...]) -> list[_Alternative]:
    """A chain of parts that may all be empty."""
    result: list[_Alternative] = []
    for alternative in _alternatives(first):
        if alternative.takes:
            result.append(_Alternative(_Chain((alternative.part, *rest)), True))
        else:
            result += [
                _Alternative(_Chain((alternative.part, other.part)), other.takes)
                for other in _alternatives(_Chain(rest))
            ]
        if len(result) > MOST_INSTRUCTIONS:
            raise TooLong
    return result


def _iterated(loop: _Loop) -> list[_Alternative]:
    fewer = None if loop.most is None else loop.most - 1
    again = () if fewer == 0 else (_Loop(loop.alternatives, fewer, loop.greedy),)
    once = [
        _Alternative(_Chain((a.part, *again)), True) if a.takes else a for a in loop.alternatives
    ]
    none = _Alternative(_Chain(), False)
    return [*once, none] if loop.greedy else [none, *once]


# ── instructions ─────────────────────────────────────────────────────────────


class _Writer:
    """Instructions as they are being written."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []

    def add(self, instruction: Instruction) -> int:
        if len(self.instructions) >= MOST_INSTRUCTIONS:
            raise TooLong
        self.instructions.append(instruction)
        return len(self.instructions) - 1

    @property
    def end(self) -> int:
        return len(self.instructions)

    def write(self, part: _Part) -> None:
        match part:
            case Take() | At():
                self.add(part)
            case _Chain(items):
                for item in items:
                    self.write(item)
            case _Choice(items):
                self._choice(items)
            case _Loop():
                self._loop(part)
            case _:
                assert_never(part)

    def _choice(self, items: tuple[_Part, ...]) -> None:
        jumps: list[int] = []
        for item in items[:-1]:
            split = self.add(Jump(-1))
            self.write(item)
            jumps.append(self.add(Jump(-1)))
            self.instructions[split] = Split(split + 1, self.end)
        self.write(items[-1])
        self._jump_here(jumps)

    def _jump_here(self, jumps: list[int]) -> None:
        for jump in jumps:
            self.instructions[jump] = Jump(self.end)

    def _loop(self, loop: _Loop) -> None:
        """Each iteration either leaves or takes one of the alternatives."""
        leaving: list[int] = []
        splits: list[int] = []
        for _ in range(1 if loop.most is None else loop.most):
            split = self.add(Jump(-1))
            splits.append(split)
            self._iteration(loop, None if loop.most is not None else split, leaving)
        self._jump_here(leaving)
        for split in splits:
            stay, leave = split + 1, self.end
            self.instructions[split] = Split(stay, leave) if loop.greedy else Split(leave, stay)

    def _iteration(self, loop: _Loop, back: int | None, leaving: list[int]) -> None:
        """The alternatives; after one that takes a row comes the next iteration: `back` is where,
        if it isn't the one that is written next."""
        jumps: list[int] = []
        last = len(loop.alternatives) - 1
        for number, alternative in enumerate(loop.alternatives):
            split = self.add(Jump(-1)) if number < last else None
            self.write(alternative.part)
            if not alternative.takes:
                leaving.append(self.add(Jump(-1)))
            elif back is not None:
                self.add(Jump(back))
            elif number < last:
                jumps.append(self.add(Jump(-1)))
            if split is not None:
                self.instructions[split] = Split(split + 1, self.end)
        self._jump_here(jumps)
