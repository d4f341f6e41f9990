"""Reads from a query's checkpoint how far its stream has come."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pyarrow import fs

from cepheid.errors import StateError
from cepheid.spark.streaming.clock.time import MOVED, Watermark

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOWHERE = "-"


@dataclass(frozen=True)
class Finished:
    """The last batch that a query has finished: its number, its watermark in Spark's milliseconds,
    and up to where each source was read; None if nothing of it was."""

    batch: int
    watermark: int
    offsets: tuple[Any, ...]


def last_finished(checkpoint: str) -> Finished | None:
    """The last finished batch of the checkpoint; None if there is none."""
    system, folder = (
        fs.FileSystem.from_uri(checkpoint)
        if "://" in checkpoint
        else (fs.LocalFileSystem(), checkpoint)
    )
    entries = system.get_file_info(fs.FileSelector(f"{folder}/commits", allow_not_found=True))
    numbers = [int(info.base_name) for info in entries if info.base_name.isdigit()]
    if not numbers:
        return None
    batch = max(numbers)
    with system.open_input_stream(f"{folder}/offsets/{batch}") as file:
        _, notes, *offsets = file.read().decode().splitlines()
    watermark = int(json.loads(notes)["batchWatermarkMs"])
    read = (None if offset == _NOWHERE else json.loads(offset) for offset in offsets)
    return Finished(batch, watermark, tuple(read))


def reached(checkpoint: str) -> datetime | int:
    """The time up to which the query of a checkpoint has matched its events: the watermark of the
    last batch that it has finished. A timestamp in UTC, or an integer if the time column has those.

    For a query that takes the place of another: it reads the events that are less than a window
    before this time, and those after it, and only matches that end after it count.
    """
    last = last_finished(checkpoint)
    if last is None:
        raise StateError(f"{checkpoint} isn't the checkpoint of a query that has finished a batch")
    if last.watermark > MOVED // 2:
        return Watermark(integers=True, delayed=False).ticks(last.watermark)
    return EPOCH + timedelta(milliseconds=last.watermark)
