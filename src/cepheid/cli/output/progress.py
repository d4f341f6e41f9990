"""Progress bars, on stderr so that output can be piped."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL_SECONDS = 0.2
_BAR = 20
"""Columns of the bar, so that numbers of nine digits have room beside it."""


def bar() -> Progress:
    """A bar with counts and the time taken, in 80 columns; on a pipe only its end is shown."""
    return Bar(
        TextColumn("{task.description}", table_column=Column(no_wrap=True)),
        BarColumn(_BAR),
        CountColumn(),
        TimeElapsedColumn(table_column=Column(no_wrap=True)),
        console=Console(stderr=True),
    )


class Bar(Progress):
    """On failure or interruption, remove the bar, so that only the message stays on the screen."""

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        if exc_type is None:
            self.stop()
        else:
            self.live.transient = True
            self.live.stop()


class CountColumn(ProgressColumn):
    """How many of how many: `1,000/2,000 events`."""

    def __init__(self) -> None:
        super().__init__(Column(no_wrap=True))

    def render(self, task: Task) -> Text:
        total = "?" if task.total is None else f"{task.total:,.0f}"
        return Text(f"{task.completed:,.0f}/{total} {task.fields['unit']}")


@contextmanager
def spark_tasks(spark: SparkSession, description: str) -> Iterator[None]:
    """A bar of a classic session's tasks, for as long as the block runs its jobs."""
    tracker = spark.sparkContext.statusTracker()
    done = threading.Event()
    seen: dict[int, tuple[int, int]] = {}

    with bar() as progress:
        task = progress.add_task(description, total=None, unit="tasks")

        def look() -> None:
            for stage in {*seen, *tracker.getActiveStageIds()}:
                if (info := tracker.getStageInfo(stage)) is not None:
                    seen[stage] = (info.numCompletedTasks, info.numTasks)
            completed = sum(finished for finished, _ in seen.values())
            total = sum(tasks for _, tasks in seen.values())
            progress.update(task, completed=completed, total=total or None)

        def watch() -> None:
            while not done.wait(_POLL_SECONDS):
                look()

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()
            look()
