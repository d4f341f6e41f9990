"""`cepheid why` and `cepheid funnel`, with figures counted by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import run, unwrapped

# The b of key 1 passes; that of key 2 doesn't; key 3 has none.
LINES = ["t,type,id,x,land", "1,A,1,0,de", "2,B,1,9,de", "3,A,2,0,fr", "4,B,2,5,fr", "5,A,3,0,fr"]
QUERY = "PATTERN A a ; B b WHERE [id] AND b.x > 6 WITHIN 10 RETURN a.x"


@pytest.fixture
def given(tmp_path: Path) -> tuple[str, ...]:
    events = tmp_path / "events.csv"
    events.write_text("\n".join(LINES))
    return ("-q", QUERY, "--input", str(events), "--time", "t", "--type", "type")


def test_a_report(given: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("why", *given) == 0
    assert "B b          1  1 no B b in the window, 1 by b.x > 6" in capsys.readouterr().out
    assert run("why", *given, "--format", "json", "--misses", "1") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["matches"], len(report["misses"])) == (1, 1)


def test_given_events(given: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("why", *given, "--event", "a=2", "--event", "b=b.x < 6") == 0
    printed = capsys.readouterr().out
    assert "rows a 2, b 3: no match" in printed
    assert "smallest change: b.x >= 5 instead of b.x > 6" in printed


def test_a_funnel(
    given: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("funnel", *given, "--by", "land", "--format", "json") == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert [(s["group"], s["reached"]) for s in steps] == [
        *(("de", 1), ("de", 1), ("de", 1)),
        *(("fr", 2), ("fr", 0), ("fr", 0)),
    ]
    target = tmp_path / "funnel.svg"
    assert run("funnel", *given, "-o", str(target)) == 0
    assert target.read_text().startswith("<svg")
    assert run("funnel", *given, "-o", str(target)) == 2  # it isn't replaced


def test_rules_that_never_fired(
    given: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "high.cep").write_text(f"INTO High {QUERY}")
    (rules / "higher.cep").write_text(f"INTO Higher {QUERY}".replace("> 6", "> 9"))
    events = given[2:]
    assert run("funnel", str(rules), *events) == 0
    printed = capsys.readouterr().out
    assert "1 of 2 rules never fired" in printed
    assert "2 by b.x > 9" in printed
    assert run("funnel", str(rules), *events, "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["silent"] == ["Higher"]
    assert run("funnel", str(rules), *events, "--by", "land") == 2
    assert "the funnels of rules have no --by" in unwrapped(capsys.readouterr().err)
    (rules / "wrong.cep").write_text("INTO Wrong PATTERN A a WHERE a.y > 1")
    assert run("funnel", str(rules), *events) == 2
    assert "no attribute `y`" in unwrapped(capsys.readouterr().err)


def test_a_timeline_beside_a_run(
    given: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "timeline.html"
    assert run("run", *given, "--timeline", str(target)) == 0
    assert "1 match, in 5 events" in target.read_text()
    assert run("run", *given, "--timeline", str(target)) == 2  # it isn't replaced
    assert run("run", *given, "--timeline", "timeline.png") == 2
    assert "a timeline is .html or .svg, not timeline.png" in unwrapped(capsys.readouterr().err)
    assert run("run", *given, "--timeline", "t.svg", "--runtime", "spark") == 2
    assert "--timeline is for a run in process" in unwrapped(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("--event", "17"), "--event is like a=17, not 17"),
        (("--event", "n=1"), "events= names `n`, which no match binds; there are a, b"),
        (("--format", "svg"), "a report can be text, json or html, not svg"),
    ],
)
def test_wrong_use(
    given: tuple[str, ...],
    wrong: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("why", *given, *wrong) in (1, 2)
    assert message in unwrapped(capsys.readouterr().err)
