"""The programs that stand beside the engine make the matches that plain SQL counts."""

from __future__ import annotations

import duckdb
import pytest

from benchmarks import cold_start
from benchmarks.peers import __main__ as peers
from benchmarks.peers.workloads import WORKLOADS, PeerWorkload
from tests.benchmarks.test_answers import PLAIN_SQL

pytestmark = pytest.mark.slow

ROWS = {"q4": 900, "q5": 900, "q6": 1_500, "q7": 2_000, "q8": 150_000, "fraud": 6_000}
SQL = {
    **PLAIN_SQL,
    "fraud": """
        SELECT count(*) FROM events a, events b, events c
        WHERE a.card = b.card AND b.card = c.card AND (a.ts, a.id) < (b.ts, b.id)
          AND (b.ts, b.id) < (c.ts, c.id) AND c.ts - a.ts < INTERVAL 12 HOUR
          AND a.kind = 'purchase' AND b.kind = 'purchase' AND c.kind = 'purchase'
          AND a.amount < 100 AND b.amount < 100 AND c.amount > 250
    """,
}


def expected(workload: PeerWorkload, rows: int) -> int:
    table = workload.events(rows)
    if workload.name == "strict":
        return strict_runs(
            table.sort_by([("account", "ascending"), ("id", "ascending")]).to_pylist()
        )
    with duckdb.connect() as connection:
        connection.register("events", table)
        row = connection.execute(SQL[workload.name]).fetchone()
    assert row is not None
    return int(row[0])


def strict_runs(rows: list[dict[str, float]]) -> int:
    """From the first event that is left: rises, then a fall, all of one account."""
    matches = begin = 0
    while begin < len(rows):
        end = begin + 1
        while _same(rows, begin, end) and rows[end]["price"] > rows[end - 1]["price"]:
            end += 1
        if end - begin > 1 and _same(rows, begin, end):
            matches, begin = matches + 1, end + 1
        else:
            begin += 1
    return matches


def _same(rows: list[dict[str, float]], begin: int, end: int) -> bool:
    return end < len(rows) and rows[end]["account"] == rows[begin]["account"]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_all_programs_make_the_matches_of_plain_sql(workload: PeerWorkload) -> None:
    """`measured` raises, if one of them makes others than the loop."""
    rows = ROWS.get(workload.name, 3_000)
    record = peers.measured(workload, rows, repeats=1)
    assert record["matches"] == expected(workload, rows) > 0
    assert len(peers.cells(record)) == len(peers.HEADINGS)


def test_what_a_first_call_takes() -> None:
    record = cold_start.measured(cold_start.OTHER)
    assert len(cold_start.cells(record)) == len(cold_start.HEADINGS)
    assert 0 < record["few"] < record["known"] < record["first"]
