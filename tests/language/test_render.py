"""The law of the canonical text: reading it gives the query back, types of numbers included."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, get_args

import pytest
from hypothesis import given, settings

from cepheid.language import ast, parse, parse_expression, parse_pattern, render
from cepheid.language.render import render_expression, render_pattern
from tests.examples import examples
from tests.language import strategies


@settings(max_examples=examples("canonical text"))
@given(strategies.queries())
def test_reading_the_canonical_text_gives_the_query_back(query: ast.Query) -> None:
    text = render(query)
    again = parse(text)
    assert again == query
    # repr tells 1 from TRUE and from 1.0, which == does not.
    assert repr(again) == repr(query)
    assert render(again) == text


@settings(max_examples=examples("canonical text"))
@given(strategies.queries())
def test_every_span_holds_the_text_of_its_node(query: ast.Query) -> None:
    text = render(query)
    for node, outer in _nodes(parse(text)):
        piece = text[node.span.start : node.span.end]
        if isinstance(node, get_args(ast.Pattern)):
            if isinstance(outer, ast.Query) and outer.relational:
                continue  # `FROM A a, B b` has a comma for `&`
            if isinstance(outer, ast.Closure) and isinstance(node, ast.Atom | ast.AnyOf):
                continue  # the alias of `B+ b` stands outside of B
            assert parse_pattern(piece) == node
        elif isinstance(node, ast.Star):
            assert piece.endswith("*")
        elif isinstance(node, ast.Step):  # stands only in `reduce`
            assert parse_expression(f"reduce(b, 0, {piece})").arguments[-1] == node
        elif isinstance(node, get_args(ast.Expression)):
            assert parse_expression(piece) == node


@pytest.mark.slow
def test_the_strategies_reach_every_node_type() -> None:
    seen: set[type] = set()

    @settings(max_examples=200, deadline=None, database=None, derandomize=True)
    @given(strategies.queries())
    def collect(query: ast.Query) -> None:
        seen.update(type(node) for node, _ in _nodes(query))

    collect()
    every = {*get_args(ast.Pattern), *get_args(ast.Expression), ast.EventCount, ast.AfterMatch}
    assert every <= seen


def _nodes(node: Any, outer: Any = None) -> list[tuple[Any, Any]]:
    """Every node that has a span, with the one that holds it."""
    if isinstance(node, tuple):
        return [found for item in node for found in _nodes(item, outer)]
    if not is_dataclass(node) or isinstance(node, ast.Span):
        return []
    below = [found for f in fields(node) for found in _nodes(getattr(node, f.name), node)]
    return [(node, outer), *below] if hasattr(node, "span") else below


PATTERNS = [
    # as written, canonical
    ("SEQ(A a, !B b, C c)", "A a ; !B b ; C c"),
    ("((A a)) ; (B b)", "A a ; B b"),
    ("A ; (B ; C)", "A ; (B ; C)"),
    ("(A | B) & C", "(A | B) & C"),
    ("A | (B & C)", "A | B & C"),
    ("(A | B) ; C", "A | B ; C"),
    ("A \\ (B \\ C)", "A \\ (B \\ C)"),
    ("(A \\ B) UNLESS C", "A \\ B \\ C"),
    ("!(A a)", "!A a"),
    ("!(A ; B)", "!(A ; B)"),
    ("B b+", "B+ b"),
    ("B{1,} b", "B+ b"),
    ("B{0,}", "B*"),
    ("(B+ b)?", "(B+ b)?"),
    ("B+ STRICT PREFIXES b", "B+ b PREFIXES STRICT"),
    ("(A a)@5min", "A a @ 5 minutes"),
    ("(A ; B) @ 2", "(A ; B) @ 2 units"),
    ("A `b`", "A b"),
    ("A `where`", "A `where`"),
]


@pytest.mark.parametrize(("text", "canonical"), PATTERNS)
def test_canonical_patterns(text: str, canonical: str) -> None:
    assert render_pattern(parse_pattern(text)) == canonical


EXPRESSIONS = [
    ("a.x==1 and(b.y!=2)", "a.x = 1 AND b.y <> 2"),
    ("(a.x + 1) * 2", "(a.x + 1) * 2"),
    ("(a.x * 1) + 2", "a.x * 1 + 2"),
    ("a.x - (b.x - c.x)", "a.x - (b.x - c.x)"),
    ("(a.x - b.x) - c.x", "a.x - b.x - c.x"),
    ("(a OR b) AND c", "(a OR b) AND c"),
    ("NOT (a = b)", "NOT a = b"),
    ("(NOT a) = b", "(NOT a) = b"),
    ("(a = b) = c", "(a = b) = c"),
    ("- - a.x", "- -a.x"),
    ("a.x - -1", "a.x - -1"),
    ("20%", "0.20"),
    ("12.5%", "0.125"),
    ('"it\'s"', "'it''s'"),
    ("COUNT( * )", "count(*)"),
    ("a.`where`", "a.where"),
    ("a.`unit price`", "a.`unit price`"),
    ("duration() > 5 mins", "duration() > 5 minutes"),
    ("1E3", "1000.0e0"),
    ('[ id = "x" ]', "[id = 'x']"),
    ("CONTAINS(a.x, 'y')", "contains(a.x, 'y')"),
]


@pytest.mark.parametrize(("text", "canonical"), EXPRESSIONS)
def test_canonical_expressions(text: str, canonical: str) -> None:
    assert render_expression(parse_expression(text)) == canonical


def test_canonical_order_of_clauses() -> None:
    text = (
        "into Alerts pattern A a ; B b return a, b.x as y after match skip to last b "
        "using skip till next match within 10 events having b.x > 1 where a.id = b.id from S, T"
    )
    assert render(parse(text)) == (
        "INTO Alerts\n"
        "PATTERN A a ; B b\n"
        "FROM S, T\n"
        "WHERE a.id = b.id\n"
        "HAVING b.x > 1\n"
        "WITHIN 10 EVENTS\n"
        "USING SKIP TILL NEXT MATCH\n"
        "AFTER MATCH SKIP TO LAST b\n"
        "RETURN a, b.x AS y"
    )
