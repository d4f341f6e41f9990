"""Sigma's rules as ours: as a person would write them, and with the matches that Sigma means."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.errors import OptionError
from cepheid.sigma.field_names import LogSource, Mapped, read_mapping
from cepheid.sigma.folder import write_rules
from cepheid.sigma.imports import Imported, imported

FIXTURES = Path(__file__).parent / "fixtures"
MAPPINGS = {
    "values": Mapped(),
    "conditions": Mapped({"CommandLine": "cmd"}, "message", (LogSource("Linux", product="linux"),)),
    "correlations": Mapped(
        {"TargetUserName": "user"},
        None,
        (LogSource("Security", service="security"), LogSource("Web", category="webserver")),
    ),
}
SELECTED = """
title: {0}
name: {0}
logsource: {{product: test}}
detection:
  selection: {{kind: {0}}}
  condition: selection
"""
CORRELATED = """
title: alert
correlation:
  type: {type}
  rules: {rules}
  group-by: [user]
  timespan: 10s
  condition: {condition}
"""


def written(made: Imported, folder: Path) -> cep.RuleSet:
    write_rules(folder, made.drafts, made.families)
    return cep.RuleSet.load(folder)


def of_text(text: str, folder: Path, mapped: Mapped | None = None) -> Imported:
    folder.mkdir(exist_ok=True)
    (folder / "rules.yml").write_text(text, encoding="utf-8")
    return imported(folder / "rules.yml", mapped or Mapped())


# ── texts ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", MAPPINGS)
def test_what_is_written(name: str, tmp_path: Path) -> None:
    made = imported(FIXTURES / f"{name}.yml", MAPPINGS[name])
    written(made, tmp_path)
    wanted = (FIXTURES / f"{name}.cep").read_text(encoding="utf-8")
    assert (tmp_path / f"{name}.cep").read_text(encoding="utf-8") == wanted


def test_what_cannot_be_said_is_listed() -> None:
    made = imported(FIXTURES / "correlations.yml", MAPPINGS["correlations"])
    assert {problem.rule: problem.message for problem in made.problems} == {
        "Percentile": "`value_percentile` has no counterpart",
        "One without the other": "`not` in a correlation's condition has no counterpart",
        "None of them known": "Rule 'missing' not found in rule collection",
        "Different sources together": "`event_count` counts events of several log sources together",
    }
    assert made.count == 9 and made.parts == 3 and made.unchecked == ()


@pytest.mark.parametrize(
    ("detection", "message"),
    [
        ("{keywords: [x], condition: keywords}", "keywords are looked for in whole events"),
        ("{s: {x|re: '(?=a)b'}, condition: s}", "invalid perl operator: (?="),
        ("{s: {x|expand: '%hosts%'}, condition: s}", "the placeholder `%hosts%` has no value"),
        ("{s: {x: 1}, condition: t}", "t"),
        ("{s: {x|unheard: 1}, condition: s}", "unheard"),
    ],
)
def test_detections_that_cannot_be_said(detection: str, message: str, tmp_path: Path) -> None:
    text = f"title: T\nlogsource: {{product: test}}\ndetection: {detection}\n"
    made = of_text(text, tmp_path / "in")
    assert made.count == 0
    (problem,) = made.problems
    assert message in problem.message


def test_a_broken_file_leaves_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    of_text(SELECTED.format("a"), folder)
    (folder / "broken.yml").write_text("title: [", encoding="utf-8")
    (folder / "latin.yml").write_bytes("title: é".encode("latin-1"))
    (folder / ".hidden.yml").write_text("title: [", encoding="utf-8")
    (folder / "deeper").mkdir()
    (folder / "deeper" / "more.yaml").write_text(SELECTED.format("b"), encoding="utf-8")
    made = imported(folder, Mapped())
    assert sorted(Path(problem.file).name for problem in made.problems) == [
        "broken.yml",
        "latin.yml",
    ]
    assert sorted(map(str, made.drafts)) == ["deeper/more.cep", "rules.cep"]
    assert list(written(made, tmp_path / "out")) == ["b", "a"]


def test_rules_of_one_name_get_numbers(tmp_path: Path) -> None:
    text = "---\n".join(SELECTED.format("a").replace("name: a", "") for _ in range(2))
    assert list(written(of_text(text, tmp_path / "in"), tmp_path / "out")) == ["a", "a_2"]


# ── tables ───────────────────────────────────────────────────────────────────


def families(values: list[object], folder: Path) -> cep.RuleSet:
    rule = (
        "title: Logon {0}\nlogsource: {{product: test}}\n"
        "detection:\n  s: {{x: {1!r}, y|gt: 5}}\n  condition: s\n"
    )
    text = "---\n".join(rule.format(n, value) for n, value in enumerate(values))
    return written(of_text(text, folder / "in"), folder / "out")


def test_rules_that_differ_in_constants_are_a_table(tmp_path: Path) -> None:
    rules = families(["b", "c", "d"], tmp_path)
    assert str(rules) == "RuleSet(3 rules: logon × 3)"
    assert (tmp_path / "out" / "logon.csv").is_file()
    query = (tmp_path / "out" / "logon.cep").read_text(encoding="utf-8")
    assert "WHERE   lower(e.x) = :x\n  AND   e.y > 5\n" in query
    events = pa.table({"ts": [1, 2, 3], "x": ["C", "b", "B"], "y": [6, 6, 5]})
    found = rules.match(events, time="ts")
    assert found.select(["rule", "match_end"]).to_pylist() == [
        {"rule": "logon_1", "match_end": 1},
        {"rule": "logon_0", "match_end": 2},
    ]


def test_two_rules_are_no_table(tmp_path: Path) -> None:
    assert str(families(["b", "c"], tmp_path)) == "RuleSet(2 rules: logon_0, logon_1)"


def test_a_table_of_texts_that_look_like_numbers_is_parquet(tmp_path: Path) -> None:
    rules = families(["1", "2", "3"], tmp_path)
    assert (tmp_path / "out" / "logon.parquet").is_file()
    events = pa.table({"ts": [1], "x": ["2"], "y": [6]})
    assert rules.match(events, time="ts")["rule"].to_pylist() == ["logon_1"]


# ── matches ──────────────────────────────────────────────────────────────────

Event = Mapping[str, object]
SPAN = 10_000_000


def seconds(event: Event) -> int:
    at = event["ts"]
    assert isinstance(at, int)
    return at


def counted(measure: Callable[[list[Event]], bool]) -> Callable[[list[Event]], set[int]]:
    """The events at which the last ten seconds of their user fulfil the condition."""

    def alerts(events: list[Event]) -> set[int]:
        chosen = [event for event in events if event["kind"] == "a"]
        return {
            seconds(last)
            for last in chosen
            if measure([e for e in chosen if e["user"] == last["user"]
                        and seconds(last) - SPAN < seconds(e) <= seconds(last)])
        }  # fmt: skip

    return alerts


def in_order(events: list[Event]) -> set[int]:
    """The ends of pairs: each `a` and the first `b` of its user after it."""
    ends = set()
    for first in events:
        after = [seconds(e) for e in events if first["kind"] == "a" and e["kind"] == "b"
                 and e["user"] == first["user"] and seconds(e) > seconds(first)]  # fmt: skip
        if after and min(after) - seconds(first) < SPAN:
            ends.add(min(after))
    return ends


def together(events: list[Event]) -> set[int]:
    """The starts of pairs in any order."""
    return {
        min(seconds(one), seconds(other))
        for one in events
        for other in events
        if (one["kind"], other["kind"]) == ("a", "b") and one["user"] == other["user"]
        and abs(seconds(one) - seconds(other)) < SPAN
    }  # fmt: skip


CASES: dict[str, tuple[str, str, Callable[[list[Event]], set[int]], str]] = {
    "event_count": ("[a]", "{gte: 3}", counted(lambda some: len(some) >= 3), "match_end"),
    "event_count ": ("[a]", "{eq: 2}", counted(lambda some: len(some) == 2), "match_end"),
    "value_count": (
        "[a]",
        "{gte: 2, field: ip}",
        counted(lambda some: len({e["ip"] for e in some if e["ip"] is not None}) >= 2),
        "match_end",
    ),
    "value_sum": (
        "[a]",
        "{gt: 12, field: size}",
        counted(lambda some: sum(e["size"] for e in some) > 12),  # type: ignore[misc]
        "match_end",
    ),
    "temporal_ordered": ("[a, b]", "{gte: 2}", in_order, "match_end"),
    "temporal": ("[a, b]", "{gte: 2}", together, "match_start"),
}


@pytest.mark.parametrize("kind", CASES)
def test_matches_are_those_that_sigma_means(kind: str, tmp_path: Path) -> None:
    """Sigma's definitions, by brute force: windows slide."""
    rules, condition, wanted, column = CASES[kind]
    text = "---\n".join([
        SELECTED.format("a"),
        SELECTED.format("b"),
        CORRELATED.format(type=kind.strip(), rules=rules, condition=condition),
    ])  # fmt: skip
    made = of_text(text, tmp_path / "in")
    assert made.problems == ()
    loaded = written(made, tmp_path / "out")
    draw = random.Random(7)
    alerts = 0
    for _ in range(20):
        times = sorted(draw.sample(range(60), 25))
        events = [{"ts": at * 1_000_000, "kind": draw.choice("abA"), "user": draw.choice("xy"),
                   "ip": draw.choice(["1", "2", None]), "size": draw.randint(1, 9)}
                  for at in times]  # fmt: skip
        table = pa.Table.from_pylist(events)
        stamped = table.set_column(0, "ts", table["ts"].cast(pa.timestamp("us")))
        matches = loaded.select(["alert"]).match(stamped, time="ts")
        found = set(matches[column].cast(pa.int64()).to_pylist())
        plain = [{**event, "kind": str(event["kind"]).lower()} for event in events]
        assert found == wanted(plain)
        alerts += len(found)
    assert alerts > 20


def test_a_correlation_of_a_correlation(tmp_path: Path) -> None:
    text = "---\n".join([
        SELECTED.format("a"),
        SELECTED.format("b"),
        CORRELATED.format(type="event_count", rules="[a]", condition="{gte: 2}").replace(
            "title: alert", "title: burst\nname: burst"
        ),
        CORRELATED.format(type="temporal_ordered", rules="[burst, b]", condition="{gte: 2}"),
    ])  # fmt: skip
    loaded = written(of_text(text, tmp_path / "in"), tmp_path / "out")
    kinds = [("a", "x"), ("a", "y"), ("a", "x"), ("b", "y"), ("b", "x")]
    events = pa.table(
        {
            "ts": pa.array(range(1, 6)).cast(pa.timestamp("s")),
            "kind": [kind for kind, _ in kinds],
            "user": [user for _, user in kinds],
        }
    )
    found = loaded.match(events, time="ts").select(["rule", "match"]).to_pylist()
    assert found == [
        {"rule": "burst", "match": '{"user":"x"}'},
        {"rule": "alert", "match": '{"user":"x"}'},
    ]


# ── the mapping ──────────────────────────────────────────────────────────────


def test_a_mapping(tmp_path: Path) -> None:
    path = tmp_path / "fields.yml"
    path.write_text(
        "fields: {EventID: id}\nkeywords: message\nlog_sources:\n"
        "  - {product: windows, type: Windows}\n",
        encoding="utf-8",
    )
    mapped = read_mapping(path)
    assert mapped.column("EventID") == "id" and mapped.column("User") == "User"
    assert mapped.keywords == "message" and mapped.log_sources[0].type == "Windows"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a", "it has no `fields:`"),
        ("field: {}", "`field` is unknown; did you mean `fields`?"),
        ("EventID: id", "`EventID` is unknown; columns of fields stand below `fields:`"),
        ("fields: {EventID: 5}", "`fields` has the name of a column for each field"),
        ("keywords: [a]", "`keywords` is the name of one column"),
        ("log_sources: {}", "`log_sources` is a list"),
        ("log_sources: [{product: x}]", "a log source has a type"),
        ("fields: [", "it can't be read"),
    ],
)
def test_wrong_mappings(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "fields.yml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(OptionError) as caught:
        read_mapping(path)
    assert message in str(caught.value)
