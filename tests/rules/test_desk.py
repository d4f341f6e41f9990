"""What somebody meets who writes rules day by day: empty tables, typing errors, contradictions."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cepheid as cep

EVENTS = pa.table(
    {
        "ts": [1, 2, 3, 4],
        "type": ["Auth", "Refusal", "Auth", "Refusal"],
        "id": [1, 1, 2, 2],
        "x": [5, 7, 1, 9],
        "land": ["de", "fr", "de", "atm"],
    }
)
OPTIONS: dict[str, Any] = {"time": "ts", "type": "type"}
ABOVE = "PATTERN Auth a WHERE a.x > :low"
NO_ROWS = {"rule": pa.array([], pa.string()), "low": pa.array([], pa.int64())}


# ── sets without rules ──


def test_an_empty_table_has_no_rules_wherever_it_runs() -> None:
    empty = cep.RuleSet.from_template("above", ABOVE, NO_ROWS)
    assert empty.match(EVENTS, **OPTIONS).num_rows == 0
    assert empty.check(EVENTS, **OPTIONS) == ()
    assert str(empty.explain(EVENTS, **OPTIONS)) == "no rules"
    assert empty.funnel(EVENTS, **OPTIONS).silent == ()
    assert empty.profile(EVENTS, **OPTIONS).to_arrow().num_rows == 0
    with pytest.raises(cep.DataError, match="there are no rules: open a session with some"):
        empty.open(EVENTS.schema, **OPTIONS)
    both = empty | cep.RuleSet.of({"any": "PATTERN Auth a"})
    assert both.open(EVENTS.schema, **OPTIONS).push(EVENTS).num_rows == 2
    assert both.match(iter(EVENTS.to_batches()), **OPTIONS).read_all().num_rows == 2


def test_a_table_is_emptied_under_watch(tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "above.cep").write_text(ABOVE)
    (folder / "above.csv").write_text("rule,low\none,1\ntwo,2\n")
    (folder / "other.cep").write_text("PATTERN Refusal r")
    live, told = cep.LiveRules(str(tmp_path / "versions")), list[Any]()
    watch = cep.Watch(folder, live, EVENTS, cep.Options(**OPTIONS), tell=told.append)
    watch.look()
    (folder / "above.csv").write_text("rule,low\n")
    watch.look()
    assert (told[-1].removed, told[-1].findings) == (("one", "two"), ())
    assert list(live.rules()) == ["other"]
    (folder / "above.csv").write_text("rule,low\nthree,3\n")
    watch.look()
    assert (told[-1].added, told[-1].findings) == (("three",), ())


def test_a_table_without_a_first_line(tmp_path: Path) -> None:
    (tmp_path / "above.cep").write_text(ABOVE)
    (tmp_path / "above.csv").write_text("")
    with pytest.raises(cep.RuleSetError, match="its first line says what the columns are called"):
        cep.RuleSet.load(tmp_path)


# ── wrong values ──


@pytest.mark.parametrize(("count", "wrong"), [(3, 1), (5, 2), (10, 4)])
def test_a_cell_spoils_its_row_only(tmp_path: Path, count: int, wrong: int) -> None:
    """What is compared by order with numbers are numbers, however few rows there are."""
    (tmp_path / "above.cep").write_text(ABOVE)
    lines = (f"r{n},{'some' if n < wrong else n}\n" for n in range(count))
    (tmp_path / "above.csv").write_text("rule,low\n" + "".join(lines))
    with pytest.warns(UserWarning, match="the rule is left out"):
        rules = cep.RuleSet.load(tmp_path, errors="skip")
    assert list(rules) == [f"r{n}" for n in range(wrong, count)]
    assert [finding.rows for finding in rules.skipped] == [tuple(range(1, wrong + 1))]
    above = [n for n in range(wrong, count) if n < 5]  # of the two events, one has 5 and one 1
    assert rules.match(EVENTS, **OPTIONS).num_rows == len(above)


def test_codes_that_are_compared_for_equality_stay_texts(tmp_path: Path) -> None:
    (tmp_path / "shop.cep").write_text("PATTERN Auth a WHERE a.land = :code")
    (tmp_path / "shop.csv").write_text("rule,code\na,4711\nb,5812\nc,A33\n")
    rules = cep.RuleSet.load(tmp_path)
    assert [rules[name].params["code"] for name in "abc"] == ["4711", "5812", "A33"]


def test_values_of_two_kinds_in_a_list() -> None:
    with pytest.raises(cep.DataError, match="row 3: `low` is 'x', and 1 is before it"):
        cep.RuleSet.from_template("above", ABOVE, [{"low": 1}, {"low": None}, {"low": "x"}])


def test_a_wrong_regular_expression_is_that_of_its_row() -> None:
    with pytest.raises(cep.RuleSetError, match=r"row 2: `like` is no regular expression"):
        cep.RuleSet.from_template(
            "texts", "PATTERN Auth a WHERE a.land RLIKE :like", {"like": ["d.", "(d", None]}
        )


RUNS: dict[str, Callable[[cep.RuleSet], Any]] = {
    "match": lambda rules: rules.match(EVENTS, **OPTIONS),
    "iterator": lambda rules: rules.match(iter(EVENTS.to_batches()), **OPTIONS),
    "open": lambda rules: rules.open(EVENTS.schema, **OPTIONS),
    "explain": lambda rules: rules.explain(EVENTS, **OPTIONS),
    "compile": lambda rules: rules.compile(EVENTS, **OPTIONS),
    "profile": lambda rules: rules.profile(EVENTS, **OPTIONS),
    "funnel": lambda rules: rules.funnel(EVENTS, **OPTIONS),
}


@pytest.mark.parametrize("run", RUNS)
def test_errors_name_the_row(run: str) -> None:
    rules = cep.RuleSet.from_template(
        "soon", "PATTERN Auth a ; Refusal b WITHIN :long", {"long": [1, 0]}
    )
    with pytest.raises(cep.RuleSetError, match="with the values of soon, row 2"):
        RUNS[run](rules)


# ── rules that can't match ──


def test_contradictions_in_rows_of_a_table() -> None:
    between = cep.RuleSet.from_template(
        "between",
        "PATTERN Auth a ; Refusal b WHERE a.x > :low AND a.x < :high WITHIN 5",
        {"low": [1, 9, 8, 2], "high": [5, 3, 4, None]},
    )
    message = r"between-2 \(and 2 more .*\): the rule matches nothing: no event can fulfill"
    with pytest.warns(UserWarning, match=message):
        assert between.match(EVENTS, **OPTIONS).num_rows == 0
    with pytest.warns(UserWarning, match=message):
        between.open(EVENTS.schema, **OPTIONS)
    right = between.select("between-1")
    assert right.match(EVENTS.slice(1), **OPTIONS).num_rows == 0  # not now, but it could


def test_misspelled_types_are_known_from_data_or_named() -> None:
    rules = cep.RuleSet.of({"typo": "PATTERN Auht a", "new": "PATTERN Transfer t"})
    with pytest.warns(UserWarning, match="typo: no event is of type `Auht`; did you mean `Auth`"):
        assert rules.check(EVENTS, **OPTIONS) == ()
    with pytest.warns(UserWarning, match="new: .*`Transfer`; did you mean `Transfers`"):
        rules.check(EVENTS.schema, types=["Transfers", "Auht"], **OPTIONS)
    assert rules.check(EVENTS.schema, **OPTIONS) == ()


# ── explain, joining ──


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("a.land NOT IN ('atm', 'x')", "land NOT IN ('atm', 'x')"),
        ("a.land IN ('atm', 'x')", "land IN ('atm', 'x')"),
        ("a.x <> 4", "x <> 4"),
        ("a.x NOT BETWEEN 3 AND 7", "((x < 3) OR (x > 7))"),
        ("(a.x > 3 OR a.land = 'fr')", "((x > 3) OR (land = 'fr'))"),
    ],
)
def test_shared_conditions_are_shown_as_written(written: str, shown: str) -> None:
    rules = cep.RuleSet.of(
        {
            f"r{n}": f"PATTERN Auth a ; Refusal b WHERE {written} AND b.x > {n} WITHIN 5"
            for n in range(3)
        }
    )
    lines = str(rules.explain(EVENTS, **OPTIONS)).splitlines()
    assert lines[1].endswith("6 of the rules, 4 when equal ones are merged")
    assert lines[-1] == f"  3 rules share step 1: type = 'Auth' AND {shown}"


def test_of_lists_that_overlap_each_rule_has_its_own() -> None:
    rules = cep.RuleSet.of(
        {
            "two": "PATTERN Auth a ; Refusal b WHERE a.land IN ('de', 'fr') WITHIN 5",
            "three": "PATTERN Auth a ; Refusal b WHERE a.land IN ('de', 'fr', 'it') WITHIN 5",
        }
    )
    shared = [(s.takes, s.rules) for s in rules.explain(EVENTS, **OPTIONS).passes[0].shared]
    assert shared[0] == ("type = 'Auth' AND land IN ('de', 'fr')", 2)


def test_sets_are_joined_in_small_steps() -> None:
    """Rules with labels and values, too: a set that is joined isn't looked at again."""

    def seconds(count: int) -> float:
        singles = [
            cep.RuleSet.of(
                {f"r{n}": f"INTO r{n} PATTERN Auth a WHERE a.x > {n}"},
                carried={f"r{n}": {"severity": "high"}},
            )
            for n in range(count)
        ]
        begin, joined = time.process_time(), cep.RuleSet()
        for single in singles:
            joined = joined | single
        assert len(joined) == count
        return time.process_time() - begin

    seconds(20)
    assert seconds(400) < 30 * seconds(40) + 0.5  # 100 times as long, if each join saw them all


@pytest.mark.parametrize("backwards", [False, True])
def test_sets_that_concern_each_other_are_checked_together(backwards: bool) -> None:
    one = cep.RuleSet.of({"a": "INTO X PATTERN Y y ; Auth b WITHIN 5"}, carried={"a": {"by": 1}})
    for other, message in (
        (cep.RuleSet.of({"b": "INTO Y PATTERN X x ; Auth b WITHIN 5"}), "in a circle"),
        (cep.RuleSet.of({"b": "PATTERN Auth x"}, carried={"b": {"by": "me"}}), "column `by` is"),
    ):
        with pytest.raises(cep.RuleSetError, match=message):
            other | one if backwards else one | other
