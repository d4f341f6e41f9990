from __future__ import annotations

import pickle
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import cepheid as cep
from cepheid.rules.template import Template, problems

QUERY = cep.Query("PATTERN A a ; B b WHERE a.x > :low AND b.c = :country WITHIN :w", "big.cep")
COLUMNS: dict[str, list[Any]] = {
    "rule": ["one", "two", "three"],
    "low": [1, 2, None],
    "country": ["DE", None, "FR"],
    "w": [5, 5, 9],
    "severity": ["high", None, "low"],
}


def template(**changed: Any) -> Template:
    return Template("big", QUERY, pa.table({**COLUMNS, **changed}), "big.csv")


def without(*names: str) -> Template:
    kept = {name: values for name, values in COLUMNS.items() if name not in names}
    return Template("big", QUERY, pa.table(kept), "big.csv")


def found(given: Template) -> list[str]:
    return [finding.render() for finding in problems(given)]


class TestRules:
    def test_a_row_is_a_rule(self) -> None:
        rule = template().rule(1)
        assert (rule.name, rule.query, rule.origin) == ("two", QUERY, "big.csv, row 2")
        assert rule.params == {"low": 2, "country": None, "w": 5}
        assert rule.carried == {"severity": None}

    def test_rules_without_names_are_numbered(self) -> None:
        assert without("rule").names.to_pylist() == ["big-1", "big-2", "big-3"]

    def test_names_are_text(self) -> None:
        assert template(rule=[7, 8, 9]).names.to_pylist() == ["7", "8", "9"]
        coded = pa.array(["a", "b", "a"]).dictionary_encode()
        assert template(rule=coded).names.to_pylist() == ["a", "b", "a"]
        with pytest.raises(cep.DataError, match=r"the column `rule` is list<.*>: names are text"):
            template(rule=[[1], [2], [3]])

    def test_a_query_alone_is_one_rule(self) -> None:
        query = cep.Query("PATTERN A", "some.cep", line=4)
        alone = Template("a", query)
        assert len(alone) == 1
        assert alone.rule(0) == cep.Rule("a", query, {}, {}, "some.cep:4")

    def test_a_part_keeps_names_and_numbers(self) -> None:
        kept = without("rule").where(pa.chunked_array([[False, True, True]]))
        assert [kept.rule(i).name for i in range(len(kept))] == ["big-2", "big-3"]
        again = kept.where(pa.chunked_array([[False, True]]))
        assert (again.rule(0).name, again.rule(0).origin) == ("big-3", "big.csv, row 3")


class TestFingerprint:
    def test_is_of_the_contents(self, tmp_path: Path) -> None:
        table = template().rows
        assert table is not None
        pa.parquet.write_table(table, tmp_path / "t.parquet")
        same = [
            pickle.loads(pickle.dumps(table)),
            pa.Table.from_pylist(table.to_pylist(), table.schema),
            pa.concat_tables([table.slice(0, 1), table.slice(1)]),
            pa.concat_tables([table, table]).slice(3),
            pa.parquet.read_table(tmp_path / "t.parquet"),
            table.select(list(reversed(table.column_names))),
        ]
        for rows in same:
            other = Template("big", QUERY, rows, "another.csv")
            assert other == template() and hash(other) == hash(template())

    def test_what_null_hides_is_no_content(self) -> None:
        hidden = pa.array([1, 2, 99], mask=pd.array([False, False, True]).to_numpy(bool))
        assert template(low=hidden) == template()

    @pytest.mark.parametrize(
        "changed",
        [
            {"low": [1, 3, None]},
            {"low": [1, None, 2]},
            {"low": [1.0, 2.0, None]},
            {"severity": ["high", "", "low"]},
            {"rule": ["one", "two", "four"]},
            {"more": [1, 2, 3]},
        ],
        ids=str,
    )
    def test_any_change_shows(self, changed: dict[str, Any]) -> None:
        assert template(**changed) != template()

    def test_the_query_counts_but_not_how_it_is_written(self) -> None:
        rows = template().rows
        spaced = cep.Query(QUERY.text.replace(" ", "\n"), "elsewhere.cep", line=9)
        other = cep.Query(QUERY.text.replace("A a", "C a"))
        assert Template("big", spaced, rows) == template()
        assert Template("big", other, rows) != template()
        assert Template("bigger", QUERY, rows) != template()

    def test_is_kept_by_pickling(self) -> None:
        copy = pickle.loads(pickle.dumps(template()))
        assert copy == template()
        assert copy.rule(0) == template().rule(0)


class TestProblems:
    def test_none(self) -> None:
        assert found(template()) == []
        assert found(Template("a", cep.Query("PATTERN A"))) == []

    def test_a_parameter_without_a_column(self) -> None:
        renamed = Template("big", QUERY, pa.table({"low": [1], "contry": ["DE"]}), "big.csv")
        first, second = found(renamed)
        assert first.splitlines() == [
            "CEP206: the parameter `:country` has no column in big.csv",
            "  big.cep:1:46",
            "  1 | PATTERN A a ; B b WHERE a.x > :low AND b.c = :country WITHIN :w",
            "    |                                              ^^^^^^^^ did you mean `contry`?",
        ]
        assert "`:w` has no column in big.csv" in second
        assert "^^ add a column `w` to the table" in second

    def test_a_parameter_without_a_table(self) -> None:
        finding = found(Template("big", QUERY))[0]
        assert "CEP206: the parameter `:low` has no value" in finding
        assert "give it a table: `big.csv`, with a column `low`" in finding

    def test_names_that_are_none(self) -> None:
        assert found(template(rule=["one", None, " "])) == [
            "big.csv, rows 2 and 3: the rule has no name\n"
            "  write one in column `rule`, or leave the column out to have rules numbered"
        ]

    def test_a_column_that_is_there_twice(self) -> None:
        rows = template().rows
        assert rows is not None
        twice = Template("big", QUERY, rows.append_column("low", rows["low"]), "big.csv")
        assert found(twice) == ["big.csv: there are several columns called `low`\n  keep one"]

    def test_a_carried_column_of_the_output(self) -> None:
        assert found(template(match_end=[1, 2, 3])) == [
            "big.csv: the column `match_end` can't be carried: the matches have a column of that "
            "name\n  call it something else"
        ]


class TestRowsOfAnyKind:
    @pytest.mark.parametrize(
        "rows",
        [
            pa.table(COLUMNS),
            pa.table(COLUMNS).to_pandas(),
            pl.DataFrame(COLUMNS),
            pl.DataFrame(COLUMNS).lazy(),
            pa.table(COLUMNS).to_pylist(),
            COLUMNS,
            iter(pa.table(COLUMNS).to_batches(max_chunksize=1)),
        ],
        ids=lambda rows: type(rows).__module__ + "." + type(rows).__name__,
    )
    def test_in_python(self, rows: Any) -> None:
        rules = cep.RuleSet.from_template("big", QUERY, rows)
        assert [rule.params for rule in rules.values()] == [
            {"low": 1, "country": "DE", "w": 5},
            {"low": 2, "country": None, "w": 5},
            {"low": None, "country": "FR", "w": 9},
        ]

    def test_of_csv(self, tmp_path: Path) -> None:
        (tmp_path / "t.cep").write_text("PATTERN A a WHERE a.x > :low AND a.c = :c AND a.d = :d")
        (tmp_path / "t.csv").write_text('rule,low,c,d\n007,1,NA,2024-05-01\n008,,"",\n')
        first, second = cep.RuleSet.load(tmp_path).values()
        assert first.name == "007"
        assert first.params == {"low": 1, "c": "NA", "d": date(2024, 5, 1)}
        assert second.params == {"low": None, "c": "", "d": None}

    def test_of_codes_in_csv(self, tmp_path: Path) -> None:
        """Digits are a number, unless that would lose some of them."""
        (tmp_path / "t.cep").write_text("PATTERN A a WHERE a.x = :a AND a.y = :b AND a.z = :c")
        (tmp_path / "t.csv").write_text("a,b,c\n5411,0742,0\n,5411,-10\n0,,20")
        assert [rule.params for rule in cep.RuleSet.load(tmp_path).values()] == [
            {"a": 5411, "b": "0742", "c": 0},
            {"a": None, "b": "5411", "c": -10},
            {"a": 0, "b": None, "c": 20},
        ]


def test_a_rule_takes_what_its_values_take() -> None:
    """Idle rules are numbers in columns, not objects."""
    count = 20_000
    columns = {f"c{i}": pa.array(range(count)) for i in range(30)}
    names = pa.array([f"rule-{i}" for i in range(count)])
    rules = cep.RuleSet.from_template(
        "many", "PATTERN A a WHERE a.x > :c0", {**columns, "rule": names}
    )
    assert sum(template.rows.nbytes for template in rules.templates if template.rows) < 300 * count
    assert len(pickle.dumps(rules)) < 300 * count
