"""NEXT's figures 9 and 10: operators on the engine, the answers, and what is written."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.experiments.writing import claim_lines
from benchmarks.measure import WrongAnswer
from benchmarks.next import rewrite
from benchmarks.next.operators import Next, Operator, Source, Union
from benchmarks.placement.claims import between, dearest, record, steady, typical
from benchmarks.placement.engine import (
    COLUMNS,
    Streams,
    Timed,
    answer,
    check,
    leaves,
    one_query,
    operator_by_operator,
    streams,
    timed,
)
from benchmarks.placement.model import WORKLOADS, Workload
from benchmarks.placement.queries import RATES, drawn
from benchmarks.placement.rewriting import (
    ISSUED,
    ONE,
    REWRITTEN,
    Effort,
    Figure,
    Measured,
    measure,
)
from benchmarks.placement.writing import (
    REWRITING_SECTION,
    draw_rewriting,
    rewriting_markdown,
    update_rewriting,
)

pytestmark = pytest.mark.slow

TINY = Effort((1, 2, 5), 2, (1, 2), seeds=2, seconds=2, repeats=1)
A, B, C = Source("s1"), Source("s2"), Source("s4")
# At 1 and 2 an A, at 3 and 4 a B, at 5 a C, at 6 an A, at 7 a B.
AT = {"s1": [1, 2, 6], "s2": [3, 4, 7], "s4": [5]}

Pairs = list[tuple[int, int]]


def by_hand(times: dict[str, list[int]]) -> Streams:
    return {
        name: pa.table([list(range(len(own))), own, own], schema=COLUMNS)
        for name, own in times.items()
    }


def plainly(tree: Operator, sources: Streams) -> Pairs:
    """NEXT's definitions, by brute force."""
    match tree:
        case Source(name):
            return [(t, t) for t in sources[name]["match_end"].to_pylist()]
        case Union(x, y):
            return plainly(x, sources) + plainly(y, sources)
        case Next(x, y):
            after = plainly(y, sources)
            pairs = []
            for start, end in plainly(x, sources):
                ends = [later for second, later in after if second > end]
                pairs += [(start, min(ends))] if ends else []
            return pairs
        case _:
            raise AssertionError(tree)


def pairs(found: pa.Table) -> Pairs:
    return [
        *zip(found["match_start"].to_pylist(), found["match_end"].to_pylist(), strict=True),
    ]


# ── events ──


def test_sources_send_at_their_rates_and_never_together() -> None:
    sources = streams(400, 3)
    counts = {name: table.num_rows for name, table in sources.items()}
    assert sum(counts.values()) == 400 * 255
    for name, rate in RATES.items():
        # Five deviations of a Poisson distribution.
        assert abs(counts[name] - 400 * rate) < 5 * (400 * rate) ** 0.5, name
    moments = np.concatenate([table["match_end"].to_numpy() for table in sources.values()])
    assert len(np.unique(moments)) == len(moments)
    gaps = np.diff(sources["s128"]["match_end"].to_numpy())
    # Exponential: as wide as its mean.
    assert 0.95 < gaps.std() / gaps.mean() < 1.05


# ── answers ──


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (Next(A, B), [(1, 3), (2, 3), (6, 7)]),
        (Next(B, C), [(3, 5), (4, 5)]),
        (Next(A, Next(B, C)), [(1, 5), (2, 5)]),
        (Next(Next(A, B), C), [(1, 5), (2, 5)]),
        (Next(A, A), [(1, 2), (2, 6)]),
        (Union(A, C), [(1, 1), (2, 2), (5, 5), (6, 6)]),
        (Union(C, C), [(5, 5), (5, 5)]),
        (Next(Union(A, B), Union(A, C)), [(1, 2), (2, 5), (3, 5), (4, 5)]),
    ],
)
def test_small_trees(tree: Operator, expected: Pairs) -> None:
    sources = by_hand(AT)
    assert sorted(pairs(operator_by_operator(tree, sources)())) == expected
    assert sorted(zip(*answer(tree, sources), strict=True)) == expected


@pytest.mark.parametrize("workload", WORKLOADS)
def test_random_trees_find_the_same_in_every_shape(workload: Workload) -> None:
    sources = streams(4, 1)
    for tree in islice(drawn(workload, 7, operators=4), 12):
        expected = Counter(plainly(tree, sources))
        shape = rewrite(tree, RATES)
        assert Counter(plainly(shape, sources)) == expected
        assert Counter(zip(*answer(tree, sources), strict=True)) == expected
        assert Counter(pairs(operator_by_operator(tree, sources)())) == expected
        assert Counter(pairs(operator_by_operator(shape, sources)())) == expected
        if workload == "next":
            assert Counter(pairs(one_query(tree, sources)())) == expected


def test_leaves_are_in_their_order() -> None:
    assert leaves(Next(Next(B, A), Union(C, A))) == ("s2", "s1", "s4", "s1")


def test_a_wrong_answer_ends_the_run() -> None:
    sources = by_hand(AT)
    found = operator_by_operator(Next(A, B), sources)()
    check(found, answer(Next(A, B), sources), "right")
    with pytest.raises(WrongAnswer, match="3 matches are not the 2 there are"):
        check(found, answer(Next(B, C), sources), "wrong")
    moved = answer(Next(A, B), sources)[0], answer(Next(A, B), sources)[1] + 1
    with pytest.raises(WrongAnswer, match="3 matches are not the 3"):
        check(found, moved, "wrong")


def test_ways_take_turns() -> None:
    sources, calls = by_hand(AT), list[str]()

    def way(name: str) -> Any:
        def run() -> pa.Table:
            calls.append(name)
            return sources["s1"]

        return run

    found = timed({"a": way("a"), "b": way("b")}, answer(A, sources), 3, "A")
    assert calls == ["a", "b", "b", "a", "a", "b"]
    assert found.matches == 3 and found.seconds.keys() == {"a", "b"}


# ── figures ──


def query(issued: float, rewritten: float, modeled: float) -> Measured:
    seconds = {ISSUED: issued, REWRITTEN: rewritten, ONE: 0.1}
    return Measured(Timed(seconds, 10), {ISSUED: 2.0, REWRITTEN: 2.0 / modeled})


@pytest.fixture
def figure() -> Figure:
    """Of two seeds, the first with queries of a second, the second with those of two. Rewriting
    makes next 3 times, mix 2 times, and union 1.25 times as fast."""
    times: dict[Workload, float] = {"next": 3, "mix": 2, "union": 1.25}
    return Figure(
        TINY,
        {
            (workload, operators, seed): (query(1 + seed, (1 + seed) / factor, factor),) * 2
            for workload, factor in times.items()
            for operators in TINY.sizes
            for seed in (0, 1)
        },
    )


def test_supported_operators_and_throughput(figure: Figure) -> None:
    # Ten operators in two seconds of which each takes one, or two of the second seed.
    assert figure.supported("next", 5, ISSUED) == (10 + 5) / 2
    assert figure.supported("next", 5, REWRITTEN) == 3 * (10 + 5) / 2
    assert figure.throughput("union", 1, ISSUED) == (510 + 255) / 2
    assert figure.throughput("union", 2, ISSUED) == (255 + 127.5) / 2
    assert figure.gain("mix", 2) == pytest.approx(100)
    assert figure.faster("union", 2) == pytest.approx(25)
    assert figure.modeled("next", 5, 2) == pytest.approx(200)


def test_what_a_few_queries_decide() -> None:
    queries = [query(1, 0.5, 2)] * 6 + [query(1, 1, 1)] * 3 + [query(91, 1, 9)]
    assert dearest(queries) == 0.91
    assert typical(queries) == pytest.approx(100)


def test_claims_of_figures_that_are_as_in_the_paper(figure: Figure) -> None:
    marks = [line[0] for line in claim_lines(record(figure, quick=True))]
    # All but that gains increase with the size: here they don't.
    assert marks == ["✓", "✗", "✗", "✓", "✓", "✓", "✓", "✓"]


def test_claims_that_fail(figure: Figure) -> None:
    slow = query(1, 1.5, 2)
    changed = {**figure.queries, ("mix", 5, 0): (slow, slow)}
    other = replace(figure, queries=changed)
    assert not steady(other).holds and "2 of the 36" in steady(other).detail
    assert not between(other).holds


def test_a_small_run_measures_every_way() -> None:
    found = measure(replace(TINY, sizes=(2,), queries=1, seeds=1)).queries
    assert [*found] == [(workload, 2, 0) for workload in WORKLOADS]
    for (workload, _, _), (one,) in found.items():
        ways = {ISSUED, REWRITTEN, ONE} if workload == "next" else {ISSUED, REWRITTEN}
        assert one.timed.seconds.keys() == ways
        assert one.cost[REWRITTEN] <= one.cost[ISSUED]


def test_figures_are_written(figure: Figure, tmp_path: Path) -> None:
    figures = record(figure, quick=True)
    assert {curve["figure"] for curve in figures["curves"]} == {9, 10}
    readme = tmp_path / "README.md"
    readme.write_text("before\n{}\n{}\nafter\n".format(*REWRITING_SECTION))
    update_rewriting(figures, readme)
    text = readme.read_text()
    assert rewriting_markdown(figures) in text
    assert "| operators of a query | as issued | rewritten | one query |" in text
    draw_rewriting(figures, tmp_path / "a" / "rewriting.svg")
    draw_rewriting(figures, tmp_path / "b" / "rewriting.svg")
    drawn_twice = [(tmp_path / name / "rewriting.svg").read_bytes() for name in "ab"]
    assert drawn_twice[0] == drawn_twice[1]
