from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.classic
def test_everything_holds_under_connect(pytestconfig: pytest.Config) -> None:
    """The tests of this folder again, in a process with a Connect session."""
    options = ["--slow"] if pytestconfig.getoption("--slow") else []
    # SPARK_TESTING lets the server take any free port, so that two runs don't clash.
    environ = {**os.environ, "CEPHEID_SPARK": "connect", "SPARK_TESTING": "1"}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "tests/spark"],
        cwd=Path(__file__).parents[2],
        env=environ,
        capture_output=True,
        text=True,
    )
    print(run.stdout, run.stderr)
    assert run.returncode == 0
    assert " passed" in run.stdout
