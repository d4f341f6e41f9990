"""What Spark's checkpoint of a query tells: how far its stream has come."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from pyarrow import fs

from cepheid.errors import StateError
from cepheid.spark.streaming.time import MOVED, Watermark

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def reached(checkpoint: str) -> datetime | int:
    """The time up to which the query of a checkpoint has matched its events: the watermark of the
    last batch that it has finished. A timestamp in UTC, or an integer if the time column has those.

    For a query that takes the place of another: it reads the events that are less than a window
    before this time, and those after it, and only matches that end after it count.
    """
    system, folder = (
        fs.FileSystem.from_uri(checkpoint)
        if "://" in checkpoint
        else (fs.LocalFileSystem(), checkpoint)
    )
    finished = _numbers(system, f"{folder}/commits")
    if not finished:
        raise StateError(f"{checkpoint} is no checkpoint of a query that has finished a batch")
    with system.open_input_stream(f"{folder}/offsets/{max(finished)}") as file:
        notes = json.loads(file.read().decode().splitlines()[1])
    milliseconds = int(notes["batchWatermarkMs"])
    if milliseconds > MOVED // 2:
        return Watermark(integers=True, delayed=False).ticks(milliseconds)
    return EPOCH + timedelta(milliseconds=milliseconds)


def _numbers(system: fs.FileSystem, folder: str) -> list[int]:
    """The names of files that are numbers."""
    found = system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    return [int(info.base_name) for info in found if info.base_name.isdigit()]
