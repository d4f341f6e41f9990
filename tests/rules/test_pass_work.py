"""What workers do with the rows of a pass, without Spark: rows go to partitions by a key, come in
batches of any size, and every rule finds what it finds alone, by the oracle."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cepheid.algebra.types import Schema
from cepheid.engine.attribution.json_rows import alert_schema
from cepheid.engine.rows.order import sorted_by
from cepheid.options import Options
from cepheid.rules import RuleSet
from cepheid.rules.compile.compiled_rules import CompiledRules, EngineRun, compile_rules
from cepheid.rules.run.passes import needs_of
from cepheid.spark.partitions import rule_work
from cepheid.spark.partitions.rule_work import PassWork, QueryWork, alerts
from tests.corpus.reader import table
from tests.examples import examples
from tests.oracle.events import Event
from tests.properties.strategies import COLUMNS, streams
from tests.rules.test_batch import expected
from tests.rules.test_variants import TEMPLATES, drawn_rows

SCHEMA = Schema(COLUMNS, time="ts", type="type", tie="n")
OPTIONS = Options("ts", type="type", tie="n", jit=False)
WRITTEN = (
    "PATTERN A a ; B+ b ; C c WHERE [id] AND b.x > 0 HAVING count(b) > 1 WITHIN 9",
    "PATTERN A a ; !B b WHERE [id] WITHIN 5",
    "PATTERN A a => B b WHERE [id] AND a.x < b.x",
    "PATTERN A a ; B b WHERE [id] AND a.x < b.x WITHIN 7",
)


@st.composite
def cases(draw: Any) -> tuple[RuleSet, tuple[Event, ...], int]:
    rules = RuleSet()
    for n, query in enumerate(draw(st.lists(st.sampled_from(TEMPLATES), min_size=1, max_size=3))):
        rows = drawn_rows(draw, query)
        rules |= RuleSet.from_template(f"template {n}", f"PATTERN {query}", rows)
    for n, query in enumerate(draw(st.lists(st.sampled_from(WRITTEN), max_size=2))):
        rules |= RuleSet.of({f"written {n}": query})
    return rules, draw(streams(("A", "B", "C"), 24)), draw(st.integers(1, 9))


@settings(
    max_examples=examples("pass work"), suppress_health_check=list(HealthCheck), deadline=None
)
@given(cases())
def test_every_rule_finds_what_it_finds_alone(case: tuple[RuleSet, Any, int]) -> None:
    rules, events, size = case
    data = sorted_by(table(SCHEMA, events), SCHEMA.order)
    compiled = compile_rules(rules.templates, data.schema, OPTIONS, by_key=True, deals=True)
    schema = alert_schema(compiled.rules, data.schema.field("ts").type)
    found: dict[str, Counter[str]] = {name: Counter() for name in rules}
    with patch.object(rule_work, "STRETCH", 4):
        for part in parts(compiled, data, schema, size):
            for row in part.to_pylist():
                whole = [row["match_start"], row["match_end"], json.loads(row["match"])]
                found[row["rule"]][json.dumps(whole, sort_keys=True)] += 1
    for name, rule in rules.items():
        assert found[name] == expected(rule, SCHEMA, events), (rule.query.text, rule.params)


def parts(
    compiled: CompiledRules, data: pa.Table, schema: pa.Schema, size: int
) -> Iterator[pa.RecordBatch]:
    """Keyed queries over two partitions, all others over one."""
    keyed = [run for run in compiled.runs if all("id" in keys(run, m) for m in range(members(run)))]
    others = [run for run in compiled.runs if run not in keyed]
    by_key = next((group for group in compiled.groups if group.key == "id"), None)
    for number in (0, 1):
        rows = data.filter(pc.equal(pc.bit_wise_and(data["id"], 1), number))
        work = PassWork(by_key, tuple(map(query_work, keyed)), compiled.rules, schema, False)
        yield from alerts(work, batches(rows, size))
    for group in (*(g for g in compiled.groups if g is not by_key), None):
        queries = () if group is not None else tuple(map(query_work, others))
        yield from alerts(
            PassWork(group, queries, compiled.rules, schema, False), batches(data, size)
        )


def members(run: EngineRun) -> int:
    return len(run.members)


def keys(run: EngineRun, member: int) -> frozenset[str]:
    return needs_of(run.members[member].bound).keys


def query_work(run: EngineRun) -> QueryWork:
    return QueryWork(run.prepared, run.attributions, run.members[0].variants)


def batches(rows: pa.Table, size: int) -> Iterator[pa.RecordBatch]:
    for begin in range(0, rows.num_rows, size):
        yield from rows.slice(begin, size).combine_chunks().to_batches()


def test_rows_are_held_for_a_stretch_alone() -> None:
    """Of 400 rows, those that a later one may need."""
    rules = RuleSet.from_template(
        "three", "PATTERN A{3} a WHERE [id] AND a.x > :p WITHIN 5", {"p": [1, 2, 3]}
    )
    count = 400
    data = pa.table(
        {"ts": range(count), "type": ["A"] * count, "id": [1] * count, "x": [5] * count}
    )
    options = Options("ts", type="type", jit=False)
    compiled = compile_rules(rules.templates, data.schema, options, by_key=True, deals=True)
    (run,) = compiled.runs
    work = PassWork(
        None, (query_work(run),), compiled.rules, alert_schema(compiled.rules, pa.int64()), False
    )
    most = 0
    dealt = type(run.members[0].variants).dealt

    def noted(variants: Any, rows: pa.Table) -> Iterator[pa.Table]:
        nonlocal most
        most = max(most, rows.num_rows)
        return dealt(variants, rows)

    with (
        patch.object(rule_work, "STRETCH", 50),
        patch.object(type(run.members[0].variants), "dealt", noted),
    ):
        found = Counter(
            rule
            for batch in alerts(work, batches(data, 10))
            for rule in batch.column("rule").to_pylist()
        )
    assert found == {f"three-{n}": count - 2 for n in (1, 2, 3)}
    assert most < 80
