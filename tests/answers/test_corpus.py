"""Every case of the corpus that returns answers, in process."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.answers.harness import answered
from tests.corpus.reader import Case, cases

CASES = [case for case in cases() if case.rows is not None]


def same(found: Any, expected: Any) -> bool:
    """Doubles may differ in their last digits: they are added in another order."""
    match found, expected:
        case float(), float():
            return math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-12) or found != found
        case list(), list():
            pairs = zip(found, expected, strict=False)
            return len(found) == len(expected) and all(same(f, e) for f, e in pairs)
        case dict(), dict():
            return found.keys() == expected.keys() and all(
                same(found[k], expected[k]) for k in found
            )
        case _:
            return type(found) is type(expected) and bool(found == expected)


@pytest.mark.parametrize("cuts", [None, (1,), (2, 3)], ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_answers(case: Case, cuts: tuple[int, ...] | None) -> None:
    found = answered(case.bound, case.events, cuts)
    assert same(found, [*(case.rows or ())]), found
