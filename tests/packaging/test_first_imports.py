"""Every module can be the first one that is imported."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import cepheid

PACKAGE = Path(cepheid.__file__).parent


def modules() -> dict[str, Path]:
    """All modules and packages, by their names."""
    sources = PACKAGE.rglob("*.py")
    named = {path.relative_to(PACKAGE.parent).with_suffix(""): path for path in sources}
    return {".".join(name.parts).removesuffix(".__init__"): path for name, path in named.items()}


def loaded_first(name: str, tree: ast.Module, known: set[str]) -> set[str]:
    """The modules that have to be loaded before this one is. A package is loaded before what is in
    it, unless that is what the package itself is loading."""
    found: set[str] = set()
    for node in executed(tree):
        match node:
            case ast.Import(names):
                found.update(alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                whole = {f"{module}.{alias.name}" for alias in names}
                found |= whole & known
                if not whole <= known:
                    found.add(module)
    around = {package for one in found for package in packages(one)} - {*packages(name), name}
    return (found | around) & known - {name}


def executed(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements that run when the module is loaded."""
    for statement in tree.body:
        match statement:
            case ast.If(test=ast.Name("TYPE_CHECKING")):
                yield from statement.orelse
            case ast.If() | ast.Try() | ast.With():
                yield from (s for s in ast.walk(statement) if isinstance(s, ast.stmt))
            case _:
                yield statement


def packages(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:n]) for n in range(1, len(parts))]


def test_no_module_is_loaded_before_itself() -> None:
    """Imports that lead in a circle work or fail, depending on where they begin."""
    paths = modules()
    graph = {
        name: loaded_first(name, ast.parse(path.read_text()), set(paths))
        for name, path in paths.items()
    }
    assert "cepheid.engine.operators.base" in graph["cepheid.engine.automaton.operator"]
    TopologicalSorter(graph).prepare()


def test_a_module_deep_inside() -> None:
    command = [sys.executable, "-c", "import cepheid.engine.automaton.operator"]
    subprocess.run(command, check=True)
