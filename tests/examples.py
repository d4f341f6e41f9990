"""How many random cases each test draws, in one place.

`make test` draws the first number, `make test-all` (`--slow`) the second. CEPHEID_EXAMPLES in the
environment replaces both, to look for new cases: then they aren't the same in every run.
"""

from __future__ import annotations

import os

LONG = "CEPHEID_LONG"
"""Set in the environment by `--slow`, before tests are collected."""

NUMBERS: dict[str, tuple[int, int]] = {
    "after match": (40, 150),
    "any query is bound": (40, 60),
    "bounds": (40, 100),
    "canonical text": (120, 500),
    "engine": (150, 600),
    "folds": (40, 200),
    "joined rules on streams": (8, 15),
    "language": (250, 850),
    "lifted rules": (8, 25),
    "outlines": (60, 400),
    "propagation": (50, 120),
    "resumed": (40, 120),
    "rewrites": (30, 60),
    "rule sets": (40, 150),
    "rule sets on Spark": (15, 60),
    "rules on streams": (15, 60),
    "shared plans": (25, 50),
    "shared queries": (50, 200),
    "shedding": (30, 60),
    "stacks": (40, 100),
    "streams": (40, 120),
    "switched plans": (40, 125),
    "typed frames": (20, 40),
}


def examples(test: str) -> int:
    usual, long = NUMBERS[test]
    chosen = os.environ.get("CEPHEID_EXAMPLES")
    if chosen is not None:
        return max(1, int(chosen))
    return long if LONG in os.environ else usual
