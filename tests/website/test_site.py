"""The documentation as a site: what its build checks, and the build itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cepheid.errors import QueryError
from website.links import BESIDE, ROOT, relinked, source_of
from website.pictures import check_snippets, with_examples, with_recipes

PAGES = [*sorted(p.name for p in (ROOT / "docs").glob("*.md")), *BESIDE.values()]


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_to_pages_or_files(name: str) -> None:
    text, needed = relinked((ROOT / source_of(name)).read_text(), name)
    assert all((ROOT / place).is_file() for place in needed)
    plain = re.sub(r"(?ms)^ *```.*?^ *```$|`[^`\n]*`", "", text)
    for target in re.findall(r"(?<!!)\]\(([^()\s#]+)", plain):
        known = target in PAGES or target.removeprefix("files/") in needed or ":" in target
        assert known or (ROOT / "docs" / target).is_file(), target


@pytest.mark.parametrize("name", PAGES)
def test_snippets_can_be_read(name: str) -> None:
    check_snippets((ROOT / source_of(name)).read_text(), name)


def test_one_that_cannot_fails_the_build() -> None:
    with pytest.raises(SyntaxError, match="never closed"):
        check_snippets("# A\n\n```python\nx = (\n```\n", "page")
    with pytest.raises(QueryError, match="page:3"):
        check_snippets("# A\n\n```cep\nquery  PATTERN A a ;\nevents A@1\n```\n", "page")


def test_links_elsewhere() -> None:
    text = "[a](../src/cepheid/options.py) [b](../src) [c](why.md#x) [d](../nothing.md)"
    made, needed = relinked(text, "explain.md")
    assert made == "[a](files/src/cepheid/options.py) b [c](why.md#x) [d](../nothing.md)"
    assert needed == {"src/cepheid/options.py"}
    assert relinked("[x](docs/why.md)", "CONTRIBUTING.md")[0] == "[x](why.md)"


def test_each_recipe_and_example_has_a_picture() -> None:
    cookbook = (ROOT / "docs" / "cookbook.md").read_text()
    made = with_recipes(cookbook)
    assert made.count('<div class="picture"><svg') == cookbook.count("\n## ")
    case = "query    PATTERN A a ; B b WITHIN 5\nevents   A@1 B@2\nmatches  a1 b2"
    page = f"# A\n\n```cep\n{case}\n```\n"
    assert 'class="band"' in with_examples(page, "page")


@pytest.mark.slow
def test_the_site_is_built_and_a_wrong_link_is_not(tmp_path: Path) -> None:
    """From a copy, in which a page can be damaged."""
    for part in ("docs", "website", "tests", "examples", "benchmarks", "src"):
        ignored = shutil.ignore_patterns("__pycache__", "*.parquet")
        shutil.copytree(ROOT / part, tmp_path / part, ignore=ignored)
    for name in ("CHANGELOG.md", "CONTRIBUTING.md", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    command = [str(Path(sys.executable).parent / "mkdocs"), "build", "--strict"]
    command += ["--config-file", "website/mkdocs.yml"]
    place = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(tmp_path)}

    def built() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=tmp_path, env=place, capture_output=True, text=True)

    done = built()
    assert done.returncode == 0, done.stderr
    site = tmp_path / "site"
    assert (site / "cookbook.html").read_text().count('class="picture"') >= 12
    assert (site / "language.html").read_text().count('class="picture"') > 100
    assert "llms.txt" in {p.name for p in site.iterdir()}
    listed = re.findall(r"\]\((.+?\.md)\)", (site / "llms.txt").read_text())
    assert len(listed) > 15 and all((site / name).is_file() for name in listed)
    assert (site / "search" / "search_index.json").is_file()
    with (tmp_path / "docs" / "why.md").open("a") as page:
        page.write("\n[a wrong link](nowhere.md) [a wrong place](language.md#nowhere)\n")
    done = built()
    assert done.returncode == 1
    assert "nowhere.md" in done.stderr and "#nowhere" in done.stderr
