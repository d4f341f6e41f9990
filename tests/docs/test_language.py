"""The language reference is true: the reference evaluator and the engine agree with every example.

Blocks marked `cep` run on both, and so do `cep timeouts`, of which the partial matches that expire
are known; `cep error` are wrong queries with the exact message.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from cepheid.algebra import Schema, Type, bind
from cepheid.algebra.aggregates import AGGREGATES
from cepheid.algebra.functions import FUNCTIONS, SYNONYMS
from cepheid.errors import QueryError
from cepheid.language import Source, parse
from cepheid.planner.automata.automaton_needs import needs_automaton
from tests.answers.harness import answered
from tests.corpus.reader import Case, bound, case_of, fields_of, show
from tests.docs.blocks import ROOT, Block, blocks
from tests.engine.harness import Setup, multiset, run
from tests.oracle import answers, matches, outputs
from tests.oracle.test_timeouts import written as expiring
from tests.oracle.timeouts import timeouts
from tests.query.test_timeouts import by_engine as expired_by_engine

PAGE = "docs/language.md"
BLOCKS = blocks(PAGE)
COLUMNS = {"ts": Type.INTEGER, "type": Type.STRING, "x": Type.INTEGER, "name": Type.STRING}


def of_kind(*kinds: str) -> list[Block]:
    return [block for block in BLOCKS if block.kind in kinds]


def case(block: Block) -> Case:
    return case_of({"name": block.place, **fields_of(block.text, PAGE)}, PAGE)


@pytest.mark.parametrize("block", of_kind("cep"), ids=str)
def test_the_matches_are_as_written(block: Block) -> None:
    written = case(block)
    query = bound(written)
    found = matches(query, written.events)
    assert sorted(show(written, [m.bindings]) for m in found) == sorted(
        show(written, [e]) for e in written.expected
    )
    if written.returns is not None:
        assert [outputs(query, m, written.events) for m in found] == list(written.returns)


@pytest.mark.parametrize("block", of_kind("cep answers"), ids=str)
def test_the_answers_are_as_written(block: Block) -> None:
    written = case(block)
    assert answers(bound(written), written.events) == list(written.rows or ())
    assert answered(bound(written), written.events, (2,)) == list(written.rows or ())


@pytest.mark.parametrize(
    "setup",
    [Setup(engine="auto"), Setup("right-deep", cuts=(1,)), Setup(engine="automaton")],
    ids=str,
)
@pytest.mark.parametrize("block", of_kind("cep"), ids=str)
def test_the_engine_finds_them(block: Block, setup: Setup) -> None:
    written = case(block)
    query = bound(written)
    if setup.engine == "tree" and needs_automaton(query.pattern) is not None:
        setup = replace(setup, engine="mixed")
    found = run(query, written.events, setup)
    assert multiset(query, found) == multiset(query, matches(query, written.events))


@pytest.mark.parametrize("block", of_kind("cep timeouts"), ids=str)
def test_what_expires_is_as_written(block: Block) -> None:
    written = expiring(block.place, block.text)
    expected = sorted(show(written, [e]) for e in written.expected)
    found = timeouts(bound(written), written.events)
    assert sorted(show(written, [e.match.bindings]) for e in found) == expected
    assert expired_by_engine(written) == expected


@pytest.mark.parametrize("block", of_kind("cep error"), ids=str)
def test_wrong_queries_are_refused_in_these_words(block: Block) -> None:
    text, message = block.text.split("---\n")
    query = text.rstrip("\n")
    schema = Schema(COLUMNS, time="ts", type="type")
    with pytest.raises(QueryError) as refused:
        bind(parse(query), schema, {}, Source(query, "query"))
    assert str(refused.value) == message.rstrip("\n")


def section(name: str) -> str:
    text = (ROOT / PAGE).read_text()
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- end -->", text, re.DOTALL)
    assert found is not None
    return found[1]


def test_every_function_is_listed() -> None:
    rows = [f"| `{f.name}({f.signature})` | {f.doc} |\n" for f in FUNCTIONS.values()]
    assert section("functions") == "".join(rows)


def test_every_aggregate_is_listed() -> None:
    rows = [f"| `{a.name}(b.x)` | {a.doc} |\n" for a in AGGREGATES.values()]
    assert section("aggregates") == "".join(rows)


def test_every_synonym_is_listed() -> None:
    assert re.findall(r"`(\w+)`", section("synonyms")) == list(SYNONYMS)


def test_every_code_is_listed_once() -> None:
    used = {
        code
        for path in (ROOT / "src" / "cepheid").rglob("*.py")
        for code in re.findall(r'"(CEP\d{3})"', path.read_text())
    }
    assert re.findall(r"^\| (CEP\d{3}) \|", section("codes"), re.MULTILINE) == sorted(used)


def test_no_block_is_left_out() -> None:
    kinds = {"cep", "cep answers", "cep error", "cep timeouts", "text"}
    assert {block.kind for block in BLOCKS} <= kinds
    assert len(of_kind("cep answers")) >= 7
    assert len(of_kind("cep")) >= 110
    assert len(of_kind("cep error")) >= 12
    assert len(of_kind("cep timeouts")) >= 4
