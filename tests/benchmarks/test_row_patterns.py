"""The benchmark of MATCH_RECOGNIZE: loops and window functions return as many matches as it."""

from __future__ import annotations

import pytest

from benchmarks.row_patterns import CASES, RowCase, figures, trades


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_programs_return_as_many_matches(case: RowCase) -> None:
    measured = figures(case, trades(3_000, 50))
    assert measured.matches > 50
    assert "loop" in measured.others
