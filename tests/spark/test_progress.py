from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cepheid.cli.output.progress import spark_tasks


@pytest.mark.classic
def test_the_bar_counts_the_tasks_of_the_block(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(0.5)
            yield batch

    # One slow stage of 4 tasks, two at a time, so that the bar gets to see it.
    with spark_tasks(spark, "counting"):
        assert spark.range(0, 4, numPartitions=4).mapInArrow(slowly, "id long").count() == 4
    bars = re.findall(r"counting .* (\d+)/(\d+) tasks", capsys.readouterr().err)
    assert bars, "no bar"
    done, total = map(int, bars[-1])
    assert done == total >= 4
