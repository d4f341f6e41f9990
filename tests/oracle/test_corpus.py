"""The oracle on every case of the corpus. With `--regen` it rewrites what isn't by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus import Case, bound, cases, files, rewrite, show
from tests.oracle import answers, outputs


@pytest.mark.parametrize("path", files(), ids=lambda p: p.stem)
def test_regenerated(path: Path, request: pytest.FixtureRequest) -> None:
    """Written answers are the oracle's; regenerating changes nothing that isn't a new meaning."""
    own = [c for c in cases(path.name) if not c.by_hand and c.rows is None]
    answers = {c.name: show(c, [m.bindings for m in c.answer]) for c in own}
    if request.config.getoption("--regen"):
        rewrite(path, answers)
    else:
        assert answers == {c.name: show(c, c.expected) for c in own}


@pytest.mark.parametrize("case", [c for c in cases() if c.by_hand], ids=str)
def test_by_hand(case: Case) -> None:
    found = case.answer
    assert sorted(show(case, [m.bindings]) for m in found) == sorted(
        show(case, [e]) for e in case.expected
    )


@pytest.mark.parametrize("case", [c for c in cases() if c.returns is not None], ids=str)
def test_returns(case: Case) -> None:
    query = bound(case)
    rows = [outputs(query, m, case.events) for m in case.answer]
    assert rows == list(case.returns or ())


@pytest.mark.parametrize("case", [c for c in cases() if c.rows is not None], ids=str)
def test_answers(case: Case) -> None:
    assert answers(bound(case), case.events) == list(case.rows or ())


def test_names_are_unique() -> None:
    names = [c.name for c in cases()]
    assert len(set(names)) == len(names)


def test_every_feature_has_cases() -> None:
    assert len(cases()) >= 150
    assert all(cases(path.name) for path in files())
