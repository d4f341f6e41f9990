"""python -m tests.fuzz [--texts N] [--seed S] [--first N] [--processes P]

Tries N texts and prints every kind of finding once, with the shortest text that shows it. A text is
made by the seed and its number alone: a run is continued with `--first`, and one text is repeated
with `--first NUMBER --texts 1`. The exit code is 1 if there are findings.
"""

from __future__ import annotations

import argparse
import sys

from tests.fuzz.run import run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first text")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    sys.exit(1 if run(given.texts, given.seed, given.first, given.processes) else 0)


if __name__ == "__main__":
    main()
