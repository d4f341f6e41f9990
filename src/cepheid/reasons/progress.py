"""How far partial matches get: who reaches each step of a pattern, and what stops the others.

A partial match is counted by its event of the first step, once, whatever number of ways it could
be completed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from cepheid.language import ast
from cepheid.language.render import render_after_match, render_expression
from cepheid.reasons.anatomy import Anatomy, Component
from cepheid.reasons.trials import Starts, Trials

TOGETHER = "several of these at once"


@dataclass(frozen=True, slots=True)
class Cause:
    """What stopped partial matches: the text of a part of the query, and their first events, with
    how many each of them stands for. `kind` is `candidate`, `condition`, `negation`, `having`,
    `after match`, `limit` or `together`."""

    kind: str
    text: str
    starts: Mapping[int, int]

    @property
    def count(self) -> int:
        return sum(self.starts.values())


@dataclass(frozen=True, slots=True)
class Stage:
    """A step, or at the end `match`: what reached it, and what stopped those that reached the step
    before. `refused` says why this can't be known."""

    text: str
    starts: Starts
    causes: tuple[Cause, ...] = ()
    refused: str | None = None

    @property
    def reached(self) -> int:
        return sum(match.like for match in self.starts.values())


def stages(parts: Anatomy, trials: Trials) -> tuple[Stage, ...]:
    """The steps in the order of the pattern, and the complete match."""
    trials.expect(parts.step_variables, _queries(parts))
    steps: list[Stage] = []
    before: Starts | None = None
    for length, step in enumerate(parts.steps, 1):
        reached, refused = trials.starts(parts.step_variables, parts.prefix(length))
        causes: tuple[Cause, ...] = ()
        if before is not None and refused is None:
            lost = {start: before[start].like for start in before.keys() - reached.keys()}
            causes = tuple(_causes(parts, _attempts(parts, length, step), lost, trials))
        steps.append(Stage(step.text, reached, causes, refused))
        before = None if refused is not None else reached
    kept, refused = trials.starts(parts.step_variables, parts.syntax)
    causes = ()
    if before is not None and refused is None:
        lost = {start: before[start].like for start in before.keys() - kept.keys()}
        causes = tuple(_causes(parts, _endings(parts), lost, trials))
    steps.append(Stage("match", kept, causes, refused))
    return tuple(steps)


def _queries(parts: Anatomy) -> Iterator[ast.Query]:
    """All that may have to be run."""
    for length, step in enumerate(parts.steps, 1):
        yield parts.prefix(length)
        if length > 1:
            yield from (query for _, _, query, _ in _attempts(parts, length, step))
    yield parts.syntax
    yield from (query for _, _, query, _ in _endings(parts))


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
        yield "after match", render_after_match(after), replace(whole, after_match=None), True
    for condition in (c for c in parts.conditions if c.match):
        yield "condition", condition.text, _all(parts.without(condition)), True
    for negation in parts.trailing:
        yield "negation", negation.text, _all(parts.without_negation(negation)), True
    for having in parts.having:
        text = f"HAVING {render_expression(having)}"
        yield "having", text, _all(parts.without_having(having)), True


def _all(query: ast.Query) -> ast.Query:
    """Also the matches that AFTER MATCH and LIMIT leave out."""
    return replace(query, after_match=None, limit=None)


def _causes(
    parts: Anatomy, attempts: Iterator[Attempt], lost: Mapping[int, int], trials: Trials
) -> Iterator[Cause]:
    """Each lost start has the first cause that explains it alone."""

    def cause(kind: str, text: str, starts: set[int]) -> Cause:
        return Cause(kind, text, {start: lost[start] for start in sorted(starts)})

    left = set(lost)
    for kind, text, query, helps in attempts:
        if not left:
            return
        starts, refused = trials.starts(parts.step_variables, query)
        if refused is not None:
            continue
        mine = left & starts.keys() if helps else left - starts.keys()
        if mine:
            yield cause(kind, text, mine)
            left -= mine
    if left:
        yield cause("together", TOGETHER, left)
