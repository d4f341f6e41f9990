"""Links of pages, which lead to files of the repository, as links of the site."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]

BESIDE = {
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "benchmarks/README.md": "benchmarks.md",
}
"""Pages of the site that don't stand in docs/."""

COPIED = (".cep", ".csv", ".json", ".py", ".svg")
"""What is copied to the site if a page links to it."""

_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|`[^`]*`)*)\]\(([^()\s]+)\)")
_FENCE = re.compile(r"(^ *```.*?^ *```$)", re.DOTALL | re.MULTILINE)


def source_of(page: str) -> str:
    """Where a page of the site stands in the repository."""
    beside = {made: source for source, made in BESIDE.items()}
    return beside.get(page, f"docs/{page}")


def relinked(text: str, page: str) -> tuple[str, set[str]]:
    """The text of a page with the links of the site, and the files that it needs there. What isn't
    on the site is named without a link; what doesn't exist stays, and fails the build."""
    needed: set[str] = set()
    folder = posixpath.dirname(source_of(page))

    def link(found: re.Match[str]) -> str:
        words, target = found[1], found[2]
        path, mark, anchor = target.partition("#")
        if not path or ":" in path:
            return found[0]
        place = posixpath.normpath(posixpath.join(folder, path))
        if (ROOT / place / "README.md").is_file() and f"{place}/README.md" in BESIDE:
            place = f"{place}/README.md"
        if place in BESIDE:
            return f"[{words}]({BESIDE[place]}{mark}{anchor})"
        if place.startswith("docs/"):
            return f"[{words}]({place.removeprefix('docs/')}{mark}{anchor})"
        if place == "docs":
            return f"[{words}](README.md)"
        if not (ROOT / place).exists():
            return found[0]
        if (ROOT / place).is_file() and place.endswith(COPIED):
            needed.add(place)
            return f"[{words}](files/{place})"
        return words

    parts = _FENCE.split(text)
    parts[::2] = [_LINK.sub(link, part) for part in parts[::2]]
    return "".join(parts), needed
