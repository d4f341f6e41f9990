"""`why`: what each part of a query lets through, and what there would be without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from cepheid.algebra.query import Clock
from cepheid.language import ast
from cepheid.language.render import render, render_after_match, render_expression
from cepheid.language.traversal import walk
from cepheid.plan.amounts import count
from cepheid.reasons.anatomy import Anatomy, all_of, anatomy
from cepheid.reasons.longer_windows import readable, window_words
from cepheid.reasons.progress import Stage, stages
from cepheid.reasons.trials import MOST, Binding, MatchCount, Outcome, Trials
from cepheid.reasons.why.report import Lost, Miss, ReportedStep, VariableEvents, Why, WithoutPart
from cepheid.reasons.why.spelling import misspelled_types, misspelled_values

SEEN = 5
"""Values of a group that are shown."""

MISSES = 5
"""Nearest misses that are shown, if the caller doesn't say."""


def investigate(query: ast.Query, trials: Trials, misses: int) -> Why:
    """The report on a query over these events, with so many of the nearest misses."""
    parts = anatomy(query, trials)
    base = trials.number(parts.syntax, MOST)
    reached = stages(parts, trials)
    tried = _without(parts, trials)
    wider, notes = _wider(parts, trials, base)
    if wider is not None:
        tried.append(wider)
    spelled = [*misspelled_types(parts, trials), *misspelled_values(parts, trials)]
    refused = [f"not tried, {t.text}: {t.number.refused}" for t in tried if t.number.refused]
    refused += [f"not known, {s.text}: {s.refused}" for s in reached if s.refused]
    return Why(
        query=render(query),
        events=trials.count,
        total=trials.total,
        sample=trials.sample,
        matches=base.value,
        complete=base.complete,
        steps=tuple(map(_reported, reached)),
        variables=tuple(_variables(parts, trials)),
        without=tuple(_part(base, t) for t in tried if t.number.refused is None),
        misses=tuple(islice(_misses(parts, trials, tried, reached), misses)),
        notes=(*spelled, *notes, *refused, *_of_answers(query, trials)),
    )


def _of_answers(query: ast.Query, trials: Trials) -> Iterator[str]:
    if trials.bound(query).answers is not None:
        yield "figures are of the matches, before they are grouped into answers"


def _reported(stage: Stage) -> ReportedStep:
    lost = tuple(Lost(c.kind, c.text(), c.count) for c in stage.causes)
    return ReportedStep(stage.text, None if stage.refused else stage.reached, lost)


# ── the events of each variable ──────────────────────────────────────────────


def _variables(parts: Anatomy, trials: Trials) -> Iterator[VariableEvents]:
    """Each variable with all of its events, those that pass each of its conditions, and all."""
    own = {
        name: [c for c in parts.conditions if c.element and c.variables == {name}]
        for name in parts.leaves
    }
    queries = [
        ast.Query(leaf, streams=parts.syntax.streams, where=where)
        for name, leaf in parts.leaves.items()
        for where in (
            None,
            *(condition.node for condition in own[name]),
            all_of(condition.node for condition in own[name]),
        )
    ]
    numbers = (None if n.refused else n.value for n in trials.numbers(queries, most=None))
    for name, conditions in own.items():
        whole = next(numbers)
        passing = tuple((condition.text, next(numbers)) for condition in conditions)
        negated = parts.bound.variables[name].negation is not None
        yield VariableEvents(name, negated, whole, passing, next(numbers))


# ── without a part ───────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Tried:
    """A part of the query, how many matches there are without it, and those that aren't there with
    it, which are the first of them if there are many."""

    kind: str
    text: str
    number: MatchCount
    fresh: Outcome


def _without(parts: Anatomy, trials: Trials) -> list[Tried]:
    variations = list(_variations(parts))
    queries = [query for _, _, query in variations]
    numbers = trials.numbers(queries, MOST)
    outcomes = trials.fresh(parts.syntax, queries)
    return [
        Tried(kind, text, number, fresh)
        for (kind, text, _), number, fresh in zip(variations, numbers, outcomes, strict=True)
    ]


def _variations(parts: Anatomy) -> Iterator[tuple[str, str, ast.Query]]:
    for condition in parts.conditions:
        yield "condition", condition.text, parts.without(condition)
    for negation in parts.negations:
        yield "negation", negation.text, parts.without_negation(negation)
    for having in parts.having:
        text = f"HAVING {render_expression(having)}"
        yield "having", text, parts.without_having(having)
    after = parts.syntax.after_match
    if after is not None:
        yield "after match", render_after_match(after), replace(parts.syntax, after_match=None)
    if parts.syntax.limit is not None:
        yield "limit", "LIMIT", replace(parts.syntax, limit=None)


def _part(base: MatchCount, tried: Tried) -> WithoutPart:
    number = tried.number
    more = number.value - base.value if base.complete else None
    return WithoutPart(tried.kind, tried.text, number.value, number.complete, more)


# ── a longer window ──────────────────────────────────────────────────────────

_AT_ONCE = 4
"""Windows that are tried at once."""


def _wider(parts: Anatomy, trials: Trials, base: MatchCount) -> tuple[Tried | None, list[str]]:
    """The smallest window with a match that isn't one now: the window is doubled until there is
    one, and then made as short as possible. Every answer was run."""
    window = parts.bound.window
    if window is None or base.refused is not None:
        return None, []
    if base.value > MOST or not base.complete:
        return None, [f"no longer window was tried: there are more than {count(MOST)} matches"]
    longest = trials.longest(window)
    low = window.size
    while low < longest:
        sizes = [min(low << n, longest) for n in range(1, _AT_ONCE + 1) if low << n - 1 < longest]
        for size, outcome in zip(sizes, _with_windows(parts, trials, sizes), strict=True):
            if outcome.matches:
                return _shortest(parts, trials, low, size, outcome), []
            if outcome.refused is not None or not outcome.complete:
                reason = outcome.refused or f"there are more than {count(MOST)} matches"
                return None, [f"no longer window was found: {reason}"]
            low = size
    return None, [] if base.value else ["no longer window would give a match"]


def _with_windows(parts: Anatomy, trials: Trials, sizes: Sequence[int]) -> list[Outcome]:
    return trials.fresh(parts.syntax, [parts.with_window(size) for size in sizes])


def _shortest(parts: Anatomy, trials: Trials, low: int, size: int, outcome: Outcome) -> Tried:
    """`low` has no new match, `size` has these."""
    window = parts.bound.window
    assert window is not None
    if window.clock is Clock.TIME:
        least = readable(parts, max(low + 1, min(m.end - m.start for m in outcome.matches) + 1))
        (tried,) = _with_windows(parts, trials, [least])
        if tried.matches:
            size, outcome = least, tried
    else:
        while size - low > 1:
            middle = (low + size) // 2
            (tried,) = _with_windows(parts, trials, [middle])
            if tried.matches:
                size, outcome = middle, tried
            else:
                low = middle
    number = trials.number(parts.with_window(size), MOST)
    return Tried("window", window_words(parts, size), number, outcome)


# ── the nearest misses ───────────────────────────────────────────────────────


def _misses(
    parts: Anatomy, trials: Trials, tried: list[Tried], reached: tuple[Stage, ...]
) -> Iterator[Miss]:
    """What would match but for one part, then what came furthest."""
    seen: set[int] = set()
    negated = {v for n in parts.negations for v in n.variables}
    # Events of other keys are no near miss, and a forbidden event is no part of one.
    passed = {c.text for c in parts.conditions if c.key or c.variables & negated}
    for part in tried:
        if part.kind in ("after match", "limit") or part.text in passed:
            continue
        for match in part.fresh.matches:
            start = trials.first(match, parts.step_variables)
            if start not in seen:
                seen.add(start)
                yield _miss(parts, trials, match, len(parts.steps), part.kind, part.text)
                break
    for place in range(len(reached) - 1, 0, -1):
        before = reached[place - 1].starts
        for cause in reached[place].causes:
            for start in (s for s in cause.starts if s not in seen and s in before):
                seen.add(start)
                text = cause.text({start})
                yield _miss(parts, trials, before[start], place, cause.kind, text)


def _miss(
    parts: Anatomy, trials: Trials, match: Binding, reached: int, kind: str, text: str
) -> Miss:
    rows = {v: rows for v, rows in match.rows.items() if rows}
    nodes = [c.node for c in parts.conditions if kind == "condition" and c.text == text]
    seen = dict(pair for node in nodes for pair in values_seen(node, rows, trials))
    if not trials.numbered:  # these say which events they are
        seen = {**dict(_key_values(parts, rows, trials)), **seen}
    column = trials.options.time
    times = {v: tuple(str(trials.cell(r, column)) for r in part) for v, part in rows.items()}
    shown = rows if trials.numbered else {}
    return Miss(shown, times, reached, len(parts.steps), kind, text, tuple(seen.items()))


def _key_values(
    parts: Anatomy, rows: Mapping[str, tuple[int, ...]], trials: Trials
) -> Iterator[tuple[str, str]]:
    variable = next(iter(rows), None)
    for part in parts.bound.key:
        if variable is not None:
            value = trials.cell(rows[variable][0], part.columns[variable])
            yield f"{variable}.{part.columns[variable]}", "NULL" if value is None else str(value)


def values_seen(
    node: ast.Expression, rows: Mapping[str, tuple[int, ...]], trials: Trials
) -> Iterator[tuple[str, str]]:
    """The attributes that a condition reads, with their values; of a group, the first of them."""
    read = dict.fromkeys(n for n in walk(node) if isinstance(n, ast.Attribute))
    if isinstance(node, ast.KeyTest):
        read = dict.fromkeys(ast.Attribute(v, node.attribute) for v in rows)
    for attribute in read:
        bound = rows.get(attribute.variable, ())
        values = [trials.cell(row, attribute.name) for row in bound[:SEEN]]
        texts = ["NULL" if value is None else str(value) for value in values]
        if texts:
            more = ["…"] if len(bound) > SEEN else []
            yield render_expression(attribute), ", ".join([*texts, *more])
