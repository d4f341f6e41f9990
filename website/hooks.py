"""What the build of the site adds to the pages: pictures, files beside them, `llms.txt`."""

from __future__ import annotations

import logging
import re
import shutil
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from mkdocs.structure.files import File, Files

from website.links import BESIDE, ROOT, relinked, source_of
from website.pictures import check_snippets, with_examples, with_recipes

ICON = ROOT / "src" / "cepheid" / "lab" / "static" / "icon.svg"
STYLE = """\
.picture { margin: 1em 0; overflow-x: auto; }
[data-md-color-scheme="default"] .timeline { color: #13202c; }
[data-md-color-scheme="default"] .timeline :is(.bound, .band) { fill: #1f6fb5; }
[data-md-color-scheme="default"] .timeline :is(.line, .group) { stroke: #1f6fb5; }
[data-md-color-scheme="slate"] .timeline { color: #dbe4ec; }
[data-md-color-scheme="slate"] .timeline :is(.bound, .band) { fill: #76ade2; }
[data-md-color-scheme="slate"] .timeline :is(.line, .group) { stroke: #76ade2; }
"""
"""The colors follow the switch of the page, which may differ from the system's."""

_ROW = re.compile(r"^\| \[([^\]]+)\]\(([\w-]+\.md)\) \| (.+) \|$", re.MULTILINE)

log = logging.getLogger("mkdocs.hooks.cepheid")
_needed: set[str] = set()


def on_files(files: Files, config: Any) -> Files:
    for source, made in BESIDE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, made, content=text))
    icon = ICON.read_text(encoding="utf-8")
    files.append(File.generated(config, "assets/icon.svg", content=icon))
    files.append(File.generated(config, "assets/site.css", content=STYLE))
    for file in list(files):
        if file.is_documentation_page():
            _, needed = relinked(file.content_string, file.src_uri)
            for place in needed - _needed:
                copied = File.generated(config, f"files/{place}", abs_src_path=str(ROOT / place))
                files.append(copied)
            _needed.update(needed)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    name = page.file.src_uri
    try:
        check_snippets(markdown, source_of(name))
        if name == "cookbook.md":
            markdown = with_recipes(markdown)
        if name == "language.md":
            markdown = with_examples(markdown, source_of(name))
    except Exception as error:
        log.warning("%s: %s", source_of(name), error)
    # What stands behind the language of a snippet is for the tests.
    plain = re.sub(r"^( *```\w+) [^\n`]+$", r"\1", markdown, flags=re.MULTILINE)
    return relinked(plain, name)[0]


def on_post_build(config: Any) -> None:
    """`llms.txt`, and beside each page its text, to which that leads."""
    site, docs = Path(config.site_dir), Path(config.docs_dir)
    index = (docs / "README.md").read_text(encoding="utf-8")
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", "", "## Pages", ""]
    for name, page, question in _ROW.findall(index):
        shutil.copyfile(docs / page, site / page)
        lines.append(f"- [{name}]({page}): {question}")
    (site / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
