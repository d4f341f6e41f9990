"""Renames the columns of the caller's DataFrames to safe names (see
`cepheid.spark.columns.column_names`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from cepheid.errors import DataError
from cepheid.spark.columns.column_names import in_quotes, safe_names
from cepheid.spark.streaming.clock.time import DELAY, below_watermark


def entered(data: Any) -> Any:
    """A DataFrame with safe names, or several of them."""
    if isinstance(data, Mapping):
        return {name: entered(frame) for name, frame in data.items()}
    if not hasattr(data, "mapInArrow"):
        raise DataError("several streams must all be Spark DataFrames, or none of them")
    names = safe_names(data.columns)
    if names == data.columns:
        return data
    return _renamed_stream(data, names) if data.isStreaming else data.toDF(*names)


def _renamed_stream(frame: DataFrame, names: list[str]) -> DataFrame:
    """Keep a trailing `withWatermark` as the last step of the stream."""
    below = below_watermark(frame)
    if below is None:
        return frame.toDF(*names)
    place = next(n for n, field in enumerate(frame.schema.fields) if DELAY in field.metadata)
    delay = int(frame.schema.fields[place].metadata[DELAY])
    return below.toDF(*names).withWatermark(in_quotes(names[place]), f"{delay} milliseconds")
