"""What every workload promises: seeds, sizes, order, and batches that are the table."""

from __future__ import annotations

import time
from types import ModuleType

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from cepheid.errors import DataError
from cepheid.workloads import fraud, rfid, stocks, weblog
from cepheid.workloads.chunks import CHUNK_ROWS

TIME = {stocks: "ts", weblog: "time", fraud: "ts", rfid: "ts"}
each_workload = pytest.mark.parametrize("workload", list(TIME), ids=lambda w: w.__name__)


@each_workload
@pytest.mark.parametrize("rows", [0, 1, 2, 1000, CHUNK_ROWS, CHUNK_ROWS + 1])
def test_gives_the_rows_asked_for(workload: ModuleType, rows: int) -> None:
    table = workload.generate(rows, seed=3)
    assert table.num_rows == rows
    assert table.schema == workload.SCHEMA
    table.validate(full=True)


@each_workload
def test_seed_decides_everything(workload: ModuleType) -> None:
    assert workload.generate(5000, seed=1) == workload.generate(5000, seed=1)
    assert workload.generate(5000, seed=1) != workload.generate(5000, seed=2)


@each_workload
def test_batches_are_the_table(workload: ModuleType) -> None:
    rows = 2 * CHUNK_ROWS + 17
    batches = list(workload.batches(rows, seed=5))
    assert len(batches) == 3
    assert pa.Table.from_batches(batches) == workload.generate(rows, seed=5)


@each_workload
def test_chunks_differ(workload: ModuleType) -> None:
    first, second = workload.batches(2 * CHUNK_ROWS, seed=5)
    payload = [name for name in workload.SCHEMA.names if name not in (TIME[workload], "id")]
    assert first.select(payload) != second.select(payload)


@each_workload
def test_time_never_goes_back(workload: ModuleType) -> None:
    times = workload.generate(2 * CHUNK_ROWS + 17, seed=5).column(TIME[workload]).cast(pa.int64())
    steps = pc.pairwise_diff(times.combine_chunks())
    assert pc.min(steps).as_py() >= 0


@each_workload
@pytest.mark.parametrize("bad", [{"rows": -1}, {"rows": 10, "seed": -1}])
def test_refuses_negative_numbers(workload: ModuleType, bad: dict[str, int]) -> None:
    with pytest.raises(DataError, match="must not be negative"):
        workload.generate(**bad)


@each_workload
def test_is_fast(workload: ModuleType) -> None:
    """Meant are 2 million rows a second; the bound leaves room for a busy machine."""
    workload.generate(10)
    begin = time.process_time()
    workload.generate(500_000)
    assert time.process_time() - begin < 1.0
