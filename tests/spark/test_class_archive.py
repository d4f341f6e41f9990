"""An archive of Java's classes, which sessions use if there is one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cepheid.spark.start import class_archive
from cepheid.spark.start.class_archive import create_archive
from cepheid.spark.start.java import archive_options, archive_path, ensure_java


def test_without_one_java_is_started_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert archive_options() == ""
    path = archive_path()
    assert path.parent == tmp_path / "cepheid"
    path.parent.mkdir()
    path.write_bytes(b"")
    assert archive_options().startswith(f"-XX:SharedArchiveFile={path} ")
    # What Java can't use it does without, and without a word.
    run = subprocess.run(
        [ensure_java(), *archive_options().split(), "-version"], capture_output=True, text=True
    )
    assert run.returncode == 0 and run.stdout == ""
    assert "version" in run.stderr and "rchive" not in run.stderr


def test_another_spark_has_another(monkeypatch: pytest.MonkeyPatch) -> None:
    before = archive_path()
    monkeypatch.setattr("pyspark.__version__", "0")
    assert archive_path() != before


def test_a_java_that_writes_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(class_archive, "_PROGRAM", "raise SystemExit('out of memory')")
    with pytest.raises(class_archive.StreamError, match="no archive could be made: out of memory"):
        create_archive()
    assert list((tmp_path / "cepheid").iterdir()) == []


@pytest.mark.slow
def test_one_is_made_and_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Java says of a class of Spark's that it comes from the archive."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = create_archive()
    assert [*path.parent.iterdir()] == [path]
    shown = (
        "from cepheid.spark.start import java, session\n"
        "options = session.java_options() + ' ' + java.archive_options()\n"
        "options += ' -Xlog:class+load:file=%s'\n"
        "named = {'spark.driver.extraJavaOptions': options}\n"
        "session.local_session('local[1]', config=named).range(3).count()\n"
    )
    log = tmp_path / "classes"
    subprocess.run([sys.executable, "-c", shown % log], check=True, capture_output=True)
    (line,) = [
        line
        for line in log.read_text().splitlines()
        if "org.apache.spark.sql.classic.SparkSession source" in line
    ]
    assert "shared objects file (top)" in line
