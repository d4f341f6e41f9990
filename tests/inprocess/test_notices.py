"""What a run says of its events: types that none of them has, times that are too fine, ties."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

import cepheid as cep
from tests.cli.running import run as command

EVENTS = pa.table({"ts": [1, 2, 3], "type": ["LOGIN", "BUY", "LOGOUT"]})


def told(data: Any, query: str | cep.RuleSet, **named: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = cep.match(data, query, **{"time": "ts", "type": "type", "jit": False, **named})
        if isinstance(found, pa.RecordBatchReader):
            found.read_all()
    return [str(warning.message) for warning in caught]


class TestTypes:
    MISSPELLED = "no event is of type `LOGINN`; did you mean `LOGIN`?"

    def test_misspelled(self) -> None:
        query = "PATTERN LOGINN a ; BUY b WITHIN 9 RETURN a.ts"
        assert told(EVENTS, query) == [self.MISSPELLED]
        batches = iter(EVENTS.to_batches(max_chunksize=1))
        assert told(batches, query) == [self.MISSPELLED]
        coded = EVENTS.set_column(1, "type", EVENTS["type"].dictionary_encode())
        assert told(coded, query) == [self.MISSPELLED]

    def test_right(self) -> None:
        assert told(EVENTS, "PATTERN LOGIN a ; BUY b WITHIN 9 RETURN a.ts") == []
        assert told(EVENTS, "PATTERN LOGIN a WHERE a.ts > 5 RETURN a.ts") == []

    def test_a_type_that_comes_late(self) -> None:
        def stream() -> Iterator[pa.RecordBatch]:
            for n in range(5):
                yield pa.record_batch({"ts": [n], "type": ["LOGIN" if n == 4 else "LOGOUT"]})

        assert told(stream(), "PATTERN LOGIN a ; LOGIN b WITHIN 9 RETURN a.ts") == []

    def test_unlike_any_other(self) -> None:
        query = "PATTERN REFUND a RETURN a.ts"
        wanted = "no event is of type `REFUND`; `type` has `BUY`, `LOGIN`, `LOGOUT`"
        assert told(EVENTS, query) == [wanted]

    def test_one_that_may_be_missing(self) -> None:
        """What is negated, or one of several, may not occur for once: if matches are found all the
        same, only what looks misspelled is reported."""
        assert told(EVENTS, "PATTERN LOGIN a ; !REFUND r ; BUY b WITHIN 9 RETURN a.ts") == []
        assert told(EVENTS, "PATTERN ANY(LOGIN, REFUND) a RETURN a.ts") == []
        wrong = "PATTERN LOGIN a ; !LOGOUTT r ; BUY b WITHIN 9 RETURN a.ts"
        assert told(EVENTS, wrong) == ["no event is of type `LOGOUTT`; did you mean `LOGOUT`?"]

    def test_numbers_are_types(self) -> None:
        data = pa.table({"ts": [1, 2], "type": [7, 8]})
        wanted = "no event is of type `LOGIN`; `type` has `7`, `8`"
        assert told(data, "PATTERN LOGIN a RETURN a.ts") == [wanted]
        assert told(data, "PATTERN `7` a RETURN a.ts") == []

    def test_without_events(self) -> None:
        assert told(EVENTS.slice(0, 0), "PATTERN LOGINN a RETURN a.ts") == []

    def test_streams_may_be_empty(self) -> None:
        parts = {"a": pa.table({"ts": [1]}), "b": pa.table({"ts": pa.array([], pa.int64())})}
        assert told(parts, "PATTERN a ; b WITHIN 9 RETURN a.ts", type=None) == []
        chained = ["INTO Pair PATTERN BUY x ; BUY y WITHIN 9", "PATTERN Pair p RETURN p.x"]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            cep.match(EVENTS, chained, time="ts", type="type")
        assert caught == []

    def test_expired_partial_matches(self) -> None:
        """There a type that is missing is what is looked for."""
        found = cep.timeouts(
            EVENTS, "PATTERN BUY a ; REFUND b WITHIN 9 RETURN a.ts", time="ts", type="type"
        )
        assert found.num_rows == 1

    def test_rules(self) -> None:
        rules = cep.RuleSet.of(
            {
                "in": "PATTERN LOGINN a ; BUY b WITHIN 9 RETURN a.ts",
                "back": "PATTERN REFUND a RETURN a.ts",
            }
        )
        with pytest.warns(UserWarning) as caught:
            rules.match(EVENTS, time="ts", type="type")
        assert [str(one.message) for one in caught] == [f"in: {self.MISSPELLED}"]

    def test_analyze(self) -> None:
        with pytest.warns(UserWarning, match="no event is of type `LOGINN`; did you mean `LOGIN`"):
            query = "PATTERN LOGINN a ; REFUND b WITHIN 9"
            cep.analyze(EVENTS, query, time="ts", type="type")

    def test_check(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        pa.csv.write_csv(EVENTS, tmp_path / "e.csv")
        query = tmp_path / "q.cep"
        query.write_text("PATTERN LOGINN a ; !REFUND r ; BUY b WITHIN 9 RETURN a.ts")
        given = ("--input", str(tmp_path / "e.csv"), "--time", "ts", "--type", "type")
        assert command("check", str(query), *given, "--unit", "s") == 0
        lines = capsys.readouterr().err.splitlines()
        assert any(self.MISSPELLED in line for line in lines)
        assert any("no event is of type `REFUND`" in line for line in lines)


class TestNanoseconds:
    TYPE = pa.timestamp("ns")

    def events(self, times: list[int]) -> pa.Table:
        return pa.table({"ts": pa.array(times, self.TYPE), "n": range(len(times))})

    def test_events_that_become_simultaneous(self) -> None:
        """1000 and 1999 are in one microsecond, 1999 and 2000 are not."""
        data = self.events([1999, 1000, 2000, 2000, 2001])
        query = "PATTERN a ; b WITHIN 1 second RETURN a.n AS a, b.n AS b"
        (message,) = told(data, query, type=None)
        assert message.startswith("2 of 5 events are less than a microsecond after the previous")
        assert message.endswith("tie='ts' keeps their order")
        assert told(data, query, type=None, tie="ts") == []
        found = cep.match(data, query, time="ts", tie="ts", jit=False)
        pairs = sorted((row["a"], row["b"]) for row in found.to_pylist())
        assert pairs == [(0, 2), (0, 3), (0, 4), (1, 0), (1, 2), (1, 3), (1, 4), (2, 4), (3, 4)]

    def test_across_batches(self) -> None:
        batches = self.events([1000, 1001, 1002, 5000]).to_batches(max_chunksize=1)
        (message,) = told(iter(batches), "PATTERN a RETURN a.n", type=None)
        assert message.startswith("2 of 4 events")

    def test_rules(self) -> None:
        rules = cep.RuleSet.of({"all": "PATTERN a RETURN a.n"})
        with pytest.warns(UserWarning, match="1 of 3 events are less than a microsecond after"):
            rules.match(self.events([5000, 1000, 1001]), time="ts")


class TestTies:
    """Two events of id 1 at 2, three of id 2 at 3, of which one is of no class; id 3 is alone."""

    EVENTS = pa.table(
        {
            "ts": [1, 2, 2, 2, 3, 3, 3, 4],
            "type": ["A", "B", "A", "A", "B", "A", "Z", "B"],
            "id": [1, 1, 3, 1, 2, 2, 2, 1],
        }
    )
    KEYED = "{} of 8 events have the same `ts` and `id` as another, and {} depends on their order"

    @pytest.mark.parametrize(
        ("query", "what"),
        [
            ("PATTERN A a -> B b WHERE [id] WITHIN 9", "`->`"),
            ("PATTERN A a => B b WHERE [id] WITHIN 9", "`=>`"),
            (
                "PATTERN A a ; B b WHERE [id] WITHIN 9 AFTER MATCH SKIP PAST LAST EVENT",
                "AFTER MATCH",
            ),
            ("PATTERN A a ; B b WHERE [id] WITHIN 9 EVENTS", "a window of EVENTS"),
            ("PATTERN A a ; B? c ; B b WHERE [id] WITHIN 9", "`?`"),
            ("PATTERN A a ; B+ c RUNS WHERE [id] WITHIN 9", "the choice of a group"),
            ("PATTERN A a ; B{2} c WHERE [id] WITHIN 9", "the choice of a group"),
            (
                "PATTERN A a ; B+ c ; B b WHERE [id] AND c.ts > PREV(c.ts) WITHIN 9",
                "a condition on the element before",
            ),
            (
                "PATTERN A a ; B+ c ; B b WHERE [id] WITHIN 9 RETURN FIRST(c.id) AS f",
                "PREV, FIRST or LAST",
            ),
        ],
    )
    def test_what_depends_on_the_order(self, query: str, what: str) -> None:
        (message,) = told(self.EVENTS, query)
        every = what in ("`=>`", "a window of EVENTS")  # these look at the Z, too
        assert message.startswith(self.KEYED.format(5 if every else 4, what))
        assert message.endswith("pass tie=..., the column that orders them")

    @pytest.mark.parametrize(
        "query",
        [
            "PATTERN A a ; B b WHERE [id] WITHIN 9",
            "PATTERN A a & B b WHERE [id] WITHIN 9",
            "PATTERN A a ; !B n ; B b WHERE [id] WITHIN 9",
            "PATTERN A a ; B+ c ; B b WHERE [id] WITHIN 9 RETURN sum(c.ts) AS s, collect(c.ts)",
            "PATTERN A a ; B b WHERE [id] WITHIN 9 AFTER MATCH NO SKIP",
        ],
    )
    def test_what_does_not(self, query: str) -> None:
        assert told(self.EVENTS, query) == []

    def test_of_rules_it_is_told_once(self) -> None:
        """The merged rules and those that run by themselves; the last one doesn't depend on it."""
        strict = "PATTERN A a => B b WHERE [id] WITHIN 9 RETURN a.ts"
        rules = {
            "next": "PATTERN A a -> B b WHERE [id] WITHIN 9 RETURN a.ts",
            "strict": strict,
            "other": strict.replace("9", "8"),
            "plain": "PATTERN A a ; B b WITHIN 9 RETURN a.ts",
        }
        (message,) = told(self.EVENTS, cep.RuleSet.of(rules))
        assert message == (
            "5 of 8 events have the same `ts` and `id` as another, and rules such as next (`->`) "
            "and 2 more depend on their order: pass tie=..., the column that orders them"
        )
        data = self.EVENTS.append_column("n", pa.array(range(8)))
        assert told(data, cep.RuleSet.of(rules), tie="n") == []
        assert told(self.EVENTS, cep.RuleSet.of({"plain": rules["plain"]})) == []

    def test_with_a_tie_break(self) -> None:
        data = self.EVENTS.append_column("n", pa.array(range(8)))
        assert told(data, "PATTERN A a -> B b WHERE [id] WITHIN 9", tie="n") == []

    def test_without_a_key_or_with_one_of_two_names(self) -> None:
        """At 2 there are three of a class, at 3 two."""
        wanted = "5 of 8 events have the same `ts` as another"
        (message,) = told(self.EVENTS, "PATTERN A a -> B b WITHIN 9")
        assert message.startswith(wanted)
        data = self.EVENTS.append_column("own", self.EVENTS["id"])
        (message,) = told(data, "PATTERN A a -> B b WHERE a.id = b.own WITHIN 9")
        assert message.startswith(wanted)

    @pytest.mark.parametrize("size", [1, 2, 3, 5])
    def test_across_batches(self, size: int) -> None:
        batches = self.EVENTS.to_batches(max_chunksize=size)
        (message,) = told(iter(batches), "PATTERN A a -> B b WHERE [id] WITHIN 9")
        assert message.startswith("4 of 8 events")

    def test_events_of_one_time_in_different_keys_are_no_ties(self) -> None:
        data = pa.table({"ts": [1] * 9 + [2] * 9, "type": ["A", "B"] * 9, "id": [*range(9)] * 2})
        assert told(data, "PATTERN A a -> B b WHERE [id] WITHIN 9") == []

    def test_events_without_a_time_are_no_ties(self) -> None:
        data = pa.table({"ts": [1, None, None, 2], "type": ["A", "A", "B", "B"], "id": [1] * 4})
        (message,) = told(data, "PATTERN A a -> B b WHERE [id] WITHIN 9")
        assert message.startswith("2 of 4 events have no time")

    @pytest.mark.parametrize("batches", [1, 4])
    def test_of_very_many_some_are_looked_at(
        self, batches: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("cepheid.engine.rows.ties.MOST", 5)
        data = pa.table({"ts": [1] * 20 + [2], "type": ["A"] * 20 + ["B"], "id": [1] * 21})
        given = iter(data.to_batches(max_chunksize=24 // batches))
        (message,) = told(given, "PATTERN A a -> B b WHERE [id] WITHIN 9")
        assert message.startswith("at least 6 of 21 events")
