"""How far partial matches get: who reaches each step of a pattern, and what stops the others.

A partial match is counted by its event of the first step, once, whatever number of ways it could
be completed. In a sequence AFTER MATCH SKIP TO NEXT EVENT keeps the earliest-ending match of each
of those; a conjunction may start with another event, so all of its matches are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cepheid.language import ast
from cepheid.language.render import render_expression
from cepheid.plan.amounts import count
from cepheid.reasons.anatomy import Anatomy, Component
from cepheid.reasons.trials import MOST, Binding, Trials

Starts = dict[int, Binding]
"""The earliest-ending partial match of each first event, by that event's row."""

TOGETHER = "several of these at once"

_FIRST = ast.AfterMatch(ast.Skip.TO_NEXT_EVENT)


@dataclass(frozen=True, slots=True)
class Cause:
    """What stopped partial matches: the text of a part of the query, and their first events. `kind`
    is `candidate`, `condition`, `negation`, `having`, `after match`, `limit` or `together`."""

    kind: str
    text: str
    starts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """A step, or at the end `match`: what reached it, and what stopped those that reached the step
    before. `refused` says why this can't be known."""

    text: str
    starts: Starts
    causes: tuple[Cause, ...] = ()
    refused: str | None = None


def stages(parts: Anatomy, trials: Trials) -> tuple[Stage, ...]:
    """The steps in the order of the pattern, and the complete match."""
    steps: list[Stage] = []
    before: Starts | None = None
    for length, step in enumerate(parts.steps, 1):
        reached, refused = _starts(parts, parts.prefix(length), trials)
        causes: tuple[Cause, ...] = ()
        if before is not None and refused is None:
            lost = before.keys() - reached.keys()
            causes = tuple(_causes(parts, _attempts(parts, length, step), lost, trials))
        steps.append(Stage(step.text, reached, causes, refused))
        before = None if refused is not None else reached
    chooses = parts.syntax.after_match is not None or parts.syntax.limit is not None
    kept, refused = _starts(parts, parts.syntax, trials, chosen=chooses)
    causes = ()
    if before is not None and refused is None:
        causes = tuple(_causes(parts, _endings(parts), before.keys() - kept.keys(), trials))
    steps.append(Stage("match", kept, causes, refused))
    return tuple(steps)


def _starts(
    parts: Anatomy, query: ast.Query, trials: Trials, chosen: bool = False
) -> tuple[Starts, str | None]:
    """`chosen`: by the query's own AFTER MATCH."""
    if isinstance(parts.syntax.pattern, ast.Conjunction):
        outcome = trials.run(query if chosen else replace(query, after_match=None))
        if not outcome.complete:
            return {}, f"more than {count(MOST)} partial matches"
    else:
        outcome = trials.run(query if chosen else replace(query, after_match=_FIRST), most=None)
    return {first_row(m, parts): m for m in reversed(outcome.matches)}, outcome.refused


def first_row(match: Binding, parts: Anatomy) -> int:
    """The row of the first event of the first step that binds one."""
    for step in parts.steps:
        rows = [row for v in step.variables for row in match.rows.get(v, ())]
        if rows:
            return rows[0]
    return -1


# ── what stopped them ────────────────────────────────────────────────────────

Attempt = tuple[str, str, ast.Query, bool]
"""Kind and text of a cause, and a variation. It is the cause if the variation helps, or if
that is False, if it doesn't help."""


def _attempts(parts: Anatomy, length: int, step: Component) -> Iterator[Attempt]:
    """In the order in which they are tried: a cause gets what no earlier one got."""
    new = parts.new_conditions(length)
    kept = [c for c in parts.conditions if c not in new]
    yield "candidate", _none_follows(step, parts), parts.prefix(length, kept, step.forbidden), False
    for condition in new:
        others = [c for c in parts.conditions if c is not condition]
        yield "condition", condition.text, parts.prefix(length, others), True
    for negation in step.forbidden:
        yield "negation", negation.text, parts.prefix(length, left_out=(negation,)), True


def _none_follows(step: Component, parts: Anatomy) -> str:
    match step.operator:
        case ast.SequenceOperator.STRICT:
            return f"no {step.text} right after it"
        case _:
            return f"no {step.text}" + ("" if parts.bound.window is None else " in the window")


def _endings(parts: Anatomy) -> Iterator[Attempt]:
    """AFTER MATCH and LIMIT first: they leave out matches that everything else lets through."""
    whole, after = replace(parts.syntax, limit=None), parts.syntax.after_match
    if parts.syntax.limit is not None:
        yield "limit", "LIMIT", whole, True
    if after is not None:
        yield "after match", after_match_text(after), replace(whole, after_match=None), True
    for condition in (c for c in parts.conditions if c.match):
        yield "condition", condition.text, replace(parts.without(condition), limit=None), True
    for negation in parts.trailing:
        query = replace(parts.without_negation(negation), limit=None)
        yield "negation", negation.text, query, True
    for having in parts.having:
        text = f"HAVING {render_expression(having)}"
        yield "having", text, replace(parts.without_having(having), limit=None), True


def after_match_text(after: ast.AfterMatch) -> str:
    return f"AFTER MATCH {after.skip.value}"


def _causes(
    parts: Anatomy, attempts: Iterator[Attempt], lost: set[int], trials: Trials
) -> Iterator[Cause]:
    """Each lost start has the first cause that explains it alone."""
    left = set(lost)
    for kind, text, query, helps in attempts:
        if not left:
            return
        starts, refused = _starts(parts, query, trials, chosen=kind == "limit")
        if refused is not None:
            continue
        mine = left & starts.keys() if helps else left - starts.keys()
        if mine:
            yield Cause(kind, text, tuple(sorted(mine)))
            left -= mine
    if left:
        yield Cause("together", TOGETHER, tuple(sorted(left)))
