"""What the README and its companions say is so."""

from __future__ import annotations

import contextlib
import io
import re
from itertools import pairwise
from pathlib import Path

import pytest

import cepheid
from tests.docs.blocks import ROOT, Block, blocks

TARGET = re.compile(r"\]\((?!https?:)([^)#]*)(?:#[^)]*)?\)")
DOCS = sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))
BENCHMARKS = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "benchmarks").rglob("README.md"))
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *DOCS, *BENCHMARKS]

EXAMPLES = [
    (example, printed)
    for example, printed in pairwise(blocks("README.md"))
    if example.kind == "python"
]
STORIES = [
    "docs/tutorial.md",
    "docs/cookbook.md",
    "docs/sql.md",
    "docs/why.md",
    "docs/sessions.md",
]
"""Pages whose examples go on from one to the next."""
CALIBRATED = re.compile(r"[\d.]+ (ns|µs|ms)|(<\d+|\d+) %|×[\d.]+")
"""Estimated costs and what follows from them change with the weights of the cost model."""


def lines(text: str) -> list[list[str]]:
    return [CALIBRATED.sub("#", line).split() for line in text.splitlines()]


@pytest.mark.parametrize(("example", "printed"), EXAMPLES, ids=str)
def test_an_example_prints_what_it_says(example: Block, printed: Block) -> None:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(example.text, example.place, "exec"), {})
    assert printed.kind == "text"
    assert lines(output.getvalue()) == lines(printed.text)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 4


@pytest.mark.parametrize("page", STORIES)
def test_a_story_prints_what_it_says(page: str) -> None:
    names: dict[str, object] = {}
    told = blocks(page)
    assert sum(block.kind == "python" for block in told) >= 5
    for example, after in pairwise(told):
        if example.kind == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(example.text, example.place, "exec"), names)
            printed = after.text if after.kind == "text" else ""
            assert lines(output.getvalue()) == lines(printed), example.place


def test_every_page_can_be_found() -> None:
    """From the README, or from the page on internals."""
    linked = [
        (ROOT / page).parent.joinpath(target).resolve()
        for page in ("README.md", "docs/internals.md")
        for target in TARGET.findall((ROOT / page).read_text())
    ]
    assert {ROOT / page for page in DOCS} <= {*linked}


def test_the_map_names_every_package_and_module() -> None:
    table = (ROOT / "README.md").read_text().split("## The map of the code")[1]
    named = set(re.findall(r"`(\w+(?:/|\.py))`", table.split("##")[0]))
    package = ROOT / "src" / "cepheid"
    folders = {f"{p.parent.name}/" for p in package.glob("*/__init__.py")}
    modules = {p.name for p in package.glob("*.py")} - {"__init__.py"}
    assert named == folders | modules


def test_the_files_of_the_map_exist() -> None:
    table = (ROOT / "README.md").read_text().split("## The map of the code")[1]
    named = re.findall(r"`(\w+/[\w/]+(?:/|\.\w+))`", table.split("\n\n")[2])
    assert len(named) > 40
    assert [name for name in named if not (ROOT / "src" / "cepheid" / name).exists()] == []


def test_internals_has_a_section_for_every_package() -> None:
    sections = re.findall(r"^## (\w+)$", (ROOT / "docs/internals.md").read_text(), re.MULTILINE)
    folders = {p.parent.name for p in (ROOT / "src" / "cepheid").glob("*/__init__.py")}
    assert folders <= set(sections)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text()
    for target in TARGET.findall(text):
        assert not target or (ROOT / page).parent.joinpath(target).exists(), target


def anchors(page: Path) -> set[str]:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES)
def test_anchors_are_headings(page: str) -> None:
    here = ROOT / page
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]*)\)", here.read_text()):
        there = here.parent / target if target else here
        assert anchor in anchors(there), f"{target}#{anchor}"


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", *DOCS])
def test_files_that_are_named_exist(page: str) -> None:
    package = ROOT / "src" / "cepheid"
    folders = [ROOT, *(init.parent for init in package.rglob("__init__.py"))]
    for name in re.findall(r"`([\w/]+/[\w.]+)`", (ROOT / page).read_text()):
        known = [f / n for f in folders for n in (name, f"{name}.py")]
        assert any(Path(path).exists() for path in known), name


def test_recipes_name_what_their_files_have() -> None:
    """`FUNCTIONS` is in the file that the same step of a recipe names."""
    recipes = (ROOT / "CONTRIBUTING.md").read_text().split("## Recipes")[1].split("\n## ")[0]
    checked = 0
    for step in re.findall(r"^\d\. (.*?)(?=^\d\. |^#|\Z)", recipes, re.MULTILINE | re.DOTALL):
        names = re.findall(r"`([A-Z]\w+)`", step)
        paths = [ROOT / "src" / "cepheid" / name for name in re.findall(r"`([a-z][\w/.]*)`", step)]
        files = [file for path in paths for file in (path, *path.glob("*.py")) if file.is_file()]
        words = {word for file in files for word in re.findall(r"\w+", file.read_text())}
        assert words.issuperset(names), step
        checked += len(names)
    assert checked > 10


def test_the_folders_outside_of_the_package_exist() -> None:
    table = (ROOT / "README.md").read_text().split("Outside of `src/cepheid/`:")[1].split("\n\n")[1]
    named = re.findall(r"`([\w/.]+)`", table)
    assert len(named) > 5
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_changelog_knows_the_version() -> None:
    assert f"## {cepheid.__version__}" in (ROOT / "CHANGELOG.md").read_text()
