"""A set of rules that was compiled doesn't compile again, here or where a pickle of it is read."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.rules.compile import compilations

EVENTS = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "B"], "id": [1, 1, 1], "x": [5, 7, 1]})
RULES = cep.RuleSet.from_template(
    "rise", "PATTERN A a ; B b WHERE [id] AND b.x > :low WITHIN 5", {"low": [2, 9, 0]}
) | cep.RuleSet.of({"group": "PATTERN A a ; B+ b WHERE [id] WITHIN 5"})
NAMED: dict[str, Any] = {"time": "ts", "type": "type"}


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many templates were compiled each time."""
    counts: list[int] = []
    compile_rules = compilations.compile_rules

    def count(templates: Any, *args: Any) -> Any:
        counts.append(len(templates))
        return compile_rules(templates, *args)

    monkeypatch.setattr(compilations, "compile_rules", count)
    return counts


def fresh() -> cep.RuleSet:
    return cep.RuleSet(RULES.templates)


def test_a_second_run_compiles_nothing(compiled: list[int]) -> None:
    rules = fresh()
    first = rules.match(EVENTS, **NAMED)
    assert rules.match(EVENTS.slice(0, 2), **NAMED).num_rows < first.num_rows
    assert rules.match(EVENTS, **NAMED) == first
    rules.explain(EVENTS.schema, **NAMED)
    assert compiled == [2]


def test_other_columns_and_options_are_compiled_anew(compiled: list[int]) -> None:
    rules = fresh()
    rules.match(EVENTS, **NAMED)
    rules.match(EVENTS, engine="nfa", **NAMED)
    rules.match(EVENTS.append_column("y", [[1, 2, 3]]), **NAMED)
    rules.match(EVENTS, **NAMED)
    assert compiled == [2, 2, 2]


def test_a_pickle_has_what_was_asked_for(compiled: list[int]) -> None:
    rules = fresh()
    made = rules.compile(EVENTS.schema, **NAMED)
    assert made == rules and compiled == [2]
    sent = pickle.loads(pickle.dumps(made))
    assert sent == rules and sent.match(EVENTS, **NAMED) == rules.match(EVENTS, **NAMED)
    assert compiled == [2, 2]  # the set by itself had compiled nothing
    assert len(pickle.dumps(made)) > len(pickle.dumps(rules))  # which keeps it to itself
    pickle.loads(pickle.dumps(rules)).match(EVENTS, **NAMED)
    assert compiled == [2, 2, 2]


def test_only_the_last_few_are_kept(compiled: list[int]) -> None:
    rules = fresh()
    for seconds in range(compilations.KEPT + 1):
        rules.match(EVENTS, params={"other": seconds}, **NAMED)
    rules.match(EVENTS, params={"other": 0}, **NAMED)
    assert len(compiled) == compilations.KEPT + 2
    assert len(rules._kept.kept) == compilations.KEPT
