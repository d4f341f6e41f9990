"""Dead letters of `cepheid run --stream` as files.

Spark's sink writes the matches of a batch, and the workers that hand them to it write the dead
letters among them: a file for each batch and partition, whose name says which. A batch that is done
again makes the same files again, so that each letter is there once.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import functions as F
from pyspark.sql import types as t

from cepheid.files.formats import SPARK_JSON
from cepheid.spark.columns.column_names import quoted
from cepheid.spark.start.session import PANDAS_NOTICE
from cepheid.spark.streaming.letters import DEAD_LETTER, REASON
from cepheid.spark.streaming.stateful.packed_rows import NO_TIME

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BATCH = "streaming.sql.batchId"
"""The task property that holds the batch number."""


def divert(output: DataFrame, folder: Path) -> DataFrame:
    """The matches alone. Dead letters go to files in the folder, except lines without a time, which
    are kept as they are in their files (`stream_source.read_rejected`)."""
    # The folder itself may not be there before a worker needs it.
    place = folder.resolve()
    fields = [field for field in output.schema.fields if field.name != DEAD_LETTER]
    letter = quoted(DEAD_LETTER)
    text = F.when(letter.isNotNull(), F.to_json(letter, SPARK_JSON))
    rows = output.filter(letter.isNull() | (letter[REASON] != NO_TIME))
    rows = rows.select(*(quoted(field.name) for field in fields), text.alias(DEAD_LETTER))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        number = int(context.getLocalProperty(_BATCH) or 0)
        return diverted(batches, place, number, context.partitionId())

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
        return rows.mapInArrow(run, t.StructType(fields))


def diverted(
    batches: Iterator[pa.RecordBatch], folder: Path, batch: int, partition: int
) -> Iterator[pa.RecordBatch]:
    """The rows that are no dead letters; the dead letters go to a file, which is named when all
    rows have come."""
    path = folder / f"batch-{batch:08}-part-{partition:05}.jsonl"
    # Spark may have given up a worker with the same task that still writes, so it has another name.
    hidden = path.with_name(f".{path.name}.{uuid4().hex}")
    file: IO[str] | None = None
    try:
        for rows in batches:
            letters = rows.column(DEAD_LETTER)
            if letters.null_count == len(letters):
                yield rows.drop_columns([DEAD_LETTER])
                continue
            if file is None:
                folder.mkdir(parents=True, exist_ok=True)
                file = hidden.open("w", encoding="utf-8")
            file.writelines(
                f'{{"batch":{batch},{text[1:]}\n' for text in letters.drop_null().to_pylist()
            )
            yield rows.filter(pc.is_null(letters)).drop_columns([DEAD_LETTER])
        if file is not None:
            file.close()
            hidden.replace(path)
    finally:
        if file is not None:
            file.close()
            hidden.unlink(missing_ok=True)
