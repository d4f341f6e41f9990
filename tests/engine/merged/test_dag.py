"""Paths that begin alike share nodes: how many there are, by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cepheid.engine.merged.dag import Graph, Ragged, distinct
from cepheid.options import Options
from cepheid.rules import RuleSet
from cepheid.rules.compile.compiled_rules import compile_rules

COLUMNS = pa.schema({"ts": pa.int64(), "id": pa.int64(), "x": pa.int64()})
STEPS = "PATTERN a ; b ; c WHERE a.x = :p AND b.x = :q AND c.x = :r WITHIN 9"
ROWS = {"p": [1, 1, 1, 1, 2], "q": [2, 2, 5, 2, 2], "r": [3, 4, 3, 3, 3]}


def graph_of(rules: RuleSet) -> Graph:
    compiled = compile_rules(rules.templates, COLUMNS, Options("ts"))
    assert not compiled.alone
    (group,) = compiled.groups
    return group.merged.graph


def levels(graph: Graph) -> list[int]:
    return np.bincount(graph.depth[1:]).tolist()


def lists(ragged: Ragged) -> list[list[int]]:
    return [part.tolist() for part in np.split(ragged.values, ragged.begins[1:-1])]


def test_equal_prefixes_are_one_path() -> None:
    """1 and 2; 1 2, 1 5 and 2 2; 1 2 3, 1 2 4, 1 5 3 and 2 2 3, of which the first is two rules."""
    graph = graph_of(RuleSet.from_template("t", STEPS, ROWS))
    assert levels(graph) == [2, 3, 4]
    ending = sorted(own for own in lists(graph.rules) if own)
    assert ending == [[0, 3], [1], [2], [4]]


def test_every_node_is_entered_from_the_level_before() -> None:
    graph = graph_of(RuleSet.from_template("t", STEPS, ROWS))
    for node in range(1, graph.nodes):
        before = graph.parent[node]
        assert graph.depth[node] == (0 if before == 0 else graph.depth[before] + 1)
        assert node in lists(graph.edges)[graph.predicate[node]]
    # c.x = 3 enters three nodes, a.x = 1 one; b.x = 2 two, and a.x = 2, which is the same, one.
    assert sorted(len(own) for own in lists(graph.edges)) == [1, 1, 1, 3, 3]


def test_templates_share_what_they_have_in_common() -> None:
    pair = "PATTERN u ; v WHERE u.x = 1 AND v.x = :q WITHIN 5"
    alone = RuleSet.from_template("t", STEPS, ROWS)
    both = graph_of(alone | RuleSet.from_template("pair", pair, {"q": [2, 7]}))
    # 1 is shared. A node in which rules end has no instances: 1 2 isn't the one that goes on.
    assert levels(both) == [2, 5, 4]


@pytest.mark.parametrize(
    "other",
    [
        "PATTERN a => b WHERE a.x = 1 AND b.x = 2 WITHIN 5",
        "PATTERN a ; b WHERE a.x = 1 AND b.x = 2 AND b.id > a.id WITHIN 5",
        "PATTERN a ; b WHERE a.x = 1 AND b.x = 3 WITHIN 5",
    ],
)
def test_what_differs_at_the_second_step_shares_the_first(other: str) -> None:
    one = "PATTERN a ; b WHERE a.x = 1 AND b.x = 2 WITHIN 5"
    assert levels(graph_of(RuleSet.of({"one": one, "other": other}))) == [1, 2]
    assert levels(graph_of(RuleSet.of({"one": one, "other": one + "0"}))) == [1, 1]


def test_nodes_whose_instances_are_ended_by_other_events_are_not_shared() -> None:
    text = "PATTERN a ; !n ; b WHERE a.x = 1 AND n.x = :p AND b.x = 2 WITHIN 5"
    graph = graph_of(RuleSet.from_template("t", text, {"p": [8, 9, 8]}))
    assert levels(graph) == [2, 2]
    assert sorted(map(len, lists(graph.enders))) == [0, 0, 0, 1, 1]
    # Looked up by a key of their own, too.
    keyed = "PATTERN a ; !n ; b WHERE [id] AND a.x = 1 AND n.x = 8 AND b.x = 2 WITHIN 5"
    apart = graph_of(RuleSet.of({"keyed": keyed, "not": keyed.replace("[id] AND ", "")}))
    assert levels(apart) == [2, 2]


def test_reach_is_the_longest_window_below() -> None:
    one = "PATTERN a ; b WHERE a.x = 1 AND b.x = 2 WITHIN 5"
    other = "PATTERN a ; b WHERE a.x = 1 AND b.x = 3 WITHIN 8"
    graph = graph_of(RuleSet.of({"one": one, "other": other}))
    assert graph.reach[1] == 8
    assert sorted(graph.reach[2:].tolist()) == [5, 8]


def test_different_rows_and_their_places() -> None:
    rows = np.array([[1, 2], [3, 4], [1, 2], [1, 3]])
    kinds, place = distinct(rows)
    assert len(kinds) == 3
    assert kinds[place].tolist() == rows.tolist()
    kinds, place = distinct(np.zeros((3, 0), np.int64))
    assert len(kinds) == 1 and place.tolist() == [0, 0, 0]


def test_values_by_group_keep_their_order() -> None:
    ragged = Ragged.grouped(np.array([2, 0, 2, 0]), np.array([5, 6, 7, 8]), 4)
    assert lists(ragged) == [[6, 8], [], [5, 7], []]
    assert lists(Ragged.of([[1], [], [2, 3]])) == [[1], [], [2, 3]]
