from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cepheid.spark.start import session
from cepheid.spark.start.quiet.sitecustomize import TALKATIVE, without_archives
from cepheid.spark.start.session import ensure_worker_python, with_quiet


def test_workers_run_this_interpreter(spark: SparkSession) -> None:
    def interpreter(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.record_batch({"python": [sys.executable], "arrow": [pa.__version__]})

    rows = spark.range(1, numPartitions=1).mapInArrow(interpreter, "python string, arrow string")
    assert [tuple(row) for row in rows.collect()] == [(sys.executable, pa.__version__)]


def test_workers_begin_with_the_engine_loaded(spark: SparkSession) -> None:
    def loaded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.record_batch({"loaded": ["cepheid.streaming.buckets.bucket" in sys.modules]})

    rows = spark.range(1, numPartitions=1).mapInArrow(loaded, "loaded boolean")
    assert [row["loaded"] for row in rows.collect()] == [True]


def test_planning_a_stateful_query_loads_no_engine() -> None:
    """Spark starts a Python process for every query to ask its processor what it stores; and what
    only packs rows needs no engine, either."""
    program = textwrap.dedent("""
        import sys
        import cepheid.spark.streaming.stateful.processor
        print(*{"pandas", "pyarrow", "numba"} & set(sys.modules))
        import cepheid.spark.streaming.stateful.packed_rows
        print(*{"pandas", "numba"} & set(sys.modules))
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.split() == []


def test_settings(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.ui.enabled") == "false"


@pytest.mark.connect
def test_the_connect_session_is_one(spark: SparkSession) -> None:
    assert "connect" in type(spark).__module__
    session.adopt_session(spark)


@pytest.mark.classic
def test_the_classic_session_is_one(spark: SparkSession) -> None:
    assert spark.sparkContext.master == "local[2]"


@pytest.mark.parametrize(
    ("master", "cores"),
    [("local", 1), ("local[1]", 1), ("local[4]", 4), ("local[3, 2]", 3), ("local[*]", 5)],
)
def test_cores(master: str, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 5)
    assert session._settings(master)["spark.sql.shuffle.partitions"] == str(cores)


@pytest.mark.parametrize("master", ["yarn", "spark://host:7077", "k8s://https://host"])
def test_a_cluster_decides_its_partitions_and_checkpoints(master: str) -> None:
    on_a_cluster, here = session._settings(master), session._settings("local[2]")
    assert sorted(here.keys() - on_a_cluster.keys()) == [
        "spark.sql.shuffle.partitions",
        "spark.sql.streaming.checkpointFileManagerClass",
    ]


def test_the_users_interpreter_is_kept() -> None:
    environ = {"PYSPARK_PYTHON": "/opt/python"}
    ensure_worker_python(environ)
    assert environ == {"PYSPARK_PYTHON": "/opt/python"}
    environ = {}
    ensure_worker_python(environ)
    assert environ == {"PYSPARK_PYTHON": sys.executable}


@pytest.mark.classic
def test_a_session_at_the_default_interpreter_gets_ours(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = spark.sparkContext
    monkeypatch.setattr(context, "pythonExec", "python3")
    session.adopt_session(spark)
    assert context.pythonExec == sys.executable
    monkeypatch.setattr(context, "pythonExec", "/opt/python")
    session.adopt_session(spark)
    assert context.pythonExec == "/opt/python"


@pytest.mark.classic
@pytest.mark.parametrize("quiet", [True, False])
def test_processes_of_a_users_session_are_quiet(
    quiet: bool, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Java that `local_session` has started hands them its own path; any other is given one."""
    jvm = SimpleNamespace(
        System=SimpleNamespace(getenv=lambda _: with_quiet("") if quiet else None)
    )
    monkeypatch.setattr(spark.sparkContext, "_jvm", jvm)
    monkeypatch.setattr(spark.sparkContext, "environment", {"PYTHONPATH": "/opt/ours"})
    session.adopt_session(spark)
    path = "/opt/ours" if quiet else with_quiet("/opt/ours")
    assert spark.sparkContext.environment == {"PYTHONPATH": path}


@pytest.mark.slow
@pytest.mark.classic
def test_a_session_of_the_user_is_put_right(tmp_path: Path) -> None:
    """`python3` on PATH is a stranger that can't run our code, and the session knows only it."""
    stranger = tmp_path / "bin" / "python3"
    stranger.parent.mkdir()
    stranger.write_text("#!/bin/sh\necho 'no pyarrow here' >&2\nexit 1\n")
    stranger.chmod(0o755)
    program = textwrap.dedent("""
        import os
        from pyspark.sql import SparkSession
        from cepheid.spark.start.java import ensure_java
        from cepheid.spark.start.session import adopt_session

        ensure_java()
        os.environ.pop("PYSPARK_PYTHON", None)
        os.environ["PATH"] = os.environ["STRANGER"] + os.pathsep + os.environ["PATH"]
        spark = SparkSession.builder.master("local[1]").getOrCreate()
        adopt_session(spark)
        print("rows:", spark.range(3).mapInArrow(lambda batches: batches, "id long").count())
        spark.stop()
    """)
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "STRANGER": str(stranger.parent)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "rows: 3" in run.stdout, run.stderr


def test_spark_is_kept_quiet(tmp_path: Path) -> None:
    """The process that asks what a stream stores prints nothing; all others are as they were."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text("import sys; sys.marked = __file__")
    path = with_quiet(str(other))
    assert with_quiet(path) == path
    program = "import sys; print(sys.marked, any(p.endswith('quiet') for p in sys.path))"
    talk = [sys.executable, "-c", program]
    environ = {**os.environ, "PYTHONPATH": path}
    spoken = subprocess.run(talk, env=environ, capture_output=True, text=True, check=True)
    assert spoken.stdout == f"{other / 'sitecustomize.py'} False\n" and not spoken.stderr
    silent = subprocess.run([*talk, TALKATIVE], env=environ, capture_output=True, text=True)
    assert silent.returncode == 0 and not silent.stdout + silent.stderr
    alone = {**os.environ, "PYTHONPATH": with_quiet("")}
    assert subprocess.run([sys.executable, "-c", ""], env=alone, capture_output=True).stderr == b""


def test_spark_loads_pyspark_from_the_installed_package(tmp_path: Path) -> None:
    """Not from the archive in it, all of which each process would compile again."""
    packages = tmp_path / "packages"
    for name in ("pyspark", "py4j"):
        (packages / name).mkdir(parents=True)
        (packages / name / "__init__.py").touch()
    library = packages / "pyspark" / "python" / "lib"
    (tmp_path / "linked").symlink_to(packages)
    archives = [str(library / "pyspark.zip"), str(library / "py4j-0.10.9.9-src.zip")]
    others = ["/opt/ours", str(tmp_path / "python" / "lib" / "pyspark.zip")]
    for folder in (str(packages), str(tmp_path / "linked")):
        assert without_archives([*archives, *others, folder]) == [*others, folder]
    # A workers' Python without the package needs the archives, and so does a Spark without Py4J.
    assert without_archives([*archives, *others]) == [*archives, *others]
    (packages / "py4j" / "__init__.py").unlink()
    assert without_archives([*archives, str(packages)]) == [archives[1], str(packages)]


@pytest.mark.classic
def test_workers_load_pyspark_from_the_installed_package(spark: SparkSession) -> None:
    def place(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            archives = [p for p in sys.path if p.endswith((".zip", ".zip/")) and "spark" in p]
            yield pa.record_batch({"archives": [" ".join(archives)]})

    rows = spark.range(1, numPartitions=1).mapInArrow(place, "archives string")
    assert [row["archives"] for row in rows.collect()] == [""]
