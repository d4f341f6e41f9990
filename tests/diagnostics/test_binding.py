"""Wrong queries and the exact message of each; `--regen` rewrites the messages for review.

A fixture file holds cases between lines of `=`. A case: optional lines `schema NAME` and
`params {...}`, the query, a line `---`, the message.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cepheid.algebra import bind
from cepheid.errors import QueryError
from cepheid.language import Source, parse
from tests.algebra.schemas import SCHEMAS

_FOLDER = Path(__file__).parent / "binding"
_BETWEEN_CASES = "=" * 80


@dataclass(frozen=True)
class Case:
    schema: str
    params: str
    query: str
    expected: str

    def found(self) -> str:
        try:
            bind(
                parse(self.query),
                SCHEMAS[self.schema],
                literal_eval(self.params),
                Source(self.query),
            )
        except QueryError as error:
            return str(error)
        return "nothing is wrong"

    def text(self, message: str) -> str:
        schema = "" if self.schema == "typed" else f"schema {self.schema}\n"
        params = "" if self.params == "{}" else f"params {self.params}\n"
        return f"{schema}{params}{self.query}\n---\n{message}\n"


def read(path: Path) -> Iterator[Case]:
    for block in path.read_text(encoding="utf-8").split(_BETWEEN_CASES + "\n"):
        head, _, expected = block.partition("\n---")
        settings = {"schema": "typed", "params": "{}"}
        lines = head.strip("\n").split("\n")
        while lines[0].split(" ")[0] in settings:
            name, _, value = lines.pop(0).partition(" ")
            settings[name] = value
        yield Case(settings["schema"], settings["params"], "\n".join(lines), expected.strip("\n"))


_FILES = sorted(_FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", _FILES, ids=lambda p: p.stem)
def test_messages(path: Path, pytestconfig: pytest.Config) -> None:
    cases = list(read(path))
    if pytestconfig.getoption("--regen"):
        texts = [case.text(case.found()) for case in cases]
        path.write_text(f"{_BETWEEN_CASES}\n".join(texts), encoding="utf-8")
        cases = list(read(path))
    assert [case.found() for case in cases] == [case.expected for case in cases]


def test_every_case_is_a_wrong_query() -> None:
    cases = [case for path in _FILES for case in read(path)]
    assert len(cases) >= 35
    assert [c.query for c in cases if not c.expected.startswith("CEP")] == []
