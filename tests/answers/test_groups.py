"""Groups with conditions between their elements, counted: as the oracle's."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.algebra import bind
from cepheid.answers.counted import counting_engine
from cepheid.answers.counted.chain_walks import ChainWalk
from cepheid.answers.counted.countable import ways
from cepheid.answers.counted.counting_automaton import NotCounted
from cepheid.language import parse
from cepheid.language.ast import Mode
from cepheid.rewrites import rewrite
from tests.answers.harness import answered, uncounted
from tests.answers.test_corpus import same
from tests.answers.test_counting import SCHEMA, rows
from tests.examples import examples
from tests.oracle import Event, answers

MODES = ("SUBSETS", "RUNS", "PREFIXES", "")
PATTERNS = (
    "ANY(A, B)+ b {}",
    "A a ; B+ b {}",
    "B+ b {} ; C c",
    "A a ; B+ b {} ; C c",
    "A a ; ANY(A, B)+ b {} ; B c",
    "A a ; !D n ; B+ b {} ; C c",
    "A a ; B y ; !D n ; ANY(A, B)+ b {}",
    "A a ; ANY(A, B)+ b {} ; B+ d SUBSETS ; C c",
    "A a ; ANY(A, B)+ d RUNS ; B y ; B+ b {} ; C c",
    "A a ; B y ; ANY(A, B)+ b {} ; B+ d RUNS",
)
CONDITIONS = (
    "b.x > PREV(b.x)",
    "b.x <> PREV(b.x)",
    "b.x + PREV(b.x) < 4",
    "b.x >= a.x",
    "n.x >= y.x",
    "b.x > y.x",
    "d.x <= PREV(d.x)",
    "b.x > 0",
    "a.x <> c.x",
    "b.x <> c.x",
    "[id]",
)


def drawn(draw: random.Random) -> str:
    pattern = draw.choice(PATTERNS).format(draw.choice(MODES))
    names = [name for name in "abcdny" if f" {name} " in f"{pattern} "]
    possible = [c for c in CONDITIONS if all(f"{n}." not in c or n in names for n in "abcdny")]
    having = draw.choice(possible) if draw.random() < 0.2 and "n" not in names else None
    where = draw.sample(possible, min(len(possible), draw.randint(1, 3)))
    window = draw.choice(("", "TUMBLE(7)", "HOP(3, 7)"))
    group_by = f"GROUP BY {window}" if window else ""
    columns = ["count(*) AS n", "approx_count(*) AS m"]
    columns += [f"sum({name}.x) AS s{name}" for name in "ac" if name in names][: draw.randint(0, 1)]
    return (
        f"PATTERN {pattern} WHERE {' AND '.join(where)} "
        f"{f'HAVING {having} ' if having else ''}WITHIN {draw.randint(2, 12)} {group_by} "
        f"RETURN {', '.join(columns)}"
    )


def way_of(text: str) -> ChainWalk | None:
    """None, too, for a closure that has no neighbors, and for a condition that can't be."""
    try:
        (way, *_) = ways(rewrite(bind(parse(text), SCHEMA)).query)
    except (NotCounted, cep.QueryError):
        return None
    return way if isinstance(way, ChainWalk) else None


@pytest.mark.parametrize("seed", range(examples("counted chains")))
def test_groups(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a table, and in rounds over what comes in batches."""
    monkeypatch.setattr(counting_engine, "ROUND", 4)
    draw = random.Random(f"groups {seed}")
    text = drawn(draw)
    if (way := way_of(text)) is None:
        return
    query = bind(parse(text), SCHEMA)
    for _ in range(5):
        stream = rows(draw, draw.randint(2, 14))
        for cuts in (None, (draw.randint(1, 3),)):
            found = answered(query, stream, cuts, way)
            assert same(found, answers(query, stream)), (text, cuts, stream)


def test_most_are_counted() -> None:
    """Of each mode, many."""
    found: Counter[Mode] = Counter()
    for n in range(400):
        if (way := way_of(drawn(random.Random(f"groups {n}")))) is not None:
            found[way.loops["b"]] += 1
    assert all(found[mode] > 20 for mode in Mode), found


def test_more_than_could_be_enumerated() -> None:
    """All rising choices of 60 rising prices."""
    table = pa.table({"ts": range(60), "x": range(60)})
    query = "PATTERN a+ SUBSETS WHERE a.x > PREV(a.x) WITHIN 100 RETURN count(*) AS n"
    assert cep.match(table, query, time="ts")["n"].to_pylist() == [2**60 - 1]


@pytest.mark.parametrize(
    ("mode", "groups"), [("SUBSETS", 2**50 - 1), ("RUNS", 50 * 51 // 2), ("PREFIXES", 50), ("", 1)]
)
def test_rising_between_two_events(mode: str, groups: int) -> None:
    kinds = ["A", *"B" * 50, "C"]
    table = pa.table({"ts": range(52), "type": kinds, "x": range(52)})
    query = f"PATTERN A a ; B+ b {mode} ; C c WHERE b.x > PREV(b.x) WITHIN 100 RETURN count(*) AS n"
    assert way_of(query) is not None
    assert cep.match(table, query, time="ts", type="type")["n"].to_pylist() == [groups]


def test_a_negation_before_a_group_reads_the_event_before() -> None:
    """The partial matches of y go on as one; they were taken for the groups of its event."""
    query = bind(
        parse(
            "PATTERN A a ; B y ; !D n ; C+ b SUBSETS WHERE n.x > y.x AND b.x > PREV(b.x) "
            "WITHIN 20 RETURN count(*) AS n, sum(a.x) AS s"
        ),
        SCHEMA,
    )
    kinds = ("A", 1), ("B", 5), ("C", 3), ("C", 4), ("C", 2)
    stream = [
        Event(n, n, {"ts": n, "type": kind, "id": 0, "x": x}) for n, (kind, x) in enumerate(kinds)
    ]
    groups = 4  # 3, 4, 2 alone, and 3 before 4
    assert answered(query, stream, None) == [{"n": groups, "s": groups}]


def test_a_condition_on_a_group_and_another_event_is_enumerated() -> None:
    text = "PATTERN A a ; B y ; C+ b SUBSETS WHERE b.x > y.x WITHIN 10 RETURN count(*) AS n"
    assert uncounted(rewrite(bind(parse(text), SCHEMA)).query) == (
        "conditions and answers read too many events at once"
    )
