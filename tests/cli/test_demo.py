"""The parts of `make demo` around the match."""

from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console

from cepheid.cli.fraud_demo import earliest, event_file, planted_and_detected
from cepheid.cli.output.show import RunSummary, sample
from cepheid.workloads import fraud


def shown(table: object) -> str:
    console = Console(width=120, record=True, file=StringIO())
    console.print(table)
    return console.export_text()


def test_events_are_made_once(tmp_path: Path) -> None:
    path = event_file(tmp_path, 1000)
    assert pq.read_table(path) == fraud.generate(1000)
    path.write_bytes(b"kept")
    assert event_file(tmp_path, 1000).read_bytes() == b"kept"
    assert event_file(tmp_path, 10) != path


def test_planted_frauds_are_counted(tmp_path: Path) -> None:
    path = event_file(tmp_path, 20_000)
    events = fraud.generate(20_000)
    triples = pc.count_distinct(events["planted"]).as_py()
    large = [
        row["id"]
        for row in events.select(["id", "planted", "amount"]).to_pylist()
        if row["planted"] is not None and row["amount"] > 250
    ]
    assert triples == len(large) > 2
    # One of them twice, one ordinary event, and nothing else.
    matches = pa.table({"id": pa.array([large[0], large[0], -1])})
    assert planted_and_detected(path, matches) == (triples, 1)
    assert planted_and_detected(path, pa.table({"id": pa.array([], pa.int64())})) == (triples, 0)


def test_the_sample_is_the_earliest_matches() -> None:
    moments = [datetime(2026, 1, day, 1, 2, 3, 4, tzinfo=UTC) for day in range(20, 0, -1)]
    matches = pa.table({"card": range(20), "spent": moments, "id": range(20)})
    text = shown(earliest(matches, 120))
    assert "2026-01-01 01:02:03" in text and "01-10" in text and "01-11" not in text
    assert "card" in text and "id" not in text.split() and ".000004" not in text


def test_figures() -> None:
    text = shown(RunSummary(1_000_000, 1234, 4.0, 7).table({"planted": "499 of 500"}))
    for figure in ("1,000,000", "1,234", "rejected  7", "4.00", "250,000", "499 of 500"):
        assert figure in text
    assert "rejected" not in shown(RunSummary(10, 1, 4.0).table())


def test_a_sample_shows_nested_values_and_markup_as_they_are() -> None:
    rows = [{"a": {"x": 1, "y": None}, "b": [{"x": 2}, {"x": 3}], "c": "[bold]", "d": True}]
    text = shown(sample(["a", "b", "c", "d"], rows, 120))
    for part in ("x=1 y=NULL", "[x=2 | x=3]", "[bold]", "true"):
        assert part in text
