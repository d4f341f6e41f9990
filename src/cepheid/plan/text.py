"""Plans as text: a contract, stable and without ids. Below an automaton stand its states.

key: user
window: 10 seconds
SEQ  a.user = c.user, a.price < c.price
├── A a  price > 5
└── NSEQ  b.user = c.user
    ├── !B b
    └── C c
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from cepheid.algebra.expressions import Attribute, Expr
from cepheid.algebra.patterns import positive
from cepheid.algebra.query import Clock, Selection, Variable
from cepheid.algebra.text import expression_text, pattern_text, span_text
from cepheid.algebra.types import Schema, Type
from cepheid.language.ast import Skip
from cepheid.language.names import quantifier_text
from cepheid.plan.nodes import (
    STREAM,
    Automaton,
    Conj,
    Equality,
    Filter,
    Gap,
    Kseq,
    LeafNode,
    Neg,
    Node,
    Nseq,
    Plan,
    Run,
    Seq,
    Stacks,
)
from cepheid.plan.states import states


def plan_text(plan: Plan) -> str:
    """The plan, its key and its window."""
    lines = [f"{name}: {text}" for name, text in settings(plan)]
    if len(plan.alternatives) == 1:
        lines += node_lines(plan.alternatives[0], plan.variables)
    else:
        branches = [node_lines(root, plan.variables) for root in plan.alternatives]
        lines += ["DISJ", *_branches(branches)]
    return "\n".join(lines)


def settings(plan: Plan) -> list[tuple[str, str]]:
    """What holds for the whole plan, by name: its key and its window, where it has them."""
    pairs = []
    if plan.key:
        pairs.append(("key", ", ".join(_key(part) for part in plan.key)))
    if plan.window is not None:
        ticks = plan.schema.columns[plan.schema.time] is Type.INTEGER
        events = plan.window.clock is Clock.EVENTS
        size = f"{plan.window.size} events" if events else span_text(plan.window.size, ticks)
        pairs.append(("window", size))
    selection = plan.selection
    if selection is not None and selection.skip is not Skip.NONE:
        pairs.append(("after match", _after_match(selection, plan.schema)))
    if selection is not None and selection.most is not None:
        pairs.append(("first matches", f"{selection.most}{' per key' * selection.per_key}"))
    return pairs


def _after_match(selection: Selection, schema: Schema) -> str:
    how, target = selection.skip.value, selection.variable
    if selection.skip is Skip.FOR:
        target = span_text(selection.pause, schema.columns[schema.time] is Type.INTEGER)
    return how if target is None else f"{how} {target}"


def _key(part: Mapping[str, str]) -> str:
    names = dict.fromkeys(part.values())
    return " = ".join(f"{v}.{c}" for v, c in part.items()) if len(names) > 1 else next(iter(names))


def node_lines(node: Node, variables: Mapping[str, Variable]) -> list[str]:
    """A line for the node, and its inputs below it."""
    inputs = [
        [f"!{lines[0]}", *lines[1:]] if negated else lines
        for lines, negated in ((node_lines(n, variables), neg) for n, neg in inputs_of(node))
    ]
    name, conditions = label(node, variables)
    first = f"{name}  {', '.join(conditions)}" if conditions else name
    state_lines = states(node, variables) if isinstance(node, Automaton) else ()
    return [first, *(f"│ {state}" for state in state_lines), *_branches(inputs)]


def inputs_of(node: Node) -> tuple[tuple[Node, bool], ...]:
    """Inputs in the order of the pattern, and which of them are negated."""
    match node:
        case LeafNode():
            return ()
        case Seq() | Conj():
            return ((node.left, False), (node.right, False))
        case Nseq(before=True):
            return ((node.negated, True), (node.input, False))
        case Nseq() | Neg():
            return ((node.input, False), (node.negated, True))
        case Kseq():
            return ((node.input, False), (node.element, False))
        case Run():
            return ((node.element, False),)
        case Filter():
            return ((node.input, False),)
        case Stacks():
            return tuple((leaf, False) for leaf in node.classes)
        case Automaton():
            taken = (*positive(node.pattern), STREAM)
            return tuple((leaf, leaf.variable not in taken) for leaf in node.leaves)
        case _:
            assert_never(node)


def _branches(parts: Sequence[list[str]]) -> Iterable[str]:
    for n, lines in enumerate(parts):
        last = n == len(parts) - 1
        yield ("└── " if last else "├── ") + lines[0]
        yield from (("    " if last else "│   ") + line for line in lines[1:])


def label(node: Node, variables: Mapping[str, Variable]) -> tuple[str, list[str]]:
    """What the node is called, and the conditions that it tests."""
    match node:
        case LeafNode():
            return _leaf(variables[node.variable]), [expression_text(f) for f in node.filters]
        case Seq():
            passed = [f"pass-down({expression_text(p)})" for p in node.passed]
            name = "SEQ pull" if node.pull else "SEQ"
            return name, _conditions(node.equalities, node.predicates, not node.scan) + passed
        case Conj():
            return "CONJ", _conditions(node.equalities, node.predicates)
        case Nseq():
            return "NSEQ", _conditions(node.equalities, node.predicates)
        case Neg():
            return f"NEG {_gap(node.gap)}", _conditions(node.equalities, node.predicates)
        case Kseq():
            group = f"{node.element.variable}{quantifier_text(node.quantifier)}"
            conditions = (*node.predicates, *node.running, *node.checks)
            return f"KSEQ {group} {_gap(node.gap)}", _conditions(node.equalities, conditions)
        case Run():
            name = f"KSEQ {node.element.variable}{{{node.count}}}"
            tests = [expression_text(c) for c in (*node.running, *node.checks)]
            return name, [*(f"hash({k.name})" for k in node.key), *tests]
        case Filter():
            return "FILTER", [expression_text(p) for p in node.predicates]
        case Stacks():
            parts = [_agreeing(part) for part in node.equivalences]
            name = " ".join(["STACKS", *parts, *([node.strategy.value] if parts else [])])
            return name, [expression_text(p) for p in node.predicates]
        case Automaton():
            parts = [_agreeing(tuple(a for a in part if a is not None)) for part in node.key]
            return " ".join(["AUTOMATON", *parts]), [pattern_text(node.pattern, variables)]
        case _:
            assert_never(node)


def _agreeing(attributes: tuple[Attribute, ...]) -> str:
    """`[id]`, or the attributes if the column's name isn't the same for all."""
    names = {attribute.name for attribute in attributes}
    texts = names if len(names) == 1 else map(expression_text, attributes)
    return f"[{' = '.join(texts)}]"


def _leaf(variable: Variable) -> str:
    if variable.name == STREAM:
        return "every event"
    types = " | ".join(variable.types)
    return variable.name if types in ("", variable.name) else f"{types} {variable.name}"


def _conditions(
    equalities: Iterable[Equality], predicates: Iterable[Expr], hashed: bool = True
) -> list[str]:
    equal = [f"{expression_text(e.left)} = {expression_text(e.right)}" for e in equalities]
    return [f"hash({e})" if hashed else e for e in equal] + [expression_text(p) for p in predicates]


def _gap(gap: Gap) -> str:
    """Between which variables; … is the window's edge."""
    before = [*(["…"] if gap.open_before else []), *reversed(gap.before)]
    after = [*gap.after, *(["…"] if gap.open_after else [])]
    return f"[{' '.join(before)}, {' '.join(after)}]"
