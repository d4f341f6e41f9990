"""Which runtime data belong to. The frames here only look like Spark's: nothing is run."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from cepheid.query import runtime_of
from cepheid.runtime import Place


def frame(*, streaming: bool) -> Any:
    members = {"__module__": "pyspark.sql.classic.dataframe", "isStreaming": streaming}
    return type("DataFrame", (), members)()


TABLE = pa.table({"ts": [1]})
BATCH, STREAM = frame(streaming=False), frame(streaming=True)


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (TABLE, "process"),
        (iter(TABLE.to_batches()), "process"),
        ({"a": TABLE, "b": TABLE}, "process"),
        (BATCH, "batch"),
        ({"a": BATCH, "b": BATCH}, "batch"),
        ({"a": BATCH, "b": TABLE}, "batch"),  # refused later, by a sentence of its own
        (STREAM, "stream"),
        ({"a": STREAM, "b": BATCH}, "stream"),
    ],
)
def test_the_kind_of_data_decides(data: Any, place: Place) -> None:
    assert runtime_of(data).place == place


def test_only_streams_that_are_read_count() -> None:
    data = {"a": STREAM, "b": BATCH}
    assert runtime_of(data, ["b"]).place == "batch"
    assert runtime_of(data, ["a", "b"]).place == "stream"
