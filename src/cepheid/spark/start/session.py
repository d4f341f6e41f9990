"""Spark sessions that work where they are started, and workers that can run our engine.

A worker runs whatever PYSPARK_PYTHON names when the session starts, and `python3` if nothing
does. On one machine that is often another interpreter than the driver's, one without pyarrow, so
the driver's own interpreter is made the default before a session exists (`ensure_worker_python`)
and, for a classic local session that exists already, put right afterwards (`adopt_session`).
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cepheid.extras import require
from cepheid.spark.start.java import archive_options, ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHECKPOINTS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)

_COMPILER = " ".join(
    f"-XX:Tier4{name}={10 * count}"
    for name, count in {
        "InvocationThreshold": 5_000,
        "MinInvocationThreshold": 600,
        "CompileThreshold": 15_000,
        "BackEdgeThreshold": 40_000,
    }.items()
)
"""Java's optimizing compiler starts ten times later than by default. Code that only starts a
session and plans its first queries is then never compiled, which saves a third of a start's
processor time."""

_QUIET = str(Path(__file__).with_name("quiet"))

PANDAS_NOTICE = "PySpark does not yet fully support pandas"
"""The beginning of Spark's warning about its pandas API, which Cepheid doesn't use."""


def local_session(
    master: str = "local[*]",
    app: str = "cepheid",
    remote: str | None = None,
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session on this machine: a Java that Spark supports, this Python in the workers, and no
    needless output.

    `remote` asks for Spark Connect instead: `"local[2]"` starts a server here, `"sc://host"`
    connects to one. Classic and Connect sessions can't live in one process. `config` is added to,
    and wins over, the settings made here.
    """
    require("spark")
    from pyspark.sql import SparkSession

    ensure_java()
    ensure_worker_python()
    builder = SparkSession.builder.appName(app)
    builder = builder.remote(remote) if remote else builder.master(master)
    if remote is None or remote.startswith("local"):
        for key, value in _settings(remote or master).items():
            builder = builder.config(key, value)
    for key, value in (config or {}).items():
        builder = builder.config(key, value)
    with warnings.catch_warnings(), _quiet_server():
        warnings.filterwarnings("ignore", message=PANDAS_NOTICE)
        # A Connect client also sends what only the starting server can take.
        warnings.filterwarnings("ignore", message="Failed to set spark")
        return builder.getOrCreate()


def ensure_worker_python(environ: MutableMapping[str, str] | None = None) -> None:
    """Make the workers of new sessions run this interpreter, unless the user chose one."""
    environ = os.environ if environ is None else environ
    environ.setdefault("PYSPARK_PYTHON", sys.executable)


def adopt_session(spark: object) -> None:
    """Make a session that the caller started fit for our workers, as far as that can be done.

    A classic session on a local master that was left at Spark's default interpreter gets the
    driver's. A cluster's interpreter is the cluster's choice, and a Connect server's is its own.
    Python processes that Spark starts from now on are quiet (`cepheid.spark.start.quiet`).
    """
    from pyspark.sql import SparkSession

    # A Connect session has no context, and is no instance of the classic class.
    if not isinstance(spark, SparkSession):
        return
    context = spark.sparkContext
    started_with: Any = context._jvm
    if _QUIET not in (started_with.System.getenv("PYTHONPATH") or ""):
        # Processes of another environment are others, so a session of ours is left as it is.
        context.environment["PYTHONPATH"] = with_quiet(context.environment.get("PYTHONPATH", ""))
    if (context.master or "").startswith("local") and context.pythonExec == "python3":
        context.pythonExec = sys.executable


def with_quiet(path: str) -> str:
    """The Python path with the folder that silences Spark's processes."""
    return os.pathsep.join(dict.fromkeys([_QUIET, *filter(None, path.split(os.pathsep))]))


@contextmanager
def _quiet_server() -> Iterator[None]:
    """Set the environment that a Java started in this block passes on to its processes."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = with_quiet(before or "")
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def java_options() -> str:
    """The options of every Java that Cepheid starts."""
    log = Path(__file__).with_name("log4j2.properties").as_uri()
    return f"-Dlog4j2.configurationFile={log} {_COMPILER}"


def _settings(master: str) -> dict[str, str]:
    """The settings for any master. On a local master also: as many partitions as cores, and
    checkpoints without the process that Spark's default starts for every file on a local disk."""
    settings = {
        "spark.driver.extraJavaOptions": f"{java_options()} {archive_options()}".strip(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.python.daemon.module": "cepheid.spark.daemon",  # has the engine loaded
    }
    if not master.startswith("local"):
        return settings
    return settings | {
        "spark.sql.shuffle.partitions": str(_cores(master)),
        "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
    }


def _cores(master: str) -> int:
    """How many tasks run at once: `local` 1, `local[4]` and `local[4, 2]` 4, `local[*]` all."""
    inside = master.partition("[")[2].rstrip("]").partition(",")[0].strip()
    if inside == "*":
        return os.cpu_count() or 1
    return int(inside) if inside.isdigit() else 1
