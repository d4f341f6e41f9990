"""An archive of Java's classes, which one session writes and the others use."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cepheid.spark.start import class_archive
from cepheid.spark.start.class_archive import create_archive
from cepheid.spark.start.java import archive_options, archive_path, ensure_java


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and no folder of settings, which rules archives out."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "the cache"))
    for name in ("CEPHEID_CACHE", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("cepheid.spark.start.java._can_archive", lambda: True)
    return tmp_path / "the cache" / "cepheid"


def test_the_first_session_writes_one_and_the_others_use_it(cache: Path) -> None:
    path = archive_path()
    assert path.parent == cache
    writes, uses = f'"-XX:ArchiveClassesAtExit={path}" ', f'"-XX:SharedArchiveFile={path}" '
    assert archive_options().startswith(writes)
    path.write_bytes(bytes(1000))  # Java was killed while it wrote
    assert archive_options().startswith(writes)
    path.write_bytes(b"\xa8\xab\x0b\xf0 and more")
    assert archive_options().startswith(uses)


def test_what_java_cannot_use_it_does_without_and_without_a_word(cache: Path) -> None:
    cache.mkdir(parents=True)
    archive_path().write_bytes(b"\xa8\xab\x0b\xf0 and more")
    command = [ensure_java(), *shlex.split(archive_options()), "-version"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0 and run.stdout == ""
    assert "version" in run.stderr and "rchive" not in run.stderr


@pytest.mark.parametrize("name", ["SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH", "SPARK_HOME"])
def test_java_archives_nothing_beside_folders_of_classes(
    name: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert archive_options() != ""
    (tmp_path / "conf").mkdir()
    place = tmp_path if name == "SPARK_HOME" else tmp_path / "conf"
    monkeypatch.setenv(name, str(place))
    assert archive_options() == ""


def test_where_nothing_can_be_written_java_writes_none(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.parent.mkdir()
    cache.write_text("a file, not a folder")
    assert archive_options() == ""
    monkeypatch.setattr("cepheid.spark.start.java._can_archive", lambda: False)
    cache.unlink()
    assert archive_options() == ""


def test_another_spark_has_another(monkeypatch: pytest.MonkeyPatch) -> None:
    before = archive_path()
    monkeypatch.setattr("pyspark.__version__", "0")
    assert archive_path() != before


def test_a_java_that_writes_none(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive, "_PROGRAM", "raise SystemExit('out of memory')")
    with pytest.raises(class_archive.StreamError, match="no archive could be made: out of memory"):
        create_archive()
    assert list(cache.iterdir()) == []


_SESSION = """
from cepheid.spark.start import java, session
options = f"{session.java_options()} {java.archive_options()} -Xlog:class+load:file=%s"
spark = session.local_session("local[1]", config={"spark.driver.extraJavaOptions": options})
print(spark.range(3).count())
"""


def classes_of_a_session(log: Path) -> str:
    """Where a session took a class of Spark's from, once its Java has ended."""
    # Java has this output, too: it's read to its end when Java has ended.
    run = subprocess.run([sys.executable, "-c", _SESSION % log], capture_output=True, text=True)
    assert run.stdout == "3\n", run.stderr
    assert "rchive" not in run.stderr
    (line,) = [
        line
        for line in log.read_text().splitlines()
        if "org.apache.spark.sql.classic.SparkSession source" in line
    ]
    return line


@pytest.mark.slow
def test_a_session_writes_one_when_it_ends(cache: Path, tmp_path: Path) -> None:
    assert "jar" in classes_of_a_session(tmp_path / "first")
    assert [path.stat().st_size > 10_000_000 for path in cache.glob("*.jsa")] == [True]
    assert "shared objects file (top)" in classes_of_a_session(tmp_path / "second")


@pytest.mark.slow
def test_one_is_made_and_used(cache: Path, tmp_path: Path) -> None:
    """Java says of a class of Spark's that it comes from the archive."""
    path = create_archive()
    assert [*cache.glob("*.jsa")] == [path]
    assert "shared objects file (top)" in classes_of_a_session(tmp_path / "classes")
