"""Messages on the command line name its options."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import cepheid
from cepheid.cli.output.command_words import in_command_words

SOURCES = Path(cepheid.__file__).parent
PYTHON_OPTION = re.compile(
    r"(?<![\w.-])(time|type|tie|unit|params|engine|plan|negation|propagation|stats|buckets|limit)="
)


def messages() -> Iterator[str]:
    """All texts of the package that aren't docstrings, with `…` for what is put into them."""
    for path in SOURCES.rglob("*.py"):
        if "cli" in path.relative_to(SOURCES).parts:
            continue
        tree = ast.parse(path.read_text())
        docstrings = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        inside = {
            id(part)
            for node in ast.walk(tree)
            if isinstance(node, ast.JoinedStr)
            for part in node.values
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                yield "".join(_part(part) for part in node.values)
            elif id(node) not in docstrings | inside and isinstance(node, ast.Constant):
                yield str(node.value)


def _part(part: ast.expr) -> str:
    """A value that stands as Python writes it is a text in quotes."""
    if isinstance(part, ast.Constant):
        return str(part.value)
    assert isinstance(part, ast.FormattedValue)
    return "'x'" if part.conversion == ord("r") else "8"


def test_no_message_names_an_option_as_python_does() -> None:
    found = [text for text in messages() if PYTHON_OPTION.search(text)]
    assert len(found) > 5
    left = [text for text in found if PYTHON_OPTION.search(in_command_words(text))]
    assert not left


def test_lines_of_a_query_stay_as_they_are() -> None:
    shown = "CEP201: x\n  q.cep:1:1\n  1 | WHERE type='A'\n    | ^ as in type=\"name\""
    assert in_command_words(shown) == (
        "CEP201: x\n  q.cep:1:1\n  1 | WHERE type='A'\n    | ^ as in --type name"
    )
