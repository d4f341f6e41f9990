"""Timelines: what is drawn, and where."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.reasons.timeline import DrawnMatch, Lane
from cepheid.reasons.timeline_picture import DOTS, density
from tests.reasons.test_why import EVENTS, QUERY, events


def draw(query: str = QUERY, data: pa.Table = EVENTS, lanes: str | None = None) -> cep.Timeline:
    return cep.timeline(data, query, lanes=lanes, time="ts", type="type")


def test_lanes_by_variable_and_a_match_with_its_negation() -> None:
    found = draw()
    assert found.lanes[:2] == (
        Lane("A a", False, (0, 2, 4, 5, 8), (1, 3, 5, 6, 9)),
        Lane("!X n", True, (6,), (7,)),
    )
    # The match is of rows 0 and 1, at 1 and 2; its window of 10 ends at 11; no x in between.
    assert found.matches == (DrawnMatch(1, 2, 11, ((0, 1, 0), (2, 2, 1)), (), ((1, 1, 2),)),)


def test_groups_and_negations_at_the_end() -> None:
    data = events((1, "A", 1, 1), (2, "B", 1, 5), (4, "B", 1, 7), (5, "C", 1, 1))
    (match,) = draw("PATTERN A a ; B+ b ; C c ; !X x WITHIN 9", data).matches
    assert match.groups == ((1, 2, 4),)
    assert match.free == ((3, 5, 10),)  # to the end of the window
    (timed,) = draw("PATTERN A a ; !X x FOR 3", data).matches
    assert timed.free == ((1, 1, 4),)


def test_lanes_by_a_column() -> None:
    found = draw(lanes="id")
    assert [lane.name for lane in found.lanes] == ["1", "2", "3", "4", "5"]
    assert found.matches[0].events == ((0, 1, 0), (0, 2, 1))
    with pytest.raises(cep.DataError, match="no column `idd`; did you mean `id`"):
        draw(lanes="idd")


def test_the_drawing_has_every_event_and_stays_inside() -> None:
    drawing = draw().to_svg()
    root = ElementTree.fromstring(drawing)
    circles = [e for e in root if e.tag.endswith("circle")]
    assert [sum(c.get("class") == kind for c in circles) for kind in ("event", "bound")] == [10, 2]
    assert root.get("width") == "480"  # few events: a phone shows all of them
    assert all(60 <= float(c.get("cx", "0")) <= 460 for c in circles)
    (legend,) = (e for e in root if e.get("class") == "legend")
    words = [e.text for e in legend if e.tag.endswith("text")]
    assert words == ["events of a match", "none may be here", "window"]
    places = [(float(e.get("x", "0")), float(e.get("y", "0"))) for e in legend if e.text]
    assert max(x for x, _ in places) < 400 and len({y for _, y in places}) == 1  # fits on a phone
    assert "prefers-color-scheme: dark" in drawing


def test_what_several_matches_forbid_has_one_shade() -> None:
    data = events((1, "A", 1, 1), (2, "A", 1, 1), (3, "A", 1, 1), (9, "B", 1, 1))
    found = draw("PATTERN A a ; !X x ; B b WITHIN 20", data)
    assert sorted(match.free for match in found.matches) == [
        ((1, begin, 9),) for begin in (1, 2, 3)
    ]
    shades = re.findall(r'<rect class="free" x="([\d.]+)"[^>]*width="([\d.]+)"', found.to_svg())
    assert len(shades) == 1
    # An exception forbids events from the first to the last of what it is from.
    (match,) = draw("PATTERN (A a ; A c ; A d) \\ X x ; B b WITHIN 20", data).matches
    assert match.free == ((3, 1, 3),)


def test_a_window_beyond_the_axis_is_open() -> None:
    data = events((1, "A", 1, 1), (2, "B", 1, 9), (30, "A", 2, 1), (31, "B", 2, 9), (33, "A", 3, 1))
    ways = re.findall(r'd="(M[^"]+)" class="window"', draw(data=data).to_svg())
    drawn = ways[:2]  # the last one is the legend's
    assert [way.endswith("v-7") for way in drawn] == [True, False]


def test_many_events_are_drawn_as_density() -> None:
    count = DOTS + 1
    data = pa.table({"ts": range(count), "type": ["A"] * count})
    drawing = draw("PATTERN A a => A b", data).to_svg()
    assert ElementTree.fromstring(drawing).get("width") == "1000"
    assert 'class="event"' not in drawing and 'class="many"' in drawing
    assert len(re.findall('class="band"', drawing)) == 40
    assert str(draw("PATTERN A a => A b", data)) == (
        "Timeline(150 matches, 40 drawn, in 151 events)"
    )
    assert density((0, 1, 9, 10), 0, 10, 2) == [2, 2]


def test_hostile_values_and_no_events() -> None:
    mean = "<script>alert(1)</script>"
    data = EVENTS.append_column("s", pa.array([mean] * 10))
    page = draw(data=data, lanes="s").to_html()
    assert "<script" not in page and "&lt;script" in page
    empty = draw(data=EVENTS.slice(0, 0))
    assert str(empty) == "Timeline(0 matches, in 0 events)"
    ElementTree.fromstring(empty.to_svg())
