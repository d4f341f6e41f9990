"""`cepheid import sigma`: what it prints, how it ends, and what it doesn't replace."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cepheid.cli import main

RULE = """title: Shell
logsource: {product: linux}
detection:
  s: {image|endswith: /sh}
  condition: s
"""
WRONG = RULE.replace("image|endswith: /sh", "'|expand': '%x%'").replace("Shell", "Wrong")


def code(*words: str) -> int:
    with pytest.raises(SystemExit) as exit:
        main(["import", "sigma", *words])
    return int(exit.value.code or 0)


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "sigma"
    folder.mkdir()
    (folder / "shell.yml").write_text(RULE, encoding="utf-8")
    return folder


@pytest.mark.usefixtures("rules")
def test_rules_are_written_and_problems_listed(
    rules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (rules / "wrong.yml").write_text(WRONG, encoding="utf-8")
    assert code("sigma", "-o", "desk") == 0
    printed = capsys.readouterr()
    assert printed.out == "1 rule in desk: 1 file of queries, 0 tables\n"
    assert printed.err.splitlines()[0].startswith("warning: 2 rules for linux take any event")
    assert printed.err.splitlines()[1] == "not imported, 1:"
    assert "wrong.yml: Wrong: " in printed.err.splitlines()[2]
    assert (Path("desk") / "shell.cep").is_file()


def test_nothing_left_is_a_wrong_use(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (rules / "shell.yml").write_text(WRONG, encoding="utf-8")
    assert code("sigma", "-o", "desk") == 2
    assert not Path("desk").exists()
    assert "not imported, 1:" in capsys.readouterr().err


@pytest.mark.usefixtures("rules")
def test_an_output_is_replaced_only_if_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert code("sigma", "-o", "desk") == 0
    assert code("sigma", "-o", "desk") == 2
    assert "--overwrite replaces it" in capsys.readouterr().err
    assert code("sigma", "-o", "desk", "--overwrite") == 0
    assert code("sigma", "-o", "sigma", "--overwrite") == 2
    assert (Path("sigma") / "shell.yml").is_file()


@pytest.mark.usefixtures("rules")
def test_a_wrong_mapping(capsys: pytest.CaptureFixture[str]) -> None:
    Path("fields.yml").write_text("image: path\n", encoding="utf-8")
    assert code("sigma", "-o", "desk", "--fields", "fields.yml") == 2
    assert "--fields fields.yml: `image` is unknown" in capsys.readouterr().err


@pytest.mark.usefixtures("rules")
def test_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sigma", None)
    assert code("sigma", "-o", "desk") == 2
    assert "pip install 'cepheid[sigma]'" in capsys.readouterr().err
