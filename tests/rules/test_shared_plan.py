"""Rules that are joined return exactly what they return alone, by the oracle."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, reject, settings

from cepheid.algebra.types import Schema
from cepheid.engine import needs
from cepheid.errors import UnsupportedError
from cepheid.options import Adaptation, Limit, Options
from cepheid.plan.nodes import waits
from cepheid.planner import Prepared
from cepheid.planner.together import TogetherAdaptive
from cepheid.rules import RuleSet
from cepheid.rules.compile import shared_plan
from cepheid.rules.compile.compiled_rules import compile_rules
from cepheid.rules.compile.shared_plan import MOST_MEMBERS
from cepheid.statistics import Statistics
from tests.corpus.reader import table
from tests.examples import examples
from tests.properties.strategies import COLUMNS
from tests.properties.test_switching import Restless
from tests.rules.overlapping import overlapping
from tests.rules.strategies import Set
from tests.rules.test_batch import expected, found, rule_set

random = settings(
    max_examples=examples("shared plans"), suppress_health_check=list(HealthCheck), deadline=None
)
SCHEMA = table(Schema(COLUMNS, time="ts", type="type"), ()).schema
OPTIONS = Options("ts", type="type")


@contextmanager
def whatever_it_costs() -> Iterator[None]:
    """All queries are joined that can be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_plan, "_pays", lambda *given: True)
        yield


@random
@given(overlapping())
def test_every_rule_that_is_joined_finds_what_it_finds_alone(drawn: Set) -> None:
    schema = drawn.schema
    rules = rule_set(drawn)
    options = Options("ts", type="type", tie=drawn.tie, jit=False)
    try:
        with whatever_it_costs():
            result = found(rules, table(schema, drawn.events), options)
    except UnsupportedError:
        reject()
    for name, rule in rules.items():
        assert result[name] == expected(rule, schema, drawn.events), (name, rule.query.text)


@settings(random, max_examples=examples("shared plans", part=2))
@given(overlapping())
def test_joined_rules_that_change_their_plan_after_every_round(drawn: Set) -> None:
    schema = drawn.schema
    rules = rule_set(drawn)
    always = Adaptation(change=0, gain=0)
    options = Options("ts", type="type", tie=drawn.tie, jit=False, adapt=always)
    try:
        with whatever_it_costs(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys.modules[Prepared.__module__], "Adapter", Restless)
            patch.setattr(needs, "ROUND", 2)
            result = found(rules, table(schema, drawn.events), options)
    except UnsupportedError:
        reject()
    for name, rule in rules.items():
        assert result[name] == expected(rule, schema, drawn.events), (name, rule.query.text)


@pytest.mark.slow
def test_a_good_share_of_random_rules_are_joined() -> None:
    """Else the test above would not test what it is for."""
    counts: Counter[str] = Counter()

    @settings(random, max_examples=90, database=None, derandomize=True)
    @given(overlapping())
    def count(drawn: Set) -> None:
        try:
            compiled = compile_rules(rule_set(drawn).templates, SCHEMA, OPTIONS)
        except UnsupportedError:
            return
        counts["alone"] += len(compiled.alone)
        for joint in compiled.joints:
            counts["joined"] += len(joint.places)
            plan = joint.prepared.plan
            counts["shorter window"] += any(own.window is not None for own in joint.owners)
            counts["waits"] += any(map(waits, plan.alternatives))
            counts["key"] += bool(plan.key)
            counts["same tree"] += max(map(len, plan.returned)) > len(joint.owners[0].columns) + 1
            queries = [drawn.templates[f"rule {place}"][0] for place in joint.places]
            for word in ("&", "|", "!", "HAVING", "RETURN"):
                counts[word] += sum(word in query for query in queries)

    count()
    assert 2 * counts["joined"] > counts["alone"], counts
    assert len(counts) == 11 and all(counts.values()), counts


# ── by hand ──────────────────────────────────────────────────────────────────


def joints(queries: Mapping[str, str], options: Options = OPTIONS) -> list[list[str]]:
    """The rules of each joint, by name."""
    compiled = compile_rules(RuleSet.of(queries).templates, SCHEMA, options)
    names = compiled.rules["rule"].to_pylist()
    return [
        [names[compiled.alone[place].rules[0]] for place in joint.places]
        for joint in compiled.joints
    ]


def matched(queries: Mapping[str, str], *events: str) -> dict[str, list[str]]:
    """By rule, what is returned in the given events: a type and a value of x, at times 1, 2, …"""
    data = pa.table(
        {
            "ts": list(range(1, len(events) + 1)),
            "type": [event[0] for event in events],
            "x": [int(event[1:]) for event in events],
        }
    )
    rules = RuleSet.of(queries)
    assert compile_rules(rules.templates, data.schema, OPTIONS).joints
    result: dict[str, list[str]] = {name: [] for name in rules}
    for row in rules.match(data, OPTIONS).to_pylist():
        result[row["rule"]].append(row["match"])
    return result


def test_a_conjunction_below_different_ends_is_found_once() -> None:
    queries = {
        "c": "PATTERN (A a & B b) ; C c WHERE a.x < b.x WITHIN 9 RETURN a.x, c.x AS end",
        "d": "PATTERN (B q & A p) ; D d WHERE q.x > p.x WITHIN 9 RETURN p.x, d.x AS end",
    }
    assert joints(queries) == [["c", "d"]]
    (joined,) = RuleSet.of(queries).explain(SCHEMA, OPTIONS).joined
    # Each has `&` and `;` over three classes; `&` and its two classes are the same.
    assert (joined.operators, joined.shared_operators) == (4, 3)
    assert (joined.classes, joined.shared_classes) == (6, 4)
    (same,) = joined.shared
    assert same.takes == "(A a & B b), a.x < b.x" and same.queries == ("c", "d")
    assert matched(queries, "B5", "A1", "A7", "C0", "D2") == {
        "c": ['{"x":1,"end":0}'],
        "d": ['{"x":1,"end":2}'],
    }


def test_a_closure_below_different_ends_is_found_once() -> None:
    queries = {
        "c": "PATTERN A a ; B+ b ; C c ; D d WHERE b.x > 1 WITHIN 9 RETURN sum(b.x) AS s",
        "d": "PATTERN A a ; B+ b ; C c ; A e WHERE b.x > 1 WITHIN 9 RETURN count(b) AS n",
    }
    assert joints(queries) == [["c", "d"]]
    (joined,) = RuleSet.of(queries).explain(SCHEMA, OPTIONS).joined
    (same,) = joined.shared
    assert same.takes == "A a ; C c with B+ b, b.x > 1"
    assert matched(queries, "A0", "B2", "B1", "B3", "C0", "D0", "A0") == {
        "c": ['{"s":5}'],
        "d": ['{"n":2}'],
    }


def test_queries_that_only_return_different_things_are_matched_once() -> None:
    queries = {
        "x": "PATTERN A a & B b WITHIN 9 RETURN a.x",
        "all": "PATTERN A b & B a WITHIN 9",
    }
    (joined,) = RuleSet.of(queries).explain(SCHEMA, OPTIONS).joined
    assert (joined.operators, joined.shared_operators) == (2, 1)
    result = matched(queries, "A3", "B4")
    assert result["x"] == ['{"x":3}']
    assert result["all"] == ['{"b":{"ts":1,"type":"A","x":3},"a":{"ts":2,"type":"B","x":4}}']


def test_a_shorter_window_is_asked_of_the_matches() -> None:
    queries = {
        "long": "PATTERN A a ; B+ b ; C c WITHIN 9 RETURN a.x",
        "short": "PATTERN A a ; B+ b ; C c WITHIN 3 RETURN a.x",
    }
    assert matched(queries, "A1", "B0", "A2", "B0", "C0") == {
        "long": ['{"x":1}', '{"x":2}'],
        "short": ['{"x":2}'],
    }


def test_a_shorter_window_that_decides_what_a_group_has_stays_alone() -> None:
    queries = {
        "long": "PATTERN A a ; B+ b WITHIN 9 RETURN count(b) AS n",
        "short": "PATTERN A a ; B+ b WITHIN 3 RETURN count(b) AS n",
    }
    assert joints(queries) == []


def test_conditions_of_one_query_leave_the_others_alone() -> None:
    queries = {
        "all": "PATTERN A a & B b WITHIN 9 RETURN a.x",
        "killed": "PATTERN A a & B b HAVING a.x > 5 AND duration() < 2 WITHIN 9 RETURN a.x",
        "chosen": "PATTERN A a & B b WHERE a.x < b.x AND duration() > 1 WITHIN 9 RETURN a.x",
    }
    assert matched(queries, "A1", "A6", "B2") == {
        "all": ['{"x":1}', '{"x":6}'],
        "killed": ['{"x":6}'],
        "chosen": ['{"x":1}'],
    }


def test_a_query_that_skips_matches_is_another_one() -> None:
    rules = RuleSet.of(
        {
            "every": "PATTERN A a & B b WITHIN 9 RETURN a.x",
            "some": "PATTERN A a & B b WITHIN 9 AFTER MATCH SKIP PAST LAST EVENT RETURN a.x",
        }
    )
    events = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "B"], "x": [7, 0, 0]})
    result = rules.match(events, OPTIONS)
    assert Counter(result["rule"].to_pylist()) == {"every": 2, "some": 1}


def test_branches_of_a_query_are_its_own() -> None:
    """`a` stands for two variables of the first query, whose branches begin alike."""
    queries = {
        "either": "PATTERN (A a ; B b) | (A c ; C d) WITHIN 9 RETURN a.x AS a, c.x AS c",
        "both": "PATTERN A a & C c WITHIN 9 RETURN a.x AS a, c.x AS c",
    }
    assert matched(queries, "A1", "B2", "C3") == {
        "either": ['{"a":1,"c":null}', '{"a":null,"c":1}'],
        "both": ['{"a":1,"c":3}'],
    }


def test_what_matches_wait_for_stays_when_the_plan_changes() -> None:
    queries = {
        "waits": "PATTERN (A a & B b) ; C c ; !D d WHERE a.x < c.x WITHIN 9",
        "is known": "PATTERN (A a & B b) ; C c ; A d WHERE a.x < c.x WITHIN 9",
    }
    compiled = compile_rules(RuleSet.of(queries).templates, SCHEMA, OPTIONS)
    (joint,) = compiled.joints
    adaptive = joint.prepared.adaptive
    assert isinstance(adaptive, TogetherAdaptive)
    waiting, known = adaptive.negations
    assert waiting in ("top", "push") and known == "auto"


@pytest.mark.parametrize(
    "other",
    [
        "PATTERN D d & E e WITHIN 9",  # nothing in common
        "PATTERN A a & B b WHERE a.x > 1 AND b.x > 2 WITHIN 9",  # other classes
        "PATTERN A a & B b WHERE [id] WITHIN 9",  # another key
        "PATTERN A a & B b WITHIN 9 EVENTS",  # another clock
        "PATTERN A a & (B b -> C c) WITHIN 9",  # an automaton
        "PATTERN A a & B b WITHIN 9 AFTER MATCH SKIP PAST LAST EVENT",
        "PATTERN A a & B b WHERE a.x < 1 AND a.x > 2 WITHIN 9",  # nothing at all
    ],
)
def test_queries_that_stay_alone(other: str) -> None:
    assert joints({"one": "PATTERN A a & B b WITHIN 9", "other": other}) == []


@pytest.mark.parametrize(
    "chosen",
    [
        {"plan": "left-deep"},
        {"engine": "tree"},
        {"negation": "top"},
        {"propagation": "pull"},
        {"limit": Limit(total=10)},
        {"stats": Statistics({"a": 1.0})},
    ],
)
def test_a_caller_who_chooses_how_queries_run_has_each_alone(chosen: Mapping[str, object]) -> None:
    queries = {"c": "PATTERN (A a & B b) ; C c WITHIN 9", "d": "PATTERN (A a & B b) ; D d WITHIN 9"}
    assert joints(queries) and not joints(queries, Options("ts", type="type", **chosen))


def test_joints_are_small() -> None:
    ends = "CDEFGHIJKLMNOP"
    many = {end: f"PATTERN (A a & B b) ; {end} c WITHIN 9" for end in ends}
    assert [len(names) for names in joints(many)] == [MOST_MEMBERS, len(ends) - MOST_MEMBERS]
    long = {
        end: f"PATTERN (A a & B b) ; {' ; '.join(f'{end} v{n} ' for n in range(9))} WITHIN 9"
        for end in ends
    }
    assert [len(names) for names in joints(long)] == [2] * 7  # 2 + 9 * 2 <= 24 < 2 + 9 * 3
