"""Explanations as JSON: the whole object, with figures by hand."""

from __future__ import annotations

import json
from dataclasses import replace

from cepheid.explain import Explanation
from cepheid.plan.profile import Replan
from cepheid.rewrites import Applied
from cepheid.statistics import Statistics
from tests.explain.cases import plan_of, profile_of, searched

QUERY = "PATTERN A a ; !B b ; C c WHERE c.x > 1 WITHIN 10"


def test_the_whole_object() -> None:
    # inputs first; of NSEQ the input, c, before the negated b
    figures = [(1, 10), (2, 20), (3, 30), (4, 40), (5, 50)]
    statistics = Statistics({"a": 1}, {"c.x > 1": 0.5}, {"a.id": 7})
    planned = plan_of(QUERY, figures, losers=[("right-deep", 300)], statistics=statistics)
    profile = profile_of(
        planned,
        [(1, 0.1, 2), (3, 0.1, 4), (5, 0.1, 6), (7, 0.1, 8), (9, 0.1, 0)],
        events=20,
        rejected=1,
        matches=9,
        rounds=2,
        idle=1,
    )
    replan = Replan(1, 5, "left-deep", "right-deep", "the rate of a", 2.0, None, False)
    explanation = Explanation(
        QUERY,
        planned,
        rewrites=(Applied("fold", "x", "y"),),
        warnings=("mind this",),
        distribution=(("partitioning", "single"),),
        profile=replace(profile, replans=(replan,)),
    )
    common = {
        "conditions": [],
        "states": [],
        "leaf": True,
        "negated": False,
        "uses": 1,
        "inputs": [],
    }

    def node(figure: int, rows: int, peak: int, **own: object) -> dict[str, object]:
        return {
            **common,
            "estimate": {"rows": figure, "tried": 2 * figure, "cost": 10 * figure},
            "actual": {"rows": rows, "seconds": 0.1, "peak": peak},
            **own,
        }

    a = node(1, 1, 2, operator="A a")
    c = node(2, 3, 4, operator="C c", conditions=["c.x > 1"])
    b = node(3, 5, 6, operator="B b", negated=True)
    nseq = node(4, 7, 8, operator="NSEQ", leaf=False, inputs=[b, c])
    assert json.loads(explanation.to_json()) == {
        "version": 1,
        "query": QUERY,
        "warnings": ["mind this"],
        "rewrites": [{"rule": "fold", "before": "x", "after": "y"}],
        "answers": None,
        "plan": {
            "name": "left-deep",
            "forced": False,
            "cost": 150,
            "propagation": ["lazy"],
            "key": None,
            "window": "10 units",
            "tree": node(5, 9, 0, operator="SEQ", leaf=False, inputs=[a, nseq]),
        },
        "other_plans": [{"name": "right-deep", "cost": 300, "relative": 2}],
        "statistics": {
            "rates": {"a": 1},
            "selectivities": {"c.x > 1": 0.5},
            "distinct": {"a.id": 7},
        },
        "distribution": [{"label": "partitioning", "text": "single"}],
        "run": {
            "events": 20,
            "rejected": 1,
            "shed": 0,
            "matches": 9,
            "rounds": 2,
            "idle": 1,
            "seconds": 1.0,
            "sampling": 0.0,
            "compiling": 0.0,
            "partitions": 1,
            "replans": [
                {
                    "round": 1,
                    "at": 5,
                    "before": "left-deep",
                    "after": "right-deep",
                    "why": "the rate of a",
                    "predicted": 2.0,
                    "observed": None,
                    "installed": False,
                }
            ],
        },
    }


def test_without_a_run_there_are_no_actuals() -> None:
    found = json.loads(Explanation(QUERY, plan_of(QUERY)).to_json())
    assert found["run"] is None
    assert found["plan"]["tree"]["actual"] is None


def test_alternatives_stand_under_disj() -> None:
    query = "PATTERN (A a | B b) ; C c WITHIN 10"
    tree = json.loads(Explanation(query, plan_of(query)).to_json())["plan"]["tree"]
    assert tree["operator"] == "DISJ" and tree["estimate"] is None
    assert [part["inputs"][1]["uses"] for part in tree["inputs"]] == [2, 2]


def test_json_has_no_infinity() -> None:
    planned = plan_of(QUERY, [(float("inf"), float("nan"))] * 5, losers=[("x", float("inf"))])

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is not JSON")

    found = json.loads(Explanation(QUERY, planned).to_json(), parse_constant=refuse)
    assert found["plan"]["tree"]["estimate"]["rows"] is None
    assert found["other_plans"][0]["relative"] is None


def test_an_automaton_has_states() -> None:
    query = "PATTERN A a => B+ b STRICT -> C c WHERE b.x > PREV(b.x) AND c.y > a.y WITHIN 10"
    root = json.loads(searched(query).to_json())["plan"]["tree"]
    assert root["operator"] == "AUTOMATON"
    assert root["conditions"] == ["A a => B+ b STRICT -> C c"]
    assert root["states"] == [
        {"name": "start", "binds": "A a", "forward": "any A a", "filter": None, "rebind": None},
        {
            "name": "a",
            "binds": "B b",
            "forward": "the next event if B b",
            "filter": None,
            "rebind": None,
        },
        {
            "name": "b",
            "binds": "C c",
            "forward": "the first C c, c.y > a.y",
            "filter": "others",
            "rebind": "every B b without a break, b.x > PREV(b.x)",
        },
        {"name": "c", "binds": None, "forward": "match", "filter": None, "rebind": None},
    ]
    assert [part["operator"] for part in root["inputs"]] == ["A a", "B b", "C c", "every event"]
