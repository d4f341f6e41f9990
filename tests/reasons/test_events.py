"""`why(events=…)`: verdicts on given events, by hand."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.reasons.why.given_events import Given
from cepheid.reasons.why.why_not import CheckedCondition, WhyNot
from tests.reasons.test_why import EVENTS, QUERY, events

FEW = events((1, "A", 1, 1), (2, "B", 1, 5), (3, "B", 1, 7), (4, "C", 1, 1))


def ask(query: str, given: Given, data: pa.Table = FEW) -> WhyNot:
    return cep.why(data, query, events=given, time="ts", type="type")


def test_events_that_match() -> None:
    verdict = ask(QUERY, {"a": 0, "b": 1}, EVENTS)
    assert (verdict.matches, verdict.problems, verdict.change) == (True, (), None)
    assert "rows a 0, b 1: a match" in str(verdict)


def test_every_condition_is_checked_with_its_values() -> None:
    data = pa.table({"ts": [1, 2], "type": ["A", "B"], "x": [3, 9], "y": [None, 4]})
    query = "PATTERN A a ; B b WHERE a.x > 5 AND a.y < b.y AND b.x > a.x WITHIN 9"
    verdict = ask(query, {"a": 0, "b": 1}, data)
    assert verdict.conditions == (
        CheckedCondition("a.x > 5", "false", (("a.x", "3"),)),
        CheckedCondition("a.y < b.y", "unknown", (("a.y", "NULL"), ("b.y", "4"))),
        CheckedCondition("b.x > a.x", "true", (("b.x", "9"), ("a.x", "3"))),
    )
    assert verdict.change is None
    assert str(verdict).endswith("smallest change: no single one is enough")


def test_a_threshold_is_the_smallest_change() -> None:
    verdict = ask(QUERY, {"a": 2, "b": 3}, EVENTS)
    assert verdict.change == "b.x >= 5 instead of b.x > 6"
    assert verdict.changed is not None
    found = cep.match(EVENTS, verdict.changed, time="ts", type="type")
    assert [(m["a"]["ts"], m["b"]["ts"]) for m in found.to_pylist()] == [(1, 2), (3, 4)]


@pytest.mark.parametrize(
    ("query", "given", "problem", "change"),
    [
        (
            "PATTERN A a ; C c WITHIN 3",
            {"a": 0, "c": 3},
            "they aren't in the window, WITHIN 3 units: from first to last it is 3 units",
            "WITHIN 4 units instead of WITHIN 3 units",
        ),
        (
            "PATTERN A a ; !B n ; C c WHERE n.x > 6 WITHIN 9",
            {"a": 0, "c": 3},
            "!B n forbids them: row 2",
            "n.x > 7 instead of n.x > 6",
        ),
        (  # 7, too, has to be let through
            "PATTERN A a ; !B n ; C c WHERE n.x >= 4 WITHIN 9",
            {"a": 0, "c": 3},
            "!B n forbids them: row 1",
            "n.x > 7 instead of n.x >= 4",
        ),
        (  # both are more than 4, and 8 is further from it
            "PATTERN A a ; !B n ; C c WHERE NOT (10 > n.x + 4) WITHIN 9",
            {"a": 0, "c": 3},
            "!B n forbids them: row 2",
            "NOT 11 >= n.x + 4 instead of NOT 10 > n.x + 4",
        ),
        (
            "PATTERN A a ; !B n ; C c WHERE n.x BETWEEN 6 AND 20 WITHIN 9",
            {"a": 0, "c": 3},
            "!B n forbids them: row 2",
            "n.x BETWEEN 8 AND 20 instead of n.x BETWEEN 6 AND 20",
        ),
        (
            "PATTERN A a ; !B n ; C c WHERE n.x - a.x > 3 WITHIN 9",
            {"a": 0, "c": 3},
            "!B n forbids them: row 1",
            "n.x - a.x > 6 instead of n.x - a.x > 3",
        ),
        (
            "PATTERN A a ; !B n ; C c WHERE n.x = 7 WITHIN 9",
            {"a": 0, "c": 3},
            "!B n forbids them: row 2",
            "without !B n",
        ),
        (
            "PATTERN A a ; !B n FOR 3",
            {"a": 0},
            "!B n FOR 3 units forbids them: row 1",
            "!B n FOR 1 unit instead of !B n FOR 3 units",
        ),
        (
            "PATTERN A a ; !(B n ; B m) ; C c WITHIN 9",
            {"a": 0, "c": 3},
            "!(B n ; B m) forbids them: rows 1, 2",
            "without !(B n ; B m)",
        ),
        (
            "PATTERN (A a ; C c) \\ (B n ; B m) WITHIN 9",
            {"a": 0, "c": 3},
            "\\ (B n ; B m) forbids them: rows 1, 2",
            "without \\ (B n ; B m)",
        ),
        (
            "PATTERN (A a ; C c) \\ B n WHERE n.x > 6 WITHIN 9",
            {"a": 0, "c": 3},
            "\\ B n forbids them: row 2",
            "n.x > 7 instead of n.x > 6",
        ),
        (
            "PATTERN A a => C c",
            {"a": 0, "c": 3},
            "`=> C c`: rows 1, 2 come before it",
            "`-> C c` instead of `=> C c`",
        ),
        (
            "PATTERN A a -> B b WITHIN 9",
            {"a": 0, "b": 2},
            "`->` takes b 1 instead",
            "`; B b` instead of `-> B b`",
        ),
        ("PATTERN A a => B b", {"a": 0, "b": 2}, "`=>` takes b 1 instead", None),
        (
            "PATTERN C c ; B b WITHIN 9",
            {"c": 3, "b": 2},
            "they aren't in the order of the pattern",
            None,
        ),
        ("PATTERN A a ; B b WITHIN 9", {"b": 3}, "row 3 is no event of `b`: its type is C", None),
        (
            "PATTERN A a ; B b WITHIN 9 HAVING b.x < 6",
            {"a": 0, "b": 2},
            "HAVING b.x < 6 isn't satisfied",
            "HAVING b.x <= 7 instead of b.x < 6",
        ),
        (
            "PATTERN A a ; B b WITHIN 9 AFTER MATCH SKIP PAST LAST EVENT",
            {"a": 0, "b": 2},
            "AFTER MATCH SKIP PAST LAST EVENT keeps another match: a 0, b 1",
            "without AFTER MATCH SKIP PAST LAST EVENT",
        ),
        (
            "PATTERN A a ; B b WITHIN 9 LIMIT 1",
            {"a": 0, "b": 2},
            "LIMIT leaves their match out: earlier ones are enough",
            "LIMIT 2",
        ),
        (
            "PATTERN A a ; B b WHERE [id] WITHIN 9 LIMIT 1 PER KEY",
            {"a": 0, "b": 2},
            "LIMIT leaves their match out: earlier ones are enough",
            "LIMIT 2 PER KEY",
        ),
        (
            "PATTERN A a ; B b WITHIN 9 AFTER MATCH SKIP FOR 5",
            {"a": 0, "b": 2},
            "AFTER MATCH SKIP FOR 5 units keeps another match: a 0, b 1",
            "without AFTER MATCH SKIP FOR 5 units",
        ),
        ("PATTERN A a ; B b WITHIN 9", {"b": [1, 2]}, "`b` binds one event, not 2", None),
        (
            "PATTERN A a ; (B b | C c) WITHIN 9",
            {"b": 1, "c": 3},
            "they are of branches that exclude each other",
            None,
        ),
        (
            "PATTERN A a => B+ b => C c WHERE b.x < 6",
            {"a": 0, "b": 1, "c": 3},
            "`=> C c`: row 2 comes before it",
            "without b.x < 6",
        ),
        (
            "PATTERN A a ; B+ b UNTIL (b.x > 6) ; C c WITHIN 9",
            {"a": 0, "b": [1, 2]},
            "UNTIL (b.x > 6) ends the group before them",
            "without UNTIL (b.x > 6)",
        ),
        (
            "PATTERN A a ; B{3} b ; C c WITHIN 9",
            {"b": [1, 2]},
            "`B{3} b` needs 3 events, not 2",
            "B{2} b instead of B{3} b",
        ),
        (
            "PATTERN (A a @ 3) ; C c WITHIN 9",
            {"a": 0, "c": 3},
            "they aren't in the order of the pattern",
            "A a @ 2 units instead of A a @ 3 units",
        ),
    ],
)
def test_what_is_wrong(
    query: str, given: dict[str, object], problem: str, change: str | None
) -> None:
    verdict = ask(query, given)
    assert (verdict.matches, verdict.problems, verdict.change) == (False, (problem,), change)


def test_rows_of_numpy_in_any_order() -> None:
    query = "PATTERN A a ; B+ b ; C c WITHIN 9"
    assert ask(query, {"a": np.int64(0), "b": np.array([2, 1])}).rows == {"a": (0,), "b": (1, 2)}


def test_groups() -> None:
    query = "PATTERN A a ; B+ b ; C c WHERE b.x < 6 WITHIN 9"
    assert ask(query, {"a": 0, "b": 1, "c": 3}).matches
    verdict = ask(query, {"a": 0, "b": [1, 2], "c": 3})
    assert [c.outcome for c in verdict.conditions] == ["false"]
    assert verdict.change == "b.x <= 7 instead of b.x < 6"


MOMENTS = pa.table(
    {
        "ts": pa.array([0, 90_000_000, 200_000_000], pa.timestamp("us")),
        "type": ["A", "X", "B"],
        "x": [-1.5, 0.0, 2.0],
        "y": [4, 5, 6],
    }
)
THREE = {"a": 0, "b": 2}


@pytest.mark.parametrize(
    ("query", "change"),
    [
        # Of two thresholds, each of which would do, the one that changes less.
        ("PATTERN A a ; B b WHERE a.x > 9 OR b.x > 3 WITHIN 1 hour", "a.x > 9 OR b.x >= 2.0"),
        ("PATTERN A a ; B b WHERE 2.5 < b.x WITHIN 1 hour", "2.0 <= b.x"),
        ("PATTERN A a ; B b WHERE a.x > -1 WITHIN 1 hour", "a.x >= -1.5"),
        ("PATTERN A a ; B b WHERE NOT b.y > 5 WITHIN 1 hour", "NOT b.y > 6"),
        ("PATTERN A a ; B b WHERE b.y BETWEEN 1 AND 5 WITHIN 1 hour", "b.y BETWEEN 1 AND 6"),
        ("PATTERN A a ; B b WHERE b.y - a.y > 3 WITHIN 1 hour", "b.y - a.y >= 2"),
        (
            "PATTERN A a ; B b WHERE b.ts - a.ts < 2 minutes WITHIN 1 hour",
            "b.ts - a.ts <= 200 seconds",
        ),
        (
            "PATTERN A a ; B b WHERE (a, b) OCCURS WITHIN 1 minute WITHIN 1 hour",
            "(a, b) OCCURS WITHIN 201 seconds",
        ),
        (
            "PATTERN A a ; B b WHERE duration() < 1 minute WITHIN 1 hour",
            "duration() <= 200 seconds",
        ),
        ("PATTERN A a ; B b WITHIN 1 hour HAVING b.x - a.x > 5", "HAVING b.x - a.x >= 3.5"),
        ("PATTERN A a ; B b WITHIN 2 EVENTS", "WITHIN 3 EVENTS"),
        ("PATTERN A a ; !X x FOR 2 minutes ; B b WITHIN 1 hour", "!X x FOR 90 seconds"),
        ("PATTERN A a ; B{2,} b WITHIN 1 hour", None),
        ("PATTERN A a ; B b WITHIN 200 seconds", "WITHIN 201 seconds"),
    ],
)
def test_the_smallest_change(query: str, change: str | None) -> None:
    verdict = ask(query, THREE, MOMENTS)
    assert not verdict.matches
    if change is None:
        assert verdict.change == "B+ b instead of B{2,} b"
    else:
        assert verdict.change is not None
        assert verdict.change.startswith(f"{change} instead of ")
    assert verdict.changed is not None
    found = cep.match(MOMENTS, verdict.changed, time="ts", type="type").to_pylist()
    assert [(m["a"]["y"], m["b"]["y"] if isinstance(m["b"], dict) else 6) for m in found] == [
        (4, 6)
    ]


def test_events_by_a_condition() -> None:
    assert ask("PATTERN A a ; B b WITHIN 9", {"b": "b.x > 6"}).rows == {"b": (2,)}
    # Of the two, the one that matches.
    assert ask("PATTERN A a ; B b WHERE b.x > 6 WITHIN 9", {"b": "b.x > 0"}).rows == {"b": (2,)}
    with pytest.raises(cep.DataError, match=r"no event of `b` satisfies b\.x > 9"):
        ask("PATTERN A a ; B b WITHIN 9", {"b": "b.x > 9"})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"aa": 1}, "events= names `aa`, which no match binds; did you mean `a`?"),
        ({"a": 99}, "there is no row 99: the data have 4, from 0"),
        (
            {"a": 1.5},
            "events= names `a` by 1.5: pass the number of a row, a list of them, or a condition "
            "such as 'a.x > 5'",
        ),
        (
            {"a": []},
            "events= names `a` by []: pass the number of a row, a list of them, or a condition "
            "such as 'a.x > 5'",
        ),
        (
            {"a": "a.x > 0 LIMIT 3"},
            "events= names events by a condition, which `a.x > 0 LIMIT 3` isn't alone",
        ),
        ({}, "events= names no event: pass rows, as in events={'a': 17, 'b': 23}"),
    ],
)
def test_events_that_are_no_events(given: dict[str, object], message: str) -> None:
    with pytest.raises(cep.DataError) as error:
        ask("PATTERN A a ; B b WITHIN 9", given)
    assert str(error.value) == message


def test_forms() -> None:
    verdict = ask("PATTERN A a ; B b WHERE a.x < b.x AND b.x > 9 WITHIN 9", {"a": 0, "b": 1})
    assert repr(verdict) == "WhyNot(a 0, b 1: no match)"
    assert json.loads(verdict.to_json())["change"] == "b.x >= 5 instead of b.x > 9"
    assert "a.x &lt; b.x" in verdict.to_html() and "a.x < b.x" not in verdict.to_html()


def test_rows_of_large_data_are_looked_at() -> None:
    many = pa.table({"ts": range(1000), "type": ["A", "B"] * 500, "x": range(1000)})
    verdict = cep.why(
        many, "PATTERN A a => B b", events={"a": 800, "b": 803}, rows=50, time="ts", type="type"
    )
    assert verdict.problems == ("`=>` takes b 801 instead",)


def test_values_of_a_group() -> None:
    verdict = ask("PATTERN A a ; B+ b ; C c WHERE b.x > 5 WITHIN 9", {"b": [1, 2]})
    assert verdict.conditions == (CheckedCondition("b.x > 5", "false", (("b.x", "5, 7"),)),)
    assert verdict.change == "b.x >= 5 instead of b.x > 5"


def test_a_group_that_is_too_small() -> None:
    data = events((1, "A", 1, 1), (2, "A", 1, 2), (3, "B", 1, 3), (4, "C", 1, 9))
    verdict = cep.why(
        data,
        "PATTERN A{3,} a ; B b WITHIN 10",
        events={"a": [0, 1], "b": 2},
        time="ts",
        type="type",
    )
    assert verdict.problems == ("`A{3,} a` needs 3 events, not 2",)


def test_of_many_events_those_that_match_are_taken() -> None:
    """20 × 20 combinations, of which the last one matches."""
    data = pa.table(
        {
            "ts": range(40),
            "type": ["A", "B"] * 20,
            "x": [0] * 38 + [1, 2],
        }
    )
    query = "PATTERN A a => B b WHERE a.x < b.x"
    assert ask(query, {"a": "a.x >= 0", "b": "b.x >= 0"}, data).rows == {"a": (38,), "b": (39,)}
    # Nothing matches: those that lie closest together fail one condition only.
    verdict = ask("PATTERN A a => B b WHERE a.x > b.x", {"a": "a.x = 0", "b": "b.x = 2"}, data)
    assert verdict.rows == {"a": (36,), "b": (39,)}
