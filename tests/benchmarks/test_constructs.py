"""The benchmark of the language's constructs: every pair runs and finds something."""

from __future__ import annotations

import pytest

from benchmarks import constructs
from benchmarks.constructs import PAIRS, Pair, events, figures


@pytest.mark.some(4)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_pairs(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constructs, "REPEATS", 1)
    assert figures(pair, events(4_000)).ratio > 0
