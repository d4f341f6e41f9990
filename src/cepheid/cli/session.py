"""Spark sessions of commands: quiet, and stopped when the command ends."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from cepheid.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STDERR = 2

EXACT_NAMES = {"spark.sql.caseSensitive": "true"}
"""Files may have columns that differ in case alone."""


@contextmanager
def spark_session(master: str, app: str) -> Iterator[SparkSession]:
    """A session that Ctrl-C ends without a word of Spark's."""
    with errors_to(Path(os.devnull)):
        spark = local_session(master, app=app, config=EXACT_NAMES)
    with plain_interrupts():
        try:
            yield spark
        finally:
            spark.stop()


@contextmanager
def errors_to(log: Path) -> Iterator[None]:
    """What is started in the block writes its stderr to a file: a JVM and its workers talk, and log
    every failure with its stack, which a person at a terminal shouldn't have to read."""
    if os.environ.get("CEPHEID_DEBUG"):
        yield
        return
    # py4j logs a connection that breaks, with its stack; without a handler that would be printed.
    logging.getLogger().addHandler(logging.NullHandler())
    log.parent.mkdir(parents=True, exist_ok=True)
    own = os.dup(STDERR)
    try:
        with log.open("wb") as file:
            os.dup2(file.fileno(), STDERR)
        yield
    finally:
        os.dup2(own, STDERR)
        os.close(own)


@contextmanager
def plain_interrupts() -> Iterator[None]:
    """Ctrl-C is a KeyboardInterrupt, as without Spark. Its own handler calls the JVM from within
    the call that it has cut short, which fails, and is logged at length."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not os.environ.get("CEPHEID_DEBUG"):
            logging.disable(logging.CRITICAL)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
