"""`why`: figures that were counted by hand."""

from __future__ import annotations

import json

import pandas as pd
import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.reasons.looked_at import ROWS
from cepheid.reasons.why.investigation import MISSES
from cepheid.reasons.why.report import Lost, ReportedStep, VariableEvents, WithoutPart


def events(*rows: tuple[int, str, int, int]) -> pa.Table:
    """Time, type, key and x."""
    names = ("ts", "type", "id", "x")
    return pa.table({name: [row[n] for row in rows] for n, name in enumerate(names)})


# Key 1: a match of 0, 1. Key 2: b.x is too low. Key 3: the b comes too late. Key 4: an x between.
# Key 5: no b at all.
EVENTS = events(
    (1, "A", 1, 1),
    (2, "B", 1, 9),
    (3, "A", 2, 1),
    (4, "B", 2, 5),
    (5, "A", 3, 1),
    (6, "A", 4, 1),
    (7, "X", 4, 1),
    (8, "B", 4, 9),
    (9, "A", 5, 1),
    (16, "B", 3, 9),
)
QUERY = "PATTERN A a ; !X n ; B b WHERE [id] AND b.x > 6 WITHIN 10"


def why(
    query: str, data: object = EVENTS, rows: int | None = ROWS, misses: int = MISSES
) -> cep.Why:
    return cep.why(data, query, time="ts", type="type", rows=rows, misses=misses)


def test_who_reaches_a_step_and_what_stops_the_others() -> None:
    report = why(QUERY)
    assert report.matches == 1
    assert report.steps == (
        ReportedStep("A a", 5, ()),
        ReportedStep(
            "B b",
            1,
            (
                Lost("candidate", "no B b in the window", 1),
                Lost("condition", "b.x > 6", 1),
                Lost("negation", "!X n", 1),
                Lost("window", "WITHIN 12 units", 1),
            ),
        ),
        ReportedStep("match", 1, ()),
    )


def test_events_of_each_variable() -> None:
    assert why(QUERY).variables == (
        VariableEvents("a", False, 5, (), 5),
        VariableEvents("n", True, 1, (), 1),
        VariableEvents("b", False, 4, (("b.x > 6", 3),), 3),
    )


def test_without_each_part() -> None:
    changes = {part.text: part for part in why(QUERY).without}
    assert changes["b.x > 6"] == WithoutPart("condition", "b.x > 6", 2, True, 1)
    assert changes["!X n"] == WithoutPart("negation", "!X n", 2, True, 1)
    # The b of key 3 is 11 after its a: `end - start < window` needs 12.
    assert changes["WITHIN 12 units"] == WithoutPart("window", "WITHIN 12 units", 2, True, 1)


def test_clauses_that_choose_among_matches() -> None:
    data = events((1, "A", 1, 1), (2, "A", 1, 1), (3, "B", 1, 5), (4, "B", 1, 7))
    report = why(
        "PATTERN A a ; B b WITHIN 9 HAVING b.x > 6 AFTER MATCH SKIP TO NEXT EVENT LIMIT 1", data
    )
    assert report.matches == 1
    # LIMIT leaves out the match of the second a.
    assert report.steps[-1] == ReportedStep("match", 1, (Lost("limit", "LIMIT", 1),))
    assert {p.kind: p.more for p in report.without} == {"having": 0, "after match": 0, "limit": 1}
    skipped = why("PATTERN A a ; B b WITHIN 9 AFTER MATCH SKIP PAST LAST EVENT", data)
    # a1 b3 is kept; of the others only a2 begins another.
    assert skipped.steps[-1].lost == (Lost("after match", "AFTER MATCH SKIP PAST LAST EVENT", 1),)
    assert [p.more for p in skipped.without] == [3]


def test_a_window_of_events() -> None:
    report = why("PATTERN A a ; B b WHERE b.x = 5 WITHIN 3 EVENTS", EVENTS.slice(0, 4))
    assert report.matches == 1  # a3 b4
    assert report.without[-1] == WithoutPart("window", "WITHIN 4 EVENTS", 2, True, 1)


def test_the_nearest_misses_and_the_values_that_they_had() -> None:
    misses = why(QUERY).misses
    assert [(dict(m.rows), m.kind, m.text, m.values) for m in misses] == [
        ({"a": (2,), "b": (3,)}, "condition", "b.x > 6", (("b.x", "5"),)),
        ({"a": (5,), "b": (7,)}, "negation", "!X n", ()),
        ({"a": (4,), "b": (9,)}, "window", "WITHIN 12 units", ()),
        ({"a": (8,)}, "candidate", "no B b in the window", ()),
    ]
    assert why(QUERY, misses=1).misses == misses[:1]


def test_a_misspelled_type_and_a_misspelled_value() -> None:
    data = EVENTS.append_column("card", pa.array(["gold", "silver"] * 5))
    report = why("PATTERN A a ; BB b WHERE a.card = 'golden' WITHIN 5", data)
    assert "no event is of type `BB`; did you mean `B`?" in report.notes
    assert "no event has 'golden' in `card`; did you mean 'gold'?" in report.notes


def test_a_variation_that_cant_be_run_is_named() -> None:
    report = why("PATTERN A a -> B+ b -> X x WHERE [id]")
    assert report.steps[1].reached is None
    assert any("B+ b" in note and "needs a window" in note for note in report.notes)


def test_an_exception_and_a_negation_with_a_time_of_its_own() -> None:
    during = why("PATTERN (A a ; B b) \\ X x WHERE [id] WITHIN 20")
    assert {p.text: p.more for p in during.without}["\\ X x"] == 1
    timed = why("PATTERN A a ; !B b FOR 5 WHERE [id]")
    assert timed.steps[-1].lost == (Lost("negation", "!B b FOR 5 units", 3),)


def test_conjunctions_and_disjunctions() -> None:
    data = events((1, "B", 1, 1), (2, "A", 1, 1), (30, "A", 2, 1))
    both = why("PATTERN A a & B b WITHIN 9", data)
    assert [(s.text, s.reached) for s in both.steps] == [("A a", 2), ("B b", 1), ("match", 1)]
    either = why("PATTERN A a ; (B b | X x) WHERE [id] WITHIN 10")
    assert [s.reached for s in either.steps] == [5, 3, 3]


def test_whole_keys_of_large_data() -> None:
    many = pa.table(
        {
            "ts": range(1000),
            "type": ["A", "B"] * 500,
            "id": [n // 2 for n in range(1000)],
            "x": [1] * 1000,
        }
    )
    report = why("PATTERN A a ; B b WHERE [id] WITHIN 9", many, rows=100)
    assert (report.events, report.total, report.matches) == (100, 1000, 50)
    assert report.sample == "100 of 1,000 events: those of 50 of 500 values of id"
    assert "50 matches in 100 of 1,000 events" in str(report)
    unkeyed = why("PATTERN A a => B b", many, rows=100)
    assert unkeyed.sample == "100 of 1,000 events, one after the other in time"
    assert unkeyed.matches == 50


def test_streams_and_frames() -> None:
    frame = EVENTS.to_pandas()
    assert why(QUERY, frame).steps == why(QUERY).steps
    streams = {name: frame[frame.type == name].drop(columns="type") for name in "ABX"}
    report = cep.why(streams, QUERY, time="ts")
    assert report.steps == why(QUERY).steps
    with pytest.raises(cep.DataError, match="why\\(\\) runs variations"):
        cep.why(iter(EVENTS.to_batches()), QUERY, time="ts", type="type")


def test_forms() -> None:
    hostile = EVENTS.append_column("s", pa.array(["<script>alert(1)</script>"] * 10))
    report = why("PATTERN A a ; B b WHERE [id] AND a.s = '<b>' WITHIN 5", hostile)
    assert repr(report) == (
        "Why(\"PATTERN A a ; B b WHERE [id] AND a.s = '<b>' WITHIN 5 units\", no match)"
    )
    assert json.loads(report.to_json())["version"] == 1
    assert json.loads(report.to_json())["steps"][0]["text"] == "A a"
    assert "<b>" not in report.to_html() and "<script" not in report.to_html()
    assert report._repr_html_() in report.to_html()


def test_the_text() -> None:
    assert str(why(QUERY)) == (
        "PATTERN A a ; !X n ; B b\n"
        "WHERE [id] AND b.x > 6\n"
        "WITHIN 10 units\n"
        "\n"
        "1 match in 10 events\n"
        "\n"
        "step   reached  lost\n"
        "A a          5\n"
        "B b          1  1 no B b in the window, 1 by b.x > 6, 1 by !X n, "
        "1 only outside the window (WITHIN 12 units)\n"
        "match        1\n"
        "\n"
        "variable  events\n"
        "a              5  events of the type\n"
        "!n             1  events of the type\n"
        "b              4  events of the type\n"
        "               3  b.x > 6\n"
        "\n"
        "change                matches\n"
        "without [id]          1 more\n"
        "without b.x > 6       1 more\n"
        "without !X n          1 more\n"
        "with WITHIN 12 units  1 more\n"
        "\n"
        "nearest misses: rows\n"
        "a 2, b 3              fails b.x > 6: b.x is 5\n"
        "a 5, b 7              forbidden by !X n\n"
        "a 4, b 9              needs WITHIN 12 units\n"
        "a 8                   no B b in the window"
    )


def test_timestamps_and_saving(tmp_path: object) -> None:
    frame = pd.DataFrame(
        {"ts": pd.to_datetime(["2026-01-01 10:00", "2026-01-01 11:30"]), "type": ["A", "B"]}
    )
    report = cep.why(frame, "PATTERN A a ; B b WITHIN 1 hour", time="ts", type="type")
    assert report.without[-1].text == "WITHIN 5401 seconds"  # the end of a window is outside
    with pytest.raises(cep.DataError, match=r"saved as \.txt, \.json or \.html"):
        report.save(f"{tmp_path}/why.png")
    report.save(f"{tmp_path}/why.html")


def test_of_answers_the_matches_are_explained() -> None:
    """LIMIT and GROUP BY are about answers."""
    grouped = f"{QUERY} GROUP BY a.id RETURN a.id, count(*) AS n LIMIT 1"
    plain = cep.why(EVENTS, QUERY, time="ts", type="type")
    report = cep.why(EVENTS, grouped, time="ts", type="type")
    assert (report.matches, report.steps, report.without) == (
        plain.matches,
        plain.steps,
        plain.without,
    )
    assert report.notes[-1] == "figures are of the matches, before they are grouped into answers"
    assert cep.timeline(EVENTS, grouped, time="ts", type="type").found == plain.matches


def test_what_a_terminal_would_obey_is_not_printed() -> None:
    escape = "\x1b[31m\nred"
    data = pa.table({"ts": [1, 2], "type": ["A", "B"], "x": ["q", escape]})
    query = "PATTERN A a ; B b WHERE b.x = 'q' WITHIN 5"
    both_a = data.set_column(1, "type", pa.array(["A", "A"]))
    texts = [
        str(why(query, data)),
        str(cep.why(data, query, events={"a": 0, "b": 1}, time="ts", type="type")),
        str(cep.funnel(data, "PATTERN B b", by="x", time="ts", type="type")),
        str(
            why(
                "PATTERN A a WHERE a.x = 'red'",
                both_a,
            )
        ),
    ]
    assert all("red" in text and "\x1b" not in text for text in texts)


def test_a_number_of_misses_that_is_none() -> None:
    assert why(QUERY, misses=0).misses == ()
    with pytest.raises(cep.DataError, match="at least 0, not -1"):
        why(QUERY, misses=-1)
