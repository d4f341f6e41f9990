"""Chooses the runtime for data: the one place that checks the kind of data."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from cepheid.extras import require
from cepheid.inprocess.runtime import InProcess
from cepheid.runtime import Runtime


def runtime_of(data: Any, read: Collection[str] = ()) -> Runtime:
    """The runtime for the data. Of several streams, `read` are the names of those that a query
    reads, if it doesn't read all: they decide whether it runs on a stream.

    If data are on Spark, the extra `spark` has to be complete: pyspark can be there without pandas.
    """
    if not _is_on_spark(data):
        return InProcess()
    require("spark")
    from cepheid.spark.batch_runtime import SparkBatch
    from cepheid.spark.streaming.stream_runtime import SparkStream

    parts = [data]
    if isinstance(data, Mapping):
        parts = [part for name, part in data.items() if name in read or not read]
    return SparkStream() if any(getattr(p, "isStreaming", False) for p in parts) else SparkBatch()


def _is_on_spark(data: Any) -> bool:
    """Whether the data is a Spark DataFrame (classic or Connect), or streams of them."""
    if isinstance(data, Mapping):
        return any(_is_on_spark(part) for part in data.values())
    return any(base.__module__.startswith("pyspark.sql") for base in type(data).__mro__)
