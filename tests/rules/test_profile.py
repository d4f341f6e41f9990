"""What a run of a set tells of its rules: the matches of each are those that `match` finds."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest

import cepheid as cep
from cepheid.cli import main
from cepheid.workloads import fraud

RULES = cep.RuleSet.of(
    {
        "rise": "PATTERN A a ; B b WHERE [k] AND b.x > a.x WITHIN 9",
        "fall": "PATTERN A a ; B b WHERE [k] AND b.x < a.x WITHIN 9",
        "next": "PATTERN A a -> B b WHERE [k] WITHIN 9",
        "many": "PATTERN A+ a ; B b WHERE [k] WITHIN 9 HAVING count(a) > 1",
        "never": "PATTERN A a ; C c WITHIN 9",
        "hourly": "PATTERN A a WITHIN 9 GROUP BY TUMBLE(10) RETURN count(*) AS n",
        "read": "PATTERN rise r ; B b WITHIN 9",
    }
)
EVENTS = pa.table(
    {
        "ts": range(12),
        "type": list("AABABBAABABB"),
        "k": [1, 2, 1, 1, 2, 1, 2, 2, 2, 1, 1, 2],
        "x": [5, 1, 7, 2, 9, 1, 4, 4, 4, 8, 3, 6],
    }
)
OPTIONS = cep.Options("ts", type="type")


def test_the_matches_are_those_of_the_rules() -> None:
    profile = RULES.profile(EVENTS, OPTIONS)
    found = pc.value_counts(RULES.match(EVENTS, OPTIONS)["rule"]).to_pylist()
    counted = {row["values"]: row["counts"] for row in found}
    table = profile.to_arrow()
    assert dict(zip(*(table[name].to_pylist() for name in ("rule", "matches")), strict=True)) == {
        name: counted.get(name, 0) for name in RULES
    }
    assert table["template"].to_pylist() == list(RULES)


def test_every_rule_is_in_a_pass() -> None:
    table = RULES.profile(EVENTS, OPTIONS).to_arrow().to_pylist()
    by_rule = {row["rule"]: row for row in table}
    assert by_rule["read"]["pass"] is None and by_rule["read"]["seconds"] is None
    assert by_rule["rise"]["pass"] == by_rule["fall"]["pass"]
    for name in set(RULES) - {"read"}:
        row = by_rule[name]
        sharing = [other for other in table if other["pass"] == row["pass"]]
        assert row["rules_in_pass"] == len(sharing) and row["seconds"] > 0
    assert by_rule["hourly"]["held"] is None
    assert by_rule["rise"]["held"] >= 1 and by_rule["next"]["held"] >= 1


def test_the_text() -> None:
    text = str(RULES.profile(EVENTS, OPTIONS))
    assert text.startswith("12 events, ")
    assert "1 never fired" in text.splitlines()[0]
    assert repr(RULES.profile(EVENTS, OPTIONS)).startswith("SetProfile(7 rules, ")


def test_dealt_events_are_counted_once() -> None:
    rules = cep.RuleSet.from_template(
        "two", "PATTERN A{2} a WHERE [k] AND a.x > :low WITHIN 9", {"low": [0, 3, 9]}
    )
    profile = rules.profile(EVENTS, OPTIONS)
    alone = [rule.match(EVENTS, OPTIONS).num_rows for rule in rules.values()]
    assert profile.to_arrow()["matches"].to_pylist() == alone


def test_iterators_are_refused() -> None:
    with pytest.raises(cep.UnsupportedError, match="profile is for tables in this process"):
        RULES.profile(iter(EVENTS.to_batches()), OPTIONS)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pa.parquet.write_table(fraud.generate(2000), tmp_path / "fraud.parquet")
    (tmp_path / "pair.cep").write_text(
        "INTO pair PATTERN purchase a ; purchase b WHERE [card] WITHIN 1 hour\n"
        "INTO one PATTERN purchase a WHERE a.amount > 100"
    )
    words = [str(tmp_path / "pair.cep"), "--input", str(tmp_path / "fraud.parquet"),
             "--time", "ts", "--type", "kind", "--tie", "id", "--analyze"]  # fmt: skip
    with pytest.raises(SystemExit) as exit:
        main(["explain", *words])
    assert exit.value.code in (0, None)
    printed = capsys.readouterr().out
    assert "2,000 events, " in printed and "pass 1" in printed
    with pytest.raises(SystemExit):
        main(["explain", *words, "--format", "json"])
    profile = json.loads(capsys.readouterr().out)["profile"]
    assert [row["rule"] for row in profile] == ["pair", "one"]
