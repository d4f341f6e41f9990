"""The benchmarks of streams: their answers, the floor, and the verdict on long runs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid as cep
from benchmarks.measure import Timing, WrongAnswer
from benchmarks.streaming import cases, soak, start
from benchmarks.streaming.cases import PAIRS, Stream
from benchmarks.streaming.floor import Forwarding, Storing, stored
from benchmarks.streaming.running import Batch, session, typical
from benchmarks.streaming.soak import Sample
from benchmarks.streaming.speed import COLUMNS, Setup, cepheid, joined
from benchmarks.streaming.writing import keep, keep_soak, markdown, update_page
from cepheid.cli.fraud_demo import QUERY
from cepheid.spark.streaming.pipeline import ROCKSDB

SMALL = Stream(batch=2_000, batches=3, window=2_000, cards=40)


@pytest.fixture
def stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stream:
    monkeypatch.setattr(cases, "FOLDER", tmp_path)
    return SMALL


def test_files_are_batches_of_one_stream(stream: Stream) -> None:
    files = sorted(stream.files().iterdir(), key=lambda file: file.stat().st_mtime)
    tables = [pq.read_table(file) for file in files]
    assert [table.num_rows for table in tables] == [2_000] * 3
    assert pa.concat_tables(tables)["id"].to_pylist() == list(range(6_000))


@pytest.mark.parametrize("query", [QUERY, PAIRS])
def test_plain_sql_and_the_engine_find_as_many(stream: Stream, query: str) -> None:
    found = cep.match(pq.read_table(stream.files()), query, **COLUMNS).num_rows
    assert found > 0
    assert stream.matches(query) == found


@pytest.mark.slow
def test_every_way_gets_all_events(stream: Stream) -> None:
    relevant = duckdb.sql(
        f"SELECT count(*) FROM '{stream.files()}/*.parquet' "
        "WHERE kind = 'purchase' AND (amount < 100 OR amount > 250)"
    ).fetchall()[0][0]
    options = {**COLUMNS, "jit": False}
    ways = {
        "store": (partial(stored, Storing, query=QUERY, **options), 0),
        "forward": (partial(stored, Forwarding, query=QUERY, **options), relevant),
        "join": (partial(joined, query=PAIRS, provider=ROCKSDB), stream.matches(PAIRS)),
        "joins": (partial(joined, query=QUERY, provider=ROCKSDB), stream.matches(QUERY)),
        "cepheid": (cepheid(PAIRS, jit=False), stream.matches(PAIRS)),
    }
    with session() as spark:
        setup = Setup(spark)
        found = {name: setup.batches(name, stream, *way) for name, way in ways.items()}
        with pytest.raises(WrongAnswer, match="where there are 1"):
            setup.batches("store", stream, ways["store"][0], 1)
    assert all(batch.time.cpu > 0 and batch.time.wall > 0 for b in found.values() for batch in b)
    # What is stored is about a window, not the stream.
    assert relevant / 6 < found["store"][-1].rows < relevant * 5 / 6


def test_a_typical_batch_is_the_median() -> None:
    batches = [Batch(n, Timing(cpu, 2 * cpu), 1, 1, 1, 1) for n, cpu in enumerate((3, 1, 50))]
    assert typical(batches) == Timing(3, 6)


def test_matches_without_an_end_are_counted_by_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "CARDS", 20)
    monkeypatch.setattr(soak, "WINDOW", 300)
    number = np.arange(2_000)
    card, kind, level = (soak.mixed(number, salt, soak._array_shift) for salt in (1, 2, 3))
    events = pa.table(
        {"n": number, "card": card % 20, "kind": kind % 10_000, "rank": level % 10_000}
    )
    assert events.num_rows == 2_000
    expected = duckdb.sql("""
        WITH bought AS (SELECT * FROM events WHERE kind < 7800)
        SELECT count(*) FROM bought c
        JOIN bought b ON b.card = c.card AND b.n < c.n AND b.n > c.n - 300 AND b.rank < 9000
        JOIN bought a ON a.card = c.card AND a.n < b.n AND a.n > c.n - 300 AND a.rank < 9000
        WHERE c.rank >= 9870
    """).fetchall()[0][0]
    assert expected > 0
    assert soak.count(2_000) == soak.count(2_000, part=450) == expected


# ── long runs ──


def samples(growth: float) -> list[Sample]:
    """A run in which the workers' memory grows so much per batch."""
    first = Sample(0, 0, 0, 0, 1.0, 1.5, 100, 1_000, 900, 150, 300, 4)
    return [
        replace(
            first,
            seconds=2.0 * n,
            batch=n,
            events=soak.BATCH * (n + 1),
            workers=300 + round(growth * n),
        )
        for n in range(120)
    ]


@pytest.mark.parametrize(("growth", "flat"), [(0.0, True), (0.2, True), (5.0, False)])
def test_memory_that_grows_is_not_flat(growth: float, flat: bool) -> None:
    claims = {claim["text"]: claim["holds"] for claim in soak.record(samples(growth))["claims"]}
    assert claims.pop("memory of the workers stays flat") is flat
    assert all(claims.values())


def test_a_long_run_is_kept_and_shown(tmp_path: Path) -> None:
    run_ = samples(0.0)
    figures = soak.record(run_)
    keep_soak(figures, run_, tmp_path, tmp_path / "plots")
    assert soak.read_csv(tmp_path / "soak.csv") == run_
    assert (tmp_path / "plots" / "soak.svg").stat().st_size > 1_000
    assert "4.0 minutes, 12 M events" in markdown(figures)
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- streaming: begin -->\nold\n<!-- streaming: end -->\nafter\n")
    update_page(tmp_path, readme)
    text = readme.read_text()
    assert "old" not in text and "A stream without an end" in text and text.endswith("after\n")
    assert text.startswith("before\n")


FAILING = """
import json, sys
from pathlib import Path
attempts = Path(sys.argv[1]) / "attempts"
attempts.write_text((attempts.read_text() if attempts.exists() else "") + "x")
if len(attempts.read_text()) < int(sys.argv[2]):
    sys.exit("org.apache.spark.SparkException: Python worker failed to connect back.")
sys.exit("StateError: the query is not the one")
"""


def test_a_start_that_fails_says_why(tmp_path: Path) -> None:
    program = tmp_path / "failing.py"
    program.write_text(FAILING)
    # Spark fails twice because the machine is busy, and then the query fails.
    with pytest.raises(RuntimeError, match="a query has failed:\nStateError: the query is not"):
        start.start(tmp_path, 3, tmp_path, program, True)
    assert (tmp_path / "attempts").read_text() == "xxx"
    with pytest.raises(RuntimeError, match="failed to connect back"):
        start.start(tmp_path, 99, tmp_path, program, True)
    assert (tmp_path / "attempts").read_text() == "xxxxxx"


def test_starts_are_kept_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times of plain Spark, of a version before and of ours, which is compared with that."""

    def begun(folder: Path, count: int, source: Path, program: Path, archive: bool) -> start.Start:
        seconds = 9.0 if program.stem == "started_plain" else 20.0 if source == old else 10.0
        batches = seconds if archive else seconds + 2
        return start.Start(1, 2, batches, planning=3, cpu=2 * seconds)

    old = tmp_path / "old"
    monkeypatch.setattr(start, "create_archive", lambda: None)
    monkeypatch.setattr(start, "start", begun)
    figures = start.measure([5], {"before": old, start.NOW: tmp_path}, 1, lambda _: None)
    (table,) = figures["tables"]
    assert [(row[0], row[1], row[3]) for row in table["rows"] if row[1] == "first"] == [
        ("plain Spark", "first", "9.0"),
        ("before", "first", "20.0"),
        ("now", "first", "10.0"),
        ("now, the first time", "first", "12.0"),
    ]
    assert [claim["holds"] for claim in figures["claims"]] == [True] * 8
    keep(figures, tmp_path)
    readme = tmp_path / "README.md"
    readme.write_text("<!-- streaming: begin -->\n<!-- streaming: end -->\n")
    update_page(tmp_path, readme)
    text = readme.read_text()
    assert "From nothing to a first batch" in text
    assert "`python -m benchmarks.streaming start --queries 5 --turns 1 --against SOURCES`" in text
