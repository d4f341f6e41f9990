"""What alerts have beside RETURN's values: the key, the template, and what rules carry."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import cepheid as cep

EVENTS = pa.table(
    {
        "ts": [1, 2, 3, 4, 5, 6],
        "type": ["A", "A", "B", "B", "C", "C"],
        "card": [7, 8, 7, 8, 8, 7],
        "shop": ["x", "y", "x", "y", "y", "z"],
        "x": [1, 2, 3, 4, 5, 6],
    }
)


def keys(query: str, **options: object) -> list[str | None]:
    found = cep.RuleSet.of({"r": query}).match(EVENTS, time="ts", type="type", **options)
    return sorted(found["key"].to_pylist(), key=str)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("PATTERN A a ; B b WHERE [card] WITHIN 9 RETURN a.x", ["7", "8"]),
        ("PATTERN A a -> B b WHERE [card] WITHIN 9 RETURN a.x", ["7", "8"]),
        ("PATTERN A a ; B b ; C c WHERE [card] AND [shop] WITHIN 9", ['[8,"y"]']),
        ("PATTERN A a ; B b WHERE [shop] WITHIN 9 AFTER MATCH SKIP PAST LAST EVENT", ["x", "y"]),
        # Each card has one C, whichever branch of the alternative was taken.
        ("PATTERN (A a | B b) ; C c WHERE [card] WITHIN 9 RETURN c.x", ["7", "7", "8", "8"]),
        ("PATTERN A a | B b WHERE [card] WITHIN 9 RETURN a.x", ["7", "7", "8", "8"]),
        ("PATTERN ANY(A, B){2} g WHERE [card] WITHIN 9 RETURN count(g) AS n", ["7", "8"]),
        ("PATTERN A a ; B b WHERE a.x = 1 AND b.x = 3 WITHIN 9 RETURN b.x", [None]),
    ],
)
def test_the_key_is_the_value_in_which_the_events_agree(
    query: str, expected: list[str | None]
) -> None:
    assert keys(query) == sorted(expected, key=str)


def test_the_rows_of_a_template_that_share_a_query_have_the_key() -> None:
    rules = cep.RuleSet.from_template(
        "many",
        "PATTERN A a ; (B b & C c) WHERE [card] AND c.x > :low WITHIN 9 RETURN c.x",
        {"rule": ["one", "two"], "low": [5, 4]},
    )
    found = rules.match(EVENTS, time="ts", type="type").to_pylist()
    # Card 7 has a C of 6, card 8 one of 5; only `two` takes both.
    assert sorted((row["rule"], row["template"], row["key"]) for row in found) == [
        ("one", "many", "7"),
        ("two", "many", "7"),
        ("two", "many", "8"),
    ]


def test_what_an_alert_says_of_its_rule() -> None:
    rules = cep.RuleSet.of(
        {"plain": "PATTERN A a WHERE a.x = 1", "told": "-- @score: 3\nPATTERN A a WHERE a.x = 2"},
        carried={"plain": {"severity": "high", "owner": "desk"}},
    )
    found = rules.match(EVENTS, time="ts", type="type").to_pylist()
    assert [
        (row["rule"], row["template"], row["severity"], row["owner"], row["score"]) for row in found
    ] == [("plain", "plain", "high", "desk", None), ("told", "told", None, None, 3)]
    assert rules["plain"].carried == {"severity": "high", "owner": "desk"}
    assert rules["told"].origin == "told:1"
    assert repr(rules) == "RuleSet(2 rules: plain, told)"


class TestHeaders:
    def load(self, folder: Path, **files: str) -> cep.RuleSet:
        for name, text in files.items():
            file = folder / name.replace("_csv", ".csv").replace("_cep", ".cep")
            file.write_text(text)
        return cep.RuleSet.load(folder)

    def test_each_query_has_its_own(self, tmp_path: Path) -> None:
        rules = self.load(
            tmp_path,
            cards_cep="""-- What the desk watches.
-- @severity: high
-- @score: 0.5
-- @team: "7"
INTO pair PATTERN A a ; B b WITHIN 5

-- note: this is a comment, and no header
INTO other PATTERN B b ; C c WITHIN 5
-- @severity: low

INTO last PATTERN A a ; C c WITHIN 5
""",
        )
        assert rules["pair"].carried == {"severity": "high", "score": 0.5, "team": "7"}
        assert rules["other"].carried == {}
        assert rules["last"].carried == {"severity": "low"}
        assert rules["pair"].origin == f"{tmp_path}/cards.cep:5"

    def test_a_header_is_for_all_rows_that_have_no_value_of_their_own(self, tmp_path: Path) -> None:
        rules = self.load(
            tmp_path,
            big_cep="-- @severity: high\n-- @team: cards\nPATTERN A a WHERE a.x > :low",
            big_csv="rule,low,severity\none,1,low\ntwo,2,\n",
        )
        assert rules["one"].carried == {"severity": "low", "team": "cards"}
        assert rules["two"].carried == {"severity": None, "team": "cards"}

    def test_enabled(self, tmp_path: Path) -> None:
        rules = self.load(
            tmp_path,
            off_cep="-- @enabled: false\nPATTERN A a WHERE a.x > 5",
            on_cep="-- @enabled: true\nPATTERN A a WHERE a.x > 5",
            big_cep="PATTERN A a WHERE a.x > :low",
            big_csv="rule,low,enabled\none,1,false\ntwo,2,true\nthree,3,\n",
        )
        assert sorted(rules) == ["on", "three", "two"]
        assert rules["three"].carried == {}
        assert rules["three"].origin.endswith("big.csv, row 3")

    def test_enabled_in_python(self) -> None:
        query = "PATTERN A a WHERE a.x > :low"
        rows = {"rule": ["one", "two"], "low": [1, 2], "enabled": [True, False]}
        assert list(cep.RuleSet.from_template("big", query, rows)) == ["one"]
        plain = {"a": "PATTERN A a", "b": "PATTERN B b"}
        assert list(cep.RuleSet.of(plain, carried={"a": {"enabled": False}})) == ["b"]
        with pytest.raises(cep.RuleSetError, match="the column `enabled` is string"):
            cep.RuleSet.from_template("big", query, {"low": [1], "enabled": ["yes"]})

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("-- @severity\nPATTERN A a", "line 1: `-- @severity` is no header"),
            ("-- @a: 1\n-- @a: 2\nPATTERN A a", "line 2: the header has `a` twice"),
            ("-- @rule: x\nPATTERN A a", "line 1: a header can't name the rule"),
            ("PATTERN A a\n-- @a: 1\n", "line 2: this header stands above no query"),
            ("PATTERN A a\n-- @a: 1\nWHERE a.x > 1", "line 2: this header stands above no query"),
            ("-- @key: 7\nPATTERN A a", "the column `key` can't be carried"),
        ],
    )
    def test_wrong_headers(self, tmp_path: Path, text: str, message: str) -> None:
        (tmp_path / "one.cep").write_text(text)
        with pytest.raises(cep.RuleSetError, match="one") as error:
            cep.RuleSet.load(tmp_path)
        assert message in str(error.value)

    def test_kinds_of_value_must_agree(self) -> None:
        texts = {"a": "-- @level: 3\nPATTERN A a", "b": "-- @level: high\nPATTERN B b"}
        with pytest.raises(cep.RuleSetError, match="the column `level` is string, but int64 in a"):
            cep.RuleSet.of(texts)


def test_a_rule_that_is_not_there_carries_nothing() -> None:
    with pytest.raises(KeyError, match="there is no rule `par`; did you mean `pair`"):
        cep.RuleSet.of({"pair": "PATTERN A a"}, carried={"par": {"severity": "high"}})


def test_metadata_does_not_end_the_sharing() -> None:
    """Rules that differ in constants are rows of one template, whatever they carry."""
    texts = {f"r{n}": f"PATTERN A a ; B b WHERE a.x > {n} WITHIN 5" for n in range(20)}
    plain = cep.RuleSet.of(texts)
    carrying = cep.RuleSet.of(texts, carried={name: {"severity": name} for name in texts})
    columns = {"time": "ts", "type": "type"}
    assert str(plain.explain(EVENTS, **columns)) == str(carrying.explain(EVENTS, **columns))
    found = carrying.match(EVENTS, time="ts", type="type").to_pylist()
    # Two As (x = 1, 2) before two Bs: r0 has four pairs, r1 two.
    assert sorted((row["rule"], row["severity"]) for row in found) == (
        [("r0", "r0")] * 4 + [("r1", "r1")] * 2
    )


def test_a_saved_set_keeps_what_its_rules_carry(tmp_path: Path) -> None:
    rules = cep.RuleSet.of({"a": "-- @severity: high\nPATTERN A a"})
    live = cep.LiveRules(str(tmp_path))
    live.publish(rules)
    assert live.rules() == rules
    assert live.rules()["a"].carried == {"severity": "high"}
