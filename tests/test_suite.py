"""The suite's own rules: what an ordinary run takes of what is alike, and what is run again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis.internal.conjecture import providers

from tests.conftest import SPARK_GAVE_UP
from tests.examples import LONG, NUMBERS, examples, in_turn

ROOT = Path(__file__).parents[1]

BUSY = """
tries = []

def test_busy():
    tries.append("busy")
    assert tries.count("busy") == 2, "Python {gave_up}."

def test_wrong():
    tries.append("wrong")
    assert tries.count("wrong") == 2
"""


def test_what_spark_gave_up_is_run_once_more(tmp_path: Path) -> None:
    (tmp_path / "test_busy.py").write_text(BUSY.format(gave_up=SPARK_GAVE_UP))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no"]
    command += ["-c", str(ROOT / "pyproject.toml"), "-p", "tests.conftest", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1].startswith("1 failed, 1 passed in"), done.stdout
    assert "FAILED test_busy.py::test_wrong" in done.stdout


def test_cases_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LONG, raising=False)
    names = [f"case {n}" for n in range(40)]
    taken = {name: in_turn("abc", name, count=2) for name in names}
    assert {len(set(own)) for own in taken.values()} == {2}
    assert {way for own in taken.values() for way in own} == set("abc")
    assert taken == {name: in_turn("abc", name, count=2) for name in reversed(names)}
    monkeypatch.setenv(LONG, "1")
    assert in_turn("abc", "case 1") == "abc"


@pytest.mark.some(2)
@pytest.mark.parametrize("case", range(5))
def test_some_cases(case: int, pytestconfig: pytest.Config) -> None:
    """An ordinary run has two of these, spread over the list."""
    assert pytestconfig.getoption("--slow") or case in (0, 2)


@pytest.mark.skipif("CEPHEID_EXAMPLES" in os.environ, reason="looks for new cases")
def test_draws_depend_on_no_module() -> None:
    """Otherwise a test could fail or not, depending on the tests that run beside it."""
    constants = providers._get_local_constants()
    assert [*constants.integers, *constants.floats, *constants.strings] == []


@pytest.mark.parametrize("chosen", ["1", "7"])
def test_a_part_of_few_cases_is_one(chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CEPHEID_EXAMPLES", chosen)
    assert [examples(test, part=8) for test in NUMBERS] == [1] * len(NUMBERS)
