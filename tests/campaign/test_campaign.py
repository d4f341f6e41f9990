"""The campaign's own account is right: SQL finds what the language says, and nothing that is lost,
repeated or made up goes unnoticed. A short campaign runs with the slow tests."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.options import Options
from tests.campaign.account import wrong_changes, wrong_files, wrong_letters, wrong_matches
from tests.campaign.draws import Draws
from tests.campaign.events import SCHEMA, Event, Fate, Source
from tests.campaign.run import Campaign
from tests.campaign.scenarios import SCENARIOS, Found, Question
from tests.oracle import Event as OracleEvent
from tests.oracle import answers, matches, outputs

RULES = SCENARIOS["rules"].questions
CHAINS = {name: (s.before[0], s.questions[""]) for name, s in SCENARIOS.items() if s.before}
CHAINS["rules"] = (RULES["Pair"].query, RULES["after"])
"""Questions about the matches of another query, which is the first of two."""

QUESTIONS = {
    question.query: question
    for scenario in SCENARIOS.values()
    for question in (*scenario.questions.values(), *scenario.changing)
    if question not in [last for _, last in CHAINS.values()]
}


def by_oracle(question: Question, events: list[Event]) -> Found:
    columns = SCHEMA.remove(0).append(SCHEMA.field("x").with_name("second"))
    query = cep.Query(question.query).bind(columns, Options("second", type="type", unit="s"))
    rows = [
        OracleEvent(n, e.second, {**e.values, "second": e.second})
        for n, e in enumerate(events)
        if e.second is not None
    ]
    if query.answers is not None:
        found = iter(answers(query, rows))
    else:
        found = (outputs(query, match, rows) for match in matches(query, rows))
    return Counter(tuple(values[name] for name in question.columns) for values in found)


def chain_by_oracle(pairs: str, question: Question, events: list[Event]) -> Found:
    """Matches of pairs are events that last from their first to their last event."""
    seconds = {e.row: e.second for e in events}
    first = Question(pairs, "", ("id", "a", "b", "x"))
    rows = [
        {**e.values, "second": e.second, "begin": e.second, "a": None, "b": None} for e in events
    ]
    for id_, a, b, x in by_oracle(first, events).elements():
        found = {"type": "Pair", "id": id_, "x": x, "row": None, "a": a, "b": b}
        rows.append({**found, "second": seconds[b], "begin": seconds[a]})
    columns = pa.schema(
        [*SCHEMA.remove(0), *((n, pa.int64()) for n in ("second", "begin", "a", "b"))]
    )
    options = Options("second", type="type", start="begin", unit="s")
    query = cep.Query(question.query).bind(columns, options)
    rows.sort(key=lambda row: row["second"])
    given = [OracleEvent(n, row["second"], row, row["begin"]) for n, row in enumerate(rows)]
    found_rows = (outputs(query, match, given) for match in matches(query, given))
    return Counter(tuple(values[name] for name in question.columns) for values in found_rows)


@pytest.mark.parametrize(("pairs", "question"), CHAINS.values(), ids=CHAINS)
def test_sql_finds_what_chains_do(pairs: str, question: Question, tmp_path: Path) -> None:
    source = Source(tmp_path / "in", "parquet", (), random.Random(1))
    while len(source.fates[Fate.TAKEN]) < 100:
        source.add()
    events = source.fates[Fate.TAKEN]
    expected = chain_by_oracle(pairs, question, events)
    assert expected.total() > 10
    assert question.expected(events) == expected


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=[q[8:40] for q in QUESTIONS])
def test_sql_finds_what_the_language_says(question: Question, tmp_path: Path) -> None:
    source = Source(tmp_path / "in", "json", (), random.Random(1))
    while len(source.fates[Fate.TAKEN]) < 100:
        source.add()
    events = source.fates[Fate.TAKEN]
    expected = by_oracle(question, events)
    assert expected.total() > 10
    assert question.expected(events) == expected


def test_matches_that_are_lost_or_repeated_are_noticed() -> None:
    expected = Counter({(1, 2): 1, (1, 3): 1})
    assert not list(wrong_matches(expected, expected, ""))
    lost, more = wrong_matches(Counter({(1, 2): 2}), expected, "pairs")
    assert lost == "1 matches of pairs missing: (1, 3)"
    assert more == "1 matches of pairs not in SQL's answer, or there twice: (1, 2)"


def test_matches_of_a_rule_that_changed_are_noticed(tmp_path: Path) -> None:
    source = Source(tmp_path / "in", "json", (), random.Random(1))
    source.fates[Fate.TAKEN] = [
        Event(row, row, kind, 0, x)
        for row, kind, x in ((1, "A", 0), (2, "B", 4), (3, "A", 0), (4, "B", 4), (5, "B", 9))
    ]
    loose, strict = SCENARIOS["rules"].changing  # b.x > a.x + 3, and + 5
    right = Counter({(3, 4): 1, (3, 5): 1})
    assert not list(wrong_changes(right, [strict, loose], (loose, 2), source))
    (missing,) = wrong_changes(Counter({(3, 5): 1}), [strict, loose], (loose, 2), source)
    assert missing == "1 matches of changing are missing: [(3, 4)]"
    (made_up,) = wrong_changes(Counter({(3, 4): 1}), [strict], None, source)
    assert made_up == "1 matches of changing that no version has: [(3, 4)]"


def test_rows_and_files_that_are_not_kept_are_noticed(tmp_path: Path) -> None:
    source = Source(tmp_path / "in", "json", (), random.Random(1))
    source.add([Fate.FUTURE])
    source.add_unreadable("cut")
    (future,) = source.fates[Fate.FUTURE]
    rejected, rows = tmp_path / "rejected", tmp_path / "rejected" / "rows"
    rows.mkdir(parents=True)
    (lost,) = wrong_letters(source, rejected)
    assert lost == f"1 rows ahead of the clock aren't kept: {future.row}"
    line = json.dumps({"batch": 0, "reason": "future", "row": {"row": future.row}}) + "\n"
    (rows / "batch-00000000-part-00000.jsonl").write_text(line)
    assert not list(wrong_letters(source, rejected))
    (rows / "batch-00000001-part-00000.jsonl").write_text(line)
    (twice,) = wrong_letters(source, rejected)
    assert twice == f"1 rows ahead of the clock are kept twice: {future.row}"
    (unlisted,) = wrong_files(source, rejected)
    assert unlisted.startswith("unreadable files that aren't listed")


def test_every_fault_has_its_turn() -> None:
    draws, chance = Draws(), random.Random(1)
    assert sorted(draws.draw("abcd", chance) for _ in range(4)) == [*"abcd"]
    assert sorted(draws.draw("abcd", chance) for _ in range(4)) == [*"abcd"]
    assert [draws.draw("abe", chance), draws.draw("ace", chance)] == ["e", "e"]
    assert draws.never("aef") == ["f"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rules", "streams", "chain"])
def test_a_short_campaign(name: str, tmp_path: Path) -> None:
    assert not Campaign(SCENARIOS[name], 1, tmp_path / name).run(60)
