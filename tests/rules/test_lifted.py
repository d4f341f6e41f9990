"""Written rules that are bound together find what each of them finds alone."""

from __future__ import annotations

import json
import pickle
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cepheid as cep
from cepheid.algebra.expressions import Attribute
from cepheid.algebra.types import Type
from cepheid.options import Limit, Options
from cepheid.rules.compile.compiled_rules import compile_rules
from cepheid.rules.load.lifted import lifted
from cepheid.rules.load.readers import reading
from tests.examples import examples

COLUMNS = pa.schema(
    {
        "ts": pa.int64(),
        "type": pa.string(),
        "id": pa.int64(),
        "x": pa.int64(),
        "y": pa.float64(),
        "s": pa.string(),
        "day": pa.timestamp("us"),
    }
)
OPTIONS = Options("ts", type="type")


def alone(rules: cep.RuleSet, events: pa.Table) -> list[tuple[Any, ...]]:
    """Each rule by itself, as the query that was written."""
    found = []
    for name, rule in rules.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it can never match
            table = cep.match(events, rule.query.text, OPTIONS)
        found += [(name, *row.values()) for row in table.to_pylist()]
    return sorted(found, key=repr)


def together(rules: cep.RuleSet, events: pa.Table) -> list[tuple[Any, ...]]:
    rows = rules.match(events, OPTIONS).to_pylist()
    found = [
        (r["rule"], *json.loads(r["match"]).values(), r["match_start"], r["match_end"])
        for r in rows
    ]
    return sorted(found, key=repr)


def condition(variable: str) -> st.SearchStrategy[str]:
    numbers = st.sampled_from(["0", "1", "2", "-1", "1.5", "0.5", "-0.5", "3"])
    texts = st.sampled_from(["'u'", "'v'", "''", "'a AND b.x = 1'", "'it''s'", '"u"'])
    compared = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "==", "!="])
    return st.one_of(
        st.builds(f"{variable}.{{}} {{}} {{}}".format, st.sampled_from("xyi"), compared, numbers),
        st.builds(f"{variable}.x{{}}{{}}".format, compared, numbers),
        st.builds(f"{variable}.y BETWEEN {{}} AND {{}}".format, numbers, numbers),
        st.builds(f"{variable}.s {{}} {{}}".format, st.sampled_from(["=", "<>", "<"]), texts),
        st.builds(f"{variable}.x IN ({{}}, {{}})".format, numbers, numbers),
        st.builds(f"({variable}.x = {{}} OR {variable}.y > {{}})".format, numbers, numbers),
        st.builds(f"{variable}.x * {{}} > 1".format, numbers),
        st.just(f"NOT {variable}.x = 1"),
        st.just(f"{variable}.s IS NOT NULL"),
    ).map(lambda text: text.replace(".i ", ".id "))


FRAMES = [
    "PATTERN A a ; B b {} WITHIN 6 RETURN a.ts AS a, b.ts AS b",
    "PATTERN A a ; !C n ; B b {} WITHIN 8 RETURN a.ts AS a, b.ts AS b",
    "PATTERN A a -> B b {} WITHIN 6 RETURN a.ts AS a, b.ts AS b",
    "PATTERN A a ; B b {} HAVING a.x < 3 WITHIN 6 RETURN a.ts AS a, b.ts AS b, 'a.x = 1' AS c",
    "PATTERN A a ; B b {} HAVING a.x + b.x > #x WITHIN #w RETURN a.ts AS a, b.ts AS b",
    "PATTERN A a ; B+ b {} HAVING sum(b.x) > #x AND a.s <> '#s' WITHIN #w RETURN a.ts AS a",
    "PATTERN A a -> B b {} HAVING b.y > #x * a.y WITHIN #w RETURN a.ts AS a, b.ts AS b",
]


@st.composite
def texts(draw: st.DrawFn) -> dict[str, str]:
    """Many rules of few frames."""
    found = {}
    for number, frame in enumerate(draw(st.lists(st.sampled_from(FRAMES), min_size=1, max_size=2))):
        variables = ["a", "b", *(["n"] if "!C n" in frame else [])]
        keyed = draw(st.sampled_from([[], ["[id]"], ["a.id = b.id"], ["a.x <= b.x"]]))
        shapes = [condition(v) for v in variables]
        for n in range(draw(st.integers(8, 12))):
            own = draw(st.lists(st.one_of(shapes), max_size=4))
            conditions = draw(st.permutations([*own, *keyed]))
            glue = draw(st.sampled_from([" AND ", "\n  and "]))
            where = f"WHERE {glue.join(conditions)}" if conditions else ""
            label = draw(st.sampled_from(["", f"INTO label{number}x{n}\n"]))
            text = frame.format(where).replace("#w", draw(st.sampled_from(["3", "6 units", "9"])))
            text = text.replace("#x", draw(st.sampled_from(["0", "1", "2.5", "-1"])))
            found[f"rule{number}-{n}"] = label + text.replace("#s", draw(st.sampled_from("uv")))
    return found


@st.composite
def streams(draw: st.DrawFn) -> pa.Table:
    rows = draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "type": st.sampled_from("ABC"),
                    "id": st.sampled_from([0, 1, None]),
                    "x": st.sampled_from([-1, 0, 1, 2, 3, None]),
                    "y": st.sampled_from([-0.5, 0.0, 0.5, 1.5, 2.0, float("nan"), None]),
                    "s": st.sampled_from(["u", "v", "", "it's", "a AND b.x = 1", None]),
                }
            ),
            max_size=12,
        )
    )
    timed = [{"ts": n, "day": None, **row} for n, row in enumerate(rows)]
    return pa.Table.from_pylist(timed, COLUMNS)


@settings(max_examples=examples("lifted rules"), deadline=None)
@given(texts(), streams())
def test_every_rule_finds_what_it_finds_alone(texts: dict[str, str], events: pa.Table) -> None:
    rules = cep.RuleSet.of(texts)
    assert together(rules, events) == alone(rules, events)


# ── what is lifted ───────────────────────────────────────────────────────────


def many(text: Callable[[int], str], count: int = 10) -> cep.RuleSet:
    return cep.RuleSet.of({f"r{n}": text(n) for n in range(count)})


def branches(rules: cep.RuleSet) -> int:
    (group,) = compile_rules(rules.templates, COLUMNS, OPTIONS).groups
    return len(group.numbers)


def test_rules_with_other_constants_are_one_branch() -> None:
    rules = many(lambda n: f"PATTERN A a ; B b WHERE a.x > {n} AND [id] WITHIN 5")
    assert branches(rules) == 1


def test_a_window_inside_a_condition_is_no_clause() -> None:
    rules = many(lambda n: f"PATTERN A a ; B b WHERE a.x > {n} AND (a, b) OCCURS WITHIN 4 WITHIN 5")
    times = [{"ts": t, "type": k, "x": 4} for t, k in ((1, "A"), (4, "B"), (9, "A"), (13, "B"))]
    found = rules.match(pa.Table.from_pylist(times, COLUMNS), OPTIONS)
    assert sorted(found["rule"].to_pylist()) == ["r0", "r1", "r2", "r3"]


def test_rules_with_other_conditions_are_one_branch() -> None:
    rules = many(lambda n: f"PATTERN A a ; B b WHERE {'ab'[n % 2]}.y < {n}.5 AND [id] WITHIN 5")
    assert branches(rules) == 1


def test_what_decides_about_the_shape_is_kept_apart() -> None:
    rules = many(lambda n: f"PATTERN A a {('=>', ';')[n % 2]} B b WHERE a.x > {n} WITHIN 5", 20)
    assert branches(rules) == 2


def test_windows_and_conditions_on_matches_are_one_branch() -> None:
    rules = many(lambda n: f"PATTERN A a ; B b HAVING a.x + b.x > {n} WITHIN {5 + n}", 20)
    assert branches(rules) == 1
    (one,) = lifted(rules.templates)
    assert one.template.query.text.strip() == (
        "PATTERN A a ; B b HAVING a.x + b.x > :p1 WITHIN :p2"
    )


def test_a_constant_that_all_rules_have_stays_one() -> None:
    rules = many(lambda n: f"PATTERN A a ; B b WHERE a.x > {n} HAVING a.y < -0.5 WITHIN 2 hours")
    (one,) = lifted(rules.templates)
    assert one.template.query.text == (
        "PATTERN A a ; B b WHERE a.x > :p1 HAVING a.y < -0.5 WITHIN 7200 seconds"
    )


def test_a_rule_that_can_never_match_finds_nothing_and_harms_no_other() -> None:
    rules = many(lambda n: f"PATTERN A a ; B b WHERE a.x > {n % 3} AND a.x < 2 WITHIN 5")
    events = pa.Table.from_pylist(
        [{"ts": 1, "type": "A", "x": 1}, {"ts": 2, "type": "B", "x": 1}], COLUMNS
    )
    found = rules.match(events, OPTIONS)["rule"].to_pylist()
    assert sorted(found) == ["r0", "r3", "r6", "r9"]


def test_a_constant_of_the_key_is_told_of_all_events() -> None:
    """Else every event would have to be tried with every rule."""
    rules = many(lambda n: f"PATTERN A a ; B b WHERE [id] AND a.id = {n} WITHIN 5")
    (group,) = compile_rules(rules.templates, COLUMNS, OPTIONS).groups
    index = group.merged.index
    key = [c.expression for c in group.merged.columns].index(Attribute("", "id", Type.INTEGER))
    assert (index.lows == index.highs)[index.columns == key].sum() == 20


def test_texts_that_are_moments_are_read_as_such() -> None:
    rules = many(lambda n: f"PATTERN A a ; B b WHERE a.day = '2026-01-0{n + 1}' WITHIN 5", 9)
    events = pa.table(
        {
            "ts": [1, 2],
            "type": ["A", "B"],
            "day": pa.array(["2026-01-03", None]).cast(pa.timestamp("us")),
        }
    )
    assert rules.match(events, OPTIONS)["rule"].to_pylist() == ["r2"]


# ── what a user sees ─────────────────────────────────────────────────────────


def test_each_rule_keeps_its_text_and_its_place() -> None:
    rules = many(lambda n: f"INTO r{n} PATTERN A a ; B b WHERE a.x > {n} WITHIN 5")
    assert rules["r7"].query.text == "INTO r7 PATTERN A a ; B b WHERE a.x > 7 WITHIN 5"
    assert str(rules["r7"].query).splitlines()[2] == "WHERE a.x > 7"
    assert rules["r7"].params == {}
    assert rules["r7"].origin == "r7:1"


def test_sets_are_equal_if_each_rule_is() -> None:
    def text(n: int) -> str:
        return f"PATTERN A a ; B b WHERE a.x > {n} WITHIN 5"

    rules = many(text)
    other = cep.RuleSet()
    for n in range(10):
        other |= cep.RuleSet.of({f"r{n}": text(n)})
    assert rules == other
    assert rules == pickle.loads(pickle.dumps(rules))
    assert rules != many(lambda n: text(n + 1))


def test_a_mistake_is_found_in_every_rule_that_has_it() -> None:
    texts = {f"r{n}": f"PATTERN A a ; B b WHERE a.x > {n} WITHNI 5" for n in range(10)}
    with pytest.raises(cep.RuleSetError) as error:
        cep.RuleSet.of(texts)
    assert [finding.file for finding in error.value.findings] == list(texts)
    assert error.value.findings[3].render().splitlines()[:2] == [
        "CEP103: unexpected `WITHNI`",
        "  r3:1:33",
    ]


def test_rules_that_read_rules_are_found_among_many() -> None:
    texts = {f"r{n}": f"INTO R{n} PATTERN A a ; B b WHERE a.x > {n} WITHIN 5" for n in range(10)}
    texts |= {f"s{n}": f"PATTERN R3 a ; B b WHERE a.x > {n} WITHIN 5" for n in range(10)}
    templates = cep.RuleSet.of(texts).templates
    reads = reading(templates, None, False)
    assert [templates[place].name for place in reads] == [f"s{n}" for n in range(10)]
    assert {templates[p.place].name for names in reads.values() for p in names.values()} == {"r3"}


def test_check_tells_of_the_rules_that_do_not_fit_and_of_no_others() -> None:
    rules = many(lambda n: f"PATTERN A a ; B b WHERE a.day > '2026-{n + 8:02}-01' WITHIN 5")
    found = rules.check(COLUMNS, OPTIONS)
    assert [finding.template for finding in found] == [f"r{n}" for n in range(5, 10)]
    assert found[0].render().splitlines() == [
        "CEP214: `'2026-13-01'` is not a date or timestamp",
        "  r5:1:33",
        "  1 | PATTERN A a ; B b WHERE a.day > '2026-13-01' WITHIN 5",
        "    |                                 ^^^^^^^^^^^^ write it as '2024-05-01 12:30:00'",
    ]


def test_check_tells_of_an_attribute_that_some_rules_name() -> None:
    rules = many(lambda n: f"PATTERN A a ; B b WHERE a.{'x' if n % 4 else 'z'} > 1 WITHIN 5")
    found = rules.check(COLUMNS, OPTIONS)
    assert [finding.template for finding in found] == ["r0", "r4", "r8"]
    assert [finding.rows for finding in found] == [()] * 3


def test_a_rule_that_does_not_fit_is_refused_by_its_own_text() -> None:
    rules = many(lambda n: f"PATTERN A a ; B b WHERE a.{'x' if n else 'z'} > 1 WITHIN 5")
    events = pa.Table.from_pylist([{"ts": 1, "type": "A"}], COLUMNS)
    with pytest.raises(cep.QueryError, match=r"a\.z > 1"):
        rules.match(events, OPTIONS)


def test_a_template_of_written_rules() -> None:
    texts = {"p": "a.x = 1", "q": "a.x = 2 AND a.x <> 3", "r": "a.x = 3 AND b.s = 'u'"}
    rules = cep.RuleSet.of({n: f"PATTERN A a ; B b WHERE {w} WITHIN 5" for n, w in texts.items()})
    (one,) = lifted(rules.templates, fewest=3)
    assert one.places == (0, 1, 2)
    assert one.template.query.text == (
        "PATTERN A a ; B b WHERE (:p1 IS NULL OR a.x <> :p1) AND a.x = :p2"
        " AND (:p3 IS NULL OR b.s = :p3) WITHIN 5"
    )
    assert one.template.rows.to_pydict() == {
        "rule": ["p", "q", "r"],
        "p1": [None, 3, None],
        "p2": [1, 2, 3],
        "p3": [None, None, "u"],
    }


@pytest.mark.parametrize("operator", [";", "=>"])
def test_written_rules_that_share_nothing_after_all_run_once(operator: str) -> None:
    """Twelve values each, in nine lists: too many alternatives for one automaton. A match of rule n
    begins with an even number outside of its list, and ends with the next odd one above n."""
    events = pa.table({"ts": range(40), "type": ["A", "B"] * 20, "x": range(40)})
    rules = cep.RuleSet.of(
        {
            f"rule {n}": f"PATTERN A a {operator} B b WHERE b.x > {n} AND a.x NOT IN "
            f"({', '.join(str(2 * (n + k)) for k in range(12))}) WITHIN 2"
            for n in range(9)
        }
    )
    options = Options("ts", type="type", limit=Limit(total=1000))  # so events aren't dealt
    counts = Counter(rules.match(events, options)["rule"].to_pylist())
    for n in range(9):
        begins = [x for x in range(0, 40, 2) if not 2 * n <= x < 2 * n + 24 and x + 1 > n]
        assert counts[f"rule {n}"] == len(begins), n
