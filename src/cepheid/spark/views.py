"""Temporary views: names under which SQL reads DataFrames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from cepheid.spark.session import adopt_session


def session_of(frames: Iterable[DataFrame], spark: Any = None) -> Any:
    """The session that is given, that of the frames, or the active one."""
    if spark is None:
        frame = next(iter(frames), None)
        spark = frame.sparkSession if frame is not None else SparkSession.active()
    adopt_session(spark)
    return spark


def view_of(frame: DataFrame) -> str:
    """A view that no other replaces. It stays: Spark Connect looks views up when a result is
    used."""
    name = f"cepheid_{uuid4().hex}"
    frame.createOrReplaceTempView(name)
    return name
