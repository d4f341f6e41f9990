"""Random sequences over random streams: the partial matches that expire are the oracle's."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cepheid as cep
from cepheid.algebra.types import Schema
from tests.corpus.reader import START, Case, bound, table
from tests.examples import examples
from tests.oracle.match import outputs
from tests.oracle.timeouts import timeouts
from tests.properties.conditions import Conditions
from tests.properties.drawing import Kind
from tests.properties.full_strategies import durations
from tests.properties.patterns import Patterns
from tests.properties.strategies import COLUMNS, streams

QUANTIFIERS = ("+", "+", "*", "?", "{1,2}", "{0,2}", "{1,}")
MODES = ("", "", "", "", " PREFIXES", " SUBSETS", " RUNS", " STRICT")


class Sequences(Patterns, Conditions):
    """Sequences for which timeouts are defined."""

    def query(self) -> str:
        parts = [self.atom()]
        open_before = False
        for _ in range(self.choose(1, 2, 2, 3)):
            kind = self.draw(st.integers(0, 99))
            open_now = kind < 35 and not open_before
            if open_now:
                quantifier = self.choose(*QUANTIFIERS)
                mode = "" if quantifier == "?" else self.choose(*MODES)
                parts.append(self.closure(quantifier) + mode)
            elif kind < 40:
                parts.append(self.closure("{1}"))
            else:
                parts.append(self.atom())
            open_before = open_now
        if all(v.kind is not Kind.SINGLE for v in self.variables[1:]):
            parts.append(self.atom())
        operators = self.choose((";",), (";",), ("->",), (";", "->"))
        text = parts[0] + "".join(f" {self.choose(*operators)} {part}" for part in parts[1:])
        lines = [f"PATTERN {text}"]
        conditions = [self.condition() for _ in range(self.choose(0, 1, 1, 2, 3))]
        if conditions:
            lines.append(f"WHERE {' AND '.join(dict.fromkeys(conditions))}")
        if self.chance(10):
            lines.append(f"HAVING {self.having()}")
        if self.chance(20):
            lines.append(f"WITHIN {self.choose(2, 3, 5, 7)} EVENTS")
        else:
            lines.append(f"WITHIN {self.choose(2, 8, 4, 1, 12, 6, 3)}")
        if self.chance(10):
            lines.append("AFTER MATCH SKIP PAST LAST EVENT")
        returned = [f"{v.name}.row AS {v.name}" for v in self.variables]
        returned += [f"count({group}) AS n_{group}" for group in self.of_kind(Kind.GROUP)]
        lines.append(f"RETURN {', '.join(returned)}, duration() AS took")
        return "\n".join(lines)


@st.composite
def sequences(draw: st.DrawFn) -> Case:
    queries = Sequences(draw)
    text = queries.query()
    events = draw(streams(queries.types))
    kind = draw(st.sampled_from(("plain", "plain", "tie", "lasting")))
    schema = Schema(COLUMNS, time="ts", type="type", tie="n" if kind == "tie" else None)
    if kind == "lasting":
        schema = replace(schema, columns={**COLUMNS, START: COLUMNS["ts"]}, start=START)
        events = draw(durations(events))
    return Case("random", "timeouts", text, schema, events, by_hand=False)


def multiset(rows: Iterable[Mapping[str, Any]]) -> Counter[str]:
    return Counter(repr(sorted(row.items())) for row in rows)


def by_oracle(case: Case) -> Counter[str]:
    query = bound(case)
    return multiset(
        {
            "step": found.step,
            **outputs(query, found.match, case.events),
            "match_start": found.match.start,
            "match_end": found.match.end,
        }
        for found in timeouts(query, case.events)
    )


def by_engine(case: Case) -> Counter[str]:
    schema = case.schema
    options = cep.Options(schema.time, schema.type, schema.tie, schema.start, jit=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*can't")  # conditions that contradict others
        found = cep.timeouts(table(schema, case.events), case.query_text, options)
    return multiset(found.drop_columns(["steps", "reached", "missing"]).to_pylist())


@settings(
    max_examples=examples("timeouts"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(sequences())
def test_what_expires_is_what_the_oracle_says(case: Case) -> None:
    assert by_engine(case) == by_oracle(case)
