"""The stock queries 1 to 3 of ZStream, section 3, on a dozen ticks.

    python examples/stocks.py

On the command line, with ticks in a file of your own:

    cepheid run examples/stocks_1_sequence.cep --input ticks.csv --time ts
        --param x=0.2 --param y=0.2
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd

import cepheid as cep

OPENING = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
# Seconds since the opening, name, price, volume.
TICKS = [
    (0.0, "IBM", 100.0, 500),
    (0.5, "Sun", 50.0, 100),
    (1.0, "Google", 80.0, 4000),
    (2.0, "Google", 82.0, 3000),
    (4.0, "Google", 81.0, 5000),
    (5.0, "IBM", 60.0, 700),
    (6.0, "Google", 79.0, 2000),
    (7.0, "Google", 80.0, 6000),
    (8.0, "Sun", 72.0, 300),
    (9.0, "IBM", 95.0, 200),
    (12.0, "Sun", 90.0, 100),
]
QUERIES: dict[str, dict[str, object]] = {
    "stocks_1_sequence.cep": {"x": 0.2, "y": 0.2},
    "stocks_2_negation.cep": {"x": 70},
    "stocks_3_closure.cep": {"v": 15_000},
}


def ticks() -> pd.DataFrame:
    frame = pd.DataFrame(TICKS, columns=["ts", "name", "price", "volume"])
    return frame.assign(ts=[OPENING + timedelta(seconds=second) for second in frame["ts"]])


def main() -> dict[str, pd.DataFrame]:
    found = {}
    for name, params in QUERIES.items():
        query = Path(__file__).with_name(name).read_text()
        found[name] = cep.match(ticks(), query, time="ts", params=params)
        print(query)
        print(found[name].to_string(index=False), end="\n\n")
    return found


if __name__ == "__main__":
    main()
