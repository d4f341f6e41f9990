"""`docs/map.md` lists every module with what it says of itself; `--regen` writes it anew."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT

PAGE = ROOT / "docs" / "map.md"
CODE = ROOT / "src" / "cepheid"
HEAD = """\
# Every file of the code

What each module of `src/cepheid` says of itself, room by room.
[README](../README.md#the-map-of-the-code) has the files to open for typical changes,
[internals](internals.md) the walk of a query through the rooms.
A test writes this page from the modules: `make test PYTEST="tests/docs/test_map.py --regen"`.
"""


def summary(module: Path) -> str:
    """The first sentence of a module; nothing if it says nothing."""
    said = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    first, *_ = re.split(r"(?<=[.?!])\s+(?=[A-Z`\d])", " ".join(said.split("\n\n")[0].split()))
    return first.rstrip(".:")


def page() -> str:
    rooms = sorted({path.parent for path in CODE.rglob("*.py")})
    text = [HEAD]
    for room in rooms:
        modules = sorted(path for path in room.glob("*.py") if path.name != "__init__.py")
        if not modules:
            continue
        name = room.relative_to(CODE.parent).as_posix()
        text.append(f"## {name}\n")
        if of_room := summary(room / "__init__.py"):
            text.append(f"{of_room}.\n")
        text.append("| module | |\n|---|---|")
        text += [
            f"| `{path.stem}` | {summary(path).replace('|', chr(92) + '|')} |" for path in modules
        ]
        text.append("")
    return "\n".join(text)


def test_map(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--regen"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_module_says_what_it_is() -> None:
    silent = [
        path.relative_to(CODE).as_posix()
        for path in CODE.rglob("*.py")
        if path.name != "__init__.py" and not summary(path)
    ]
    assert silent == []
