"""Figures are recorded only with the commit that they were measured from."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import tree
from benchmarks.report import HERE, TO_MEASURE_AGAIN, origin, provenance

PROGRAMS = {
    "benchmarks.__main__": [],
    "benchmarks.answers_spark": [],
    "benchmarks.calibrate": [],
    "benchmarks.constructs": [],
    "benchmarks.correlation": [],
    "benchmarks.counting": [],
    "benchmarks.experiments.__main__": ["all"],
    "benchmarks.overhead": [],
    "benchmarks.placement.__main__": ["rewriting"],
    "benchmarks.row_patterns": [],
    "benchmarks.row_patterns_spark": [],
    "benchmarks.rules.__main__": [],
    "benchmarks.streaming.__main__": ["soak"],
}


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with the folders of this one, and its folder of benchmarks."""
    for name in ("src/engine.py", "benchmarks/results/latest.json", "benchmarks/results/README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("before")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "all")
    return tmp_path / "benchmarks"


def test_a_tree_without_changes_is_recorded(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tree.may_record(clone)
    assert capsys.readouterr().err == ""
    named = tree.commit(clone)
    assert named is not None and not named.endswith("-dirty")


def test_what_runs_record_is_no_change(clone: Path) -> None:
    (clone / "results" / "latest.json").write_text("after")
    (clone / "results" / "new.png").write_text("new")
    (clone / "results" / "README.md").write_text("after")
    plot = clone.parent / "docs" / "rules" / "placement.svg"
    plot.parent.mkdir(parents=True)
    plot.write_text("new")
    assert tree.changes(clone) == []
    assert tree.may_record(clone)


@pytest.mark.parametrize("changed", ["src/engine.py", "src/new.py", "benchmarks/new.py"])
def test_a_tree_with_changes_is_refused(
    changed: str, clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (clone.parent / changed).write_text("after")
    assert not tree.may_record(clone)
    assert capsys.readouterr().err == (
        f"nothing is recorded: the tree has uncommitted changes ({changed}); commit them first, "
        "or measure with --dry-run\n"
    )
    assert (tree.commit(clone) or "").endswith("-dirty")


def test_of_many_changes_some_are_named(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(5):
        (clone.parent / f"{number}.py").write_text("new")
    assert not tree.may_record(clone)
    assert "(0.py, 1.py, 2.py and 2 more)" in capsys.readouterr().err


def test_without_a_commit_nothing_is_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git(tmp_path, "init")
    assert not tree.may_record(tmp_path)
    assert "there is no git commit to record figures with" in capsys.readouterr().err


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_refuses(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("POLARS_MAX_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "1")  # `benchmarks.__main__` sets them: put back after the test
    monkeypatch.setattr(sys, "argv", [program, *PROGRAMS[program]])
    monkeypatch.setattr(tree, "commit", lambda _: "0123456789-dirty")
    monkeypatch.setattr(tree, "changes", lambda _: ["src/engine.py"])
    assert import_module(program).main() == 1
    assert "uncommitted changes (src/engine.py)" in capsys.readouterr().err


def test_figures_of_a_tree_with_changes_are_marked() -> None:
    figures = provenance()
    assert TO_MEASURE_AGAIN not in origin(figures | {"commit": "0123456789"})
    assert TO_MEASURE_AGAIN not in origin(figures | {"commit": None})
    assert origin(figures | {"commit": "0123456789-dirty"}).endswith(f". {TO_MEASURE_AGAIN}")


def test_the_pages_mark_them_all() -> None:
    pages = [path.read_text() for path in (HERE / "results").rglob("README.md")]
    assert len(pages) == 5
    lines = [line for text in pages for line in text.splitlines() if "ommit " in line]
    assert len(lines) > 40
    marked = [line for line in lines if TO_MEASURE_AGAIN in line]
    assert marked == [line for line in lines if "-dirty, " in line]
