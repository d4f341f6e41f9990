"""Batches in files: every format and compression, read back."""

from __future__ import annotations

import bz2
import gzip
import json
from collections.abc import Callable
from datetime import time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import IO

import pyarrow as pa
import pytest

from cepheid.errors import DataError, OptionError
from cepheid.files.formats import Format
from cepheid.files.guard import Guard
from cepheid.files.output import check_output, open_writer, write_batches

TABLE = pa.table({"a": [1, None], "b": ["x", "y z"]})


def write(path: Path, table: pa.Table = TABLE) -> None:
    format = check_output(path, None, Guard(), "--output")
    write_batches(table.to_batches(), table.schema, path, format, Guard())


@pytest.mark.parametrize(
    ("name", "open_", "text"),
    [
        ("a.csv", open, '"a","b"\n1,"x"\n,"y z"\n'),
        ("a.tsv.gz", gzip.open, '"a"\t"b"\n1\t"x"\n\t"y z"\n'),
        ("a.jsonl.bz2", bz2.open, '{"a":1,"b":"x"}\n{"a":null,"b":"y z"}\n'),
        ("a.ndjson", open, '{"a":1,"b":"x"}\n{"a":null,"b":"y z"}\n'),
    ],
)
def test_the_ending_says_how(
    name: str, open_: Callable[..., IO[str]], text: str, tmp_path: Path
) -> None:
    write(tmp_path / name)
    with open_(tmp_path / name, "rt") as file:
        assert file.read() == text


def test_json_has_no_nan(tmp_path: Path) -> None:
    numbers = [1.5, float("nan"), float("inf"), None]
    write(tmp_path / "a.json", pa.table({"x": numbers, "d": [Decimal("1.50")] * 4}))
    lines = [json.loads(line) for line in (tmp_path / "a.json").read_text().splitlines()]
    assert [line["x"] for line in lines] == [1.5, "NaN", "Infinity", None]
    assert lines[0]["d"] == "1.50"


BYTES_OF_FLAGS = pa.map_(pa.bool_(), pa.binary())


@pytest.mark.parametrize(
    ("values", "csv", "in_json"),
    [
        (pa.array([93784], pa.duration("s")), "93784000000", 93784000000),
        (pa.array([-1500], pa.duration("ns")), "-1", -1),  # nothing is finer than a microsecond
        (pa.array([b"\x00\xff"]), '"AP8="', "AP8="),
        (pa.array([b"\x00\xff"], pa.binary(2)), '"AP8="', "AP8="),
        (pa.array([0.1], pa.float32()), "0.1", 0.1),
        (pa.array([Decimal("12.30")]), "12.30", "12.30"),
        (pa.array([time(9, 30)]), "09:30:00.000000", "09:30:00"),
        (pa.array([[timedelta(hours=1)]]), None, [3600000000]),
        (pa.array([{"b": b"\x00"}]), None, {"b": "AA=="}),
        (pa.array([[("k", 0.5)]], pa.map_(pa.string(), pa.float64())), None, {"k": 0.5}),
        (pa.array([[(1, None)]], pa.map_(pa.int64(), pa.string())), None, {"1": None}),
        (
            pa.array([[{"m": [(True, b"\x00")]}]], pa.list_(pa.struct({"m": BYTES_OF_FLAGS}))),
            None,
            [{"m": {"true": "AA=="}}],
        ),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_values(values: pa.Array, csv: str | None, in_json: object, tmp_path: Path) -> None:
    """Durations are microseconds and bytes Base64 (on Spark: `tests/spark/test_file_kinds.py`)."""
    table = pa.table({"x": values})
    write(tmp_path / "a.json", table)
    assert json.loads((tmp_path / "a.json").read_text()) == {"x": in_json}
    if csv is not None:
        write(tmp_path / "a.csv", table)
        assert (tmp_path / "a.csv").read_text() == f'"x"\n{csv}\n'


def test_maps_whose_keys_are_structs_are_pairs(tmp_path: Path) -> None:
    points = pa.map_(pa.struct({"x": pa.int64()}), pa.string())
    write(tmp_path / "a.json", pa.table({"m": pa.array([[({"x": 1}, "one")]], points)}))
    assert json.loads((tmp_path / "a.json").read_text()) == {"m": [[{"x": 1}, "one"]]}


def test_json_needs_a_name_for_each_column(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"])
    with pytest.raises(DataError, match="two columns are called `x`"):
        write(tmp_path / "a.json", table)


def test_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with open_writer(Path("-"), TABLE.schema, Format.JSON, Guard()) as writer:
        writer.write_batch(TABLE.to_batches()[0])
    assert capfdbinary.readouterr().out == b'{"a":1,"b":"x"}\n{"a":null,"b":"y z"}\n'
    assert check_output(Path("-"), None, Guard(), "--output") is Format.CSV
    with pytest.raises(OptionError, match="--output - writes text: --format csv, tsv or json"):
        check_output(Path("-"), Format.PARQUET, Guard(), "--output")
