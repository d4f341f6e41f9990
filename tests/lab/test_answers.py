"""What is answered about a situation: worked out by hand, or compared with the plain functions."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import cepheid as cep
from cepheid.lab.situations.notation import read_events
from cepheid.lab.start import sample, starting_events, starting_query
from cepheid.lab.words import example, snippets
from cepheid.options import Options
from cepheid.workloads import rfid, stocks
from tests.corpus.reader import case_of, fields_of, show
from tests.lab.situations import QUERY, asked, situation
from tests.oracle.match import matches as oracle
from website.recipes import COOKBOOK, snippets_text

SNIPPETS = Path(cep.__file__).parent / "lab" / "snippets.txt"


def test_matches_with_their_events() -> None:
    # Rows 0 and 1 match; 3 is too small; the X of row 5 forbids 4 and 6; 7 and 8 are too far apart.
    found = asked("match", situation())
    assert found["matches"] == [{"rows": {"a": [0], "b": [1]}, "start": 1, "end": 3, "closes": 11}]
    assert found["complete"] and not found["answers"]
    assert [v["name"] for v in found["variables"]] == ["a", "n", "b"]
    assert [v["negated"] for v in found["variables"]] == [False, True, False]


def test_returned_columns_and_answers() -> None:
    rows = asked("match", situation(QUERY + " RETURN b.x - a.x AS rise, a.ts AS since"))
    assert rows["returned"] == {"columns": ["rise", "since"], "rows": [["2", "1"]]}
    counted = asked("match", situation(QUERY + " RETURN count(*) AS n"))
    assert counted["answers"] and counted["returned"]["rows"][0][0] == "1"
    assert counted["matches"][0]["rows"] == {"a": [0], "b": [1]}


def test_mistakes_have_places_and_hints() -> None:
    text = "PATTERN A a ; B b WHERE a.xx > 5 AND b.x >"
    (found,) = asked("match", situation(text))["diagnostics"]
    assert found["start"] == len(text) - 1 and found["end"] == len(text)
    text = "PATTERN A a ; B b WHERE a.xx > 5 WITHIN 9"
    (found,) = asked("match", situation(text))["diagnostics"]
    assert (found["code"], text[found["start"] : found["end"]]) == ("CEP204", "a.xx")
    assert "did you mean `x`" in found["hint"]


def test_a_misspelled_type_is_named() -> None:
    found = asked("match", situation("PATTERN A a ; Bb b WITHIN 9"))
    assert found["notes"] == ["no event is of type `Bb`; did you mean `B`?"]


def test_why_not_gives_the_change_and_it_works() -> None:
    verdict = asked("why-not", {**situation(), "rows": [3, 2]})
    assert (verdict["rows"], verdict["matches"]) == ({"a": [2], "b": [3]}, False)
    assert [c["outcome"] for c in verdict["conditions"]] == ["false"]
    assert verdict["changed"] is not None
    again = asked("why-not", {**situation(verdict["changed"]), "rows": [2, 3]})
    assert again["matches"]
    longer = asked("why-not", {**situation(), "rows": [7, 8]})
    assert longer["change"] == "WITHIN 16 units instead of WITHIN 10 units"
    forbidden = asked("why-not", {**situation(), "rows": [4, 6]})
    assert forbidden["change"] == "without !X n"


def test_chosen_events_find_their_variables() -> None:
    query = "PATTERN A a ; B+ b ; A c WITHIN 100"
    given = {**situation(query, "A@1 B@2 B@3 A@4"), "rows": [3, 1, 0, 2]}
    assert asked("why-not", given)["rows"] == {"a": [0], "b": [1, 2], "c": [3]}
    wrong = asked("why-not", {**situation(), "rows": [0, 2]})
    assert wrong["problem"].startswith("row 2, of type A, has no variable of the pattern beside")
    for rows in ([], [99], ["a"], None, [True, 0.5]):
        assert "problem" in asked("why-not", {**situation(), "rows": rows})


def test_reports_are_those_of_the_functions() -> None:
    given = situation()
    events = read_events("A@1(x=5) B@3(x=7)")
    given["events"]["rows"] = given["events"]["rows"][:2]
    options: Any = {"time": "ts", "type": "type"}
    assert asked("why", given)["html"] == cep.why(events, QUERY, **options)._repr_html_()
    assert asked("funnel", given)["html"] == cep.funnel(events, QUERY, **options)._repr_html_()
    assert "SEQ" in asked("plan", given)["html"]


# ── taken along ──────────────────────────────────────────────────────────────


def test_a_kept_case_is_one_that_the_tests_can_run() -> None:
    text = asked("case", situation(params={"low": 3}, query=QUERY + " HAVING a.x > :low"))["case"]
    kept = case_of(fields_of(text, "lab"), "lab")
    assert kept.expected == ({"a": 0, "b": 1},)
    found = oracle(kept.bound, kept.events)
    assert show(kept, [m.bindings for m in found]) == show(kept, kept.expected) == "a1 b3"


def test_a_case_of_moments_and_of_other_names() -> None:
    events = "FAIL@2026-03-02T10:00(n=1) FAIL@2026-03-02T10:00(n=2) OK@2026-03-02T10:05"
    given = situation(
        "PATTERN FAIL+ f ; OK s WHERE s.at - FIRST(f.at) < 1 hour WITHIN 1 day", events, time="at"
    )
    given["events"]["columns"][0]["name"] = "at"
    kept = case_of(fields_of(asked("case", given)["case"], "lab"), "lab")
    assert kept.expected == ({"f": (0, 1), "s": 2},)
    found = [m.bindings for m in oracle(kept.bound, kept.events)]
    assert show(kept, found) == show(kept, kept.expected)


@pytest.mark.parametrize(
    "change, problem",
    [
        ({"type": None}, "a case needs a column of types"),
        ({"query": QUERY + " RETURN count(*) AS n"}, "this query returns answers"),
        ({"events": situation(events="A@1(s='it''s')")["events"]}, "no notation for the text"),
        ({"events": situation(events=" ".join(f"A@{n}(x=1)" for n in range(201)))["events"]},
         "a case has at most 200 events, not 201"),
    ],
)  # fmt: skip
def test_what_is_no_case(change: dict[str, Any], problem: str) -> None:
    query = "PATTERN A a ; A b WITHIN 9" if "events" in change else QUERY
    assert problem in asked("case", {**situation(query), **change})["problem"]


ODD = "A@1(x=1, s='it''s <b>\"', f=2.5, ok=true) B@2(x=2, s='$HOME `ls`', f=nan)"


@pytest.mark.some(1)  # each starts two processes
@pytest.mark.parametrize(
    "query, events",
    [
        ("PATTERN A a ; B b\nWHERE b.s <> 'it''s'\nWITHIN 10 RETURN a.s, b.s AS t, a.f", ODD),
        ("PATTERN A a ; B b WITHIN 10 minutes", "A@2026-03-02T10:00 B@2026-03-02T10:05(x=1)"),
        ("PATTERN A a ; B b WITHIN 10", " ".join(f"{'AB'[n % 2]}@{9 * n}" for n in range(300))),
    ],
)
def test_the_program_and_the_command_find_the_same(query: str, events: str, tmp_path: Path) -> None:
    given = situation(query, events)
    code = asked("code", given)
    number = len(asked("match", given)["matches"])
    assert number
    if code["lines"]:
        (tmp_path / "events.jsonl").write_text(code["lines"])
    printed = io.StringIO()
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        names: dict[str, Any] = {}
        with contextlib.redirect_stdout(printed):
            exec(compile(code["python"], "lab", "exec"), names)
    finally:
        os.chdir(here)
    assert len(cep.match(names["events"], query, time="ts", type="type")) == number
    assert "match_start" in printed.getvalue()
    script = code["command"].replace("cepheid run", "cepheid run --output - --format json", 1)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PATH": path},
    )  # fmt: skip
    assert len(done.stdout.splitlines()) == number, done.stderr


# ── beginning ────────────────────────────────────────────────────────────────


def test_the_snippets_are_the_recipes_of_the_cookbook(pytestconfig: pytest.Config) -> None:
    text = snippets_text(COOKBOOK.read_text(encoding="utf-8"))
    if pytestconfig.getoption("--regen"):
        SNIPPETS.write_text(text, encoding="utf-8")
    assert SNIPPETS.read_text(encoding="utf-8") == text
    assert len(snippets()) == COOKBOOK.read_text().count("\n## ")
    for snippet in snippets():
        type_ = "type" if snippet["typed"] else None
        found = asked("match", situation(snippet["query"], snippet["events"], type=type_))
        assert found["matches"], snippet["title"]
    assert example().query


def test_a_file_begins_with_a_sample_of_whole_keys() -> None:
    events = rfid.generate(3000)
    options = Options(time="ts", type="type")
    query = "PATTERN SHELF_READING s ; EXIT_READING e WHERE [id] WITHIN 3 hours"
    taken, which = sample(query, events, options, 500)
    assert which is not None and which.startswith(f"{taken.num_rows} of 3,000 events: those of")
    kept = set(taken["id"].to_pylist())
    assert taken.num_rows == sum(id_ in kept for id_ in events["id"].to_pylist())
    wrong, which = sample("PATTERN", events, options, 500)
    assert (wrong.num_rows, which) == (500, "the first 500 of 3,000 events")
    with pytest.raises(cep.DataError, match=r"no column `tss` \(--time\); did you mean `ts`"):
        sample(query, events, Options(time="tss"), 500)


def test_a_query_or_events_to_begin_with() -> None:
    options = Options(time="ts", type="name")
    text = starting_query(stocks.generate(100), options)
    assert cep.Query(text).match(stocks.generate(100), time="ts", type="name").num_rows
    events = starting_events("PATTERN A a ; ANY(B, C) b")
    assert events.to_pylist() == [{"ts": 1, "type": "A"}, {"ts": 2, "type": "B"}]
    assert starting_events("PATTERN (").num_rows == 2
    events = starting_events("PATTERN A a ; B b WHERE a.x < 5 AND b.s = 'n' WITHIN 9")
    assert events.to_pylist()[1] == {"ts": 2, "type": "B", "x": 1, "s": "a"}


# ── speed ────────────────────────────────────────────────────────────────────

SEQUENCE = """PATTERN IBM ; Sun ; Oracle
WHERE Oracle.price > Sun.price AND IBM.price > 20 WITHIN 200 units"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "query",
    [
        SEQUENCE,
        "PATTERN IBM a -> Sun+ s -> Oracle o WHERE s.price > PREV(s.price) WITHIN 200 units",
        "PATTERN IBM a ; !Sun s ; Oracle o WITHIN 20 units",
        "PATTERN IBM a ; Sun s WITHIN 20 units GROUP BY TUMBLE(100 units) RETURN count(*) AS n",
    ],
)
def test_five_thousand_events_are_matched_within_200_ms(query: str) -> None:
    """The time of the processor, since the machine may do other things, too; the median of five,
    with the reading of the events and the writing of the answer."""
    import json

    from cepheid.lab.answers_process import answer
    from cepheid.lab.situations.cells import to_cells

    events = stocks.generate(5000, selectivity={("Oracle", "Sun"): 1 / 50})
    given = {"query": query, "events": to_cells(events, "ts"), "time": "ts", "type": "name"}
    body, times = json.dumps(given).encode(), []
    for _ in range(6):
        began = time.process_time()
        found = json.dumps(answer("match", body))
        times.append(time.process_time() - began)
    assert '"matches": [{' in found
    assert sorted(times[1:])[2] < 0.2, times
