"""Which rules of a set never fired, and how far they got; figures counted by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import cepheid as cep

# Two As; the B after the first has 7, and nothing follows the second within 5.
EVENTS = pa.table({"ts": [1, 2, 10], "type": ["A", "B", "A"], "x": [5, 7, 1]})
RULES = cep.RuleSet.from_template(
    "rise",
    "PATTERN A a ; B b WHERE b.x > :low WITHIN 5 RETURN b.x",
    {"rule": ["low", "high", "higher"], "low": [4, 8, 9]},
)


def test_silent_rules_have_funnels() -> None:
    found = RULES.funnel(EVENTS, time="ts", type="type")
    assert dict(found.matches) == {"low": 1, "high": 0, "higher": 0}
    assert found.silent == ("high", "higher")
    rows = found.to_arrow().select(["rule", "step", "reached"]).to_pylist()
    steps = [("A a", 2), ("B b", 0), ("match", 0)]
    assert [(r["rule"], r["step"], r["reached"]) for r in rows] == [
        (rule, *step) for rule in ("high", "higher") for step in steps
    ]
    lost = {cause.text: cause.count for cause in found.funnels["high"].steps[1].lost}
    assert lost == {"no B b in the window": 1, "b.x > :low": 1}


def test_forms(tmp_path: Path) -> None:
    found = RULES.funnel(EVENTS, time="ts", type="type", most=1)
    assert list(found.funnels) == ["high"]
    text = str(found)
    assert text.startswith("2 of 3 rules never fired\n")
    assert text.endswith("and 1 more: most=2 shows all")
    for name in ("f.txt", "f.json", "f.html"):
        found.save(tmp_path / name)
    assert json.loads((tmp_path / "f.json").read_text())["silent"] == ["high", "higher"]
    assert "and 1 more" in (tmp_path / "f.html").read_text()


def test_no_rule_is_silent() -> None:
    found = RULES.select("low").funnel(EVENTS, time="ts", type="type")
    assert str(found) == "0 of 1 rules never fired"
    assert found.to_arrow().num_rows == 0


def test_one_rule() -> None:
    funnel = RULES["high"].funnel(EVENTS, time="ts", type="type", by="x")
    assert [(s.group, s.reached) for s in funnel.steps if s.text == "A a"] == [("1", 1), ("5", 1)]
    with pytest.raises(cep.DataError, match="no column `y`"):
        RULES["high"].funnel(EVENTS, time="ts", type="type", by="y")


def test_rules_that_read_others_are_counted_over_what_they_read() -> None:
    """Two pairs come up; a C of the same id follows one of them within the time, with too small a
    value."""
    events = pa.table(
        {
            "ts": [1, 2, 3, 4, 5, 30],
            "type": ["A", "B", "A", "B", "C", "C"],
            "id": [1, 1, 2, 2, 1, 2],
            "x": [1, 5, 2, 9, 3, 4],
        }
    )
    rules = cep.RuleSet.of(
        {
            "pair": "INTO Pair PATTERN A a ; B b WHERE [id] WITHIN 5 RETURN a.id, b.x",
            "never": "INTO Next PATTERN Pair p ; C c WHERE [id] AND c.x > 100 WITHIN 9 RETURN c.id",
            "after": "PATTERN Next n ; A a WHERE [id] WITHIN 9",
        }
    )
    funnels = rules.funnel(events, time="ts", type="type").funnels
    reached = {name: [step.reached for step in f.steps] for name, f in funnels.items()}
    assert reached == {"never": [2, 0, 0], "after": [0, 0, 0]}
