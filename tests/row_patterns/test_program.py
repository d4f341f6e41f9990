"""Programs: printed, and run against Python's regular expressions over strings of labels."""

from __future__ import annotations

import re
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

from cepheid.kernels.compile import load as load_kernel
from cepheid.row_patterns import row_machine
from cepheid.row_patterns.clause import parse_pattern
from cepheid.row_patterns.row_machine import RowMachine
from cepheid.row_patterns.row_program import MOST_INSTRUCTIONS, TooLong, compile_pattern

SNAPSHOTS = {
    "A": "0  take A\n1  match",
    "A?": "0  try 1, then 2\n1  take A\n2  match",
    "A??": "0  try 2, then 1\n1  take A\n2  match",
    "A{2,3}": "0  take A\n1  take A\n2  try 3, then 4\n3  take A\n4  match",
    "^ A | B $": (
        "0  try 1, then 4\n1  only at the start\n2  take A\n3  go to 6\n4  take B\n"
        "5  only at the end\n6  match"
    ),
    "A {- B -}": "0  take A\n1  take B, not shown\n2  match",
    # An iteration without a row leaves the loop.
    "(A | ())*": (
        "0  try 1, then 5\n1  try 2, then 4\n2  take A\n3  go to 0\n4  go to 5\n5  match"
    ),
}


@pytest.mark.parametrize("pattern", SNAPSHOTS)
def test_program(pattern: str) -> None:
    assert str(compile_pattern(parse_pattern(pattern))) == SNAPSHOTS[pattern]


@pytest.mark.parametrize("pattern", [f"A{{{MOST_INSTRUCTIONS}}}", "((A{99}){99}){99}"])
def test_long_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(TooLong):
        compile_pattern(parse_pattern(pattern))


def test_permutations_beyond_reason_are_refused() -> None:
    with pytest.raises(TooLong):
        compile_pattern(parse_pattern(f"PERMUTE({', '.join('ABCDEFGHIJ')})"))


def _draw(random: Random, depth: int) -> str:
    kind = random.random()
    if depth == 0 or kind < 0.3:
        return random.choice("ABC")
    if kind < 0.6:
        return "(" + " ".join(_draw(random, depth - 1) for _ in range(random.randint(1, 3))) + ")"
    if kind < 0.75:
        return f"({_draw(random, depth - 1)}|{_draw(random, depth - 1)})"
    quantifiers = ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{0,2}?"]
    return f"({_draw(random, depth - 1)}){random.choice(quantifiers)}"


def _spans(pattern: str, text: str) -> list[tuple[int, int]]:
    program = compile_pattern(parse_pattern(pattern))
    bits = [sum(1 << n for n, label in enumerate(program.labels) if label == c) for c in text]
    begins = np.array([0, len(text)])
    found = RowMachine(program).run(np.array(bits, np.int64), begins, jit=False)
    ends = found.starts + found.lengths
    return list(zip(found.starts.tolist(), ends.tolist(), strict=True))


def _expected(pattern: str, text: str) -> list[tuple[int, int]]:
    expression = re.compile(pattern.replace(" ", ""))
    spans: list[tuple[int, int]] = []
    at = 0
    while at < len(text):
        found = expression.match(text, at)
        if found:
            spans.append((at, found.end()))
        at = max(found.end() if found else 0, at + 1)
    return spans


def test_patterns_match_as_regular_expressions_do() -> None:
    random = Random(3)
    for _ in range(1000):
        pattern = _draw(random, 3)
        text = "".join(random.choice("ABC") for _ in range(random.randint(1, 9)))
        assert _spans(pattern, text) == _expected(pattern, text), (pattern, text)


def test_a_kernel_that_is_often_run_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run is too small to compile for, but there are many."""
    asked: list[bool] = []

    def load(source: str, jit: bool) -> Any:
        asked.append(jit)
        return load_kernel(source, False)

    monkeypatch.setattr(row_machine, "load", load)
    monkeypatch.setattr(row_machine, "is_cold", lambda source: True)
    monkeypatch.setattr(row_machine, "_plain_steps", Counter())
    monkeypatch.setattr(row_machine, "_COMPILED_STEPS", 250)
    machine = RowMachine(compile_pattern(parse_pattern("A A")))
    for _ in range(4):  # of 100 rows, and two steps and a half for each
        found = machine.run(np.ones(100, np.int64), np.array([0, 100]))
        assert len(found.starts) == 50
    assert asked[0] is False and asked[-1] is True
    assert asked == sorted(asked)


def test_ambiguous_patterns_take_linear_time() -> None:
    """Trino needed 45 seconds for 5,000 rows; here every alternative is tried once at a row."""
    program = compile_pattern(parse_pattern("(A+ B?)+ C"))
    for rows in (1000, 5000):
        bits = np.ones(rows, np.int64)
        found = RowMachine(program).run(bits, np.array([0, rows]), jit=False)
        assert len(found.starts) == 0
        assert found.backtracks < 10 * rows
