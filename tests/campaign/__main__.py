"""python -m tests.campaign [--minutes N] [--seed S] [--scenario NAME] [--faults NAME,…]

Runs `cepheid run --stream` over files that come in random portions, out of order, with rows and
files that can't be read, and kills it, fills its disk, starts it twice and changes its rules, at
random. At the end the matches are those that SQL finds, each once, and every row that took no part
is kept. It prints what it does; the exit code is 1 if something was wrong.

The decisions depend on the seed alone, their moments on the machine. Without --scenario it takes
one after another, each for the minutes given. What was drawn least often comes first, so a run of
all scenarios has every fault, format and master; it says if there was no time for one.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.campaign.draws import Draws
from tests.campaign.faults import FAULTS
from tests.campaign.run import Campaign, figures
from tests.campaign.scenarios import SCENARIOS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scenario", choices=sorted(SCENARIOS))
    parser.add_argument("--faults", default="", help=f"some of {','.join(FAULTS)}; by default all")
    parser.add_argument("--format", choices=("parquet", "json", "csv"))
    parser.add_argument(
        "--master", default="", help="Spark's; by default one is drawn for each campaign"
    )
    parser.add_argument("--place", type=Path, help="a new folder; by default a temporary one")
    given = parser.parse_args()
    faults = [name for name in given.faults.split(",") if name] or list(FAULTS)
    unknown = set(faults) - FAULTS.keys()
    if unknown:
        parser.error(f"no fault is called {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))  # whatever it has started ends with it
    wrong, done, draws = list[str](), Counter[str](), Draws()
    place = given.place or Path(tempfile.mkdtemp(prefix="campaign-"))
    for name in [given.scenario] if given.scenario else SCENARIOS:
        own = place / name
        campaign = Campaign(
            SCENARIOS[name], given.seed, own, faults, given.format, given.master, draws
        )
        wrong += campaign.run(60 * given.minutes)
        done += campaign.done
    print(f"altogether: {figures(done)}")
    if never := draws.never(faults):
        print(f"never drawn: {', '.join(never)}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
