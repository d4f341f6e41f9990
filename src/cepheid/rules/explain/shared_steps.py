"""The steps of merged rules that several rules share, with their conditions as they are written.

A condition with alternatives, such as NOT IN, has a node of the automaton for each. Nodes at one
place in the same rules are one step, and its condition is that of a rule which has no other nodes
there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cepheid.algebra.expressions import Attribute, Call, Constant, Expr, Varying, transform
from cepheid.algebra.text import condition_text, expression_text
from cepheid.algebra.types import Type
from cepheid.algebra.values import constant
from cepheid.engine.arrays.columns import Column
from cepheid.engine.arrays.ordered_codes import HIGHEST, LOWEST
from cepheid.engine.merged.dag import ROOT
from cepheid.engine.merged.group import RuleGroup, values_of
from cepheid.engine.merged.merge import TemplateRules

_EVENT = "\0"
"""The name of the event that a step takes, of which nothing is left in the text."""


@dataclass(frozen=True)
class SharedStep:
    """A step: its number in the rules, the rules that have it, the nodes that it is, and whether
    one of the rules has no others at this place; that one, if so."""

    number: int
    rules: frozenset[int]
    nodes: tuple[int, ...]
    alone: int | None


def shared_steps(group: RuleGroup) -> list[SharedStep]:
    """All steps, those of most rules first."""
    graph = group.merged.graph
    below = _rules_below(group)
    nodes: dict[tuple[int, frozenset[int]], list[int]] = {}
    counts: dict[tuple[int, int], int] = {}
    for node in range(graph.nodes):
        if node != ROOT:
            depth = int(graph.depth[node])
            nodes.setdefault((depth, below[node]), []).append(node)
            for rule in below[node]:
                counts[depth, rule] = counts.get((depth, rule), 0) + 1
    steps = [
        SharedStep(
            depth + 1,
            rules,
            tuple(members),
            min((r for r in rules if counts[depth, r] == len(members)), default=None),
        )
        for (depth, rules), members in nodes.items()
    ]
    return sorted(steps, key=lambda step: -len(step.rules))


def _rules_below(group: RuleGroup) -> list[frozenset[int]]:
    """The rules that pass through each node."""
    graph = group.merged.graph
    rules: list[set[int]] = [set() for _ in range(graph.nodes)]
    for node in range(graph.nodes - 1, 0, -1):  # a node's number is above that of its parent
        ending = graph.rules.values[graph.rules.begins[node] : graph.rules.begins[node + 1]]
        rules[node].update(ending.tolist())
        rules[graph.parent[node]] |= rules[node]
    return [frozenset(below) for below in rules]


def step_text(group: RuleGroup, step: SharedStep) -> str:
    """What events the step takes."""
    predicates = dict.fromkeys(int(group.merged.graph.predicate[node]) for node in step.nodes)
    if len(predicates) > 1 and step.alone is not None:
        written = _written(group, step.alone, step.number - 1)
        if written is not None:
            return written
    texts = [_takes(group, predicate) for predicate in predicates]
    return texts[0] if len(texts) == 1 else " OR ".join(f"({text})" for text in texts)


def _written(group: RuleGroup, rule: int, step: int) -> str | None:
    """The condition of a rule's step; None if a looser one is shared in its place."""
    place = int(np.searchsorted(group.merged.begins, rule, side="right")) - 1
    branch = group.merged.branches[place]
    if group.merged.levels[place][step] is not None:
        return None
    own = rule - int(group.merged.begins[place])
    texts = [
        condition_text(_as_written(condition, branch, own))
        for condition in branch.path.steps[step].conditions
    ]
    return " AND ".join(texts).replace(f"{_EVENT}.", "")


def _as_written(condition: Expr, branch: TemplateRules, rule: int) -> Expr:
    def change(expr: Expr) -> Expr | None:
        match expr:
            case Attribute("", name, type_):
                return Attribute(_EVENT, name, type_)
            case Varying(name=name):
                return constant(branch.rows.parameters[name][rule].as_py())
            case Call("in", (operand, Constant() as only), type_):
                return Call("=", (_as_written(operand, branch, rule), only), type_)
            case _:
                return None

    return transform(condition, change)


def _takes(group: RuleGroup, predicate: int) -> str:
    """The predicate as text."""
    atoms = range(*group.merged.index.atoms[predicate : predicate + 2].tolist())
    return " AND ".join(text for atom in atoms for text in _texts(group, atom)) or "every event"


def _texts(group: RuleGroup, atom: int) -> Iterator[str]:
    index = group.merged.index
    column = group.merged.columns[index.columns[atom]]
    name = expression_text(column.expression).removeprefix(".")
    low, high = int(index.lows[atom]), int(index.highs[atom])
    match column.expression:
        case Call("is_null", (tested,)) if not high:
            yield f"{expression_text(tested).removeprefix('.')} IS NOT NULL"
        case _ if column.type is Type.BOOLEAN and low == high:
            yield name if low else f"NOT ({name})"
        case _ if low == high:
            yield f"{name} = {_value(group, column, low)}"
        case _:
            if low == LOWEST and high == HIGHEST:
                yield f"{name} IS NOT NULL"
            if low != LOWEST:
                yield f"{name} {_limit(group, column, low, '>', -1)}"
            if high != HIGHEST:
                yield f"{name} {_limit(group, column, high, '<', 1)}"


def _limit(group: RuleGroup, column: Column, code: int, operator: str, beyond: int) -> str:
    """Pick the shorter of two equal numbers: most likely the one that was written."""
    last, first_out = (_value(group, column, c) for c in (code, code + beyond))
    if column.type is Type.FLOAT and len(first_out) < len(last):
        return f"{operator} {first_out}"
    return f"{operator}= {last}"


def _value(group: RuleGroup, column: Column, code: int) -> str:
    (value,) = values_of(group, column, np.array([code]))
    return repr(value)
