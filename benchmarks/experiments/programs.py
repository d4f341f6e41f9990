"""Ways to run a workload other than by one of our plans."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

import cepheid as cep
from benchmarks.cases import Workload
from benchmarks.experiments.experiment import Found, Program


def over_table(count: Callable[[Workload, pa.Table], int]) -> Program:
    """Whatever counts the matches of a workload in a table."""

    def program(
        workload: Workload,
        options: Mapping[str, Any],
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
    ) -> Found:
        return Found(count(workload, pa.Table.from_batches(batches, schema)))

    return program


def as_users_do(
    workload: Workload,
    options: Mapping[str, Any],
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
) -> Found:
    """Through the public API, from a list of batches: without a window, a stream that might be
    endless is refused."""
    found = cep.Query(workload.query).match(list(batches), **options)
    return Found(sum(batch.num_rows for batch in found))
