"""The simulator of NEXT's figure 11: its queries, its overload, and what it writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, repeat
from pathlib import Path
from random import Random
from statistics import mean

import pytest

from benchmarks.experiments.writing import claim_lines
from benchmarks.next.deploy import Item
from benchmarks.next.operators import Next, Operator, Source, Union, inputs
from benchmarks.next.rates import figures
from benchmarks.placement.figure import (
    FLAT_FROM,
    MOST,
    ONE_SINK,
    PANELS,
    SOME,
    Figure,
    Size,
    ahead,
    record,
    simulate,
    verdicts,
)
from benchmarks.placement.model import (
    CAPACITY,
    GREEDY,
    GREEDY_REWRITE,
    REUSE,
    REUSE_REWRITE,
    ROBIN,
    WAYS,
    WORKLOADS,
    Workload,
    operators_placed,
    supported,
    supported_by_sinks,
    too_heavy,
    total_cost,
)
from benchmarks.placement.queries import RATES, Queries, drawn, mixed, tree
from benchmarks.placement.writing import BEGIN, END, draw, markdown, update_page

pytestmark = pytest.mark.slow

TINY = Size((1, SOME, FLAT_FROM, MOST), seeds=2, limit=12, counted=6)


def walk(query: Operator) -> Iterator[Operator]:
    yield query
    for below in inputs(query):
        yield from walk(below)


# ── queries ──


def test_sources_double_from_1_to_128() -> None:
    assert list(RATES.values()) == [1, 2, 4, 8, 16, 32, 64, 128]
    assert sum(RATES.values()) == 255


@pytest.mark.parametrize("workload", WORKLOADS)
def test_queries_have_five_operators_of_their_kinds(workload: Workload) -> None:
    kinds = Counter(
        type(part)
        for query in islice(drawn(workload, 1), 200)
        for part in walk(query)
        if not isinstance(part, Source)
    )
    expected = {"next": {Next}, "union": {Union}, "mix": {Next, Union}}
    assert set(kinds) == expected[workload]
    assert kinds.total() == 5 * 200


def test_all_shapes_are_equally_likely() -> None:
    def shape(query: Operator) -> str:
        return "(" + "".join(map(shape, inputs(query))) + ")"

    random = Random(1)
    found = Counter(shape(tree(random, 3, Next)) for _ in range(5_000))
    assert len(found) == 5
    assert min(found.values()) > 850 and max(found.values()) < 1_150


def test_a_mix_nests_pairs_of_operators() -> None:
    """Of four operators, the upper two are of one kind and the lower two of one."""
    random = Random(1)
    seen = set()
    for _ in range(100):
        query = mixed(random, 4)
        kinds = [type(part) for part in walk(query) if not isinstance(part, Source)]
        assert len(kinds) == 4
        assert Counter(kinds)[Next] in (0, 2, 4)
        seen.add(Counter(kinds)[Next])
    assert seen == {0, 2, 4}


def test_results_have_the_rates_of_the_paper() -> None:
    """A next sends 32 events per second on average, a union 191."""
    for workload, expected in (("next", 32), ("union", 191)):
        queries = islice(drawn(workload, 1), 2_000)
        assert mean(figures(q, RATES).rate for q in queries) == pytest.approx(expected, rel=0.1)


def test_a_seed_makes_the_same_queries_again() -> None:
    one, other = (list(islice(Queries("mix", 4).items(True), 20)) for _ in range(2))
    assert one == other
    assert one != list(islice(Queries("mix", 5).items(True), 20))
    queries = Queries("next", 1)
    assert list(islice(queries.items(False), 5)) == list(islice(queries.items(False), 5))


# ── overload, by hand ──


def work(cost: float, rate: float = 1.0, *inputs: Item) -> Item:
    return Item(object(), cost, rate, inputs)


def test_a_node_supports_what_it_has_capacity_for() -> None:
    third = CAPACITY / 3
    assert supported([work(third) for _ in range(9)], 1, GREEDY, 99) == 3
    assert supported([work(third) for _ in range(9)], 2, GREEDY, 99) == 6
    assert supported([work(third) for _ in range(9)], 2, ROBIN, 99) == 6
    assert supported([work(third) for _ in range(9)], 2, GREEDY, 5) == 5


def test_a_fifth_of_the_events_may_be_late() -> None:
    """The first is too heavy for its node: until there are four others of the same rate, or one of
    four times the rate, the system is overloaded; it isn't afterwards."""
    heavy = work(2 * CAPACITY)
    assert supported([heavy, *(work(1.0) for _ in range(3))], 2, GREEDY, 99) == 0
    assert supported([heavy, *(work(1.0) for _ in range(4))], 2, GREEDY, 99) == 5
    assert supported([heavy, work(1.0, 4.0)], 2, GREEDY, 99) == 2
    assert supported([heavy, work(1.0, 3.9)], 2, GREEDY, 99) == 0


def test_what_passes_an_overloaded_node_is_late() -> None:
    """Round robin puts the lower operator on the first node, which is overloaded, and the upper,
    whose result counts, on the second."""
    query = work(1.0, 1.0, work(2 * CAPACITY))
    assert supported([query], 2, ROBIN, 99) == 0


def test_an_equal_query_costs_nothing_but_its_sink() -> None:
    same = work(CAPACITY)
    assert supported(repeat(same), 1, REUSE, 50) == 50
    assert supported(repeat(same), 1, GREEDY, 50) == 1
    assert supported_by_sinks(repeat(work(1.0, CAPACITY / 8)), 1, 50) == 8
    assert supported_by_sinks(repeat(work(1.0, CAPACITY / 8)), 5, 50) == 40


def test_operators_are_counted() -> None:
    below = work(1.0)
    queries = [work(1.0, 1.0, below), work(1.0, 1.0, below)]
    assert operators_placed(queries, GREEDY, 2) == 4
    assert operators_placed(queries, REUSE, 2) == 3
    assert too_heavy(work(1.0, 1.0, work(2 * CAPACITY)))
    assert not too_heavy(work(CAPACITY, 1.0, work(CAPACITY)))
    assert total_cost(work(1.0, 1.0, work(2.0), work(4.0, 1.0, work(8.0)))) == 15


# ── figure and report ──


@pytest.fixture(scope="module")
def figure() -> Figure:
    return simulate(TINY)


def test_there_is_a_point_for_every_panel_way_and_number_of_nodes(figure: Figure) -> None:
    assert set(figure.points) == {(p, n, w.name) for p in PANELS for n in TINY.nodes for w in WAYS}
    assert all(len(counts) == TINY.seeds for counts in figure.points.values())
    assert all(0 <= c <= TINY.limit for counts in figure.points.values() for c in counts)


def test_a_report_and_a_plot_are_written(figure: Figure, tmp_path: Path) -> None:
    figures_found = record(figure, quick=False)
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    update_page(figures_found, readme)
    text = readme.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert markdown(figures_found) in text
    assert "| nodes | round robin | greedy | greedy, rewrite | reuse | reuse, rewrite |" in text
    draw(figure, tmp_path / "a" / "placement.svg")
    draw(figure, tmp_path / "b" / "placement.svg")
    one, other = ((tmp_path / n / "placement.svg").read_text() for n in "ab")
    assert one == other
    assert "<svg" in one


def test_where_no_more_were_tried_the_table_says_so(figure: Figure) -> None:
    union = next(t for t in record(figure, quick=True)["tables"] if t["title"] == "union")
    assert union["rows"][-1] == ["40", *["≥ 12"] * len(WAYS)]


def made(**means: tuple[int, int, int, int]) -> Figure:
    """A figure in which all panels are alike: what each way supports on 1, 10, 15 and 40 nodes."""
    points = {
        (panel, nodes, way.name): (count,)
        for panel in PANELS
        for way, counts in zip(WAYS, means.values(), strict=True)
        for nodes, count in zip(TINY.nodes, counts, strict=True)
    }
    operators = {(w, way.name): n for w in WORKLOADS for way, n in ((REUSE, 4), (REUSE_REWRITE, 3))}
    shares = {("next", False): 0.1, ("next", True): 0.0}
    return Figure(TINY, points, operators, shares, shares, {GREEDY.name: 1, REUSE.name: 2})


def test_verdicts_by_hand() -> None:
    nearly = made(
        robin=(2, 60, 70, 75),
        greedy=(3, 40, 60, 76),
        greedy_rewrite=(2, 60, 70, 85),
        reuse=(3, 60, 70, 77),
        reuse_rewrite=(3, 70, 80, 90),
    )
    # 90 after 77, where the paper has 34 % more, and 85 after 76, where it has 24.
    wrong = [verdict.detail for verdict in verdicts(nearly) if not verdict.holds]
    assert wrong == ["+12 %", "+17 %"]
    lines = claim_lines(record(nearly, quick=True))
    assert sum(line.startswith("✓ must") for line in lines) == 4

    upside_down = made(
        robin=(9, 9, 9, 99),
        greedy=(9, 50, 50, 50),
        greedy_rewrite=(9, 49, 49, 49),
        reuse=(9, 49, 49, 49),
        reuse_rewrite=(9, 9, 9, 9),
    )
    fewer = {key: 5 - count for key, count in upside_down.operators.items()}
    more = replace(upside_down, operators=fewer)
    assert not any(verdict.holds for verdict in verdicts(more))
    assert more.gain(ONE_SINK, MOST, GREEDY_REWRITE, GREEDY) == pytest.approx(-2)


def test_a_few_lucky_seeds_dont_put_a_way_ahead() -> None:
    """Of three seeds, greedy is ahead of round robin with one, by far; with two, it is behind."""
    points = {
        (panel, nodes, way.name): (90, 10, 10) if way == GREEDY else (20, 11, 11)
        for panel in PANELS
        for nodes in TINY.nodes
        for way in WAYS
    }
    alike = made(robin=(1,) * 4, greedy=(1,) * 4, gr=(1,) * 4, reuse=(1,) * 4, rr=(1,) * 4)
    figure = replace(alike, points=points)
    verdict = ahead(figure, GREEDY, ROBIN)
    assert not verdict.holds
    assert verdict.detail.startswith("next +162 %, with 1 of 3 seeds; mix")
