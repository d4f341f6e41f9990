"""What a bucket saves: states of its versions open, damage is noticed, other queries are refused,
plans survive, and what is written follows the batch."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.engine.rows.classes import CLASS_COLUMN
from cepheid.errors import StateError
from cepheid.options import Options
from cepheid.plan.reads import kept_columns
from cepheid.planner import prepare
from cepheid.planner.adapt import Adapter, Adaptive
from cepheid.streaming.buckets.bucket import Bucket, Job, open_bucket
from cepheid.streaming.cells import FORMAT
from cepheid.streaming.saved import decode
from cepheid.streaming.signature import signature
from cepheid.workloads import stocks
from tests.engine.harness import match_of, multiset
from tests.oracle.match import matches
from tests.streaming.keep_state import BEGINNING, SCENARIOS, Scenario, kept, versions
from tests.streaming.simulation import MemoryCells

# ── states that are kept ──


REFUSED = (1,)


@pytest.mark.parametrize("version", sorted({*versions()} - {*REFUSED}))
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_a_state_that_is_read_goes_on(scenario: Scenario, version: int) -> None:
    cells = kept(scenario, version)
    before = scenario.run(MemoryCells(), 0, scenario.saved)[1]
    bucket, after = scenario.run(cells, scenario.saved, len(scenario.batches))
    query = scenario.bound
    want = multiset(query, matches(query, scenario.case.events))
    assert after
    assert multiset(query, [match_of(query, row) for row in before + after]) == want
    assert bucket.report().late == 0


@pytest.mark.parametrize("version", REFUSED)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_a_state_that_is_not_read_is_refused(scenario: Scenario, version: int) -> None:
    want = f"has format {version}, and this version of Cepheid reads format {FORMAT}"
    with pytest.raises(StateError, match=want):
        open_bucket(scenario.job(), kept(scenario, version))


def test_states_of_todays_format_are_kept() -> None:
    assert FORMAT in versions()
    join, automaton, counted = (decode(kept(s, FORMAT).value or b"") for s in SCENARIOS)
    assert join.pending and join.rows
    choice = automaton.engine.choice
    assert choice is not None and choice.held and automaton.engine.strings
    assert counted.engine.numbering.ordinal


# ── damage ──


def damaged(how: str, data: bytes) -> bytes:
    middle = len(data) // 2
    match how:
        case "flipped":
            return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        case "cut":
            return data[:middle]
        case "longer":
            return data + b"\0"
        case "foreign":
            return b"another query's state"
        case "empty":
            return b""
        case "newer":
            return data[:4] + bytes([FORMAT + 1]) + data[5:]
        case _:
            raise AssertionError(how)


DAMAGE = {
    "flipped": "is damaged: its checksum is wrong",
    "cut": "is damaged: its checksum is wrong",
    "longer": "is damaged: its checksum is wrong",
    "foreign": "is not one of Cepheid's",
    "empty": "is not one of Cepheid's",
    "newer": f"has format {FORMAT + 1}, and this version of Cepheid reads format {FORMAT}",
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_header(how: str) -> None:
    scenario = SCENARIOS[0]
    cells = kept(scenario, FORMAT)
    cells.value = damaged(how, cells.value or b"")
    with pytest.raises(StateError, match=f"the saved state {DAMAGE[how]}"):
        open_bucket(scenario.job(), cells)


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("number", [0, 1])
def test_a_damaged_segment(how: str, number: int) -> None:
    """Of the rows that the engine holds, and of those that wait."""
    scenario = SCENARIOS[0]
    cells = kept(scenario, FORMAT)
    segment = next(n for n in cells.segments if n % 2 == number)
    cells.segments[segment] = damaged(how, cells.segments[segment])
    with pytest.raises(StateError, match=f"segment {segment} of the saved state {DAMAGE[how]}"):
        open_bucket(scenario.job(), cells)


def test_a_missing_segment() -> None:
    scenario = SCENARIOS[0]
    cells = kept(scenario, FORMAT)
    cells.segments.clear()
    with pytest.raises(StateError, match="segment 0 of the saved state is missing"):
        open_bucket(scenario.job(), cells)


def test_a_segment_of_another_time() -> None:
    scenario = SCENARIOS[0]
    cells = kept(scenario, FORMAT)
    (own,) = (n for n in cells.segments if n % 2 == 0)
    cells.segments[own] = next(data for n, data in cells.segments.items() if n != own)
    with pytest.raises(StateError, match=f"segment {own} of the saved state has 7 rows, not 2"):
        open_bucket(scenario.job(), cells)


# ── queries that change ──

QUERY = "PATTERN A a ; B b WHERE [id] AND b.x > :least WITHIN 10 RETURN a.x, b.y"
EVENTS = pa.table(
    {
        "ts": [1, 2, 3, 4, 5],
        "at": [1, 2, 3, 4, 5],
        "name": ["A", "A", "B", "A", "B"],
        "id": [1, 2, 1, 1, 2],
        "x": [1.0, 2.0, 3.0, 4.0, 5.0],
        "y": [10, 20, 30, 40, 50],
        "z": [0, 0, 0, 0, 0],
    }
)
LATER = EVENTS.set_column(0, "ts", pa.array([6, 7, 8, 9, 10]))


def job(
    text: str,
    delayed: bool,
    events: pa.Schema = EVENTS.schema,
    buckets: int = 8,
    **named: Any,
) -> Job:
    """As the runtime makes it: buckets get the columns that the query reads."""
    options = Options(**{"time": "ts", "type": "name", "params": {"least": 2.5}, **named})
    prepared = prepare(cep.Query(text).bind(events, options), options)
    schema = pa.schema([events.field(n) for n in prepared.plan.required])
    own = tuple(kept_columns(prepared.plan))
    return Job(prepared, schema, signature(prepared), buckets, (), delayed, False, own)


def step(job: Job, bucket: Bucket, table: pa.Table, watermark: int) -> list[dict[str, Any]]:
    rows = table.select(job.schema.names).to_batches()
    return [row for found in bucket.step(rows, watermark) for row in found.to_pylist()]


def saved(delayed: bool, own: Job | None = None) -> MemoryCells:
    """With rows that the engine holds and, if they wait for the watermark, such ones, too."""
    cells, own = MemoryCells(), own or job(QUERY, delayed)
    bucket = open_bucket(own, cells)
    step(own, bucket, EVENTS, BEGINNING)
    bucket.save(cells)
    step(own, bucket, EVENTS.slice(0, 0), 2)
    bucket.save(cells)
    return cells


# Of A@1 and A@4 with key 1, A@2 with key 2; then the same again, 5 later. The pairs (3, 1) and
# (5, 2) are known before the state is saved, unless rows wait.
PAIRS = [(1, 3), (2, 5), (1, 8), (4, 8), (6, 8), (2, 10), (7, 10)]
X = dict(zip([*range(1, 11)], [1.0, 2.0, 3.0, 4.0, 5.0] * 2, strict=True))


@pytest.mark.parametrize("delayed", [False, True])
@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("RETURN a.x, b.y", {}),
        ("RETURN b.y - a.x AS far, b.y, a.x", {}),
        ("RETURN b.x AS only", {}),
        ("RETURN a.x, b.y", {"plan": "right-deep"}),
        ("RETURN a.x, b.y", {"adapt": None}),
    ],
)
def test_changes_that_are_safe(text: str, named: dict[str, Any], delayed: bool) -> None:
    """The matches are those of the query as it was, and have the new columns."""
    cells = saved(delayed)
    own = job(QUERY.partition("RETURN")[0] + text, delayed, **named)
    bucket = open_bucket(own, cells)
    found = step(own, bucket, LATER, 5 if delayed else 4)
    found += step(own, bucket, LATER.slice(0, 0), 100)
    pairs = PAIRS if delayed else PAIRS[2:]
    assert sorted((row["match_start"], row["match_end"]) for row in found) == sorted(pairs)
    outputs = [o.name for o in own.prepared.plan.outputs]
    assert all([*row][: len(outputs)] == outputs for row in found)
    if "only" in outputs:
        assert all(row["only"] == X[row["match_end"]] for row in found)
    else:
        assert all(row["a.x" if "a.x" in row else "x"] == X[row["match_start"]] for row in found)


FILTERED = "PATTERN A a ; B b WHERE [id] AND b.x > 2.5 WITHIN 10 RETURN a.y"
"""`x` is checked only on events that arrive: the engine doesn't hold it for the others."""


@pytest.mark.parametrize("delayed", [False, True])
def test_return_may_read_what_only_where_has_read(delayed: bool) -> None:
    cells = saved(delayed, job(FILTERED, delayed))
    own = job(FILTERED.replace("a.y", "a.x"), delayed)
    bucket = open_bucket(own, cells)
    found = step(own, bucket, LATER, 5 if delayed else 4)
    bucket.save(cells)
    bucket = open_bucket(own, cells)
    found += step(own, bucket, LATER.slice(0, 0), 100)
    pairs = PAIRS if delayed else PAIRS[2:]
    want = sorted((start, end, X[start]) for start, end in pairs)
    assert sorted((row["match_start"], row["match_end"], row["x"]) for row in found) == want


@pytest.mark.parametrize("delayed", [False, True])
def test_columns_that_an_earlier_version_has_not_saved(delayed: bool) -> None:
    """It saved, and let wait, only what the engine reads of a row."""
    own = job(FILTERED, delayed)
    schema = pa.schema([f for f in own.schema if f.name != "x"])
    schema = schema.append(pa.field(CLASS_COLUMN, pa.int64()))
    earlier = replace(own, schema=schema, kept=())
    cells, masks = MemoryCells(), pa.array([1, 1, 2, 1, 2])
    rows = EVENTS.append_column(CLASS_COLUMN, masks)
    bucket = open_bucket(earlier, cells)
    step(earlier, bucket, rows, BEGINNING)
    bucket.save(cells)
    later = replace(own, schema=own.schema.append(schema.field(CLASS_COLUMN)))
    rows = LATER.append_column(CLASS_COLUMN, masks)
    bucket = open_bucket(later, cells)
    found = step(later, bucket, rows, 5 if delayed else 4)
    found += step(later, bucket, rows.slice(0, 0), 100)
    pairs = PAIRS if delayed else PAIRS[2:]
    assert sorted((row["match_start"], row["match_end"]) for row in found) == sorted(pairs)
    other = job(FILTERED.replace("a.y", "a.x"), delayed)
    with pytest.raises(StateError, match="the query now reads `x`, which the events in the check"):
        open_bucket(other, cells)


@pytest.mark.parametrize("delayed", [False, True])
def test_a_return_that_reads_what_was_not_saved(delayed: bool) -> None:
    own = job(QUERY.replace("b.y", "b.z"), delayed)
    with pytest.raises(StateError, match="the query now reads `z`, which the events in the check"):
        open_bucket(own, saved(delayed))


@pytest.mark.parametrize(
    ("before", "now", "named", "message"),
    [
        ("b.x >", "b.x >=", {}, r"WHERE was `.*b.x > 2.5` and is `.*b.x >= 2.5`"),
        ("WITHIN 10", "WITHIN 11", {}, "WITHIN was `10 units` and is `11 units`"),
        ("A a ; B b", "B b ; A a", {}, "PATTERN was `A a ; B b` and is `B b ; A a`"),
        ("A a", "C a", {}, "PATTERN was `A a ; B b` and is `C a ; B b`"),
        ("", "", {"params": {"least": 3.5}}, r"WHERE was `.*2.5` and is `.*3.5`"),
        ("", "", {"time": "at"}, "time= was `ts` and is `at`"),
        ("", "", {"tie": "y"}, "tie= was not there and is `y`"),
        ("RETURN", "AFTER MATCH SKIP PAST LAST EVENT RETURN", {}, "(?i)after match was not there"),
        ("", "", {"buckets": 4}, "written with 8 buckets, and now there are 4: pass buckets=8"),
    ],
)  # fmt: skip
def test_other_changes_are_refused(
    before: str, now: str, named: dict[str, Any], message: str
) -> None:
    own = job(QUERY.replace(before, now, 1) if before else QUERY, False, **named)
    with pytest.raises(StateError, match=message):
        open_bucket(own, saved(False))


@pytest.mark.parametrize("delayed", [False, True])
@pytest.mark.parametrize(
    ("column", "kind", "message"),
    [
        ("y", pa.float64(), "column `y` was int64 .* and is double: cast it to what it was"),
        ("y", pa.int32(), "column `y` was int64 .* and is int32"),
        ("x", pa.int64(), "column x was `float` and is `integer`|`x` was double .* and is int64"),
    ],
)
def test_columns_that_have_another_type(
    column: str, kind: pa.DataType, message: str, delayed: bool
) -> None:
    """Also if nothing but RETURN reads them."""
    number = EVENTS.column_names.index(column)
    table = EVENTS.set_column(number, column, EVENTS[column].cast(kind))
    own = job(QUERY, delayed, table.schema)
    with pytest.raises(StateError, match=message):
        open_bucket(own, saved(delayed))


# ── plans ──


def eager(adaptive: Adaptive) -> Adapter:
    """Looks after every round, whatever it costs."""
    return Adapter(adaptive, sampling=float("inf"), searching=float("inf"), fewest=0)


def test_a_plan_that_was_changed_to_survives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["cepheid.planner.prepare"], "Adapter", eager)
    rare = {"IBM": 100, "Sun": 100, "Oracle": 1}
    table = stocks.generate(3000, seed=4, rates=rare)
    text = "PATTERN IBM ; Sun ; Oracle WHERE IBM.price > Sun.price WITHIN 12 units RETURN IBM.ts"
    options = Options(time="ts", type="name")
    prepared = prepare(cep.Query(text).bind(table.schema, options), options)
    own = Job(prepared, table.schema, signature(prepared), jit=False)
    cells = MemoryCells()
    bucket = open_bucket(own, cells)
    list(bucket.step(table.slice(0, 2000).to_batches(), BEGINNING))
    bucket.save(cells)
    replans, plan = bucket.report().replans, bucket._engine.plan
    assert replans
    assert plan != prepared.plan
    elsewhere = open_bucket(own, cells)
    assert elsewhere is not bucket
    assert elsewhere._engine.plan == plan
    assert elsewhere.report().replans == replans


# ── what is written ──


def written(window: int, batches: int = 300, rows: int = 40) -> tuple[float, int]:
    """Bytes that a batch writes once the window is full, and bytes of the whole state. The window
    is as many batches."""
    random = np.random.default_rng(1)
    text = f"PATTERN A a ; B b WHERE [id] AND a.x > b.x + 1 WITHIN {window * rows}"
    options = Options(time="ts", type="name")
    count = batches * rows
    table = pa.table(
        {
            "ts": np.arange(count),
            "name": random.choice(["A", "B"], count),
            "id": random.integers(0, 1000, count),
            "x": random.random(count),
        }
    )
    prepared = prepare(cep.Query(text).bind(table.schema, options), options)
    own = Job(prepared, table.schema, signature(prepared), jit=False)
    cells, sizes = MemoryCells(), []
    bucket = open_bucket(own, cells)
    for begin in range(0, count, rows):
        list(bucket.step(table.slice(begin, rows).to_batches(), begin - 2))
        before = cells.written
        bucket.save(cells)
        sizes.append(cells.written - before)
    whole = sum(len(data) for data in cells.segments.values())
    return float(np.mean(sizes[-100:])), whole


def test_what_is_written_follows_the_batch() -> None:
    """A row is written again only when segments of a size are merged: as often as a window of so
    many batches can be halved."""
    short, small = written(window=10)
    long, large = written(window=100)
    assert large > 5 * small
    assert long < 2.2 * short
    assert long < large / 4


@pytest.mark.parametrize("delayed", [False, True])
def test_events_that_wait_need_the_delay_that_they_wait_for(delayed: bool) -> None:
    query = cep.Query("PATTERN A a ; B b WITHIN 5")
    table = pa.table({"ts": [1, 2], "type": ["A", "B"]})
    options = Options("ts", type="type")
    prepared = prepare(query.bind(table.schema, options), options)
    job = Job(prepared, table.schema, signature(prepared), delayed=delayed, jit=False)
    cells = MemoryCells()
    bucket = open_bucket(job, cells)
    assert [m.num_rows for m in bucket.step(table.to_batches(), 0)] == ([] if delayed else [1])
    bucket.save(cells)
    with pytest.raises(StateError, match="delay allowed for events"):
        open_bucket(replace(job, delayed=not delayed), cells)


# ── what is decided ──


@pytest.mark.parametrize("last", ["; B b", "-> B b", "=> B b", "-> (B b | C c)", "=> (B b | C c)"])
def test_a_match_comes_in_the_batch_of_its_last_event(last: str) -> None:
    """One that is simultaneous with it, in the next batch, adds a match and takes none back."""
    query = f"PATTERN A a {last} WHERE [id] WITHIN 10"
    batches = (("A@1(id=1) B@2(id=1)", BEGINNING), ("B@2(id=1)", BEGINNING))
    scenario = Scenario("prompt", "", query, batches, saved=1)
    cells = MemoryCells()
    for begin in range(2):
        assert len(scenario.run(cells, begin, begin + 1)[1]) == 1
