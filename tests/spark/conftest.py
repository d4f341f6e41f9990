"""One session for all Spark tests; the same tests run classic and under Spark Connect.

The two can't live in one process: after a Connect session has started, `pyspark.sql.functions`
make Connect columns and builders return Connect sessions; after a classic one, Connect refuses to
start. So CEPHEID_SPARK=connect switches a whole run, and `test_connect.py` starts such a run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from cepheid.spark.session import local_session

MODE = os.environ.get("CEPHEID_SPARK", "classic")
OTHER = {"classic": "connect", "connect": "classic"}[MODE]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What needs the other kind of session belongs to the other run."""
    elsewhere = [item for item in items if item.get_closest_marker(OTHER)]
    if elsewhere:
        config.hook.pytest_deselected(items=elsewhere)
        items[:] = [item for item in items if item not in elsewhere]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = local_session("local[2]", "tests", remote="local[2]" if MODE == "connect" else None)
    yield session
    session.stop()
