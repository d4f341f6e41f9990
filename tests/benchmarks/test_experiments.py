"""The papers' experiments on few events: right answers, reports, plots, verdicts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.experiments import cayuga, relational, sase, strict, thesis, zstream
from benchmarks.experiments.drawing import draw
from benchmarks.experiments.experiment import (
    Claim,
    Experiment,
    Figure,
    Point,
    Spot,
    Verdict,
    ahead,
    at_least,
    gain_over,
    inner,
    keeps,
    near_the_best,
    out_of_reach,
    reaches,
    same_choice,
    spread,
)
from benchmarks.experiments.running import Effort, Laboratory
from benchmarks.experiments.writing import (
    BEGIN,
    END,
    claim_lines,
    failed,
    markdown,
    record,
    update_page,
)
from benchmarks.measure import WrongAnswer
from benchmarks.report import write_json
from cepheid.engine.needs import ROUND

pytestmark = pytest.mark.slow

ALL = (
    *zstream.EXPERIMENTS,
    *thesis.EXPERIMENTS,
    *sase.EXPERIMENTS,
    *cayuga.EXPERIMENTS,
    *strict.EXPERIMENTS,
    *relational.EXPERIMENTS,
)
BY_NAME = {experiment.name: experiment for experiment in ALL}
ROWS = 81
PNG = b"\x89PNG"


def small(experiment: Experiment, settings: int = 1) -> Experiment:
    """A few settings with few events, without compiled kernels."""
    ways = tuple(replace(w, options={**w.options, "jit": False}) for w in experiment.ways)
    some = tuple(
        replace(s, workload=replace(s.workload, rows=ROWS)) for s in experiment.settings[:settings]
    )
    return replace(experiment, ways=ways, settings=some)


def laboratory() -> Laboratory:
    return Laboratory(Effort(repeats=1, seconds=0.0))


@pytest.mark.filterwarnings("ignore:no event is of type:UserWarning")  # so few events
@pytest.mark.parametrize("name", BY_NAME)
def test_all_ways_find_what_the_loop_finds(name: str) -> None:
    experiment = small(BY_NAME[name])
    figure = laboratory().run(experiment)
    assert len(figure.ways()) == len(experiment.ways)
    for points in figure.points.values():
        assert len({point.matches for point in points.values()}) == 1
        for metric in experiment.metrics:
            values = [metric.value(point, points) for point in points.values()]
            assert all(value == value for value in values)


def test_experiments_have_names_of_their_own() -> None:
    assert len(BY_NAME) == len(ALL)
    figures = {f"fig{n}" for n in range(8, 18)} | {"table3", "table5"}
    chapter = {f"thesis6.{n}" for n in (2, 3, 4, 6, 7, 8, 9, 10, 11, 12)}
    assert figures | chapter | {f"sase{n}" for n in range(8, 13)} <= set(BY_NAME)


def test_a_report_and_a_plot_are_written(tmp_path: Path) -> None:
    experiment = replace(small(BY_NAME["fig15"], settings=2), claims=BY_NAME["fig16"].claims)
    figure = laboratory().run(experiment)
    figures = record(experiment, figure, quick=False)
    write_json(tmp_path / "fig15.json", figures)
    draw(experiment, figure, tmp_path / "fig15.png")
    assert (tmp_path / "fig15.png").read_bytes().startswith(PNG)
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    update_page(["fig14", "fig15"], tmp_path, readme)
    text = readme.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert markdown(json.loads((tmp_path / "fig15.json").read_text())) in text
    assert "| 1:1:1 |" in text and "python -m benchmarks.experiments fig15" in text
    assert [p["way"] for p in figures["points"]] == ["NSEQ", "NEG on top"] * 2


def test_quick_figures_stay_out_of_the_readme(tmp_path: Path) -> None:
    experiment = small(BY_NAME["fig16"])
    figures = record(experiment, laboratory().run(experiment), quick=True)
    write_json(tmp_path / "fig16.json", figures)
    readme = tmp_path / "README.md"
    readme.write_text(f"{BEGIN}\n{END}\n")
    update_page(["fig16"], tmp_path, readme)
    assert "1:1:1" not in readme.read_text()


def test_a_wrong_number_of_matches_is_an_error() -> None:
    experiment = small(BY_NAME["fig16"])
    (setting,) = experiment.settings
    wrong = replace(setting, workload=replace(setting.workload, loop=lambda table: -1))
    with pytest.raises(WrongAnswer, match="NSEQ of q7 1:1:1 finds"):
        laboratory().run(replace(experiment, settings=(wrong,)))


def test_a_run_in_segments_has_a_point_for_each() -> None:
    figure = laboratory().run(small(BY_NAME["fig14"]))
    labels = [spot.label for spot in figure.points]
    assert labels == ["rate=1:100:100:100", "sel1=1/50", "sel2=1/50", "whole"]
    *parts, whole = (points["inner"] for points in figure.points.values())
    assert [p.events for p in parts] == [27, 27, 27] and whole.events == ROWS
    assert sum(p.cpu for p in parts) == pytest.approx(whole.cpu)


def test_short_runs_are_repeated_until_they_have_had_their_time() -> None:
    said: list[str] = []
    experiment = small(BY_NAME["fig16"])
    Laboratory(Effort(repeats=2, seconds=0.0), said.append).run(experiment)
    few = len(said)
    said.clear()
    Laboratory(Effort(repeats=2, seconds=0.3), said.append).run(experiment)
    assert "turn 3" in "".join(said)
    assert len(said) > few


def test_a_way_that_takes_too_long_is_stopped() -> None:
    """It gets no more events, and its answer, which is incomplete, is not compared."""
    experiment = small(BY_NAME["sase-windows"])
    (setting,) = experiment.settings
    long = replace(setting, workload=replace(setting.workload, rows=3 * ROUND))
    ways = tuple(replace(way, limit=0.0) for way in experiment.ways[:1])
    experiment = replace(experiment, settings=(long,), ways=ways, claims=())
    figure = laboratory().run(experiment)
    (found,) = figure.at(setting.label).values()
    assert found.stopped and found.events < 3 * ROUND
    claim = out_of_reach(ways[0].name, setting.label)
    assert claim.check(figure).holds
    (row,) = record(experiment, figure, quick=True)["tables"][0]["rows"]
    assert row[1].endswith("(stopped)")


def test_figures_share_their_runs() -> None:
    made: list[int] = []
    experiment = small(BY_NAME["fig10"])
    (setting,) = experiment.settings
    events = setting.workload.events

    def counted(rows: int) -> Any:
        made.append(rows)
        return events(rows)

    shared = replace(setting, workload=replace(setting.workload, events=counted))
    shop = laboratory()
    first = shop.run(replace(experiment, settings=(shared,)))
    second = shop.run(replace(experiment, settings=(shared,)))
    assert made == [ROWS]
    assert first == second


# ── verdicts, by hand ──


def point(cpu: float, cost: float = 1.0) -> Point:
    return Point(events=100, matches=1, cpu=cpu, cost=cost, inside=cpu * cpu)


def figure(**labels: dict[str, Point]) -> Figure:
    return Figure({Spot("", label): points for label, points in labels.items()})


FIGURE = figure(
    x={"left": point(1.0, 5.0), "right": point(4.0, 9.0)},
    y={"left": point(2.0, 8.0), "right": point(2.5, 7.0)},
)


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        (at_least(4, "left", "right", "x"), True),
        (at_least(4.1, "left", "right", "x"), False),
        (ahead("left", "right"), True),
        (ahead("right", "left", ("y",)), False),
        (near_the_best("left", 0.1, ("left", "right"), ("x", "y")), True),
        (near_the_best("right", 0.1, ("left", "right"), ("y",)), False),
        (near_the_best("right", 0.3, ("left", "right"), ("y",)), True),
        (spread(1.2, ("left", "right")), True),
        (spread(2, ("left", "right")), False),
        (same_choice(0.3), True),
        (same_choice(0.2), False),
        (at_least(16, "left", "right", "x", speed=inner), True),
        (at_least(17, "left", "right", "x", speed=inner), False),
        (ahead("right", "left", ("x",), speed=inner), False),
        (reaches(50, "left"), True),
        (reaches(51, "left"), False),
        (keeps(0.5, "left", "x", "y"), True),
        (keeps(0.6, "left", "x", "y"), False),
        (out_of_reach("left", "x"), False),
    ],
)
def test_claims(claim: Claim, holds: bool) -> None:
    assert claim.check(FIGURE).holds is holds


def test_a_gain_is_in_percent_of_throughput() -> None:
    points = FIGURE.at("x")
    assert gain_over("right").value(points["left"], points) == pytest.approx(300.0)


@pytest.mark.parametrize(("must", "holds", "fails"), [(True, False, True), (False, False, False)])
def test_only_a_must_fails_an_experiment(must: bool, holds: bool, fails: bool) -> None:
    claim = Claim("the earth is flat", lambda _: Verdict(holds, "no"), must)
    experiment = replace(BY_NAME["fig8"], claims=(claim,), metrics=())
    figures = record(experiment, FIGURE, quick=True)
    assert failed(figures) is fails
    assert claim_lines(figures) == [f"✗ {'must: ' if must else ''}the earth is flat (no)"]


def test_pass_down_may_lose_where_it_isnt_chosen() -> None:
    check = thesis.pass_down().claims[0].check

    def found(chosen: str) -> Figure:
        return figure(
            z={
                "pull": point(1.0),
                "pass-down": point(2.0),
                "planner's choice": replace(point(1.0), chosen=chosen),
            }
        )

    assert check(found("left-deep, pull")).holds
    assert not check(found("left-deep, pass-down")).holds
