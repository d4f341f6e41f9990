"""Rules over a stream that is cut, shuffled and interrupted at random: every rule finds what it
finds alone in the events that are matched while it is there."""

from __future__ import annotations

import json
import random
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cepheid.algebra import bind
from cepheid.algebra.nested_columns import read_fields, with_extracted
from cepheid.algebra.query import BoundQuery, Clock
from cepheid.algebra.types import Schema
from cepheid.engine.attribution.json_rows import alert_schema
from cepheid.language import parse
from cepheid.options import Options
from cepheid.rules import Rule, RuleSet
from cepheid.rules.compile.compiled_rules import compile_rules
from cepheid.rules.load.lifted import lifted
from cepheid.rules.run.passes import Needs, needs, passes
from cepheid.rules.run.portable import decoded, encoded
from cepheid.rules.run.stream_compiler import StreamCompiler, rules_schema
from cepheid.streaming.buckets.folded_bucket import FOLD
from cepheid.streaming.buckets.rule_bucket import (
    Generations,
    RuleBucket,
    RulesDiff,
    RulesJob,
    RulesProgram,
    RulesVersion,
    open_rules,
)
from tests.corpus.reader import table
from tests.examples import examples
from tests.oracle.events import Event
from tests.properties.strategies import COLUMNS
from tests.rules.strategies import Set, sets
from tests.rules.test_batch import expected, rule_set
from tests.streaming.simulation import MemoryCells, Weather, same

LONGEST = 15
"""Windows that count events are shorter."""

WEATHER = st.builds(
    Weather,
    seed=st.integers(0, 1 << 16),
    most=st.sampled_from((1, 3, 7, 30)),
    delay=st.sampled_from((None, None, 3, 8)),
    buckets=st.sampled_from((1, 2)),
    workers=st.sampled_from((1, 2)),
    failing=st.sampled_from((0.0, 0.2)),
)

Found = dict[str, Counter[str]]


@dataclass
class Life:
    """A rule as long as it is there and the same: the events that were matched meanwhile."""

    rule: Any
    events: list[Event] = field(default_factory=list)
    found: Counter[str] = field(default_factory=Counter)
    ended: bool = False


class Cells(MemoryCells):
    """Headers of regions and open groups are written again and again; all other segments once."""

    def set_segment(self, number: int, data: bytes) -> None:
        if number >= 1 << 32 and number % (1 << 32) in (0, FOLD + 1):
            self.segments.pop(number, None)
        super().set_segment(number, data)

    def copy(self) -> Cells:
        return Cells(self.value, dict(self.segments), self.written)


class RulesCluster:
    """Runs rules over batches, each pass by itself, bucket by bucket, on some worker."""

    def __init__(
        self,
        keys: Sequence[str | None],
        options: Options,
        weather: Weather,
        columns: pa.Schema | None = None,
        read: pa.Schema | None = None,
        pause: int | None = None,
    ) -> None:
        """`columns` are those of the events, `read` what rules read of nested ones, too; alerts are
        throttled by the `pause`."""
        self.pause = pause
        self.suppressed = 0
        self.weather, self.options = weather, options
        self.random = random.Random(weather.seed)
        flat = Schema(COLUMNS, time="ts", type="type", tie=options.tie)
        self.columns = columns or table(flat, ()).schema
        self.read = read or self.columns
        self.schema = rules_schema(self.columns, options, self.read)
        texts = pa.array([], pa.string())
        self.found = alert_schema(pa.table({"rule": texts, "template": texts}), pa.int64())
        self.jobs = {key: self.job(key, tuple(keys)) for key in keys}
        self.cells: dict[Any, Cells] = {}
        self.workers: list[dict[Any, RuleBucket]] = [{} for _ in range(weather.workers)]
        self.highest: int | None = None
        self.watermark = -(1 << 61)

    def job(self, key: str | None, keys: tuple[str | None, ...]) -> RulesJob:
        compiler = StreamCompiler(
            run=str(id(self)),
            columns=self.columns,
            options=self.options,
            key=key,
            keys=keys,
            schema=self.read,
            events=self.schema,
            alert_schema=self.found,
            delayed=self.weather.delay is not None,
            pause=self.pause,
        )
        return RulesJob(compiler, {"key": str(key)}, self.weather.buckets)

    def batch(self, rows: pa.Table, rules: RulesVersion | None) -> list[dict[str, Any]]:
        if self.highest is not None:
            delay = 1 if self.weather.delay is None else self.weather.delay
            self.watermark = max(self.watermark, self.highest - delay)
        rows = with_extracted(rows, self.read.names)
        found: list[dict[str, Any]] = []
        for key in self.jobs:
            count = 1 if key is None else self.weather.buckets
            for number in range(count):
                place = [_bucket(row.get(key or ""), count) for row in rows.to_pylist()]
                own = rows.filter(pa.array([p == number for p in place], pa.bool_()))
                found += self.run(key, number, own, rules)
        if rows.num_rows:
            self.highest = max(*rows["ts"].to_pylist(), self.highest or 0)
        return found

    def run(
        self, key: str | None, number: int, rows: pa.Table, rules: RulesVersion | None
    ) -> list[dict[str, Any]]:
        place = (key, number)
        while True:
            worker = self.random.choice(self.workers)
            cells = self.cells.get(place, Cells()).copy()
            bucket = open_rules(self.jobs[key], cells, worker.get(place))
            worker[place] = bucket
            found: list[dict[str, Any]] = []
            for matches in bucket.step(cells, rows.to_batches(), self.watermark, rules):
                found += matches.to_pylist()
                if self.random.random() < self.weather.failing:
                    break
            else:
                if self.random.random() >= self.weather.failing:
                    bucket.save(cells)
                    if self.random.random() >= self.weather.failing:
                        self.cells[place] = cells
                        self.suppressed += bucket.report().suppressed
                        return found


def _bucket(value: Any, count: int) -> int:
    return 0 if value is None else zlib.crc32(str(same(value)).encode()) % count


def arranged(drawn: Set, weather: Weather) -> list[list[Event]]:
    """The events in batches, each late by up to the delay; those of one time as they are ordered,
    which counts where nothing waits for others."""
    chance = random.Random(weather.seed)
    delay = weather.delay or 0
    times = {e.values["ts"] for e in drawn.events}
    late = {t: chance.randrange(delay) if delay else 0 for t in sorted(times)}

    def arrival(event: Event) -> tuple[int, bool, int]:
        time, tie = event.values["ts"], event.values[drawn.tie] if drawn.tie else None
        return time + late[time], tie is not None, tie or 0

    order = sorted(drawn.events, key=arrival)
    batches, begin = [], 0
    while begin < len(order):
        size = chance.randrange(weather.most + 1)
        batches.append(order[begin : begin + size])
        begin += size
    return batches


def counting(rule: Rule, schema: Schema) -> BoundQuery | None:
    """The query of a rule, if its window counts events."""
    query = bind(parse(rule.query.text), schema, rule.params)
    return query if query.window is not None and query.window.clock is Clock.EVENTS else None


def fillers(events: Sequence[Event]) -> list[Event]:
    """Where a window counts events, time alone ends nothing: events that no class takes, enough for
    every key."""
    later = {"ts": max((e.values["ts"] for e in events), default=0) + 5000, "type": "filler"}
    return [replace(e, values={**e.values, **later}) for _ in range(LONGEST) for e in events]


def released(waiting: list[Event], watermark: int, delay: int | None) -> list[Event]:
    """What is matched in a batch, of the events that wait."""
    due = [e for e in waiting if delay is None or e.values["ts"] <= watermark]
    waiting[:] = [e for e in waiting if e not in due]
    return due


def check(drawn: Set, weather: Weather, changes: Sequence[frozenset[str]]) -> None:
    """`changes` are the names of templates that are there, from batch to batch in turn."""
    options = Options("ts", type="type", tie=drawn.tie, jit=False)
    schema = drawn.schema
    columns = table(schema, ()).schema
    whole = rule_set(drawn)
    needed = needs(whole.templates, columns, options)
    fitting = [t for t, own in zip(whole.templates, needed, strict=True) if isinstance(own, Needs)]
    counted = [own for rule in RuleSet(tuple(fitting)).values() if (own := counting(rule, schema))]
    # Where a class takes any event, nothing could fill a window that counts them.
    if not fitting or any(not v.types for query in counted for v in query.variables.values()):
        return
    required = compile_rules(tuple(fitting), columns, options).required
    read = read_fields(columns, required.union(columns.names))
    cluster = RulesCluster(passes(fitting, columns, options), options, weather, columns, read)
    batches = [*arranged(drawn, weather), fillers(drawn.events) if counted else [], []]
    lives: dict[str, Life] = {}
    over: list[Life] = []
    waiting: list[Event] = []
    for n, batch in enumerate(batches):
        there = changes[n % len(changes)] if n < len(batches) - 2 else None
        rules = None
        if there is not None:
            now = RuleSet(tuple(t for t in fitting if t.name in there))
            rules = RulesVersion(str(sorted(there)), encoded(now.templates))
            for name in [name for name in lives if name not in now]:
                lives[name].ended = True
                over.append(lives.pop(name))
            for name, rule in now.items():
                lives.setdefault(name, Life(rule))
        if n >= len(batches) - 2:
            cluster.highest = (cluster.highest or 0) + 1000
        found = cluster.batch(table(schema, tuple(batch)), rules)
        waiting += batch if there is not None else []
        due = released(waiting, cluster.watermark, weather.delay)
        for life in lives.values():
            life.events += due
        for row in found:
            text = [row["match_start"], row["match_end"], json.loads(row["match"])]
            lives[row["rule"]].found[json.dumps(text, sort_keys=True)] += 1
    merged = {str(name) for g in compile_rules(tuple(fitting), columns, options).groups
              for own in g.numbers for name in _names(fitting, own)}  # fmt: skip
    for life in [*over, *lives.values()]:
        events = tuple(sorted(life.events, key=drawn.events.index))
        want = expected(life.rule, schema, events)
        if life.ended and life.rule.name not in merged:
            assert life.found <= want, life.rule  # the rest was not yet known
        else:
            assert life.found == want, life.rule


def _names(templates: Sequence[Any], numbers: Any) -> list[str]:
    names = [name for t in templates for name in t.names.to_pylist()]
    return [names[n] for n in numbers.tolist()]


@settings(
    max_examples=examples("rules on streams"),
    suppress_health_check=list(HealthCheck),
    deadline=None,
)
@given(sets(), WEATHER)
def test_rules_that_stay(drawn: Set, weather: Weather) -> None:
    check(drawn, weather, [frozenset(drawn.templates)])


@settings(
    max_examples=examples("rules on streams"),
    suppress_health_check=list(HealthCheck),
    deadline=None,
)
@given(st.data(), sets(), WEATHER)
def test_rules_that_come_and_go(data: st.DataObject, drawn: Set, weather: Weather) -> None:
    some = st.frozensets(st.sampled_from(sorted(drawn.templates)))
    changes = data.draw(st.lists(some, min_size=1, max_size=6))
    check(drawn, weather, changes)


class Failing:
    """A compiler that fails with its next program, if it is asked to."""

    def __init__(self, compiler: StreamCompiler) -> None:
        self.compiler, self.fails = compiler, False

    def changed(self, generations: Generations, rules: bytes) -> RulesDiff:
        return self.compiler.changed(generations, rules)

    def compiled(self, generations: Generations, chains: bytes) -> RulesProgram:
        if self.fails:
            raise MemoryError
        return self.compiler.compiled(generations, chains)


def test_a_change_of_rules_that_fails_leaves_nothing_behind() -> None:
    """What a worker still has of a bucket is then no version of it: the batch is done again from
    what was saved."""
    options = Options("ts", type="type", jit=False)
    job = RulesCluster((None,), options, Weather(seed=0)).jobs[None]
    compiler = Failing(job.compiler)
    job = replace(job, compiler=compiler)
    first, second = (
        RulesVersion(name, encoded(RuleSet.of(rules).templates))
        for name, rules in (
            ("1", {"ab": "PATTERN A a ; B b WITHIN 9", "ac": "PATTERN A a ; C c WITHIN 9"}),
            ("2", {"ab": "PATTERN A a ; B b WITHIN 9", "bc": "PATTERN B b ; C c WITHIN 9"}),
        )
    )
    schema = Schema(COLUMNS, time="ts", type="type")
    one, two = (
        table(schema, [Event(n, t, {**dict.fromkeys(COLUMNS), "ts": t, "type": kind})])
        for n, (t, kind) in enumerate([(1, "A"), (2, "B")])
    )
    cells = Cells()
    bucket = open_rules(job, cells)
    assert list(bucket.step(cells, one.to_batches(), -(1 << 61), first)) == []
    bucket.save(cells)
    compiler.fails = True
    with pytest.raises(MemoryError):
        list(bucket.step(cells.copy(), two.to_batches(), 0, second))
    compiler.fails = False
    again = open_rules(job, cells, bucket)
    found = [
        row for own in again.step(cells, two.to_batches(), 0, second) for row in own.to_pylist()
    ]
    assert [row["rule"] for row in found] == ["ab"]
    again.save(cells)
    assert open_rules(job, cells).report().rows == 2


@pytest.mark.parametrize("pattern", ["A a ; B b", "A a ; C+ c ; B b"])
def test_written_rules_that_are_alike_come_and_go(pattern: str) -> None:
    """They are one template on the workers, too; a rule that stays keeps what it has begun."""
    options = Options("ts", type="type", jit=False)
    compiler = RulesCluster((None,), options, Weather(seed=0)).jobs[None].compiler
    job = RulesJob(compiler, {"key": "None"}, 1)
    texts = {f"r{n}": f"PATTERN {pattern} WHERE a.x >= {n} WITHIN 9" for n in range(12)}
    few = {name: text for name, text in texts.items() if name not in ("r1", "r3")}
    first, second = (
        RulesVersion(name, encoded(RuleSet.of(rules).templates))
        for name, rules in (("1", texts), ("2", {**few, "r20": texts["r0"]}))
    )
    assert len(lifted(decoded(first.rules))) == 1
    schema = Schema(COLUMNS, time="ts", type="type")
    events = [
        Event(n, t, {**dict.fromkeys(COLUMNS), "ts": t, "type": kind, "x": 3})
        for n, (t, kind) in enumerate([(1, "A"), (2, "C"), (3, "B")])
    ]
    cells = Cells()
    bucket = open_rules(job, cells)
    assert list(bucket.step(cells, table(schema, events[:2]).to_batches(), 0, first)) == []
    bucket.save(cells)
    again = open_rules(job, cells)
    step = again.step(cells, table(schema, events[2:]).to_batches(), 2, second)
    found = [row["rule"] for own in step for row in own.to_pylist()]
    assert sorted(found) == ["r0", "r2"]  # r20 came after the A


WAITING = {
    "next": "PATTERN A a -> B b WITHIN 9",
    "absent": "PATTERN B b ; !C c WITHIN 9",
    "nested": "PATTERN A a -> (A d ; B b) WITHIN 9",
}


@pytest.mark.parametrize("removed", [False, True])
def test_what_waits_goes_with_its_rule(removed: bool) -> None:
    """A match that is decided has come out by the time its rule is removed; one that waits for time
    to pass, or for simultaneous events, is not found then. The rule that is added again begins
    anew."""
    cluster = RulesCluster((None,), Options("ts", type="type", jit=False), Weather(seed=0))
    rules = encoded(RuleSet.of(WAITING).templates)
    versions = [RulesVersion("1", rules), RulesVersion("2", encoded(()) if removed else rules)]
    found = []
    batches = ([(1, "A"), (2, "A"), (3, "B")], [(4, "Z")], [(50, "B")], [(99, "Z")])
    for number, events in enumerate(batches):
        rows = [
            Event(n, t, {**dict.fromkeys(COLUMNS), "ts": t, "type": kind})
            for n, (t, kind) in enumerate(events)
        ]
        found.append(cluster.batch(table(cluster.schema, rows), versions[number == 1]))
    waited = [[], []] if removed else [["nested"], ["absent"]]
    assert [[row["rule"] for row in batch] for batch in found] == [
        ["next", "next"],
        *waited,
        ["absent"],
    ]
