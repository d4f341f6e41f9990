"""Groups of SUBSETS with conditions between their elements, counted: as the oracle's."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.algebra import bind
from cepheid.answers.counted.chain_walks import ChainWalk
from cepheid.answers.counted.countable import ways
from cepheid.answers.counted.counting_automaton import NotCounted
from cepheid.language import parse
from cepheid.rewrites import rewrite
from tests.answers.harness import answered
from tests.answers.test_corpus import same
from tests.answers.test_counting import SCHEMA, rows
from tests.examples import examples
from tests.oracle import answers

PATTERNS = (
    "ANY(A, B)+ b SUBSETS",
    "A a ; B+ b SUBSETS",
    "B+ b SUBSETS ; C c",
    "A a ; B+ b SUBSETS ; C c",
    "A a ; !D n ; B+ b SUBSETS ; C c",
    "A a ; ANY(A, B)+ b SUBSETS ; B+ d SUBSETS ; C c",
)
CONDITIONS = (
    "b.x > PREV(b.x)",
    "b.x <> PREV(b.x)",
    "b.x + PREV(b.x) < 4",
    "b.x >= a.x",
    "d.x <= PREV(d.x)",
    "b.x > 0",
    "a.x <> c.x",
    "[id]",
)


def drawn(draw: random.Random) -> str:
    pattern = draw.choice(PATTERNS)
    names = [name for name in "abcdn" if f" {name}" in pattern]
    possible = [c for c in CONDITIONS if all(f"{n}." not in c or n in names for n in "abcdn")]
    where = draw.sample(possible, min(len(possible), draw.randint(1, 3)))
    window = draw.choice(("", "TUMBLE(7)", "HOP(3, 7)"))
    group_by = f"GROUP BY {window}" if window else ""
    columns = ["count(*) AS n", "approx_count(*) AS m"]
    columns += [f"sum({name}.x) AS s{name}" for name in "ac" if name in names][: draw.randint(0, 1)]
    return (
        f"PATTERN {pattern} WHERE {' AND '.join(where)} WITHIN {draw.randint(2, 12)} {group_by} "
        f"RETURN {', '.join(columns)}"
    )


def way_of(text: str) -> ChainWalk | None:
    try:
        (way, *_) = ways(rewrite(bind(parse(text), SCHEMA)).query)
    except NotCounted:
        return None
    return way if isinstance(way, ChainWalk) else None


@pytest.mark.parametrize("seed", range(examples("counted chains")))
def test_groups(seed: int) -> None:
    draw = random.Random(f"groups {seed}")
    text = drawn(draw)
    way, query = way_of(text), bind(parse(text), SCHEMA)
    for _ in range(3):
        stream = rows(draw, draw.randint(2, 11))
        if way is not None:
            assert same(answered(query, stream, None, way), answers(query, stream)), (text, stream)


def test_most_are_counted() -> None:
    found = Counter(way_of(drawn(random.Random(f"groups {n}"))) is not None for n in range(60))
    assert found[True] > 25


def test_more_than_could_be_enumerated() -> None:
    """All rising choices of 60 rising prices."""
    table = pa.table({"ts": range(60), "x": range(60)})
    query = "PATTERN a+ SUBSETS WHERE a.x > PREV(a.x) WITHIN 100 RETURN count(*) AS n"
    assert cep.match(table, query, time="ts")["n"].to_pylist() == [2**60 - 1]
