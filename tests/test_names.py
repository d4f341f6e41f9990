"""One word has one meaning, and names in docstrings are those of modules."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "cepheid"

WRITTEN_AND_BOUND = {
    "Attribute",
    "Call",
    "Closure",
    "Conjunction",
    "Delay",
    "Disjunction",
    "Negation",
    "Sequence",
    "Unless",
}
"""The same construct, as written (`language/ast.py`, always used as `ast.Sequence`) and as bound to
columns (`algebra`)."""

AS_WRITTEN = {"Query"}
"""The public `Query`, and what its text says: `ast.Query`."""


def classes() -> dict[str, list[str]]:
    """The modules of each class name."""
    homes = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(path.relative_to(SOURCE).as_posix())
    return homes


def test_one_class_has_a_name() -> None:
    shared = {name: homes for name, homes in classes().items() if len(homes) > 1}
    pairs = WRITTEN_AND_BOUND | AS_WRITTEN
    assert {n: homes for n, homes in shared.items() if n not in pairs} == {}
    for name in pairs:
        assert len(shared[name]) == 2 and "language/ast.py" in shared[name], name


LISTED = re.compile(r"^((?:[a-z_]+, )*[a-z_]+) {2,}\S|^- ((?:`[a-z_]+`(?:, )?)+):", re.MULTILINE)
"""A line of a package's docstring about some of its modules."""


def test_packages_list_modules_that_exist() -> None:
    count = 0
    for path in SOURCE.rglob("__init__.py"):
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
        for line in LISTED.finditer(text):
            for name in re.findall(r"[a-z_]+", line[1] or line[2]):
                module, folder = path.parent / f"{name}.py", path.parent / name
                assert module.exists() or folder.is_dir(), f"{name} in {path}"
                count += 1
    assert count > 60
