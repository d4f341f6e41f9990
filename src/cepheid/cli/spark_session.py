"""Spark sessions of commands: quiet, and stopped when the command ends."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cepheid.cli.output.failure import raised_by
from cepheid.spark.start.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STDERR = 2

EXACT_NAMES = {"spark.sql.caseSensitive": "true"}
"""Case-sensitive names: files may have columns that differ only in case."""


@contextmanager
def spark_session(master: str, app: str) -> Iterator[SparkSession]:
    """A session that Ctrl-C ends without output from Spark."""
    with errors_to(Path(os.devnull)):
        spark = local_session(master, app=app, config=EXACT_NAMES)
    # Spark's own handler calls the JVM from within the interrupted call, which fails and is logged.
    with raised_by(signal.SIGINT, KeyboardInterrupt):
        try:
            yield spark
        finally:
            spark.stop()


@contextmanager
def errors_to(log: Path) -> Iterator[None]:
    """Redirect the stderr of processes started in the block to a file: a JVM and its workers log
    every failure with its stack, which a person at a terminal shouldn't have to read."""
    if os.environ.get("CEPHEID_DEBUG"):
        yield
        return
    # py4j logs a connection that breaks, with its stack; without a handler that would be printed.
    logging.getLogger().addHandler(logging.NullHandler())
    log.parent.mkdir(parents=True, exist_ok=True)
    stderr = os.dup(STDERR)
    try:
        with log.open("wb") as file:
            os.dup2(file.fileno(), STDERR)
        yield
    finally:
        os.dup2(stderr, STDERR)
        os.close(stderr)
