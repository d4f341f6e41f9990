"""The streaming example runs, and raises the alarms that a person would; so does the page's."""

from __future__ import annotations

import os
import runpy
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from cepheid.workloads import fraud
from tests.docs.blocks import blocks

EXAMPLES = Path(__file__).parents[2] / "examples" / "streaming"
ROWS, FILES = 12_000, 3

READINGS = (
    "10:00 SHELF 7, 10:05 SHELF 8, 10:20 COUNTER 7, 10:30 EXIT 7",
    "10:31 EXIT 8, 10:42 SHELF 9",
    "10:35 EXIT 9, 10:50 SHELF 5",
)
"""The files of the page's example."""


def place(event: dict[str, Any]) -> tuple[Any, int]:
    return event["ts"], event["id"]


def alarms(rows: int) -> Counter[int]:
    """By brute force: every large purchase, once for each pair of small ones before it on its card
    and in its country, the first of them less than three hours ago."""
    purchases: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for event in fraud.generate(rows, days=2.0, cards=2000).to_pylist():
        if event["kind"] == "purchase":
            purchases[event["card"], event["country"]].append(event)
    found: Counter[int] = Counter()
    for own in purchases.values():
        for large in own:
            since = large["ts"] - timedelta(hours=3)
            before = [e for e in own if since < e["ts"] and place(e) < place(large)]
            small = [e for e in before if e["amount"] < fraud.SMALL]
            if large["amount"] > fraud.LARGE:
                found[large["id"]] += sum(1 for _ in combinations(small, 2))
    return +found


def test_every_streaming_example_is_tested() -> None:
    assert [p.name for p in EXAMPLES.glob("*.py")] == ["fraud_stream.py"]


@pytest.mark.classic
def test_fraud_stream(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main = runpy.run_path(str(EXAMPLES / "fraud_stream.py"))["main"]
    found = main(spark, tmp_path, ROWS, FILES)
    expected = alarms(ROWS)
    assert expected.total() > 5
    assert Counter(row["id"] for row in found.collect()) == expected
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(",")[0] for line in lines[:FILES]] == [
        f"batch {n}: {ROWS // FILES} events" for n in range(FILES)
    ]


def write_readings(folder: Path, texts: Sequence[str], first: int = 0) -> None:
    folder.mkdir(exist_ok=True)
    for number, text in enumerate(texts, first):
        rows = [row.split() for row in text.split(", ")]
        times = [
            datetime.fromisoformat(f"2026-03-02 {time}").replace(tzinfo=UTC) for time, *_ in rows
        ]
        table = pa.table(
            {
                "ts": pa.array(times, pa.timestamp("us", "UTC")),
                "type": [kind for _, kind, _ in rows],
                "tag": [int(tag) for *_, tag in rows],
            }
        )
        path = folder / f"{number}.parquet"
        pq.write_table(table, path)
        os.utime(path, (number, number))


@pytest.mark.slow
@pytest.mark.classic
def test_the_page_prints_what_it_says(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example, printed = blocks("docs/streaming.md")[:2]
    assert (example.kind, printed.kind) == ("python", "text")
    write_readings(tmp_path / "readings", READINGS)
    names = {"spark": spark, "folder": tmp_path}
    exec(compile(example.text, example.place, "exec"), names)
    assert capsys.readouterr().out == printed.text
    assert [row["tag"] for row in spark.read.parquet(f"{tmp_path}/stolen").collect()] == [8]

    def show(word: str) -> None:
        (block,) = (b for b in blocks("docs/streaming.md") if b.kind == "python" and word in b.text)
        exec(compile(block.text, block.place, "exec"), names)

    show("dead_letters=True")
    assert {row["tag"] for row in spark.read.parquet(f"{tmp_path}/found").collect()} == {7, 8}
    (letter,) = spark.read.json(f"{tmp_path}/letters").collect()
    assert (letter["reason"], letter["ts"], letter["type"], letter["tag"]) == (
        "late",
        "2026-03-02T10:35:00.000Z",
        "EXIT",
        9,
    )
    # What ends before the first query stopped, at 10:49, is its own.
    write_readings(tmp_path / "readings", ["11:00 EXIT 5, 11:10 SHELF 1"], len(READINGS))
    show("cep.reached(")
    assert [row["tag"] for row in spark.read.parquet(f"{tmp_path}/again").collect()] == [5]
