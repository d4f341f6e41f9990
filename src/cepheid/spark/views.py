"""Temporary views: names under which SQL reads DataFrames."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from cepheid.errors import OptionError
from cepheid.spark.start.session import adopt_session
from cepheid.spark.streaming.status.outcome import spark_sentence

_BEHIND = re.compile(
    r" Verify the spelling| SQLSTATE:|; line \d+ pos \d+| \(line \d+, pos \d+\)| == SQL "
)
"""What Spark writes behind a sentence: places in a text that isn't the user's, and plans."""


def session_of(frames: Iterable[DataFrame], spark: Any = None) -> Any:
    """The given session, else the frames' session, else the active one."""
    if spark is None:
        frame = next(iter(frames), None)
        spark = frame.sparkSession if frame is not None else _active()
    adopt_session(spark)
    return spark


def _active() -> Any:
    try:
        return SparkSession.active()
    except PySparkException:
        remedy = 'pass tables={"t": frame}, or a session with spark='
        raise OptionError(f"there are neither tables nor a Spark session: {remedy}") from None


def run_sql(spark: Any, text: str, params: Mapping[str, object]) -> DataFrame:
    """The result of a statement; `OptionError`, if it isn't one, or names what isn't there."""
    try:
        frame: DataFrame = spark.sql(text, args=dict(params) or None)
    except PySparkException as error:
        sentence = _BEHIND.split(spark_sentence(str(error)))[0]
        raise OptionError(f"Spark: {sentence}") from None
    return frame


def view_of(frame: DataFrame) -> str:
    """A view with a unique name. It isn't dropped: Spark Connect looks views up when a result is
    used."""
    name = f"cepheid_{uuid4().hex}"
    frame.createOrReplaceTempView(name)
    return name
