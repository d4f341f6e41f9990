"""Patterns and the programs of their automata; `--regen` rewrites the programs for review.

A fixture file holds cases with a line of `=` between them. A case: the query, a line `---`, the
program. What its kernel does is tested elsewhere, by matches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import get_args

import pytest

from cepheid.algebra import bind
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.types import Schema, Type
from cepheid.engine.automaton.compiler import compile_pattern
from cepheid.engine.automaton.instructions import Emit, Hold, Instruction, Search, Start
from cepheid.engine.automaton.points import End
from cepheid.engine.automaton.program import Program
from cepheid.engine.automaton.source.kernel import write_kernel
from cepheid.engine.lowering import Inputs
from cepheid.language import parse
from cepheid.plan.nodes import Automaton
from cepheid.planner.automata.automaton_plans import automaton_plan

FOLDER = Path(__file__).parent / "programs"
BETWEEN = "\n\n" + "=" * 80 + "\n\n"
SCHEMA = Schema(
    {"ts": Type.INTEGER, "type": Type.STRING, "x": Type.INTEGER, "k": Type.INTEGER},
    time="ts",
    type="type",
)


@dataclass(frozen=True)
class Case:
    query: str
    expected: str


def read(path: Path) -> Iterator[Case]:
    for text in path.read_text(encoding="utf-8").split(BETWEEN):
        query, _, expected = text.strip("\n").partition("\n---")
        yield Case(query, expected.strip("\n"))


def bound(query: str) -> BoundQuery:
    return bind(parse(query), SCHEMA)


def program_of(query: str) -> Program:
    node = automaton_plan(bound(query)).alternatives[0]
    assert isinstance(node, Automaton)
    windowed = bound(query).window is not None
    return compile_pattern(node, windowed=windowed, in_time=True, lasting=False)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_programs(path: Path, request: pytest.FixtureRequest) -> None:
    cases = list(read(path))
    found = [Case(case.query, str(program_of(case.query))) for case in cases]
    if request.config.getoption("--regen"):
        texts = [f"{case.query}\n---\n{case.expected}" for case in found]
        path.write_text(BETWEEN.join(texts) + "\n", encoding="utf-8")
    else:
        assert found == cases


def test_there_is_a_program_with_every_instruction() -> None:
    programs = [program_of(c.query) for path in FOLDER.glob("*.txt") for c in read(path)]
    used = {type(value) for program in programs for value in values(program)}
    assert kinds(Instruction) - used == set()


def values(value: object) -> Iterator[object]:
    """All frozen nodes in a program."""
    if isinstance(value, tuple):
        for item in value:
            yield from values(item)
    elif is_dataclass(value):
        yield value
        for field in fields(value):
            yield from values(getattr(value, field.name))


def kinds(union: object) -> set[object]:
    parts = get_args(union)
    return set().union(*map(kinds, parts)) if parts else {union}


def test_the_internals_show_a_program() -> None:
    text = (Path(__file__).parents[3] / "docs" / "internals.md").read_text(encoding="utf-8")
    query = "A a -> B b WHERE b.x > a.x WITHIN 10"
    _, _, behind = text.partition(f"`{query}` is\n\n```text\n")
    assert behind.partition("\n```")[0] == str(program_of(f"PATTERN {query}"))


def test_a_program_is_data() -> None:
    program = program_of("PATTERN A a ; B b WHERE b.x > a.x WITHIN 10")
    steps = program.instructions
    assert (steps[0], steps[-1]) == (Start(0, "a", (0,)), Emit())
    (n,) = (n for n, step in enumerate(steps) if isinstance(step, Search))
    search, hold = steps[n], steps[n + 1]
    assert isinstance(search, Search) and search.sweep.lower == End((0,))
    assert search.sweep.inside and search.sweep.awaits and not search.first
    assert isinstance(hold, Hold) and len(hold.criteria) == 1
    assert program == program_of("PATTERN A a ; B b WHERE b.x > a.x WITHIN 10")


def test_source_depends_on_the_program_and_the_inputs_alone() -> None:
    program = program_of("PATTERN A a -> B+ b ; C c WHERE b.x > a.x AND c.x < sum(b.x) WITHIN 10")
    one, other = (write_kernel(program, Inputs(frozenset(), objects=False)) for _ in range(2))
    assert one == other
