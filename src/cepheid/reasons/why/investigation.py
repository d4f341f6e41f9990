"""`why`: what each part of a query lets through, and what there would be without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

from cepheid.algebra.query import Clock
from cepheid.algebra.text import span_text
from cepheid.language import ast
from cepheid.language.render import render, render_expression
from cepheid.language.traversal import walk
from cepheid.plan.amounts import count
from cepheid.reasons.anatomy import Anatomy, anatomy
from cepheid.reasons.progress import Stage, after_match_text, first_row, stages
from cepheid.reasons.trials import MOST, Binding, Identity, Outcome, Trials
from cepheid.reasons.why.report import Lost, Miss, ReportedStep, VariableEvents, Why, WithoutPart
from cepheid.reasons.why.spelling import misspelled_types, misspelled_values

MISSES = 5
"""Nearest misses that are shown, if the caller doesn't say."""


def investigate(query: ast.Query, trials: Trials, misses: int) -> Why:
    """The report on a query over these events, with so many of the nearest misses."""
    parts = anatomy(query, trials)
    base = trials.run(parts.syntax)
    reached = stages(parts, trials)
    events = tuple(_variables(parts, trials))
    outcomes = list(_without(parts, trials))
    wider, notes = _wider(parts, trials, base)
    if wider is not None:
        outcomes.append(wider)
    spelled = [*misspelled_types(parts, trials), *misspelled_values(parts, trials)]
    refused = [f"not tried, {text}: {o.refused}" for _, text, o in outcomes if o.refused]
    refused += [f"not known, {s.text}: {s.refused}" for s in reached if s.refused]
    return Why(
        query=render(query),
        events=trials.count,
        total=trials.total,
        sample=trials.sample,
        matches=len(base),
        complete=base.complete,
        steps=tuple(map(_reported, reached)),
        variables=events,
        without=tuple(_part(base, *o) for o in outcomes if o[2].refused is None),
        misses=tuple(islice(_misses(parts, trials, base, outcomes, reached), misses)),
        notes=(*spelled, *notes, *refused, *_of_answers(query, trials)),
    )


def _of_answers(query: ast.Query, trials: Trials) -> Iterator[str]:
    if trials.bound(query).answers is not None:
        yield "figures are of the matches, before they are grouped into answers"


def _reported(stage: Stage) -> ReportedStep:
    lost = tuple(Lost(c.kind, c.text, len(c.starts)) for c in stage.causes)
    return ReportedStep(stage.text, None if stage.refused else len(stage.starts), lost)


# ── the events of each variable ──────────────────────────────────────────────


def _variables(parts: Anatomy, trials: Trials) -> Iterator[VariableEvents]:
    for name, leaf in parts.leaves.items():
        class_conditions = [c for c in parts.conditions if c.element and c.variables == {name}]

        def events(*conditions: ast.Expression, leaf: ast.Atom | ast.AnyOf = leaf) -> int | None:
            where = conditions[0] if len(conditions) == 1 else None
            where = ast.Logical("AND", conditions) if len(conditions) > 1 else where
            query = ast.Query(leaf, streams=parts.syntax.streams, where=where)
            outcome = trials.run(query, most=None)
            return None if outcome.refused else len(outcome)

        passing = tuple((c.text, events(c.node)) for c in class_conditions)
        negated = parts.bound.variables[name].negation is not None
        whole = events()
        yield VariableEvents(
            name,
            negated,
            whole,
            passing,
            events(*(c.node for c in class_conditions)) if class_conditions else whole,
        )


# ── without a part ───────────────────────────────────────────────────────────

Tried = tuple[str, str, Outcome]
"""The kind of a part, its text, and what there is without it."""


def _without(parts: Anatomy, trials: Trials) -> Iterator[Tried]:
    for condition in parts.conditions:
        yield "condition", condition.text, trials.run(parts.without(condition))
    for negation in parts.negations:
        yield "negation", negation.text, trials.run(parts.without_negation(negation))
    for having in parts.having:
        text = f"HAVING {render_expression(having)}"
        yield "having", text, trials.run(parts.without_having(having))
    after = parts.syntax.after_match
    if after is not None:
        outcome = trials.run(replace(parts.syntax, after_match=None))
        yield "after match", after_match_text(after), outcome
    if parts.syntax.limit is not None:
        yield "limit", "LIMIT", trials.run(replace(parts.syntax, limit=None))


def _part(base: Outcome, kind: str, text: str, outcome: Outcome) -> WithoutPart:
    return WithoutPart(kind, text, len(outcome), outcome.complete, len(outcome) - len(base))


# ── a longer window ──────────────────────────────────────────────────────────


def _wider(parts: Anatomy, trials: Trials, base: Outcome) -> tuple[Tried | None, list[str]]:
    """The smallest window with a match that isn't one now: the window is doubled until there is
    one, and then made as short as possible. Every answer was run."""
    window = parts.bound.window
    if window is None or base.refused is not None or not base.complete:
        return None, []
    known = {m.identity for m in base.matches}
    longest = trials.longest(window)
    size = window.size
    while size < longest:
        low, size = size, min(2 * size, longest)
        outcome = trials.run(parts.with_window(size))
        fresh = [m for m in outcome.matches if m.identity not in known]
        if fresh:
            return _shortest(parts, trials, known, low, size, fresh, outcome), []
        if outcome.refused is not None or not outcome.complete:
            return None, [f"no longer window was found: {outcome.refused or _TOO_MANY}"]
    return None, [] if known else ["no longer window would give a match"]


_TOO_MANY = f"there are more than {count(MOST)} matches"


def _shortest(
    parts: Anatomy,
    trials: Trials,
    known: set[Identity],
    low: int,
    size: int,
    fresh: list[Binding],
    outcome: Outcome,
) -> Tried:
    window = parts.bound.window
    assert window is not None
    if window.clock is Clock.TIME:
        least = max(low + 1, min(m.end - m.start for m in fresh) + 1)
        least = readable(parts, least)
        tried = trials.run(parts.with_window(least))
        if any(m.identity not in known for m in tried.matches):
            size, outcome = least, tried
    else:
        while size - low > 1:
            middle = (low + size) // 2
            tried = trials.run(parts.with_window(middle))
            if any(m.identity not in known for m in tried.matches):
                size, outcome = middle, tried
            else:
                low = middle
    return "window", window_words(parts, size), outcome


def readable(parts: Anatomy, size: int) -> int:
    """A window that is at least so long, as a person would write it: in whole seconds if it is
    longer than ten, in milliseconds if it is longer than ten of those."""
    if parts.ticks:
        return size
    unit = next((u for u in (1_000_000, 1_000) if size > 10 * u), 1)
    return -(-size // unit) * unit


def window_words(parts: Anatomy, size: int) -> str:
    window = parts.bound.window
    if window is not None and window.clock is Clock.EVENTS:
        return f"WITHIN {size} EVENTS"
    return f"WITHIN {span_text(size, parts.ticks)}"


# ── the nearest misses ───────────────────────────────────────────────────────


def _misses(
    parts: Anatomy,
    trials: Trials,
    base: Outcome,
    outcomes: list[Tried],
    reached: tuple[Stage, ...],
) -> Iterator[Miss]:
    """What would match but for one part, then what came furthest."""
    known = {m.identity for m in base.matches}
    seen: set[int] = set()
    negated = {v for n in parts.negations for v in n.variables}
    # Events of other keys are no near miss, and a forbidden event is no part of one.
    passed = {c.text for c in parts.conditions if c.key or c.variables & negated}
    for kind, text, outcome in outcomes:
        if kind in ("after match", "limit") or text in passed:
            continue
        for match in outcome.matches:
            start = first_row(match, parts)
            if match.identity not in known and start not in seen:
                seen.add(start)
                yield _miss(parts, trials, match, len(parts.steps), kind, text)
                break
    for place in range(len(reached) - 1, 0, -1):
        before = reached[place - 1].starts
        for cause in reached[place].causes:
            for start in (s for s in cause.starts if s not in seen and s in before):
                seen.add(start)
                yield _miss(parts, trials, before[start], place, cause.kind, cause.text)


def _miss(
    parts: Anatomy, trials: Trials, match: Binding, reached: int, kind: str, text: str
) -> Miss:
    rows = {v: rows for v, rows in match.rows.items() if rows}
    nodes = [c.node for c in parts.conditions if kind == "condition" and c.text == text]
    seen = tuple(pair for node in nodes for pair in values_seen(node, rows, trials))
    return Miss(rows, reached, len(parts.steps), kind, text, seen)


def values_seen(
    node: ast.Expression, rows: Mapping[str, tuple[int, ...]], trials: Trials
) -> Iterator[tuple[str, str]]:
    """The attributes that a condition reads of single events, with their values."""
    read = dict.fromkeys(n for n in walk(node) if isinstance(n, ast.Attribute))
    if isinstance(node, ast.KeyTest):
        read = dict.fromkeys(ast.Attribute(v, node.attribute) for v in rows)
    for attribute in read:
        bound = rows.get(attribute.variable, ())
        if len(bound) == 1:
            value = trials.cell(bound[0], attribute.name)
            yield render_expression(attribute), "NULL" if value is None else str(value)
