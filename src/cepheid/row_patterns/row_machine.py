"""Runs a program over arranged rows: a loop that Numba compiles.

Each row has a word of bits, one for each label whose condition it satisfies (as far as that is
known of the row alone). The machine tries the preferred way first and returns to the last
alternative when it fails. Whether an alternative leads to a match from a row on depends on the
rest of the partition alone, unless a condition reads the rows taken before; so a failure is
remembered for all matches that begin later, and every alternative is tried at a row once: the work
is linear in rows times instructions.

Conditions that read the rows taken so far are lines of the loop (see `definitions`); without them
the source is always the same, and is compiled once per machine.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cepheid.kernels.compile import is_cold, load
from cepheid.row_patterns.row_program import Accept, At, Jump, RowProgram, Split, Take
from cepheid.row_patterns.syntax import PartitionEdge, SkipTo

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Budget:
    """The steps that the search in one partition may take: so many for each of its rows, and never
    less than `least`. Only conditions that read rows taken before, and WITHIN, come near it."""

    per_row: int = 100_000
    least: int = 20_000_000


_COMPILED_ROWS, _COMPILED_STEPS = 20_000, 500_000
"""Below so many rows an uncached kernel begins as plain Python, since compiling takes longer; after
so many steps, in all runs of the process, it is compiled, and continues."""

_plain_steps: Counter[str] = Counter()
"""The steps that kernels took as plain Python, by their source."""

_FOREVER = np.iinfo(np.int64).max

_SIGNATURE = """
@jit
def kernel(
    code, slots, mask, times, begins, settings, progress, carried, starts, lengths, numbers,
    taken, path, memo, stack, trail, cols, params, ints, floats
):
    kinds, firsts, seconds, slot_of, label_of = code[0], code[1], code[2], code[3], code[4]
    skip, skip_set, first_set, empty, window, stamped = (
        settings[0], settings[1], settings[2], settings[3], settings[4], settings[5]
    )
    per_row, least, pause, endless, reached = (
        settings[6], settings[7], settings[8], settings[9], settings[10]
    )
"""
_SEARCH = """\
    partition, start, matches, rows_taken, number = (
        progress[0], progress[1], progress[2], progress[3], progress[4]
    )
    all_failures, all_steps, spent = progress[6], progress[7], progress[8]
    while partition < begins.shape[0] - 1:
        begin, end = begins[partition], begins[partition + 1]
        moved = carried[partition, 2]
        limit = max(least, per_row * (end - begin))
        if start < 0:
            start = begin + carried[partition, 0]
            number = carried[partition, 1]
            spent = 0
            memo[: (end - begin + 1) * slots] = 0
        while start < end:
            if empty == 0 and (mask[start] & first_set) == 0:
                start += 1
                continue
            stamp = start - begin + 1 if stamped else 1
            pc, row, top, marks, steps, failures = 0, start, 0, 0, 0, 0
            status = 0
            found = False
            while True:
                steps += 1
                kind = kinds[pc]
                if kind == 0:
                    if endless and row == end:
                        if window < 0 or reached - times[start] < window:
                            status = 6
                            break
                    label = firsts[pc]
                    ok = row < end and ((mask[row] >> label) & 1) == 1
                    if ok and window >= 0 and times[row] - times[start] >= window:
                        ok = False
"""
_OUTCOME = """\
                    if ok:
                        path[row - start] = pc
                        row += 1
                        pc += 1
                        continue
                elif kind == 1:
                    slot = slot_of[pc]
                    at = (row - begin) * slots + slot
                    if slot < 0 or memo[at] != stamp:
                        if top >= stack.shape[0] or marks >= trail.shape[0]:
                            status = 2
                            break
                        if slot >= 0:
                            memo[at] = stamp
                            trail[marks] = at
                            marks += 1
                        stack[top, 0] = seconds[pc]
                        stack[top, 1] = row
                        stack[top, 2] = marks
                        top += 1
                        pc = firsts[pc]
                        continue
                elif kind == 2:
                    pc = firsts[pc]
                    continue
                elif kind == 3:
                    if row == begin and moved == 0:
                        pc += 1
                        continue
                elif kind == 4:
                    if row == end:
                        pc += 1
                        continue
                else:
                    found = True
                    break
                failures += 1
                if spent + steps > limit:
                    status = 3
                    break
                if all_steps + steps > pause:
                    status = 7
                    break
                if top == 0:
                    break
                top -= 1
                pc, row, marks = stack[top, 0], stack[top, 1], stack[top, 2]
            all_failures += failures
            all_steps += steps
            spent += steps
            length = row - start
            if found and status == 0:
                if matches >= starts.shape[0] or rows_taken + length > taken.shape[0]:
                    status = 1
            if found or status != 0:
                for n in range(marks):
                    memo[trail[n]] = 0
            if status == 6:
                break
            if status != 0:
                progress[5] = status
                break
            if not found:
                start += 1
                continue
            number += 1
            starts[matches] = start
            lengths[matches] = length
            numbers[matches] = number
            matches += 1
            for n in range(length):
                taken[rows_taken + n] = path[n]
            rows_taken += length
            if length == 0 or skip == 1:
                start += 1
            elif skip == 0:
                start = row
            else:
                target = -1
                for n in range(length):
                    at_row = n if skip == 2 else length - 1 - n
                    if ((skip_set >> label_of[path[at_row]]) & 1) == 1:
                        target = at_row
                        break
                if target <= 0:
                    progress[5] = 4 if target < 0 else 5
                    break
                start += target
        if progress[5] != 0:
            break
        carried[partition, 0] = start
        carried[partition, 1] = number
        partition += 1
        start = -1
    progress[0], progress[1], progress[2], progress[3], progress[4] = (
        partition, start, matches, rows_taken, number
    )
    progress[6], progress[7], progress[8] = all_failures, all_steps, spent
"""


class _Kind(IntEnum):
    TAKE = 0
    SPLIT = 1
    JUMP = 2
    START = 3
    END = 4
    ACCEPT = 5


class SearchStatus(IntEnum):
    """Why the kernel stopped, or left a partition (WAITING)."""

    DONE = 0
    FULL = 1
    DEEP = 2
    BUDGET = 3
    NO_LABEL = 4
    NO_PROGRESS = 5
    WAITING = 6
    SLOW = 7


_SKIPS = {SkipTo.PAST_LAST_ROW: 0, SkipTo.NEXT_ROW: 1, SkipTo.FIRST: 2, SkipTo.LAST: 3}


class Stuck(Exception):
    """The search can't continue from a row of a partition; `status` says why."""

    def __init__(self, status: SearchStatus, partition: int, row: int) -> None:
        super().__init__(status.name)
        self.status = status
        self.partition = partition
        self.row = row


@dataclass(frozen=True)
class Checks:
    """Conditions that read the rows taken so far, as source, and what the source is called with.
    `labels` are those that have one; `ints` and `floats` are how many registers it uses."""

    labels: frozenset[int] = frozenset()
    unpack: str = ""
    lines: str = ""
    columns: tuple[Any, ...] = ()
    params: tuple[Any, ...] = ()
    ints: int = 0
    floats: int = 0

    @property
    def source(self) -> str:
        return "".join((_SIGNATURE, self.unpack, _SEARCH, self.lines, _OUTCOME))


@dataclass(frozen=True)
class MatchedRows:
    """Matches in order: where each begins, how many rows it has, its number in the partition; and
    the instruction that took each row, match after match."""

    starts: Numbers
    lengths: Numbers
    numbers: Numbers
    instructions: NDArray[np.int32]
    steps: int = 0
    backtracks: int = 0


@dataclass(frozen=True)
class Ongoing:
    """Partitions to which rows may still come, all of them at `reached` or later. `carried` has for
    each partition the row (from its first) where the search continues, its matches so far, and how
    many rows stood before those that are left; a run leaves there where it stops, from the first
    row of all."""

    reached: int
    carried: Numbers


@dataclass(frozen=True)
class RowMachine:
    """A program with what else decides about matches. `window` is the bound of WITHIN."""

    program: RowProgram
    skip: SkipTo = SkipTo.PAST_LAST_ROW
    skip_labels: frozenset[int] = frozenset()
    window: int | None = None
    checks: Checks = field(default_factory=Checks)
    budget: Budget = field(default_factory=Budget)

    def run(
        self,
        mask: Numbers,
        begins: Numbers,
        times: Numbers | None = None,
        jit: bool | None = None,
        ongoing: Ongoing | None = None,
    ) -> MatchedRows:
        """The matches of all partitions; `Stuck`, if one can't be found out."""
        source = self.checks.source
        patience = _COMPILED_STEPS - _plain_steps[source]
        small = len(mask) < _COMPILED_ROWS and patience > 0
        quick = jit is None and small and is_cold(source)
        kernel = load(source, not quick if jit is None else jit)
        code, slots = self._code()
        longest = int(np.diff(begins).max()) if len(begins) > 1 else 0
        settings = self._settings(patience if quick else _FOREVER, ongoing)
        progress = np.array([0, -1, 0, 0, 0, 0, 0, 0, 0], np.int64)
        carried = ongoing.carried if ongoing else np.zeros((len(begins) - 1, 3), np.int64)
        room = 1024 + len(mask) // 2  # pages that nothing is written to cost nothing
        starts, lengths, numbers = (np.empty(room, np.int64) for _ in range(3))
        taken = np.empty(4096 + len(mask), np.int32)
        path = np.empty(longest + 1, np.int32)
        memo = np.zeros((longest + 1) * slots, np.int32)
        stack, trail = np.empty((1024, 3), np.int64), np.empty(1024, np.int64)
        ints = np.zeros((self.checks.ints, longest + 2), np.int64)
        floats = np.zeros((self.checks.floats, longest + 2), np.float64)
        clock = np.zeros(0, np.int64) if times is None else times
        while progress[0] < len(begins) - 1:
            with np.errstate(all="ignore"):
                kernel(
                    code, slots, mask, clock, begins, settings, progress, carried, starts, lengths,
                    numbers, taken, path, memo, stack, trail, self.checks.columns,
                    self.checks.params, ints, floats,
                )  # fmt: skip
            match SearchStatus(int(progress[5])):
                case SearchStatus.FULL:
                    starts, lengths, numbers = map(_larger, (starts, lengths, numbers))
                    taken = _larger(taken, int(progress[3]) + longest)
                case SearchStatus.DEEP:
                    stack = np.empty((len(stack) * 4, 3), np.int64)
                    trail = np.empty(len(trail) * 4, np.int64)
                case SearchStatus.SLOW:
                    kernel = load(source, True)
                    settings = self._settings(_FOREVER, ongoing)
                case SearchStatus.DONE:
                    pass
                case stuck:
                    partition = int(progress[0])
                    raise Stuck(stuck, partition, int(progress[1] - begins[partition]))
            progress[5] = 0
        if quick:
            _plain_steps[source] += int(progress[7])
        count = int(progress[2])
        return MatchedRows(
            starts[:count],
            lengths[:count],
            numbers[:count],
            taken[: int(progress[3])],
            steps=int(progress[7]),
            backtracks=int(progress[6]),
        )

    def _code(self) -> tuple[Numbers, int]:
        """The instructions as numbers. A failure is remembered at a split from which no condition
        follows that reads the rows taken before."""
        program = self.program
        code = np.full((5, len(program.instructions)), -1, np.int64)
        forgetful = program.reaching(self.checks.labels)
        slots = 0
        for number, instruction in enumerate(program.instructions):
            match instruction:
                case Take(label):
                    code[:3, number] = _Kind.TAKE, label, -1
                    code[4, number] = label
                case Split(first, second):
                    code[:3, number] = _Kind.SPLIT, first, second
                    if number not in forgetful:
                        code[3, number] = slots
                        slots += 1
                case Jump(to):
                    code[:2, number] = _Kind.JUMP, to
                case At(edge):
                    code[0, number] = _Kind.START if edge is PartitionEdge.START else _Kind.END
                case Accept():
                    code[0, number] = _Kind.ACCEPT
        return code, slots

    def _settings(self, pause: int, ongoing: Ongoing | None) -> Numbers:
        program = self.program
        empty = program.may_be_empty
        return np.array(
            [
                _SKIPS[self.skip],
                sum(1 << label for label in self.skip_labels),
                sum(1 << label for label in program.first_labels),
                empty,
                -1 if self.window is None else self.window,
                self.window is not None,
                self.budget.per_row,
                self.budget.least,
                pause,
                ongoing is not None,
                0 if ongoing is None else ongoing.reached,
            ],
            np.int64,
        )


def _larger(array: NDArray[Any], least: int = 0) -> NDArray[Any]:
    grown = np.empty(max(2 * len(array), least), array.dtype)
    grown[: len(array)] = array
    return grown
