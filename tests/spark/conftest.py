"""One session for all Spark tests; the same tests run classic and under Spark Connect.

The two can't live in one process: after a Connect session has started, `pyspark.sql.functions`
make Connect columns and builders return Connect sessions; after a classic one, Connect refuses to
start. So CEPHEID_SPARK=connect switches a whole run, and `test_connect.py` starts such a run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp

import pytest
from pyspark.sql import SparkSession

from cepheid.spark.start.session import local_session

MODE = os.environ.get("CEPHEID_SPARK", "classic")
OTHER = {"classic": "connect", "connect": "classic"}[MODE]


@dataclass(frozen=True)
class Run:
    """The tests of this folder in another process, and what they print."""

    process: subprocess.Popen[bytes]
    output: Path


CONNECT = pytest.StashKey[Run]()
_HERE = "tests/spark"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What needs the other kind of session belongs to the other run. Under Connect an ordinary run
    has the essential tests only, and the run that starts it has the others; `--slow` has all of
    them in both."""
    elsewhere = [item for item in items if item.get_closest_marker(OTHER)]
    if not config.getoption("--slow"):
        if MODE == "connect":
            wanted = ("essential", "connect")
            elsewhere = [item for item in items if not any(map(item.get_closest_marker, wanted))]
        elif runs_connect(items):
            elsewhere += [item for item in items if item.get_closest_marker("essential")]
    if elsewhere:
        config.hook.pytest_deselected(items=elsewhere)
        items[:] = [item for item in items if item not in elsewhere]


def runs_connect(items: Sequence[pytest.Item]) -> bool:
    """Whether a test is going to ask for the run under Connect."""
    return any(item.name == "test_holds_under_connect" for item in items)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start the run under Connect, if a test is going to ask for it."""
    if runs_connect(session.items) and not session.config.option.collectonly:
        options = ["--slow"] if session.config.getoption("--slow") else []
        # SPARK_TESTING lets the server take any free port, so that two runs don't clash.
        environ = {**os.environ, "CEPHEID_SPARK": "connect", "SPARK_TESTING": "1"}
        descriptor, output = mkstemp()
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, _HERE],
            cwd=Path(__file__).parents[2],
            env=environ,
            stdout=descriptor,
            stderr=subprocess.STDOUT,
        )
        os.close(descriptor)
        session.config.stash[CONNECT] = Run(process, Path(output))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Whoever stops this run stops that one, too."""
    run = config.stash.get(CONNECT, None)
    if run is not None:
        run.process.terminate()
        run.process.wait()
        run.output.unlink()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = local_session("local[2]", "tests", remote="local[2]" if MODE == "connect" else None)
    yield session
    session.stop()
