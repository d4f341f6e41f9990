"""Funnels, counted by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.reasons.why.report import Lost

# Users 1 to 4 begin; 1, 2 and 3 go on after 1, 2 and 6; only 1 gets to the end, after 4 more.
EVENTS = pa.table(
    {
        "ts": [0, 1, 5, 10, 12, 20, 26, 30],
        "type": ["A", "B", "C", "A", "B", "A", "B", "A"],
        "id": [1, 1, 1, 2, 2, 3, 3, 4],
        "land": ["de", "de", "de", "fr", "fr", "de", "de", "<b>"],
    }
)
QUERY = "PATTERN A a ; B b ; C c WHERE [id] WITHIN 10"


def funnel(by: str | None = None, query: str = QUERY) -> cep.Funnel:
    return cep.funnel(EVENTS, query, by=by, time="ts", type="type")


def test_steps_shares_and_times() -> None:
    steps = funnel().steps
    assert [(s.text, s.reached) for s in steps] == [
        ("A a", 4),
        ("B b", 3),
        ("C c", 1),
        ("match", 1),
    ]
    assert [s.of_first for s in steps] == [1, 0.75, 0.25, 0.25]
    assert [s.of_before for s in steps] == [1, 0.75, 1 / 3, 1]
    assert [(s.median, s.p90) for s in steps] == [(None, None), (2, 6), (4, 4), (None, None)]
    assert steps[1].lost == (Lost("candidate", "no B b in the window", 1),)
    assert steps[2].lost == (Lost("candidate", "no C c in the window", 2),)


def test_groups() -> None:
    found = funnel(by="land")
    assert found.groups == ("<b>", "de", "fr")
    reached = {
        group: [s.reached for s in found.steps if s.group == group] for group in found.groups
    }
    assert reached == {"<b>": [1, 0, 0, 0], "de": [2, 2, 1, 1], "fr": [1, 1, 0, 0]}
    assert found.to_arrow().column_names[:3] == ["land", "step", "reached"]
    with pytest.raises(cep.DataError, match="no column `lnd`; did you mean `land`"):
        funnel(by="lnd")


def test_the_share_of_nothing_is_unknown() -> None:
    steps = funnel(query="PATTERN A a ; B b ; C c WHERE a.id > 9 WITHIN 10").steps
    assert [s.of_first for s in steps] == [None] * 4


def test_forms() -> None:
    found = funnel(by="land")
    assert repr(funnel()) == "Funnel(4 → 3 → 1 → 1)"
    assert json.loads(found.to_json())["by"] == "land"
    for text in (found.to_svg(), found.to_html()):
        assert "&lt;b&gt;" in text and "<b>" not in text
    assert found.to_arrow().num_rows == 12


def test_a_bar_is_as_long_as_its_share() -> None:
    drawing = funnel().to_svg()
    # 460 pixels less 140 for labels and 110 for figures are 210.
    assert [
        f'width="{210 * part:g}" height="20" rx="3" class="reach"' in drawing
        for part in (1, 0.75, 0.25)
    ] == [True] * 3


DAY = "GROUP BY TUMBLE({}) RETURN window_start, count(*) AS n"


def test_windows_of_group_by() -> None:
    """By the windows that first events are in, wherever their matches end."""
    query = f"{QUERY} {DAY.format(6)}"
    found = funnel("window_start", query)
    assert found.groups == ("0", "6", "18", "30")  # in the order of numbers
    reached = {
        group: [s.reached for s in found.steps if s.group == group] for group in found.groups
    }
    assert reached == {"0": [1, 1, 1, 1], "6": [1, 1, 0, 0], "18": [1, 1, 0, 0], "30": [1, 0, 0, 0]}
    assert [s.median for s in found.steps if s.text == "B b"] == [1, 2, 6, None]
    assert found.to_arrow().column_names[0] == "window_start"


def test_windows_of_moments_are_told_in_utc() -> None:
    start = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
    moments = [start + timedelta(minutes=10 * n) for n in EVENTS["ts"].to_pylist()]
    data = EVENTS.set_column(0, "ts", pa.array(moments))
    query = QUERY.replace("WITHIN 10", f"WITHIN 2 hours {DAY.format('1 day')}")
    found = cep.funnel(data, query, by="WINDOW_START", time="ts", type="type")
    assert found.groups == ("2026-03-01 00:00:00", "2026-03-02 00:00:00")
    assert [s.reached for s in found.steps] == [1, 1, 1, 1, 3, 2, 0, 0]


@pytest.mark.parametrize("window", ["HOP(5, 10)", "SESSION(5)", "RANGE(5)"])
def test_windows_that_overlap_or_need_matches(window: str) -> None:
    with pytest.raises(cep.DataError, match=r"by='window_start' needs GROUP BY TUMBLE"):
        funnel("window_start", f"{QUERY} GROUP BY {window} RETURN window_end, count(*) AS n")


def test_windows_of_a_query_that_has_none() -> None:
    with pytest.raises(cep.DataError, match="there is no column `window_start`"):
        funnel("window_start")


def steps_of(data: pa.Table, query: str) -> list[tuple[str, int | None, tuple[Lost, ...]]]:
    found = cep.funnel(data, query, time="ts", type="type")
    return [(step.text, step.reached, step.lost) for step in found.steps]


# Users 1 to 5 begin. 1 gets to the end; 2 has an x after its b, 3 before it; 4 has no c, 5 no b.
DISTURBED = pa.table(
    {
        "ts": [1, 2, 3, 11, 12, 13, 14, 21, 22, 23, 24, 31, 32, 41],
        "type": ["A", "B", "C", "A", "B", "X", "C", "A", "X", "B", "C", "A", "B", "A"],
        "id": [1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 5],
    }
)


@pytest.mark.parametrize(
    "pattern",
    [
        "(A a ; B b ; C c) \\ X x",
        "((A a ; B b) \\ X x ; C c) \\ X",
        "(A a ; !X y ; B b ; C c) \\ X x",
    ],
)
def test_a_pattern_with_an_exception_has_steps(pattern: str) -> None:
    steps = steps_of(DISTURBED, f"PATTERN {pattern} WHERE [id] WITHIN 8")
    assert [(text, reached) for text, reached, _ in steps] == [
        ("A a", 5),
        ("B b", 3),
        ("C c", 1),
        ("match", 1),
    ]
    assert steps[2][2][0] == Lost("candidate", "no C c in the window", 1)
    assert [lost.count for lost in steps[2][2]] == [1, 1]


def test_an_exception_is_a_reason_of_its_own() -> None:
    steps = steps_of(DISTURBED, "PATTERN (A a ; B b ; C c) \\ X x WHERE [id] WITHIN 8")
    assert [lost for _, _, lost in steps[1:]] == [
        (Lost("candidate", "no B b in the window", 1), Lost("negation", "\\ X x", 1)),
        (Lost("candidate", "no C c in the window", 1), Lost("negation", "\\ X x", 1)),
        (),
    ]
    # In a longer pattern the exception ends with the part that it is from.
    inner = steps_of(DISTURBED, "PATTERN (A a ; B b) \\ X x ; C c WHERE [id] WITHIN 8")
    assert [reached for _, reached, _ in inner] == [5, 3, 2, 2]
    # Both ways of a conjunction.
    both = steps_of(DISTURBED, "PATTERN (B b & A a) \\ X x WHERE [id] WITHIN 8")
    assert [(text, reached) for text, reached, _ in both] == [("B b", 4), ("A a", 3), ("match", 3)]


def test_a_negation_waits_for_the_events_that_its_conditions_read() -> None:
    """Whether an x is forbidden is known at the c, so that the b is reached."""
    data = DISTURBED.append_column("x", pa.array([0] * 5 + [7] + [0] * 2 + [8] + [0, 8] + [0] * 3))
    query = "PATTERN A a ; !X x ; B b ; C c WHERE [id] AND x.x = c.x WITHIN 8"
    steps = steps_of(data, query)
    assert [reached for _, reached, _ in steps] == [5, 4, 2, 2]
    assert steps[2][2] == (
        Lost("candidate", "no C c in the window", 1),
        Lost("negation", "!X x", 1),
    )


def test_events_that_come_only_outside_the_window() -> None:
    """Within four windows; the c of user 1 comes after 4, those of 2 and 3 after 20 and 39."""
    data = pa.table(
        {
            "ts": [0, 4, 100, 120, 200, 239, 300, 340, 400],
            "type": ["A", "C", "A", "C", "A", "C", "A", "C", "A"],
            "id": [1, 1, 2, 2, 3, 3, 4, 4, 5],
            "land": ["de", "de", "fr", "fr", "de", "de", "fr", "fr", "de"],
        }
    )
    query = "PATTERN A a ; C c WHERE [id] WITHIN 10"
    none = Lost("candidate", "no C c in the window", 2)
    assert steps_of(data, query)[1][2] == (none, Lost("window", "WITHIN 21 to 40 units", 2))
    found = cep.funnel(data, query, by="land", time="ts", type="type")
    assert [s.lost for s in found.steps if s.text == "C c"] == [
        (Lost("candidate", none.text, 1), Lost("window", "WITHIN 40 units", 1)),
        (Lost("candidate", none.text, 1), Lost("window", "WITHIN 21 units", 1)),
    ]
    assert "1 only outside the window (WITHIN 40 units)" in str(found)
    assert "1 only outside the window (WITHIN 40 units)" in found.to_html()
    # Of events, the longer window is known by the one that was tried: there are three.
    apart = pa.table({"ts": [0, 1, 2], "type": ["A", "X", "C"]})
    counted = steps_of(apart, "PATTERN A a ; C c WITHIN 2 EVENTS")
    assert counted[1][2] == (Lost("window", "at most WITHIN 3 EVENTS", 1),)


def test_a_condition_comes_before_a_longer_window() -> None:
    """It could be less strict, or the window longer."""
    data = pa.table({"ts": [0, 5, 15], "type": ["A", "C", "C"], "x": [1, 1, 9]})
    query = "PATTERN A a ; C c WHERE c.x > 5 WITHIN 10"
    assert steps_of(data, query)[1][2] == (Lost("condition", "c.x > 5", 1),)
    two = query.replace("c.x > 5", "c.x > 5 AND c.x > a.x + 3")
    assert steps_of(data, two)[1][2] == (Lost("window", "WITHIN 16 units", 1),)
