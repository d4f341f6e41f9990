"""`%%cep` in a shell of IPython."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell

import cepheid as cep

EVENTS = pd.DataFrame({"ts": [1, 2, 9], "type": ["A", "B", "A"], "x": [1, 2, 3]})
LINE = "--data events --time ts --type type"


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    parts: list[Any] = []
    monkeypatch.setattr("IPython.display.display", parts.append)
    return parts


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    shell = InteractiveShell.instance()
    shell.user_ns["events"] = EVENTS
    shell.run_line_magic("load_ext", "cepheid")
    yield shell
    InteractiveShell.clear_instance()


def test_matches_and_a_timeline(shell: InteractiveShell, shown: list[Any]) -> None:
    text = "PATTERN A a ; B b WHERE b.x > :low WITHIN 5 RETURN b.x"
    found = shell.run_cell_magic("cep", LINE + " --output kept --params '{\"low\": 1}'", text)
    assert isinstance(found, pd.DataFrame)
    assert found["x"].tolist() == [2]
    assert shell.user_ns["kept"] is found
    assert [type(part) for part in shown] == [cep.Timeline]
    assert shell.run_cell_magic("cep", LINE + " --no-timeline", "PATTERN A a WITHIN 5") is not None
    assert len(shown) == 1


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        (LINE, "PATTERN A a ; B b WHERE b.y > 1 WITHIN 5", "no attribute `y`"),
        (LINE, "PATTERN A <b>", "&lt;b&gt;"),
        ("--data events", "PATTERN A", "required: --time"),
        ("--data event --time ts", "PATTERN A", "is not defined"),
        ("--data 'event --time ts", "PATTERN A", "no closing quotation"),
        (LINE + " --params {", "PATTERN A", "was never closed"),
    ],
)
def test_what_is_wrong_is_shown_without_a_traceback(
    shell: InteractiveShell, shown: list[Any], line: str, text: str, message: str
) -> None:
    assert shell.run_cell_magic("cep", line, text) is None
    (markup,) = shown
    assert message in markup.data and "<b>" not in markup.data


def test_names_of_rules_are_completed() -> None:
    rules = cep.RuleSet.of({"pair": "PATTERN A a ; B b WITHIN 5"})
    assert rules._ipython_key_completions_() == ["pair"]
