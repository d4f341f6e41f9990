from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cepheid as cep

PAIR = "PATTERN A a ; B b WITHIN 5"
BIG = "PATTERN A a ; B b WHERE b.x > :low WITHIN 5"
ROWS: dict[str, list[Any]] = {
    "rule": ["de", "fr", "us"],
    "low": [1, 2, 3],
    "tags": [["a"], [], None],
}


def mixed() -> cep.RuleSet:
    return cep.RuleSet.of({"pair": PAIR}) | cep.RuleSet.from_template("big", BIG, ROWS)


def test_is_a_mapping() -> None:
    rules = mixed()
    assert isinstance(rules, Mapping)
    assert list(rules) == list(rules.keys()) == ["pair", "de", "fr", "us"]
    assert len(rules) == 4
    assert rules["us"] == cep.Rule(
        "us", cep.Query(BIG, "big"), {"low": 3}, {"tags": None}, "big, row 3"
    )
    assert [rule.name for rule in rules.values()] == list(rules)
    assert "fr" in rules and "f" not in rules and 5 not in rules
    assert rules.get("f") is None and rules.get("fr") == rules["fr"]


def test_an_unknown_name() -> None:
    with pytest.raises(KeyError, match=r"there is no rule `piar`; did you mean `pair`\?"):
        mixed()["piar"]
    with pytest.raises(KeyError, match=r"there is no rule `xyz`.$"):
        mixed()["xyz"]


@pytest.mark.parametrize(
    "wrong", ["card-velocty-007312", "crd-velocity-007312", "CARD-velocity-07312"]
)
def test_an_unknown_name_among_very_many(wrong: str) -> None:
    names = [f"card-velocity-{i:06d}" for i in range(20_000)]
    rules = cep.RuleSet.from_template("many", PAIR, {"rule": names})
    with pytest.raises(KeyError, match=r"did you mean `card-velocity-\d*7312`"):
        rules[wrong]
    with pytest.raises(KeyError, match="there is no rule `§`"):
        rules["§"]


def test_is_immutable() -> None:
    field = "templates"
    with pytest.raises(FrozenInstanceError):
        setattr(mixed(), field, ())


def test_is_a_value() -> None:
    rules = mixed()
    assert rules["de"].params == {"low": 1}  # what is found out on the way is not a part of it
    copy = pickle.loads(pickle.dumps(rules))
    assert copy == rules and hash(copy) == hash(rules)
    assert copy["us"] == rules["us"]
    assert len(pickle.dumps(rules)) == len(pickle.dumps(mixed()))
    big, pair = cep.RuleSet.from_template("big", BIG, ROWS), cep.RuleSet.of({"pair": PAIR})
    assert big | pair == rules
    assert big != rules and big != cep.RuleSet.from_template("big", BIG, {**ROWS, "low": [1, 2, 4]})
    assert {rules: 1}[copy] == 1
    assert rules != dict(rules)


def test_printing_is_short() -> None:
    assert repr(mixed()) == "RuleSet(4 rules: pair, big × 3)"
    assert repr(cep.RuleSet()) == "RuleSet(0 rules)"
    many = cep.RuleSet.of({f"r{i}": PAIR for i in range(1200)})
    assert repr(many) == "RuleSet(1,200 rules: r0, r1, r2, r3, 1196 more)"
    five = cep.RuleSet.of({name: PAIR for name in "abcde"})
    assert repr(five) == "RuleSet(5 rules: a, b, c, d, e)"


class TestSetsFromSets:
    def test_parts(self) -> None:
        rules = mixed()
        assert list(rules.select(["us", "pair"])) == ["pair", "us"]
        assert list(rules.without({"us", "pair"})) == ["de", "fr"]
        assert list(rules.select("de")) == ["de"]
        assert list(rules.without("pair")) == ["de", "fr", "us"]
        assert list(rules.without(rules)) == []
        assert rules.select(rules) == rules
        assert rules.select(["us"])["us"] == rules["us"]

    def test_numbered_rules_keep_their_numbers(self) -> None:
        rules = cep.RuleSet.from_template("big", BIG, {"low": [1, 2, 3]})
        assert rules.without(["big-1"])["big-3"] == rules["big-3"]

    def test_unknown_names(self) -> None:
        for part in (mixed().select, mixed().without):
            with pytest.raises(KeyError, match="did you mean `pair`"):
                part(["de", "piar"])

    def test_the_right_one_counts(self) -> None:
        other = cep.RuleSet.of({"fr": PAIR, "new": PAIR})
        both = mixed() | other
        assert sorted(both) == ["de", "fr", "new", "pair", "us"]
        assert both["fr"].query.text == PAIR
        assert both["fr"].params == {}

    def test_two_tables_of_one_template(self) -> None:
        one = cep.RuleSet.from_template("big", BIG, {"rule": ["a", "b"], "low": [1, 2]})
        two = cep.RuleSet.from_template("big", BIG, {"rule": ["b", "c"], "low": [3, 4]})
        assert {n: rule.params["low"] for n, rule in (one | two).items()} == {
            "a": 1,
            "b": 3,
            "c": 4,
        }


class TestErrors:
    def test_all_queries_are_looked_at(self) -> None:
        with pytest.raises(cep.RuleSetError) as error:
            cep.RuleSet.of({"a": "PATERN A", "fine": PAIR, "b": "PATTERN A a ; ", "c": BIG})
        places = [f.diagnostic.source.name for f in error.value.findings if f.diagnostic]
        assert places == ["a", "b", "c"]
        copy = pickle.loads(pickle.dumps(error.value))
        assert (str(copy), copy.findings) == (str(error.value), error.value.findings)

    def test_of_a_template(self) -> None:
        with pytest.raises(cep.RuleSetError, match="big:1:8"):
            cep.RuleSet.from_template("big", "PATTERN", ROWS)
        with pytest.raises(cep.RuleSetError, match="the name `a` is taken: row 1 has it"):
            cep.RuleSet.from_template("big", BIG, {"rule": ["a", "a"], "low": [1, 2]})

    def test_values_for_all(self) -> None:
        rules = cep.RuleSet.of({"a": BIG, "b": PAIR}, {"low": 5})
        assert (rules["a"].params, rules["b"].params) == ({"low": 5}, {})


def test_optional_conditions_are_written_with_null() -> None:
    query = """
        PATTERN A a ; B b
        WHERE b.x > :low AND (:country IS NULL OR a.country = :country)
        WITHIN :w RETURN a.ts AS a, b.ts AS b"""
    rows = {"rule": ["any", "de"], "low": [1, 1], "country": [None, "DE"], "w": [10, 10]}
    rules = cep.RuleSet.from_template("big", query, rows)
    events = pa.table(
        {
            "ts": [1, 2, 3],
            "type": ["A", "A", "B"],
            "country": ["DE", "FR", "DE"],
            "x": [0, 0, 2],
        }
    )
    assert rules.check(events, time="ts", type="type") == ()

    def pairs(name: str) -> list[tuple[int, int]]:
        rule = rules[name]
        found = rule.query.match(events, time="ts", type="type", params=rule.params)
        return [(row["a"], row["b"]) for row in found.to_pylist()]

    assert sorted(pairs("any")) == [(1, 3), (2, 3)]
    assert pairs("de") == [(1, 3)]


def test_a_set_loaded_from_files_is_the_set_written_in_python(tmp_path: Path) -> None:
    (tmp_path / "all.cep").write_text(f"INTO pair {PAIR}\nINTO big {BIG}")
    (tmp_path / "big.csv").write_text("rule,low\nde,1\nfr,2")
    written = cep.RuleSet.of({"pair": f"INTO pair {PAIR}"}) | cep.RuleSet.from_template(
        "big", f"INTO big {BIG}", {"rule": ["de", "fr"], "low": [1, 2]}
    )
    assert cep.RuleSet.load(tmp_path) == written


def test_a_rule_needs_a_name() -> None:
    with pytest.raises(cep.RuleSetError, match="the set: a rule has no name"):
        cep.RuleSet.of({"": PAIR})


def test_a_table_without_rows_has_no_rules() -> None:
    events = pa.table({"ts": [1, 2], "type": ["A", "B"], "x": [1, 9]})
    rows = pa.table({"low": pa.array([], pa.int64())})
    empty = cep.RuleSet.from_template("big", BIG, rows)
    assert len(empty) == 0
    assert empty.match(events, time="ts", type="type").num_rows == 0
    both = empty | cep.RuleSet.of({"pair": PAIR})
    assert both.match(events, time="ts", type="type")["rule"].to_pylist() == ["pair"]


def test_many_sets_are_joined_in_linear_time() -> None:
    """Each has been checked by itself: a join checks nothing twice."""
    sets = [cep.RuleSet.of({f"rule {n}": f"PATTERN A a WHERE a.x > {n}"}) for n in range(300)]
    joined = cep.RuleSet()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cepheid.rules.load.files.gathered", None)
        for one in sets:
            joined = joined | one
    assert list(joined) == [f"rule {n}" for n in range(300)]
    assert joined["rule 7"].query.text == "PATTERN A a WHERE a.x > 7"
    assert joined == cep.RuleSet(tuple(t for one in sets for t in one.templates))


def test_joined_sets_still_must_agree() -> None:
    number = cep.RuleSet.of({"a": PAIR}, carried={"a": {"severity": 1}})
    text = cep.RuleSet.of({"b": PAIR}, carried={"b": {"severity": "high"}})
    with pytest.raises(cep.RuleSetError, match="the column `severity` is string, but int64"):
        number | cep.RuleSet.of({"c": PAIR}) | text


def test_an_error_of_a_match_names_the_row() -> None:
    events = pa.table({"ts": [1], "kind": ["A"], "x": [5]})
    rules = cep.RuleSet.from_template(
        "big",
        "PATTERN A a ; A b WHERE a.x > :low WITHIN :w",
        {"rule": ["x", "y"], "low": [1, 2], "w": [5, 0]},
    )
    with pytest.raises(cep.RuleSetError, match="with the values of big, row 2") as caught:
        rules.match(events, time="ts", type="kind")
    assert [finding.rows for finding in caught.value.findings] == [(2,)]


@pytest.mark.parametrize("arrow", [";", "->"])
def test_a_rule_that_matches_nothing_is_warned_of(arrow: str) -> None:
    events = pa.table({"ts": [1], "kind": ["A"], "x": [5]})
    rules = cep.RuleSet.of(
        {
            "never": f"PATTERN A a {arrow} A b WHERE a.x > 5 AND a.x < 3 WITHIN 5",
            "any": "PATTERN A a",
        }
    )
    message = "never: the rule matches nothing: `a.x > 5` and `a.x < 3` can't both be true"
    with pytest.warns(UserWarning, match=message):
        assert rules.match(events, time="ts", type="kind")["rule"].to_pylist() == ["any"]
    explained = str(rules.explain(events, time="ts", type="kind"))
    assert "alone: never (1 rule), since it matches nothing: `a.x > 5`" in explained
