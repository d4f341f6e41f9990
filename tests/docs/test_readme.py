"""What the README and its companions say is so."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

import cepheid
from tests.docs.blocks import ROOT, blocks

PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/language.md", "docs/internals.md"]


def test_the_example_prints_what_it_says() -> None:
    shown = blocks("README.md")
    (at,) = [n for n, block in enumerate(shown) if block.kind == "python"]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(shown[at].text, shown[at].place, "exec"), {})
    assert shown[at + 1].kind == "text"
    assert [line.split() for line in printed.getvalue().splitlines()] == [
        line.split() for line in shown[at + 1].text.splitlines()
    ]


def test_the_map_names_every_package_and_module() -> None:
    table = (ROOT / "README.md").read_text().split("## The map of the code")[1]
    named = set(re.findall(r"`(\w+(?:/|\.py))`", table.split("##")[0]))
    package = ROOT / "src" / "cepheid"
    folders = {f"{p.parent.name}/" for p in package.glob("*/__init__.py")}
    modules = {p.name for p in package.glob("*.py")} - {"__init__.py"}
    assert named == folders | modules


def test_internals_has_a_section_for_every_package() -> None:
    sections = re.findall(r"^## (\w+)$", (ROOT / "docs/internals.md").read_text(), re.MULTILINE)
    folders = {p.parent.name for p in (ROOT / "src" / "cepheid").glob("*/__init__.py")}
    assert folders <= set(sections)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\((?!https?:)([^)#]*)(?:#[^)]*)?\)", text):
        assert not target or (ROOT / page).parent.joinpath(target).exists(), target


@pytest.mark.parametrize("page", ["docs/language.md", "docs/internals.md"])
def test_anchors_are_headings(page: str) -> None:
    text = (ROOT / page).read_text()
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.M)
    anchors = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
    assert set(re.findall(r"\]\(#([^)]*)\)", text)) <= anchors


@pytest.mark.parametrize("page", ["docs/internals.md", "CONTRIBUTING.md"])
def test_files_that_are_named_exist(page: str) -> None:
    package = ROOT / "src" / "cepheid"
    folders = [ROOT, package, package / "engine"]
    for name in re.findall(r"`([\w/]+/[\w.]+)`", (ROOT / page).read_text()):
        known = [f / n for f in folders for n in (name, f"{name}.py")]
        assert any(Path(path).exists() for path in known), name


def test_the_changelog_knows_the_version() -> None:
    assert f"## {cepheid.__version__}" in (ROOT / "CHANGELOG.md").read_text()
