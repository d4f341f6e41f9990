"""Which format files have, by their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from cepheid.errors import OptionError
from cepheid.files.formats import (
    Format,
    data_files,
    input_format,
    is_deep,
    named_format,
    output_format,
    spark_path,
)


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.parquet", Format.PARQUET),
        ("part-0.c000.snappy.parquet", Format.PARQUET),
        ("a.csv", Format.CSV),
        ("a.CSV.GZ", Format.CSV),
        ("a.tsv.bz2", Format.TSV),
        ("a.json", Format.JSON),
        ("a.jsonl", Format.JSON),
        ("a.ndjson.gz", Format.JSON),
        ("a.parquet.gz", None),
        ("a.gz", None),
        ("a.xlsx", None),
        ("csv", None),
    ],
)
def test_names(name: str, format: Format | None) -> None:
    assert named_format(name) is format


def fill(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_a_folder_has_the_format_of_its_files(tmp_path: Path) -> None:
    assert input_format(str(tmp_path)) is None
    fill(tmp_path, "_SUCCESS", ".a.csv.crc", "_delta_log/0.json", "day=1/a.ndjson", "b.jsonl.gz")
    assert input_format(str(tmp_path)) is Format.JSON
    assert input_format(str(tmp_path), Format.CSV) is Format.CSV
    assert [f.name for f in data_files(str(tmp_path))] == ["b.jsonl.gz", "a.ndjson"]


def test_what_the_names_do_not_say_is_asked_for(tmp_path: Path) -> None:
    fill(tmp_path, "x.xlsx")
    with pytest.raises(OptionError, match=r"x\.xlsx: the ending \.xlsx is unknown.*--input-format"):
        input_format(str(tmp_path))
    fill(tmp_path, "a.csv")
    with pytest.raises(OptionError, match=r"several formats.*--input-format csv"):
        input_format(str(tmp_path))
    assert input_format(str(tmp_path / "*.csv")) is Format.CSV
    fill(tmp_path, "plain")
    with pytest.raises(OptionError, match="plain: the name has no ending"):
        input_format(str(tmp_path / "plain"))


def test_what_is_not_there_has_the_format_of_its_name() -> None:
    assert input_format("missing/a.csv.gz") is Format.CSV
    assert input_format("missing") is None
    assert input_format("s3a://bank/cards/") is None
    assert input_format("s3a://bank/*.json") is Format.JSON


def test_patterns(tmp_path: Path) -> None:
    fill(tmp_path, "a1.csv", "a2.csv", "b.csv", "c.tsv", "_a3.csv", "in/a4.csv", "a[1].csv")
    names = {
        "a?.csv": ["a1.csv", "a2.csv"],
        "[ab]*.csv": ["a1.csv", "a2.csv", "a[1].csv", "b.csv"],
        "{a1,c}.{csv,tsv}": ["a1.csv", "c.tsv"],
        "in*": ["a4.csv"],
        "z*": [],
        "a[1].csv": ["a[1].csv"],  # it is there, so it isn't a pattern
    }
    for pattern, expected in names.items():
        assert [f.name for f in data_files(str(tmp_path / pattern))] == expected
    with pytest.raises(OptionError, match=r"\*\*"):
        list(data_files(str(tmp_path / "**" / "*.csv")))


def test_paths_for_spark(tmp_path: Path) -> None:
    fill(tmp_path, "a[1]/b.csv", "flat/day=1/b.csv", "deep/x/b.csv", "deep/_x/b.csv")
    assert spark_path(str(tmp_path / "a[1]")) == str(tmp_path / r"a\[1\]")
    assert spark_path(str(tmp_path / "a*")) == str(tmp_path / "a*")
    assert spark_path("s3a://bank/{a,b}") == "s3a://bank/{a,b}"
    deep = [is_deep(str(tmp_path / name)) for name in ("a[1]", "flat", "deep", "a[1]/b.csv", "*")]
    assert deep == [False, False, True, False, True]
    assert not is_deep("s3a://bank/cards")


def test_outputs(tmp_path: Path) -> None:
    assert output_format(Path("found.ndjson")) is Format.JSON
    assert output_format(Path("found")) is Format.PARQUET
    assert output_format(Path("found.xlsx"), Format.CSV) is Format.CSV
    with pytest.raises(OptionError, match=r"x\.xlsx: the ending \.xlsx is unknown.*--format"):
        output_format(Path("x.xlsx"))
