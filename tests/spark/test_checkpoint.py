"""How far the query of a checkpoint has come."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

import cepheid as cep


def write_checkpoint(folder: Path, *watermarks: int) -> None:
    """One of which the last batch isn't finished."""
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    for number, watermark in enumerate(watermarks):
        notes = json.dumps({"batchWatermarkMs": watermark, "batchTimestampMs": 1, "conf": {}})
        (folder / "offsets" / str(number)).write_text(f'v1\n{notes}\n{{"logOffset":0}}')
        (folder / "offsets" / f".{number}.crc").write_bytes(b"")
    for number in range(len(watermarks) - 1):
        (folder / "commits" / str(number)).write_text("v1\n{}")


def test_it_is_the_watermark_of_the_last_batch_that_is_done(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "a", 0, 5_000, 9_000)
    assert cep.reached(str(tmp_path / "a")) == datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC)
    write_checkpoint(tmp_path / "b", *(n for n in range(12)), 99)
    assert cep.reached((tmp_path / "b").as_uri()) == datetime(1970, 1, 1, 0, 0, 0, 11_000, UTC)


def test_of_integers_it_is_one(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "a", (1 << 52) - 7, 0)
    assert cep.reached(str(tmp_path / "a")) == -7


def test_it_needs_a_batch(tmp_path: Path) -> None:
    with pytest.raises(
        cep.StateError, match="isn't the checkpoint of a query that has finished a batch"
    ):
        cep.reached(str(tmp_path))
