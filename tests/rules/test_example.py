"""examples/rules finds what a search through all purchases finds."""

from __future__ import annotations

import json
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cepheid as cep
from cepheid.cli import main
from cepheid.options import Options
from cepheid.rules.compile.compiled_rules import compile_rules
from cepheid.workloads import fraud
from tests.docs.blocks import ROOT, blocks

FOLDER = ROOT / "examples" / "rules"
ROWS = 20_000
OPTIONS = Options("ts", type="kind", tie="id")

Event = dict[str, Any]
Params = dict[str, Any]
Search = Callable[[list[Event], Params], Iterator[tuple[Event, Event]]]
"""The first and the last event of every match among the events of a card."""


@cache
def events() -> pa.Table:
    return fraud.generate(ROWS)


@cache
def rules() -> cep.RuleSet:
    return cep.RuleSet.load(FOLDER)


@cache
def by_card() -> list[list[Event]]:
    cards: dict[int, list[Event]] = defaultdict(list)
    for event in sorted(events().to_pylist(), key=lambda e: (e["ts"], e["id"])):
        cards[event["card"]].append(event)
    return list(cards.values())


def pairs(card: list[Event], first: str, last: str, window: timedelta) -> Iterator[tuple[int, int]]:
    """The places of two events of these kinds, one after the other, within the window."""
    for i, a in enumerate(card):
        for j in range(i + 1, len(card)):
            if card[j]["ts"] - a["ts"] >= window:
                break
            if a["kind"] == first and card[j]["kind"] == last:
                yield i, j


def between(card: list[Event], i: int, j: int, kind: str) -> list[Event]:
    return [e for e in card[i + 1 : j] if e["kind"] == kind]


def tries(card: list[Event], p: Params) -> Iterator[tuple[Event, Event]]:
    for i, j in pairs(card, "purchase", "purchase", timedelta(hours=p["hours"])):
        a, c = card[i], card[j]
        if a["country"] == c["country"] == p["country"]:
            small = [e for e in (a, *between(card, i, j, "purchase")) if e["amount"] < p["small"]]
            if a in small and c["amount"] > p["large"]:
                yield from ((a, c) for b in small[1:] if b["country"] == p["country"])


def elsewhere(card: list[Event], p: Params) -> Iterator[tuple[Event, Event]]:
    for i, j in pairs(card, "purchase", "purchase", timedelta(minutes=p["minutes"])):
        a, b = card[i], card[j]
        if a["country"] == p["home"] != b["country"] and b["amount"] > p["low"]:
            yield a, b


def taken_over(card: list[Event], p: Params) -> Iterator[tuple[Event, Event]]:
    for i, j in pairs(card, "pin_change", "purchase", timedelta(hours=p["hours"])):
        a, b = card[i], card[j]
        wanted = p["country"] in (None, b["country"]) and b["amount"] > p["low"]
        if wanted and not between(card, i, j, "login"):
            yield a, b


def forced(card: list[Event], p: Params) -> Iterator[tuple[Event, Event]]:
    for i, j in pairs(card, "decline", "purchase", timedelta(minutes=p["minutes"])):
        a, b = card[i], card[j]
        if a["country"] == p["country"] and p["low"] <= b["amount"] <= p["share"] * a["amount"]:
            yield a, b


def spree(card: list[Event], p: Params) -> Iterator[tuple[Event, Event]]:
    for i, j in pairs(card, "login", "purchase", timedelta(hours=p["hours"])):
        a, c = card[i], card[j]
        group = [b for b in between(card, i, j, "purchase") if b["country"] == p["country"]]
        there = a["country"] == c["country"] == p["country"]
        enough = len(group) >= 3 and sum(b["amount"] for b in group) > p["total"]
        if there and enough and c["amount"] > p["last"]:
            yield a, c


SEARCHES: dict[str, Search] = {
    "tested": tries,
    "elsewhere": elsewhere,
    "taken_over": taken_over,
    "forced": forced,
    "spree": spree,
}


def purchase(match: dict[str, Any]) -> int:
    return int(json.loads(match["match"])["purchase"])


@pytest.fixture(scope="module")
def found() -> Counter[tuple[object, ...]]:
    """The rule, its matches' times, the last purchase, and what is carried."""
    matches = rules().match(events(), OPTIONS).to_pylist()
    return Counter(
        (m["rule"], m["match_start"], m["match_end"], purchase(m), m["severity"], m["team"])
        for m in matches
    )


@pytest.mark.parametrize("name", SEARCHES)
def test_the_rules_find_what_a_search_finds(name: str, found: Counter[tuple[object, ...]]) -> None:
    (template,) = (t for t in rules().templates if t.name == name)
    names = {*template.names.to_pylist()}
    expected = Counter(
        (rule.name, a["ts"], b["ts"], b["id"], rule.carried["severity"], rule.carried["team"])
        for rule in map(template.rule, range(len(template)))
        for card in by_card()
        for a, b in SEARCHES[name](card, dict(rule.params))
    )
    assert len(template) >= 24
    assert expected
    assert Counter({key: n for key, n in found.items() if key[0] in names}) == expected


def test_planted_frauds_are_found(found: Counter[tuple[object, ...]]) -> None:
    """Those whose amounts are what a rule for their country asks for."""
    planted: dict[int, list[Event]] = defaultdict(list)
    for event in events().to_pylist():
        if event["planted"] is not None:
            planted[event["planted"]].append(event)
    reported = {key[3] for key in found if str(key[0]).startswith("tested-")}
    last = [max(triple, key=lambda e: (e["ts"], e["id"])) for triple in planted.values()]
    shown = [e["id"] for e in last if e["country"] in ("US", "GB", "DE")]
    assert shown and {*shown} <= reported


def test_only_sprees_run_alone() -> None:
    compiled = compile_rules(rules().templates, events().schema, OPTIONS)
    names = compiled.rules["rule"].to_pylist()
    alone = {names[n] for one in compiled.alone for n in one.rules.tolist()}
    assert alone == {name for name in rules() if name.startswith("spree-")}


def test_every_file_is_part_of_the_set() -> None:
    files = {path.relative_to(FOLDER) for path in FOLDER.iterdir()}
    assert files == {Path(f"{name}.{end}") for name in SEARCHES for end in ("cep", "csv")}


def test_what_the_readme_says_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    commands, code = (b.text for b in blocks("README.md") if "examples/rules" in b.text)
    for command in commands.replace("\\\n", " ").replace("100_000", str(ROWS)).splitlines():
        program, *words = shlex.split(command)
        assert program == "cepheid"
        with pytest.raises(SystemExit) as exit:
            main(words)
        assert exit.value.code in (0, None)
    names: dict[str, Any] = {"cep": cep, "data": events()}
    exec(code, names)
    written = pq.read_table("found.parquet")["rule"].to_pylist().count("tested-de-soon")
    assert names["found"].num_rows == written > 0
