"""`x IN :list`: the list is the parameter's value."""

from __future__ import annotations

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.errors import QueryError

EVENTS = pa.table({"ts": [1, 2, 3, 4], "x": [22, 80, None, 443], "s": ["a", "b", "c", "d"]})


def found(query: str, **params: object) -> list[int]:
    answer = cep.match(EVENTS, query, time="ts", params=params)
    return [row["ts"] for row in answer.to_pylist()]


@pytest.mark.parametrize(
    "ports, expected",
    [([22, 443], [1, 4]), ((80,), [2]), ({22.0}, [1]), ([None, 22], [1])],
)
def test_one_of_the_values(ports: object, expected: list[int]) -> None:
    assert found("PATTERN a WHERE a.x IN :ports RETURN a.ts", ports=ports) == expected


@pytest.mark.parametrize(
    "ports, expected", [([22, 443], [2]), ([], [1, 2, 3, 4]), ([None, 22], [])]
)
def test_none_of_the_values(ports: object, expected: list[int]) -> None:
    assert found("PATTERN a WHERE a.x NOT IN :ports RETURN a.ts", ports=ports) == expected


def test_one_of_nothing() -> None:
    with pytest.warns(UserWarning, match="the query matches nothing"):
        assert found("PATTERN a WHERE a.x IN :ports RETURN a.ts", ports=[]) == []


def test_a_list_among_others() -> None:
    query = "PATTERN a WHERE a.s IN ('d', :some) RETURN a.ts"
    assert found(query, some=["a", "b"]) == [1, 2, 4]
    assert found(query, some="a") == [1, 4]


def test_between_events() -> None:
    query = "PATTERN a ; b WHERE a.x IN :ports AND b.x NOT IN :ports WITHIN 10 RETURN a.ts"
    assert found(query, ports=[22]) == [1, 1]


@pytest.mark.parametrize(
    "ports, message",
    [
        (["x"], "CEP210: can't compare `a.x` (integer) with `:ports` (string)"),
        ([{}], "CEP207: `:ports` has a dict, which no predicate can read"),
    ],
)
def test_lists_that_do_not_fit(ports: object, message: str) -> None:
    with pytest.raises(QueryError) as error:
        found("PATTERN a WHERE a.x IN :ports", ports=ports)
    assert str(error.value).splitlines()[0] == message


def test_a_list_elsewhere() -> None:
    with pytest.raises(QueryError, match="CEP207: `:ports` is a list, which no predicate can read"):
        found("PATTERN a WHERE a.x = :ports", ports=[1])


QUERY = "PATTERN a WHERE a.x IN :ports AND a.s <> :s RETURN a.ts"
ROWS = pa.table({"ports": [[22, 80], [443], [22, 80], []], "s": ["a", "x", "x", "x"]})


def test_every_rule_has_its_own_list() -> None:
    rules = cep.RuleSet.from_template("p", QUERY, ROWS)
    answer = rules.match(EVENTS, time="ts").to_pylist()
    assert [(row["match_end"], row["rule"]) for row in answer] == [
        (1, "p-3"),
        (2, "p-1"),
        (2, "p-3"),
        (4, "p-2"),
    ]
