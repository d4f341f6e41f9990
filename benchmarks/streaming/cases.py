"""Streams of card transactions as folders of files, one file for each batch, and their answers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.pipeline import FOLDER, SEED, count_by_sql
from cepheid.cli.fraud_demo import QUERY
from cepheid.workloads import fraud

COLUMNS = "id long, ts timestamp, card long, kind string, amount double, country string"
GROUP = 1 << 17

PAIRS = """\
PATTERN s ; big
WHERE   s.card = big.card
  AND   [kind = 'purchase']
  AND   s.amount < 100 AND big.amount > 250
WITHIN  12 hours
RETURN  big.card AS card, s.ts AS tested, s.amount AS small, big.ts AS spent, big.amount AS large
"""
"""The fraud query with one small purchase: a single join of two streams."""

PAIRS_SQL = """
    WITH purchase AS (SELECT id, ts, card, amount FROM '{path}' WHERE kind = 'purchase'),
    small AS (SELECT * FROM purchase WHERE amount < 100),
    big AS (SELECT * FROM purchase WHERE amount > 250)
    SELECT count(*)
    FROM big JOIN small s ON s.card = big.card AND (s.ts, s.id) < (big.ts, big.id)
                         AND s.ts > big.ts - INTERVAL 12 HOUR
"""


@dataclass(frozen=True)
class Stream:
    """So many batches of so many events each. In a window, that is 12 hours, come `window` events;
    they are of `cards` cards."""

    batch: int
    batches: int
    window: int = 100_000
    cards: int = 20_000

    @property
    def events(self) -> int:
        return self.batch * self.batches

    @property
    def folder(self) -> Path:
        sizes = (self.batch, self.batches, self.window, self.cards)
        return FOLDER / "-".join(map(str, ("stream", SEED, *sizes)))

    def files(self) -> Path:
        """The folder, filled now if it isn't there."""
        if not self.folder.exists():
            unfinished = self.folder.with_suffix(".part")
            unfinished.mkdir(parents=True, exist_ok=True)
            for number, table in enumerate(self._tables()):
                path = unfinished / f"{number:05}.parquet"
                pq.write_table(table, path, row_group_size=GROUP)
                os.utime(path, (number + 1, number + 1))  # files are read in this order
            unfinished.rename(self.folder)
        return self.folder

    def _tables(self) -> Iterator[pa.Table]:
        days = 0.5 * self.events / self.window
        held: list[pa.RecordBatch] = []
        for batch in fraud.batches(self.events, SEED, days=days, cards=self.cards):
            held.append(batch)
            table = pa.Table.from_batches(held)
            while table.num_rows >= self.batch:
                yield table.slice(0, self.batch)
                table = table.slice(self.batch)
            held = table.to_batches()

    def matches(self, query: str = QUERY) -> int:
        """How many there are, without our engine."""
        path = self.files() / "*.parquet"
        return count_by_sql(path) if query == QUERY else count_pairs(path)


def count_pairs(path: Path) -> int:
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        row = connection.execute(PAIRS_SQL.format(path=path)).fetchone()
    assert row is not None
    return int(row[0])
