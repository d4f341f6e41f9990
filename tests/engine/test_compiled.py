"""Compiled kernels give the same matches as the same source in plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.algebra.query import BoundQuery
from cepheid.engine.operators.base import KernelCall
from cepheid.engine.run import Engine
from cepheid.kernels import compile as compiling
from cepheid.plan.nodes import Plan
from cepheid.planner import make_plan
from cepheid.planner.automata.automaton_plans import automaton_plan
from cepheid.query import Query
from tests.corpus.reader import Case, bound, cases
from tests.engine.harness import Setup, multiset, run

# Every operator, with and without hash chains, NULLs, groups, residuals, both edges.
NAMES = {
    "closure/filter with both neighbors",
    "closure/leading runs of two",
    "closure/running with an aggregate",
    "closure/trailing aggregate",
    "closure/ALL and SOME of an empty group",
    "closure/two with a neighbor between",
    "closure/keyed, aggregates per key",
    "closure/first and last don't ignore NULLs",
    "conjunction/keyed",
    "conjunction/of sequences, one type",
    "disjunction/a conjunct of both sees NULL",
    "disjunction/closure at the edge of a top branch",
    "keys/[id] reaches the negation",
    "keys/composite",
    "keys/NaN is a key of its own",
    "keys/text",
    "modes/exactly two, alone",
    "negation/both edges",
    "negation/composite, some of its events are bound",
    "negation/in a conjunction in a sequence",
    "negation/next to an empty group",
    "negation/predicate with both",
    "negation/predicate with the left",
    "negation/two in the middle",
    "numbers/a product of two events",
    "numbers/a sum and a difference of two events",
    "numbers/a sum over a group that overflows is NULL",
    "numbers/minus and abs of the least integer",
    "numbers/the least integer modulo -1",
    "numbers/the sign of NaN is NULL",
    "numbers/too large for ceil and floor",
    "predicates/duration of the match",
    "predicates/numeric functions",
    "zstream/figure 5, negation in the middle",
    "zstream/figure 6, closure of two",
}
CHOSEN = [c for c in cases() if c.name in NAMES]
USUAL = {
    "closure/keyed, aggregates per key",
    "conjunction/keyed",
    "keys/NaN is a key of its own",
    "keys/composite",
    "negation/both edges",
    "negation/predicate with both",
    "numbers/a product of two events",
    "numbers/a sum over a group that overflows is NULL",
    "predicates/numeric functions",
}
"""Those of every run: each operator of a tree, and integers that overflow. All others are for the
long one, since each takes seconds to compile."""

# Every kind of step of an automaton.
AUTOMATA_NAMES = {
    "cayuga/table 1",
    "closure/trailing aggregate",
    "delay/of a composite, the earliest delayed end is first",
    "disjunction/a conjunct of both sees NULL",
    "exception/composite",
    "exception/with a variable bound later",
    "groups/PREV sees the groups",
    "groups/of a conjunction",
    "groups/of a disjunction",
    "groups/optional",
    "keys/composite",
    "keys/text",
    "modes/prefixes beside a maximal one",
    "modes/runs, running from each start",
    "modes/subsets in range, running inside each",
    "modes/until in runs of two",
    "modes/until, on what was taken before",
    "negation/both edges",
    "negation/composite, some of its events are bound",
    "next/HAVING kills without looking further",
    "numbers/a sum that is carried along",
    "distinct/subsets: what was given back is new again",
    "previous/runs are tested inside, also with their first",
    "reduce/prefixes",
    "next/a check between the group and what closes it",
    "next/equal histories all qualify",
    "next/right-nested with a predicate",
    "next/tie-break decides",
    "strict/key of different names: the whole stream",
    "strict/leading group before it, in the window",
    "strict/negation at the end, whatever the window",
    "strict/simultaneous events don't break it",
}
AUTOMATA = [c for c in cases() if c.name in AUTOMATA_NAMES]
USUAL_AUTOMATA = {
    "cayuga/table 1",
    "exception/composite",
    "groups/optional",
    "modes/subsets in range, running inside each",
    "negation/both edges",
    "next/equal histories all qualify",
    "numbers/a sum that is carried along",
}


def marked(chosen: list[Case], usual: set[str]) -> list[Any]:
    slow = pytest.mark.slow
    return [pytest.param(c, marks=() if c.name in usual else slow, id=str(c)) for c in chosen]


def test_no_case_is_missing() -> None:
    assert {c.name for c in CHOSEN} == NAMES
    assert {c.name for c in AUTOMATA} == AUTOMATA_NAMES
    assert USUAL <= NAMES
    assert USUAL_AUTOMATA <= AUTOMATA_NAMES


@pytest.mark.some(4)
@pytest.mark.parametrize("case", marked(CHOSEN, USUAL))
def test_compiled(case: Case) -> None:
    query = bound(case)
    expected = multiset(query, case.answer)
    assert multiset(query, run(query, case.events, Setup(jit=True, cuts=(3,)))) == expected


@pytest.mark.some(2)
@pytest.mark.parametrize("case", marked(AUTOMATA, USUAL_AUTOMATA))
def test_compiled_automata(case: Case) -> None:
    query = bound(case)
    expected = multiset(query, case.answer)
    setup = Setup(engine="automaton", jit=True, cuts=(3,))
    assert multiset(query, run(query, case.events, setup)) == expected


@pytest.mark.parametrize(
    ("text", "plan_of"),
    [
        (
            "PATTERN A a -> B+ b PREFIXES -> C c WHERE b.x < a.x WITHIN 9 "
            "RETURN a.ts, count(b), c.ts",
            automaton_plan,
        ),
        ("PATTERN A a ; B b WHERE b.x = a.x WITHIN 9 RETURN a.ts, b.ts AS b", make_plan),
    ],
    ids=["automaton", "join"],
)
def test_compiling_while_it_runs(
    text: str,
    plan_of: Callable[[BoundQuery], Plan],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first rows are matched by plain Python; a kernel takes over what they left waiting."""
    monkeypatch.setenv("CEPHEID_CACHE", str(tmp_path))
    kinds = "ABACBBCABCAABC"
    events = pa.table({"ts": range(len(kinds)), "type": list(kinds), "x": [3, 1, 2] * 4 + [3, 1]})
    query = cep.Query(text).bind(events.schema, time="ts", type="type")
    engine = Engine(plan_of(query), events.schema, compile_at=6)
    root = engine.tree.roots[0]
    found: list[pa.RecordBatch] = []
    paid: list[bool] = []
    for batch in events.to_batches(max_chunksize=2):
        found += engine.push(batch)
        paid.append(not root.compiled().provisional)
    found += engine.finish()
    assert paid == sorted(paid) and not any(paid[:2]) and all(paid[3:])
    plain = cep.match(events, text, time="ts", type="type", jit=False)
    rows = [row for batch in found for row in batch.to_pylist()]
    assert sorted(map(str, rows)) == sorted(map(str, plain.to_pylist()))
    assert plain.num_rows > 1


@pytest.mark.parametrize("limit", [None, cep.Limit(total=40)], ids=["no limit", "limit"])
@pytest.mark.parametrize(
    ("text", "plan_of"),
    [
        ("PATTERN A a -> B b WHERE b.x > a.x + 0.125 WITHIN 9", automaton_plan),
        ("PATTERN A a ; B b WHERE b.x > a.x + 0.125 WITHIN 9", make_plan),
    ],
    ids=["automaton", "join"],
)
def test_a_kernel_is_compiled_when_the_rest_would_take_longer(
    text: str,
    plan_of: Callable[[BoundQuery], Plan],
    limit: cep.Limit | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the middle of a batch; what of it wasn't looked at yet doesn't count as held."""
    monkeypatch.setenv("CEPHEID_CACHE", str(tmp_path))
    monkeypatch.setattr("cepheid.engine.tree.compile_seconds", lambda source: 1e-3)
    compiling.load.cache_clear()
    rows = 6_000
    events = pa.table(
        {"ts": range(rows), "type": ["A", "B", "C"] * (rows // 3), "x": [1.0, 3.0, 0.5, 2.0] * 1500}
    )
    query = cep.Query(text).bind(events.schema, time="ts", type="type")
    engine = Engine(replace(plan_of(query), limit=limit), events.schema)
    (batch,) = events.to_batches()
    matched = engine.push(batch)
    found = next(matched).to_pylist()
    assert engine.tree.roots[0].compiled().provisional, "the first matches wait for no compiler"
    found += [row for b in matched for row in b.to_pylist()]
    found += [row for b in engine.finish() for row in b.to_pylist()]
    root = engine.tree.roots[0]
    assert not root.compiled().provisional and root.plain_seconds > 0
    plain = cep.match(events, text, time="ts", type="type", jit=False)
    assert sorted(map(str, found)) == sorted(map(str, plain.to_pylist()))


def test_few_rows_are_not_worth_compiling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever runs them, unless the kernel is in the cache already. No other test has this one: a
    process loads a kernel once, from whatever cache."""
    monkeypatch.setenv("CEPHEID_CACHE", str(tmp_path))
    schema = pa.schema({"ts": pa.int64(), "type": pa.string()})
    text = "PATTERN A a ; B b WHERE a.ts + b.ts + a.ts < 3 * b.ts - a.ts WITHIN 9"
    query = cep.Query(text).bind(schema, time="ts", type="type")

    def first(compile_at: int | None) -> KernelCall:
        engine = Engine(make_plan(query), schema, compile_at=compile_at)
        events = pa.record_batch([[1, 2], ["A", "B"]], schema)
        assert len([*engine.push(events), *engine.finish()]) == 1
        return engine.tree.roots[0].compiled()

    assert first(None).provisional
    assert not first(0).provisional
    assert not first(None).provisional


COUNTING = """
import pyarrow as pa, cepheid as cep
from cepheid.engine import run
from numba.core.event import install_recorder
run.COMPILE_AT = 0
events = pa.table({"ts": [1, 2], "t": ["A", "B"]})
with install_recorder("numba:compile") as compiled:
    assert cep.match(events, "PATTERN A ; B WITHIN 9", time="ts", type="t").num_rows == 1
print(len(compiled.buffer))
"""


READ_ONLY = """
import os, tempfile
taken = tempfile.TemporaryFile
def refused(dir):
    if str(dir).startswith(os.environ["CEPHEID_CACHE"]):
        raise OSError(30, "Read-only file system", str(dir))
    return taken(dir=dir)
tempfile.TemporaryFile = refused
"""


def compilations(cache: Path, before: str = "") -> int:
    """How much a fresh process compiles for a query."""
    environment = {**os.environ, "CEPHEID_CACHE": str(cache)}
    command = [sys.executable, "-c", before + COUNTING]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which a process has left what it compiled."""
    cache = tmp_path_factory.mktemp("cache")
    assert compilations(cache) > 0
    return cache


def test_kernels_are_cached_on_disk(filled: Path) -> None:
    """A second process compiles nothing."""
    assert compilations(filled) == 0
    assert list(filled.glob("kernels-*/*.py"))


def test_a_cache_that_can_not_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert compilations(blocked) > 0


def test_a_cache_that_can_only_be_read(filled: Path, tmp_path: Path) -> None:
    """As in a container's image, in which `cepheid warm` has run."""
    files = sorted(filled.rglob("*"))
    assert compilations(filled, READ_ONLY) == 0
    assert sorted(filled.rglob("*")) == files
    assert compilations(tmp_path / "empty", READ_ONLY) > 0


def test_one_kernel_serves_many_constants() -> None:
    """Constants are arguments: two queries of the same shape share the compiled function."""

    def kernel(condition: str) -> object:
        events = pa.schema({"ts": pa.int64(), "t": pa.string(), "x": pa.int64(), "s": pa.string()})
        query = Query(f"PATTERN A a ; B b WHERE {condition} WITHIN 9")
        plan = make_plan(query.bind(events, time="ts", type="t"))
        engine = Engine(plan, events, compile_at=0)
        return engine.tree.roots[0].compiled().kernel

    assert kernel("a.x > b.x + 1") is kernel("a.x > b.x + 2")
    assert kernel("a.s = 'u' OR a.x > b.x") is kernel("a.s = 'v' OR a.x > b.x")
    assert kernel("a.x > b.x + 1") is not kernel("a.x < b.x + 1")


def test_the_same_source_runs_plain() -> None:
    source = "\n\n@jit\ndef kernel(x):\n    return x + 1\n"
    assert compiling.load(source, False)(1) == compiling.load(source, True)(1) == 2
