"""Rules that return answers: those of their queries alone, beside the matches of other rules."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.options import Options
from cepheid.rules.run.passes import Needs, needs
from cepheid.rules.template import Template

EVENTS = pa.table(
    {
        "ts": list(range(40)),
        "name": ["A", "B"] * 20,
        "k": [n // 2 % 3 for n in range(40)],
        "x": [n * 7 % 11 for n in range(40)],
    }
)
OPTIONS = {"time": "ts", "type": "name"}
PAIRS = "PATTERN A a ; B b WHERE [k] AND b.x > :least WITHIN 10"
RULES = cep.RuleSet(
    (
        Template("pair", cep.Query("PATTERN A a ; B b WHERE [k] WITHIN 3 RETURN a.x", "pair")),
        Template(
            "often",
            cep.Query(
                f"{PAIRS} GROUP BY a.k, TUMBLE(:size) RETURN a.k, window_end, count(*) AS n",
                "often",
            ),
            pa.table({"least": [2, 5, 5], "size": [10, 10, 20], "level": ["p", "q", "r"]}),
        ),
        Template("none", cep.Query("FROM A a WHERE a.x > 99 RETURN count(*) AS n", "none")),
        Template("all", cep.Query("FROM A a RETURN count(*) AS n", "all")),
        Template("most", cep.Query("FROM A a RETURN max(a.x) AS n", "most")),
    )
)


def test_as_of_each_rule_alone() -> None:
    found = RULES.match(EVENTS, **OPTIONS)
    assert found.num_rows > 20
    for name in ("pair", "often-1", "often-2", "often-3", "none", "all", "most"):
        expected = RULES[name].match(EVENTS, **OPTIONS)
        assert expected.num_rows, name
        typed = RULES[name].typed(found, EVENTS, **OPTIONS)
        assert typed.schema == expected.schema
        assert sorted(map(str, typed.to_pylist())) == sorted(map(str, expected.to_pylist())), name


def test_they_carry_what_rules_carry() -> None:
    rows = RULES.match(EVENTS, **OPTIONS).to_pylist()
    levels = {row["rule"]: row["level"] for row in rows}
    assert (levels["often-1"], levels["often-3"], levels["all"]) == ("p", "r", None)
    (none,) = (row for row in rows if row["rule"] == "none")
    assert json.loads(none["match"]) == {"n": 0} and none["match_end"] is None


def test_why_they_run_alone() -> None:
    text = str(RULES.explain(EVENTS, **OPTIONS))
    assert "returns answers about its matches" in text


def test_dates_refuse_them() -> None:
    rule = Template("all", RULES["all"].query)
    days = EVENTS.set_column(0, "ts", EVENTS["ts"].cast(pa.int32()).cast(pa.date32()))
    with pytest.raises(cep.UnsupportedError, match="`ts` has dates"):
        cep.RuleSet((rule,)).match(days, **OPTIONS)


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("PATTERN A a ; B b WHERE [id] WITHIN 5 GROUP BY a.id, TUMBLE(9)", {"id"}),
        ("PATTERN A a ; B b WHERE [id] WITHIN 5 GROUP BY a.x, TUMBLE(9)", set()),
        ("PATTERN A a ; B b WHERE [id] WITHIN 5 GROUP BY TUMBLE(9)", set()),
        ("FROM A a GROUP BY a.x, a.id, TUMBLE(9)", {"x", "id"}),
        ("FROM A a GROUP BY a.x % 2, TUMBLE(9)", set()),
    ],
)
def test_what_events_of_a_stream_may_be_partitioned_by(query: str, keys: set[str]) -> None:
    """By what keeps groups whole."""
    columns = pa.schema({"ts": pa.int64(), "name": pa.string(), "id": pa.int64(), "x": pa.int64()})
    (template,) = cep.RuleSet.of({"r": query}).templates
    assert needs([template], columns, Options("ts", type="name")) == [Needs(frozenset(keys), False)]
