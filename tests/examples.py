"""How much of what is alike a run tries, in one place.

Random cases: `make test` draws the first number, `make test-all` (`--slow`) the second.
CEPHEID_EXAMPLES in the environment replaces both, to look for new cases: then they aren't the same
in every run. Ways to run one case: `make test` takes some in turn, `make test-all` all of them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar
from zlib import crc32

Choice = TypeVar("Choice")

LONG = "CEPHEID_LONG"
"""Set in the environment by `--slow`, before tests are collected."""

NUMBERS: dict[str, tuple[int, int]] = {
    "after match": (40, 150),
    "answers": (60, 300),
    "answers against SQL": (40, 600),
    "any query is bound": (40, 60),
    "any text": (200, 400),
    "at once": (8, 100),
    "bounds": (40, 100),
    "canonical text": (80, 500),
    "changed sets": (30, 150),
    "counted branches": (40, 1000),
    "counted chains": (30, 1000),
    "counted patterns": (1, 20),
    "dealt rules in sessions": (20, 150),
    "durations": (40, 150),
    "engine": (100, 600),
    "folds": (40, 200),
    "interner": (25, 300),
    "joined rules on streams": (8, 15),
    "language": (120, 850),
    "laws": (15, 50),
    "layouts": (50, 150),
    "lifted rules": (8, 25),
    "nested": (30, 200),
    "others": (40, 100),
    "outlines": (60, 400),
    "own choices": (40, 200),
    "pass work": (25, 150),
    "promptness": (40, 120),
    "propagation": (40, 120),
    "queries that bind": (60, 200),
    "reasons": (25, 100),
    "resumed": (30, 120),
    "rewrites": (45, 60),
    "row patterns": (2000, 20000),
    "row patterns on Spark": (10, 200),
    "rule sets": (30, 150),
    "rule sets on Spark": (15, 60),
    "rules in sessions": (20, 80),
    "rules on streams": (15, 60),
    "session answers": (60, 400),
    "sessions": (40, 150),
    "shared plans": (20, 50),
    "shared queries": (30, 200),
    "shedding": (30, 60),
    "split texts": (120, 500),
    "stacks": (40, 100),
    "streams": (40, 120),
    "switched plans": (30, 125),
    "timeouts": (40, 150),
    "threads": (80, 400),
    "tiny buffers": (50, 120),
    "typed frames": (10, 40),
    "variants": (60, 300),
}


def examples(test: str, part: int = 1) -> int:
    """The number of cases of a test; `part=3` gives a third, to tests beside the first one."""
    usual, long = NUMBERS[test]
    chosen = os.environ.get("CEPHEID_EXAMPLES")
    number = int(chosen) if chosen is not None else long if LONG in os.environ else usual
    return max(1, number // part)


def in_turn(choices: Sequence[Choice], case: str, count: int = 1) -> Sequence[Choice]:
    """The ways in which to run a case: all of them in a long run, else some, which depend on the
    name of the case alone. So every way is tried by some cases, and a new case moves no other."""
    if LONG in os.environ or count >= len(choices):
        return choices
    first = crc32(case.encode())
    return [choices[(first + n) % len(choices)] for n in range(count)]
