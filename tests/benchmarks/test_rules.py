"""Cayuga's technical benchmark: its answers, its ways to run rules, and what it writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.experiments.writing import claim_lines
from benchmarks.measure import WrongAnswer
from benchmarks.rules import closures, filtered, iterations, process, sizes, ways
from benchmarks.rules.claims import ALONE, APART, MERGED, PREDICATES, Sweep, verdicts
from benchmarks.rules.figures import Size, counted, one_by_one, record
from benchmarks.rules.running import Load, Point, Run, check, compiled, load, measure, run, unmerged
from benchmarks.rules.writing import BEGIN, END, draw, keep, kept, markdown, update_page
from cepheid.rules import RuleSet
from cepheid.workloads.cayuga import TEMPLATES, Parameters

pytestmark = pytest.mark.slow

TINY = Size(rules=1_000, events=3_000, repeats=1, sample=2, answered=50)


@pytest.fixture(scope="module")
def given() -> Iterator[Load]:
    with load(300, 4_000, Parameters()) as found:
        yield found


def test_events_are_planted_that_rules_wait_for(given: Load) -> None:
    for template in TEMPLATES:
        assert given.planted_answers.found(template).num_rows >= 20, template


@pytest.mark.parametrize("template", TEMPLATES)
def test_sql_finds_what_each_rule_finds_alone(given: Load, template: str) -> None:
    """Of rules that find something, and of some that don't."""
    expected = given.planted_answers.found(template)
    rules = RuleSet.from_template("r", TEMPLATES[template], given.rules)
    numbers = list(dict.fromkeys(expected["rule"].to_pylist()))[:3]
    for number in [*numbers, next(n for n in range(300) if n not in numbers)]:
        alone = rules[f"r-{number + 1}"].match(given.planted, time="ts", jit=False)
        own = expected.filter(pa.compute.equal(expected["rule"], number))
        assert sorted(alone["c"].to_pylist()) == sorted(own["c"].to_pylist())


def test_another_answer_is_noticed(given: Load) -> None:
    found, _ = run(compiled("Filter", given.rules), given.planted)
    answer = given.planted_answers.found("Filter")
    check(found, answer, 300, "Filter")
    with pytest.raises(WrongAnswer, match="Filter finds"):
        check(found.slice(1), answer, 300, "Filter")
    # Rules without an answer don't count.
    few = answer.filter(pa.compute.less(answer["rule"], 100))
    check(found, few, 100, "Filter")
    assert 0 < few.num_rows < answer.num_rows


@pytest.mark.parametrize("template", ["LinearStat", "Filter"])
def test_rules_with_nodes_of_their_own_find_the_same(given: Load, template: str) -> None:
    twice = pa.concat_tables([given.rules, given.rules.slice(0, 100)])
    merged = compiled(template, twice)
    apart = unmerged(merged.graph)
    assert np.bincount(merged.graph.depth[1:]).tolist()[-1] == 300
    assert np.bincount(apart.depth[1:]).tolist() == [400] * 3
    one, _ = run(merged, given.planted)
    other, _ = run(replace(merged, graph=apart), given.planted)
    assert one.num_rows > 0
    order = [(name, "ascending") for name in one.column_names]
    assert one.sort_by(order) == other.sort_by(order)


def test_a_point_has_its_figures(given: Load) -> None:
    point = measure({"one": Run("Filter", given)}, 1)["one"]
    assert (point.rules, point.events) == (300, 4_000)
    assert point.levels[1:] == (300, 300) and 250 < point.levels[0] <= 300
    assert point.rate == 4_000 / point.seconds
    # 900 steps of two equalities and two ranges each, and up to four primary values.
    expected = 900 * 1e-4 * 0.49
    assert expected < point.predicates < 4 + 2 * expected
    assert one_by_one(given, 2).levels == (300, 300, 300)


def test_a_common_first_step_is_answered_for_some_rules() -> None:
    sweep = counted(TINY, lambda _: None)
    assert sweep.settings == [100.0, 200.0, 400.0]
    assert sweep.curves == ["Filter"]
    assert sweep.points["Filter", 400.0].predicates > sweep.points["Filter", 100.0].predicates


# ── before the first event ──


def test_written_queries_find_what_the_template_finds(given: Load) -> None:
    expected = given.planted_answers.found("Filter")
    number = expected["rule"][0].as_py()
    text = sizes.written(given.rules.slice(number, 1).to_pylist()[0])
    found = RuleSet.of({"one": text})["one"].match(given.planted, time="ts", jit=False)
    own = expected.filter(pa.compute.equal(expected["rule"], number))
    assert sorted(found["a"].to_pylist()) == sorted(own["a"].to_pylist())


def test_folders_of_rules_are_loaded(tmp_path: Path) -> None:
    written = process.compiling(sizes.write_queries(tmp_path / "written", 3))
    assert (written["rules"], written["alone"]) == (3, 0)
    template = sizes.write_template(tmp_path / "template", 20)
    assert process.compiling(template)["rules"] == 20
    memory = process.memory(template)
    assert memory["rules"] == 20 and memory["pickled"] > 0


def test_figures_come_from_a_process_of_their_own(tmp_path: Path) -> None:
    found = sizes.in_process("compiling", sizes.write_template(tmp_path / "template", 20))
    assert found["rules"] == 20
    with pytest.raises(RuntimeError, match="compiling failed"):
        sizes.in_process("compiling", tmp_path / "nothing")


SIZES = {
    "template": {"rules": 100, "loading": 1.0, "compiling": 58.0},
    "memory": {"rules": 100, "resident": 2_000.0, "pickled": 900.0},
    "written, 10": {"rules": 10, "loading": 1.0, "compiling": 1.0},
    "start": {"matches": 0, "seconds": 9.0},
    "start without kernels": {"matches": 0, "seconds": 9.5},
}


def test_verdicts_on_sizes_by_hand() -> None:
    assert [v.holds for v in sizes.verdicts(SIZES)] == [True, False, True, True, True]
    worse = {
        **SIZES,
        "template": {"rules": 100, "loading": 3.0, "compiling": 58.0},
        "memory": {"rules": 100, "resident": 2_100.0},
        "start": {"seconds": 11.0},
        "start without kernels": {"seconds": 10.5},
    }
    assert not any(v.holds for v in sizes.verdicts(worse))


# ── verdicts and reports ──


def point(rate: float, nodes: int = 1) -> Point:
    return Point(1_000, 1_000, 1_000 / rate, 0, (nodes, 9, 9), 4.0, 10, 1.0)


def sweep(name: str, **rates: list[float]) -> Sweep:
    points = {
        (curve.replace("_", " "), float(n)): point(rate, nodes=100 - n)
        for curve, own in rates.items()
        for n, rate in zip((1, 2, 4), own, strict=True)
    }
    return Sweep(name, "title: of it", "rules", points)


GOOD = {
    "LinearStat": [50e3, 40e3, 30e3],
    "LinearDyn": [49e3, 41e3, 29e3],
    "Filter": [20e3, 15e3, 6e3],
    "NonDeterministic": [19e3, 14e3, 6e3],
    "NonDeterministicAgg": [18e3, 13e3, 5e3],
}


def test_verdicts_on_templates_by_hand() -> None:
    assert all(v.holds for v in verdicts(sweep("templates", **GOOD)))
    bad = {
        "LinearStat": [50e3, 40e3, 900],
        "LinearDyn": [30e3, 41e3, 800],
        "Filter": [9e3, 5e3, 2e3],
        "NonDeterministic": [90e3, 14e3, 6e3],
        "NonDeterministicAgg": [18e3, 13e3, 4e3],
    }
    assert not any(v.holds for v in verdicts(sweep("templates", **bad)))


def test_verdicts_on_similarity_selectivity_and_sharing_by_hand() -> None:
    rising, falling = {"Filter": [1e3, 2e3, 3e3]}, {"Filter": [3e3, 2e3, 1e3]}
    assert [v.holds for v in verdicts(sweep("zipf", **rising))] == [True, True]
    assert [v.holds for v in verdicts(sweep("zipf", **falling))] == [False, True]
    assert [v.holds for v in verdicts(sweep("selectivity", **rising))] == [False]
    common = {"Filter": [11e3, 6e3, 3.1e3]}
    assert [v.holds for v in verdicts(sweep("counted", **common))] == [True] * 4
    common = {"Filter": [9e3, 5e3, 900]}
    assert [v.holds for v in verdicts(sweep("counted", **common))] == [False] * 4
    assert [v.holds for v in verdicts(sweep("selectivity", **falling))] == [True]

    def shared(*rates: float) -> list[bool]:
        ways = zip((MERGED, APART, PREDICATES, ALONE), rates, strict=True)
        points = {(way, 10_000.0): point(rate) for way, rate in ways}
        return [v.holds for v in verdicts(Sweep("sharing", "t", "rules", points))]

    assert shared(10_000, 9_000, 100, 100) == [True, True, True]
    assert shared(9_900, 200, 100, 100) == [False, False, False]


def test_a_report_and_plots_are_written(tmp_path: Path) -> None:
    figures = record(sweep("templates", **GOOD), quick=False)
    keep(figures, tmp_path)
    keep(record(sweep("zipf", Filter=[1.0, 2.0, 3.0]), quick=True), tmp_path)
    known = kept(tmp_path)
    assert known == {"templates": figures}
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    update_page(known, readme)
    text = readme.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert markdown(figures) in text
    assert "| 4 | 30 k | 29 k | 6 k | 6 k | 5 k |" in text
    assert any(
        line.startswith("✓ must: 1 Filter rules: at least 10,000") for line in claim_lines(figures)
    )
    draw(known, tmp_path / "a")
    draw(known, tmp_path / "b")
    one, other = ((tmp_path / name / "cayuga16.svg").read_text() for name in "ab")
    assert one == other and "<svg" in one
    assert not (tmp_path / "a" / "cayuga17.svg").exists()
    assert "bytes" in markdown(sizes.record(SIZES, quick=False))


def test_one_query_for_all_rules_of_a_closure(tmp_path: Path) -> None:
    found = closures.measure(replace(TINY, rules=20), lambda text: None)
    assert (found.rules, found.ways[closures.SHARED].queries) == (10, 1)
    assert found.ways[closures.ALONE].queries == 10 and found.matches > 10
    figures = closures.record(found, quick=False)
    keep(figures, tmp_path)
    assert kept(tmp_path) == {"closures": figures}
    assert "| one by one | 10 |" in markdown(figures)


def test_the_index_over_predicates_delivers_what_rules_need(given: Load) -> None:
    """Each rule gets the events that it could take, or that could come between, and no others."""
    merged = compiled("Filter", given.rules)
    parts = filtered.delivered(merged, filtered.subscribers(merged.graph), given.planted)
    pairs = {pair for part in parts for pair in zip(part.rules, part.rows, strict=True)}
    events = {name: given.planted[name].to_numpy() for name in given.planted.column_names}
    for number, rule in enumerate(given.rules.slice(0, 40).to_pylist()):
        primary = next(n for n in range(4) if rule[f"p{n}"] is not None)
        rows = np.flatnonzero(events[f"d{primary}"] == rule[f"p{primary}"])
        assert {row for rule, row in pairs if rule == number} == set(rows.tolist())
    seeded = replace(given, events=given.planted, answers=given.planted_answers)
    assert filtered.index_alone(seeded, 30).matches > 0


def test_iterations_find_what_sql_finds(tmp_path: Path) -> None:
    measured = iterations.measure(replace(TINY, rules=500), lambda text: None)
    assert measured.counts == [20, 40, 80]
    figures = iterations.record(measured, quick=False)
    keep(figures, tmp_path)
    assert "| rules | NonDeterministic | Iterated | IteratedAgg |" in markdown(figures)


def test_verdicts_on_iterations_by_hand() -> None:
    def holds(still: float, *rates: float) -> list[bool]:
        every = zip(iterations.CURVES, (still, *rates), strict=True)
        seconds = {(curve, n): n / (2 * rate) for curve, rate in every for n in (1, 2)}
        return [v.holds for v in iterations.verdicts(iterations.Measured(1, seconds))]

    assert holds(50_000, 1_000, 4_000) == [True, False, False]
    assert holds(15_000, 999, 4_000) == [False, False, True]


def test_ways_that_find_something_else_are_noticed() -> None:
    rows = pa.table({"rule": ["a", "b"], "match": ["{}", "{}"]})
    ways.check({closures.SHARED: rows, closures.ALONE: rows.take([1, 0])})
    with pytest.raises(WrongAnswer, match="differ in"):
        ways.check({closures.SHARED: rows.slice(1), closures.ALONE: rows})
    with pytest.raises(WrongAnswer, match="no rule finds"):
        ways.check({closures.SHARED: rows.slice(2), closures.ALONE: rows.slice(2)})


def test_what_is_said_of_one_query_for_all() -> None:
    def held(shared: float, alone: float) -> list[bool]:
        seconds = ((closures.SHARED, shared), (closures.ALONE, alone))
        taken = {name: ways.Way(1, 0.0, matching) for name, matching in seconds}
        return [v.holds for v in closures.verdicts(closures.Found(200, 10, 5, taken))]

    assert held(1.0, 10.0) == [True] and held(1.0, 9.9) == [False]
