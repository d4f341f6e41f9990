"""A month of a web server's log with the counts of ZStream's Table 4 (section 6.5).

Schema: time, ip, url, category (the paper's Time, IP, Access-URL, Description). Of 1.5 million
records, 6775 are for publications, 11610 for projects and 16083 for courses, exactly; other sizes
have these counts in proportion, rounded. The month is 22 February to 22 March 2009, whatever the
size. The knobs:

- `visitors`: how many IP addresses there are.
- `skew`: Zipf's exponent of the visits per address; 0 makes all equally busy. A few busy addresses
  are what makes `publication ; project ; courses` from one address within 10 hours happen.

    >>> log = generate(150_000, seed=1)
    >>> log.column("category").to_pylist().count("publication")
    678
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.errors import DataError
from cepheid.workloads.chunks import (
    Ints,
    arrival_times,
    chunks,
    require_size,
    strings,
    tabled,
    timestamps,
)

SCHEMA = pa.schema(
    [
        ("time", pa.timestamp("us", tz="UTC")),
        ("ip", pa.string()),
        ("url", pa.string()),
        ("category", pa.string()),
    ]
)

TABLE_4_ROWS = 1_500_000
TABLE_4 = {"publication": 6775, "project": 11610, "courses": 16083}
START = int(datetime(2009, 2, 22, tzinfo=UTC).timestamp()) * 1_000_000
SPAN = int(timedelta(days=28).total_seconds()) * 1_000_000

_CATEGORIES = (*TABLE_4, "other")
_OTHER = len(TABLE_4)
_URLS_PER_CATEGORY = 250


def counts(rows: int) -> dict[str, int]:
    """How many of `rows` records each category of Table 4 has.

    >>> counts(1_500_000)
    {'publication': 6775, 'project': 11610, 'courses': 16083}
    """
    return {name: round(rows * count / TABLE_4_ROWS) for name, count in TABLE_4.items()}


def batches(
    rows: int, seed: int = 0, *, visitors: int = 20_000, skew: float = 1.0
) -> Iterator[pa.RecordBatch]:
    """Web log records; the module says what the knobs do."""
    if visitors < 1 or skew < 0:
        raise DataError(f"a log needs visitors and no negative skew, not {visitors} and {skew}")
    require_size(rows, seed)
    where, what = _relevant_rows(rows, seed)
    weights = np.arange(1, visitors + 1, dtype=np.float64) ** -skew
    thresholds = np.cumsum(weights) / weights.sum()
    addresses, urls = _addresses(visitors, seed), _urls()
    categories = pa.array(_CATEGORIES)
    for chunk in chunks(rows, seed):
        begin, end = np.searchsorted(where, (chunk.first, chunk.first + chunk.rows))
        category = np.full(chunk.rows, _OTHER, dtype=np.int8)
        category[where[begin:end] - chunk.first] = what[begin:end]
        time = arrival_times(chunk, rows, START, SPAN)
        drawn = np.searchsorted(thresholds, chunk.random.random(chunk.rows), side="right")
        visitor = np.minimum(drawn, visitors - 1)
        page = chunk.random.integers(0, _URLS_PER_CATEGORY, chunk.rows)
        columns = [
            timestamps(time),
            strings(visitor, addresses),
            strings(category.astype(np.int64) * _URLS_PER_CATEGORY + page, urls),
            strings(category, categories),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


generate = tabled(batches, SCHEMA)


def _relevant_rows(rows: int, seed: int) -> tuple[Ints, npt.NDArray[np.int8]]:
    """The row numbers of Table 4's records, sorted, and the category of each."""
    amounts = list(counts(rows).values())
    random = np.random.default_rng([seed, 1 << 32])
    where = random.choice(rows, size=sum(amounts), replace=False)
    what = np.repeat(np.arange(len(amounts), dtype=np.int8), amounts)
    order = np.argsort(where)
    return where[order], what[order]


def _addresses(visitors: int, seed: int) -> pa.Array:
    """Distinct addresses of the private network 10.0.0.0/8 and, past its size, of the next ones."""
    random = np.random.default_rng([seed, 2 << 32])
    shuffled = random.permutation(visitors)
    return pa.array(
        f"{10 + (n >> 24)}.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}" for n in shuffled.tolist()
    )


def _urls() -> pa.Array:
    """The pages, those of a category next to each other."""
    folders = ("publications/paper", "projects/project", "courses/lecture", "pages/page")
    return pa.array(
        f"/{folder}-{n:03}.html" for folder in folders for n in range(_URLS_PER_CATEGORY)
    )
