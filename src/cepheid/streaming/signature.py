"""The signature of a query: a saved state can be resumed only by a query with the same one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from cepheid.algebra.text import expression_text, query_text
from cepheid.errors import StateError
from cepheid.plan.nodes import Plan, has_automaton, waits
from cepheid.plan.reads import columns_of, leaves
from cepheid.plan.text import plan_text, settings
from cepheid.planner import Prepared

Signature = Mapping[str, str]
"""The parts that must not change, by name."""


def signature(prepared: Prepared) -> Signature:
    """The signature of a prepared query. RETURN and the plan may change, except what a waiting
    negation waits for and what an automaton holds back, which are part of the state."""
    plan, query = prepared.plan, replace(prepared.query, answers=None)
    clauses = dict(map(_clause, query_text(query).splitlines()))
    chosen = ("after match", "first matches")
    clauses |= {name: text for name, text in settings(plan) if name in chosen}
    clauses |= _columns(plan)
    for leaf in leaves(plan):
        filters = " AND ".join(expression_text(f) for f in leaf.filters)
        types = " | ".join(plan.variables[leaf.variable].types)
        clauses[f"class {leaf.variable}"] = f"{types or 'every event'} {filters}".strip()
    if has_automaton(plan):
        clauses["plan"] = plan_text(plan)
    elif any(waits(root) for root in plan.alternatives):
        top = any(choice.top for choice in prepared.planned.winner.choices)
        clauses["negation"] = "top" if top else "push"
    if plan.selection is not None:
        returned = (f"{o.name} = {expression_text(o.expression)}" for o in plan.outputs)
        clauses["RETURN"] = ", ".join(returned)  # matches that are held back have these columns
    return clauses


def answers_signature(prepared: Prepared, matches: pa.Schema) -> Signature:
    """The signature of what is made of the matches, too: groups, windows and aggregates. HAVING
    after GROUP BY may change, and what RETURN makes of the aggregates."""
    shape = prepared.query.answers
    assert shape is not None
    texts = {o.name: expression_text(o.expression) for o in prepared.query.outputs}
    groups = [f"{texts[name]} {matches.field(name).type}" for name in shape.groups]
    if shape.window is not None:
        window = shape.window
        groups.append(f"{window.kind.value}({window.slide}, {window.size})")
    aggregates = [
        f"{a.function}({'DISTINCT ' if a.distinct else ''}"
        + ("*" if a.column is None else f"{texts[a.column]} {matches.field(a.column).type}")
        + ")"
        for a in shape.aggregates
    ]
    most = {} if shape.most is None else {"LIMIT": str(shape.most)}
    answers = {"GROUP BY": ", ".join(groups), "aggregates": ", ".join(aggregates), **most}
    return {**signature(prepared), **answers, **_counted(prepared)}


def found_signature(prepared: Prepared) -> Signature:
    """The signature of a query whose matches may be counted, but for what is made of them."""
    return {**signature(prepared), **_counted(prepared)}


def _counted(prepared: Prepared) -> Signature:
    """Other state is held where matches are counted."""
    return {} if prepared.counted(prompt=True) is None else {"answers": "counted"}


def _clause(line: str) -> tuple[str, str]:
    name, _, text = line.partition(" ")
    return name, text


def _columns(plan: Plan) -> dict[str, str]:
    """The roles of columns, and the types of those that decide what matches."""
    schema = plan.schema
    roles = {"time": schema.time, "type": schema.type, "tie": schema.tie, "start": schema.start}
    columns = {f"{role}=": name for role, name in roles.items() if name is not None}
    returned = columns_of(*(o.expression for o in plan.outputs))
    decisive = [n for n in plan.required if n not in returned or n in roles.values()]
    return columns | {f"column {n}": schema.columns[n].name.lower() for n in sorted(decisive)}


def require_same(saved: Signature, current: Signature) -> None:
    """Refuse to resume the state of another query, naming the difference."""
    columns = [n for n in current if n.startswith("column ") and n not in saved]
    names = dict.fromkeys((*saved, *current))
    for name in names:
        before, now = saved.get(name), current.get(name)
        if before == now or name in columns or (now is None and name.startswith("column ")):
            continue
        raise StateError(
            f"the query is not the one that the checkpoint was written with: {name} was "
            f"{_quoted(before)} and is {_quoted(now)}. Only RETURN and the plan may change: "
            "resume with the old query, or start with a new checkpoint"
        )


def require_types(saved: pa.Schema, current: pa.Schema) -> None:
    """Refuse to read what was saved as values of another type."""
    types = {field.name: _plain(field.type) for field in current}
    for field in saved:
        kind, now = _plain(field.type), types.get(field.name)
        if now is not None and now != kind:
            raise StateError(
                f"column `{field.name}` was {kind} when the checkpoint was written, and is {now}: "
                "cast it to what it was, or start with a new checkpoint"
            )


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _quoted(text: str | None) -> str:
    return "not there" if text is None else f"`{text}`"
