"""Rules in pieces: what shares steps stays together, and every rule is in one of them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cepheid.engine.attribution.json_rows import alert_schema
from cepheid.options import Options, Placement
from cepheid.rules import RuleSet
from cepheid.rules.compile.compiled_rules import CompiledRules, compile_rules
from cepheid.rules.placement.places import Ground
from cepheid.rules.placement.split import divide, passes_of
from cepheid.rules.run.process import run
from tests.corpus.reader import table
from tests.examples import examples
from tests.rules.strategies import Set, sets
from tests.rules.test_batch import expected, rule_set

COLUMNS = pa.schema(
    {"ts": pa.int64(), "type": pa.string(), "card": pa.int64(), "x": pa.int64(), "s": pa.string()}
)
OPTIONS = Options("ts", type="type")


def compiled(rules: RuleSet) -> CompiledRules:
    return compile_rules(rules.templates, COLUMNS, OPTIONS, by_key=True)


def pieces(rules: RuleSet, cores: int) -> list[list[int]]:
    """The rules of each piece, by their places in the set."""
    (division,) = divide(compiled(rules).groups, Ground(cores, cores), "split")
    (numbers,) = division.group.numbers
    return sorted(sorted(numbers[own].tolist()) for own in division.rules)


def test_rules_that_begin_alike_are_one_piece() -> None:
    rules = RuleSet.from_template(
        "pair",
        "PATTERN A a ; B b WHERE a.x = :one AND b.x = :other WITHIN 5",
        {"one": [7, 8, 7, 8, 9, 9], "other": [1, 2, 3, 4, 5, 6]},
    )
    assert pieces(rules, 3) == [[0, 2], [1, 3], [4, 5]]


def test_what_is_more_than_a_share_is_cut_anyway() -> None:
    rules = RuleSet.from_template(
        "pair",
        "PATTERN A a ; B b WHERE a.x < 7 AND b.x > :low WITHIN 5",
        {"low": [1, 2, 3, 4, 5, 6]},
    )
    assert pieces(rules, 1) == [[0, 1, 2, 3, 4, 5]]
    halves = pieces(rules, 2)
    assert [len(half) for half in halves] == [3, 3]
    assert sorted(halves[0] + halves[1]) == [0, 1, 2, 3, 4, 5]


def test_the_paths_of_a_rule_stay_together() -> None:
    rules = RuleSet.from_template(
        "pair",
        "PATTERN A a ; B b WHERE (a.x = :one OR a.x = :other) AND b.x = 1 WITHIN 5",
        {"one": [1, 2, 5], "other": [2, 3, 6]},
    )
    assert pieces(rules, 2) == [[0, 1], [2]]


def test_loads_are_what_rows_are_tried_with() -> None:
    rules = RuleSet.from_template(
        "pair",
        "PATTERN A a ; !C c ; B b WHERE a.x = 3 AND b.x BETWEEN :low AND 9 AND c.x = 1 WITHIN 5",
        {"low": [1, 2]},
    )
    (division,) = divide(compiled(rules).groups, Ground(1, 1))
    (piece,) = division.load.pieces
    assert (piece.rules, piece.nodes, piece.kinds) == (2, 3, frozenset("ABC"))
    # A third of the rows are of each type. Of a type, one in a hundred has a value, and a third is
    # in a range. Both rules have the first step in common.
    assert piece.cost == pytest.approx((1 / 100 + 2 * 1 / 3) / 3)


def test_rules_without_a_type_read_all_rows() -> None:
    rules = RuleSet.of({"pair": "PATTERN a ; b WHERE a.x > 3 AND b.x > 3 WITHIN 5"})
    options = Options("ts")
    groups = compile_rules(rules.templates, COLUMNS, options, by_key=True).groups
    (division,) = divide(groups, Ground(1, 1))
    (piece,) = division.load.pieces
    assert piece.kinds == {""}
    assert piece.cost == pytest.approx(2 / 3)


def test_rules_that_nothing_satisfies_are_placed() -> None:
    rules = RuleSet.from_template(
        "never",
        "PATTERN A a ; B b WHERE a.x < :p AND b.x = :q WITHIN 5",
        {"p": [None, 1], "q": [1, None]},
    )
    for placement in ("auto", "split"):
        (one,) = passes_of(compiled(rules).groups, Ground(2, 2, 10), placement)
        assert all(len(part.merged.branches) == 1 for part in one.parts)


@settings(
    max_examples=examples("rule sets on Spark"),
    suppress_health_check=list(HealthCheck),
    deadline=None,
)
@given(
    sets(), st.sampled_from(["auto", "keys", "one", "split"]), st.integers(1, 4), st.integers(1, 40)
)
def test_every_rule_finds_what_it_finds_alone_however_it_is_placed(
    drawn: Set, placement: Placement, cores: int, length: int
) -> None:
    schema = drawn.schema
    options = Options("ts", type="type", tie=drawn.tie, jit=False)
    rules, events = rule_set(drawn), table(schema, drawn.events)
    whole = compile_rules(rules.templates, events.schema, options, by_key=True)
    placed = passes_of(whole.groups, Ground(cores, cores, length), placement)
    parts = tuple(part for one in placed for part in one.parts)
    spread = replace(whole, groups=parts)
    output = alert_schema(whole.rules, events.schema.field("ts").type)
    result: dict[str, Counter[str]] = {name: Counter() for name in rules}
    for batch in run(spread, events, output, options):
        for row in batch.to_pylist():
            found = [row["match_start"], row["match_end"], json.loads(row["match"])]
            result[row["rule"]][json.dumps(found, sort_keys=True)] += 1
    for name, rule in rules.items():
        assert result[name] == expected(rule, schema, drawn.events), (name, rule.params)
