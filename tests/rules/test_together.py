"""What is wrong between templates: names that could be others', and columns that don't fit."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.rules.load.files import read

COLUMNS = pa.schema({"ts": pa.int64(), "type": pa.string(), "x": pa.int64()})


# ── names ────────────────────────────────────────────────────────────────────


def test_a_rule_may_be_called_as_what_it_reads_itself() -> None:
    """It reads events in a set, as it does alone."""
    rules = cep.RuleSet.of({"B": "INTO B PATTERN A a ; B b WITHIN 5"})
    events = pa.table({"ts": [1, 2], "type": ["A", "B"], "x": [0, 0]})
    assert rules.match(events, time="ts", type="type")["rule"].to_pylist() == ["B"]


def test_names_that_are_no_labels() -> None:
    """Of a rule that is called by its file or by a dict, no other query can read the matches."""
    assert len(cep.RuleSet.of({"A": "PATTERN B b ; C c WITHIN 5", "x": "PATTERN A a"})) == 2


# In the pattern of events without a type, these are aliases, and one is called as a rule is.
BARE = {"large": "INTO large PATTERN a ; b WITHIN 5", "other": "PATTERN small ; large WITHIN 5"}


def test_an_alias_may_be_called_as_a_rule_is() -> None:
    rules = cep.RuleSet.of(BARE)
    assert rules.check(COLUMNS, time="ts") == ()
    assert rules.check() == ()
    events = pa.table({"ts": [1, 2], "type": ["A", "B"], "x": [0, 0]})
    found = rules.match(events, time="ts")["rule"].to_pylist()
    assert sorted(found) == ["large", "other"]


def test_a_stream_of_events_may_be_called_as_a_rule_is() -> None:
    rules = cep.RuleSet.of({**BARE, "large": "INTO large PATTERN small a ; small b WITHIN 5"})
    columns = pa.schema({"ts": pa.int64()})
    assert rules.check({"small": columns, "large": columns}, time="ts") == ()


# ── columns that are carried ─────────────────────────────────────────────────


def template(name: str, **carried: Any) -> cep.RuleSet:
    rows = {"low": [1], **{column: [value] for column, value in carried.items()}}
    return cep.RuleSet.from_template(name, "PATTERN A a WHERE a.x > :low", rows)


def test_columns_of_one_name_and_several_types() -> None:
    sets = template("a", severity="high", since=1), template("b", severity=3, since=2)
    with pytest.raises(cep.RuleSetError) as error:
        sets[0] | sets[1]
    (finding,) = error.value.findings
    assert finding.template == "b"
    assert finding.render().splitlines() == [
        "b: the column `severity` is int64, but string in a",
        "  a carried column has one kind of value in all tables",
    ]


def test_the_tables_are_named(tmp_path: Path) -> None:
    for name, day in (("a", "2026-01-31"), ("b", "soon")):
        (tmp_path / f"{name}.cep").write_text("PATTERN A a WHERE a.x > :low")
        (tmp_path / f"{name}.csv").write_text(f"low,day\n1,{day}\n")
    (finding,) = read(tmp_path).findings
    assert finding.message == f"the column `day` is string, but date32[day] in {tmp_path}/a.csv"
    assert finding.file == f"{tmp_path}/b.csv"


def test_a_column_without_values_fits_all() -> None:
    rules = template("a", since=None) | template("b", since=date(2026, 1, 31)) | template("c")
    events = pa.table({"ts": [1], "type": ["A"], "x": [5]})
    found = rules.match(events, time="ts", type="type").to_pylist()
    since = {row["rule"]: row["since"] for row in found}
    assert since == {"a-1": None, "b-1": date(2026, 1, 31), "c-1": None}


EVENTS = pa.table({"ts": [1], "type": ["A"], "x": [5]})


def carried(values: tuple[pa.Scalar, ...], column: str = "limit") -> tuple[list[Any], pa.DataType]:
    """What matches have, if each value is carried by a table of its own."""
    rules = cep.RuleSet()
    for n, value in enumerate(values):
        rows = pa.table({"low": [1], column: pa.array([value.as_py()], value.type)})
        query = "PATTERN A a WHERE a.x > :low"
        rules = rules | cep.RuleSet.from_template(f"t{n}", query, rows)
    found = rules.match(EVENTS, time="ts", type="type").sort_by("rule")
    return found[column].to_pylist(), found[column].type


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (pa.scalar(1, pa.int32()), pa.scalar(2, pa.int64()), pa.int64()),
        (pa.scalar(1, pa.int64()), pa.scalar(2.5, pa.float64()), pa.float64()),
        (pa.scalar(1.5, pa.float32()), pa.scalar(2, pa.int64()), pa.float64()),
        (pa.scalar("a", pa.string()), pa.scalar("b", pa.large_string()), pa.large_string()),
    ],
)
def test_numbers_and_texts_of_several_widths_are_one_column(
    one: pa.Scalar, other: pa.Scalar, both: pa.DataType
) -> None:
    values = [one.as_py(), other.as_py()]
    assert carried((one, other)) == (values, both)
    assert carried((other, one)) == (values[::-1], both)


def test_three_tables_have_the_widest_type() -> None:
    values = pa.scalar(1, pa.int32()), pa.scalar(2, pa.int64()), pa.scalar(0.5)
    assert carried(values) == ([1, 2, 0.5], pa.float64())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.scalar("a"), pa.scalar(b"b")),
        (pa.scalar(date(2026, 1, 31)), pa.scalar(1)),
        (pa.scalar(True), pa.scalar(1)),
        (pa.scalar(["a"]), pa.scalar("a")),
    ],
)
def test_kinds_that_do_not_fit_into_one_column(one: pa.Scalar, other: pa.Scalar) -> None:
    with pytest.raises(cep.RuleSetError, match="the column `limit` is "):
        carried((one, other))


def test_an_integer_that_no_fraction_is_equal_to() -> None:
    with pytest.raises(cep.DataError, match=r"a carried column don't fit into one type: .*6393"):
        carried((pa.scalar(2**53 + 5401), pa.scalar(0.5)))


# ── rules that can't be run ──────────────────────────────────────────────────

NESTED = "PATTERN (A a ; (B b ; !D d ; C c)+ ; E e)+ ; A f WITHIN 9"


def test_a_rule_that_no_engine_runs_is_named() -> None:
    rules = cep.RuleSet.of({"right": "PATTERN A a ; B b WITHIN 5", "deep": NESTED})
    with pytest.raises(cep.UnsupportedError, match=r"^deep: a negation in a repeated group"):
        rules.match(EVENTS, time="ts", type="type")


def test_a_rule_that_a_forced_plan_does_not_fit_is_named() -> None:
    query = "PATTERN A a -> B b WHERE b.x > :low WITHIN 5"
    rows = {"rule": ["first", "second"], "low": [1, 2]}
    rules = cep.RuleSet.from_template("pair", query, rows)
    with pytest.raises(cep.PlanError, match=r"^first: the next sequence `->`"):
        rules.match(EVENTS, time="ts", type="type", plan="(a c)")


def test_a_parameter_may_have_another_type_elsewhere() -> None:
    """Only what is carried goes to one column."""
    other = cep.RuleSet.from_template("b", "PATTERN A a WHERE a.name = :low", {"low": ["x"]})
    assert len(template("a") | other) == 2


@pytest.mark.parametrize("name", ["match", "match_start", "match_end"])
def test_columns_that_matches_have(name: str) -> None:
    with pytest.raises(cep.RuleSetError, match=f"the column `{name}` can't be carried"):
        template("a", **{name: 1})
