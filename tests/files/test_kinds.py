"""The table of kinds × readers, in this process (on Spark: `tests/spark/test_file_kinds.py`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid as cep
from cepheid.cli.arguments import InputSource
from cepheid.cli.inputs import open_inputs, read_events
from cepheid.options import Options
from tests.files.kinds import KINDS, read_value, write_kinds, write_parquet, write_text

TEXT = ("csv", "jsonl")


def read(path: Path) -> dict[str, Any]:
    """The values of the first row of a file."""
    opened = open_inputs([InputSource(None, str(path))], [], Options(time="t")).read()
    row = opened.tables[""].to_pylist()[0]
    return {name: read_value(value) for name, value in row.items()}


def times(path: Path, name: str, **given: Any) -> list[Any]:
    """The event times of a file, if a query takes them from this column."""
    query = cep.Query(f"PATTERN a RETURN a.`{name}`")
    table = read_events(query, [InputSource(None, str(path), **given)], Options(time=name))
    assert isinstance(table, pa.Table)
    return list(table[name].to_pylist())


@pytest.mark.parametrize("ending", TEXT)
def test_text(ending: str, tmp_path: Path) -> None:
    path = write_kinds(tmp_path / f"a.{ending}")
    assert read(path) == {"t": 1} | {n: k.text for n, k in KINDS.items()}


def test_parquet(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet")
    assert read(path) == {"t": 1} | {n: k.value for n, k in KINDS.items()}


@pytest.mark.parametrize("ending", TEXT)
@pytest.mark.parametrize("name", [n for n, k in KINDS.items() if k.as_time is not None])
def test_times_in_text(name: str, ending: str, tmp_path: Path) -> None:
    path = write_text(tmp_path / f"a.{ending}", [{"c": KINDS[name].cell}])
    assert times(path, "c") == [KINDS[name].as_time]


@pytest.mark.parametrize("ending", TEXT)
@pytest.mark.parametrize("name", ["huge", "number", "decimal", "boolean", "word", "clock"])
def test_what_is_no_time_in_text(name: str, ending: str, tmp_path: Path) -> None:
    path = write_text(tmp_path / f"a.{ending}", [{"c": KINDS[name].cell}])
    with pytest.raises(cep.CepheidError, match=r"the time column `c` is (text|double)"):
        times(path, "c")


@pytest.mark.parametrize("ending", TEXT)
@pytest.mark.parametrize("name", ["nothing", "not a number"])
def test_no_time_at_all_in_text(name: str, ending: str, tmp_path: Path) -> None:
    """Such rows are rejected."""
    path = write_text(tmp_path / f"a.{ending}", [{"c": KINDS[name].cell, "x": 1}])
    assert times(path, "c") == []


@pytest.mark.parametrize("name", KINDS)
def test_times_in_parquet(name: str, tmp_path: Path) -> None:
    """As in frames: moments, dates and integers are times."""
    kind = KINDS[name]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"c": kind.stored}), path)
    if name in ("integer", "unsigned", "huge", "date", "zoned", "naive", "finer"):
        assert times(path, "c") == [kind.value]
    elif name in ("nothing", "word", "code"):  # text may be a time; such rows are rejected
        assert times(path, "c") == []
    else:
        with pytest.raises(cep.OptionError, match="the time column `c` is"):
            times(path, "c")


@pytest.mark.parametrize("ending", [*TEXT, "parquet"])
def test_texts_as_times(ending: str, tmp_path: Path) -> None:
    """`--time-format` says how they are written, in every format."""
    path = tmp_path / f"a.{ending}"
    if ending == "parquet":
        pq.write_table(pa.table({"c": pa.array(["31.01.2026 10:00"]).dictionary_encode()}), path)
    else:
        write_text(path, [{"c": "31.01.2026 10:00"}])
    found = times(path, "c", time_format="%d.%m.%Y %H:%M")
    assert found == [KINDS["zoned"].value]


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [("zoned", "zoned", True), ("naive", "naive", True), ("zoned", "naive", False)],
)
def test_two_streams(one: str, other: str, together: bool, tmp_path: Path) -> None:
    """In files of text, a time without an offset is UTC. In Parquet it has no zone, and nobody
    knows which moment it is."""
    query = cep.Query("PATTERN l ; r WITHIN 9 hours RETURN l.c AS l, r.c AS r")
    for ending in ("csv", "parquet"):
        sources = []
        for name, kind in (("l", KINDS[one]), ("r", KINDS[other])):
            path = tmp_path / f"{name}.{ending}"
            if ending == "csv":
                write_text(path, [{"c": kind.cell}])
            else:
                pq.write_table(pa.table({"c": kind.stored}), path)
            sources.append(InputSource(name, str(path)))
        if together or ending == "csv":
            tables = read_events(query, sources, Options(time="c"))
            assert set(tables) == {"l", "r"}
        else:
            with pytest.raises(cep.DataError, match="without a time zone nobody knows which"):
                read_events(query, sources, Options(time="c"))
