from __future__ import annotations

import pytest

from tests.spark.conftest import CONNECT


@pytest.mark.classic
def test_holds_under_connect(pytestconfig: pytest.Config) -> None:
    """The essential tests of this folder again, with `--slow` all of them, in a process with a
    Connect session. It has been running since this one began."""
    run = pytestconfig.stash[CONNECT]
    code = run.process.wait()
    output = run.output.read_text()
    print(output)
    assert code == 0
    assert " passed" in output
