"""Funnels, counted by hand."""

from __future__ import annotations

import json

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
