"""The measurement of what samples cost."""

from __future__ import annotations

import pytest

from benchmarks.overhead import Share, shares


def test_a_share_is_of_the_engine_s_time() -> None:
    assert Share("q", 10, 2.0, 0.02).percent == 1.0


@pytest.mark.slow
def test_every_workload_of_the_queries_is_measured() -> None:
    found = list(shares(part=60, repeats=1))
    names = [share.workload for share in found]
    assert {name.split()[0] for name in names} == {"q4", "q5", "q6"}
    assert len(names) == len(set(names))
    assert all(share.events > 0 and share.seconds > share.sampling > 0 for share in found)
