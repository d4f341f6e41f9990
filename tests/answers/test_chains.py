"""Chains whose conditions are between several events, counted in every way that there is: as the
oracle's."""

from __future__ import annotations

import math
import random
from contextlib import suppress

import pyarrow as pa
import pytest

import cepheid as cep
from cepheid.algebra import bind
from cepheid.algebra.query import BoundQuery
from cepheid.answers.counted import neighbor_counter
from cepheid.answers.counted.chain_walks import ChainWalk
from cepheid.answers.counted.countable import ways
from cepheid.answers.counted.counting_automaton import NotCounted
from cepheid.answers.counted.neighbor_pair import NeighborPair
from cepheid.language import parse
from cepheid.rewrites import rewrite
from tests.answers.harness import answered
from tests.answers.test_corpus import same
from tests.answers.test_counting import SCHEMA, rows
from tests.examples import examples
from tests.oracle import answers

PATTERNS = (
    "A a ; B b",
    "A a ; B b ; C c",
    "A a ; A b ; A c",
    "A a ; ANY(A, B) b ; B c",
    "A a ; !D d ; B b ; C c",
    "A a ; B b ; !D d ; A c",
    "B a ; B b ; A c ; B e",
    "A a ; B b ; !A d ; B c ; A e",
)
OPERATORS = ("<", "<=", ">", ">=", "=", "<>")
AGGREGATES = (
    "count(*)",
    "approx_count(*)",
    "count({0}.x)",
    "sum({0}.x)",
    "avg({0}.x)",
    "min({0}.x)",
    "max({0}.x)",
    "stddev({0}.x)",
    "count(DISTINCT {0}.x)",
)


def drawn_query(draw: random.Random) -> str:
    pattern = draw.choice(PATTERNS)
    names = [part.split()[-1] for part in pattern.split(";")]
    positive = [n for n in names if n != "d"]

    def condition() -> str:
        pair = draw.sample(names, 2)
        if draw.random() < 0.6:  # of neighbors
            n = draw.randrange(len(names) - 1)
            pair = names[n : n + 2]
        first, second = pair
        return draw.choice(
            (
                f"{first}.x {draw.choice(OPERATORS)} {second}.x",
                f"{first}.x + 1 {draw.choice(OPERATORS)} {second}.x * 2",
                f"{first}.id = {second}.id",
                f"({first}.x < {second}.x OR {first}.id = 1)",
                f"{first}.x > {draw.randint(0, 2)}",
            )
        )

    conditions = [condition() for _ in range(draw.randint(1, 3))]
    if draw.random() < 0.2:
        conditions.append("[id]")
    having = [condition() for _ in range(draw.randint(0, 1))]
    having = [text for text in having if "d." not in text]
    groups = [draw.choice(("{0}.x", "{0}.id", "{0}.x % 2")) for _ in range(draw.randint(0, 2))]
    groups = [text.format(draw.choice(positive)) for text in groups]
    window = draw.choice(("", "TUMBLE(7)", "HOP(3, 7)", "SESSION(3)"))
    parts = [*dict.fromkeys(groups), *([window] if window else [])]
    columns = [draw.choice(AGGREGATES).format(draw.choice(positive)) for _ in range(2)]
    return " ".join(
        filter(
            None,
            (
                f"PATTERN {pattern} WHERE {' AND '.join(conditions)}",
                f"HAVING {' AND '.join(having)}" if having else "",
                f"WITHIN {draw.randint(2, 12)}",
                f"GROUP BY {', '.join(parts)}" if parts else "",
                f"RETURN {', '.join(f'{c} AS m{n}' for n, c in enumerate(columns))}",
                "".join(f", {g} AS g{n}" for n, g in enumerate(dict.fromkeys(groups))),
            ),
        )
    )


def bound(text: str) -> BoundQuery | None:
    """None where a condition names two negated variables, or the like."""
    try:
        return bind(parse(text), SCHEMA)
    except cep.QueryError:
        return None


@pytest.mark.parametrize("seed", range(examples("counted chains")))
def test_chains(seed: int) -> None:
    draw = random.Random(f"chains {seed}")
    query = bound(drawn_query(draw))
    if query is None:
        return
    try:
        found = ways(rewrite(query).query)
    except NotCounted:
        found = ()
    for _ in range(3):
        stream = rows(draw, draw.randint(2, 14))
        expected = answers(query, stream)
        for way in found:
            assert same(answered(query, stream, None, way), expected), (way, stream)


def test_most_chains_are_counted() -> None:
    """Else the test above would show nothing."""
    queries = [bound(drawn_query(random.Random(f"chains {seed}"))) for seed in range(200)]
    counted = 0
    for query in filter(None, queries):
        with suppress(NotCounted):
            counted += isinstance(ways(query)[0], ChainWalk)
    assert counted > 100, counted


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("step", range(3))
@pytest.mark.parametrize("steps", (2, 3, 4))
def test_neighbors_that_are_compared(
    steps: int, step: int, operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With trees of few rows each, and by a walk: simultaneous events, events of several steps,
    NULL, keys."""
    monkeypatch.setattr(neighbor_counter, "ROWS", 3)
    if step + 1 >= steps:
        return
    counted = 0
    for seed in range(examples("counted chains", 12)):
        draw = random.Random(f"neighbors {steps} {step} {operator} {seed}")
        names = [draw.choice(("A", "B", "ANY(A, B)", "C")) for _ in range(steps)]
        sides = [f"{'abcd'[step]}.x", f"{'abcd'[step + 1]}.x + {draw.randint(0, 1)}"]
        if draw.random() < 0.5:
            sides.reverse()
        pattern = " ; ".join(f"{type_} {name}" for type_, name in zip(names, "abcd", strict=False))
        key = draw.choice(("", " AND [id]"))
        text = f"PATTERN {pattern} WHERE {sides[0]} {operator} {sides[1]}{key} WITHIN 7"
        query = bound(f"{text} GROUP BY HOP(3, 7) RETURN count(*) AS n, sum({'abcd'[steps - 1]}.x)")
        assert query is not None
        found = ways(rewrite(query).query)
        counted += isinstance(found[0], NeighborPair)
        stream = rows(draw, draw.randint(2, 14))
        expected = answers(query, stream)
        for way in found:
            assert same(answered(query, stream, None, way), expected), (text, way, stream)
    assert counted


def test_neighbors_of_doubles() -> None:
    """NaN is above every number and equals itself, -0.0 is 0.0."""
    values = [float("nan"), 1.5, -0.0, 0.0, float("inf"), float("nan"), None, -2.0]
    table = pa.table({"ts": range(8), "x": values})
    # Of 21 pairs of known values, 2 are equal, and 7 rise: to inf (3) and NaN (4).
    for operator, expected in (("<", 7), ("<=", 9), ("=", 2), (">", 12), (">=", 14), ("<>", 19)):
        query = f"PATTERN a ; b WHERE a.x {operator} b.x WITHIN 100 RETURN count(*) AS n"
        found = cep.match(table, query, time="ts")
        assert found["n"].to_pylist() == [expected], operator


def test_counts_beyond_64_bits_are_taken_by_a_walk() -> None:
    table = pa.table({"ts": range(3000), "x": [0] * 2999 + [1]})
    query = "PATTERN a ; b ; c ; d ; e ; f ; g WHERE f.x < g.x WITHIN 9000"
    found = cep.match(table, f"{query} RETURN approx_count(*) AS n", time="ts")
    assert found["n"].to_pylist() == [pytest.approx(math.comb(2999, 6))]
    same_count = cep.match(table.slice(2800), f"{query} RETURN count(*) AS n", time="ts")
    assert same_count["n"].to_pylist() == [math.comb(199, 6)]
