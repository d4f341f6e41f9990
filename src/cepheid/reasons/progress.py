"""How far partial matches get: who reaches each step of a pattern, and what stops the others.

A partial match is counted by its event of the first step, once, whatever number of ways it could
be completed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from cepheid.language import ast
from cepheid.language.render import render_after_match, render_expression
from cepheid.reasons.anatomy import Anatomy
from cepheid.reasons.longer_windows import longer_window, needed_words
from cepheid.reasons.steps import Component
from cepheid.reasons.trials import Starts, Trials

TOGETHER = "several of these at once"

Words: TypeAlias = str | Callable[[int, int], str]
"""What stopped partial matches; of a window, for matches that last from so long to so long."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What stopped partial matches: a part of the query in words, and their first events, with how
    many each of them stands for. `kind` is `candidate`, `condition`, `negation`, `window`,
    `having`, `after match`, `limit` or `together`. Of a window, `needed` has how long matches of a
    first event last: the shortest and the longest of those that it stands for."""

    kind: str
    words: Words
    starts: Mapping[int, int]
    needed: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return sum(self.starts.values())

    def text(self, starts: Collection[int] | None = None) -> str:
        """What stopped these of its first events."""
        if isinstance(self.words, str):
            return self.words
        spans = [self.needed[s] for s in (self.starts if starts is None else starts)]
        return self.words(min(least for least, _ in spans), max(most for _, most in spans))


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
    places = range(1, len(parts.steps) + 1)
    attempts = [tuple(_attempts(parts, place, trials)) for place in places]
    attempts.append(tuple(_endings(parts)))
    queries = [*map(parts.prefix, places), parts.syntax]
    tried = [attempt for each in attempts[1:] for attempt in each]
    trials.expect(
        parts.step_variables,
        [*queries, *(attempt.query for attempt in tried)],
        [attempt.query for attempt in tried if attempt.kind == "window"],
    )
    texts = [*(step.text for step in parts.steps), "match"]
    steps: list[Stage] = []
    before: Starts | None = None
    for text, query, each in zip(texts, queries, attempts, strict=True):
        reached, refused = trials.starts(parts.step_variables, query)
        causes: tuple[Cause, ...] = ()
        if before is not None and refused is None:
            lost = {start: before[start].like for start in before.keys() - reached.keys()}
            causes = tuple(_causes(parts, each, lost, trials))
        steps.append(Stage(text, reached, causes, refused))
        before = None if refused is not None else reached
    return tuple(steps)


# ── what stopped them ────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Attempt:
    """Kind and words of a cause, and a variation. It is the cause if the variation helps; with no
    event to go on with, if even this one doesn't help."""

    kind: str
    words: Words
    query: ast.Query


def _attempts(parts: Anatomy, length: int, trials: Trials) -> Iterator[Attempt]:
    """What may stop partial matches at a step, in the order in which it is tried."""
    new, forbidden = parts.new_conditions(length), parts.forbidden(length)
    kept = [c for c in parts.conditions if c not in new]
    none = _none_follows(parts.steps[length - 1], parts)
    yield Attempt("candidate", none, parts.prefix(length, kept, forbidden))
    for condition in new:
        others = [c for c in parts.conditions if c is not condition]
        yield Attempt("condition", condition.text, parts.prefix(length, others))
    for negation in forbidden:
        yield Attempt("negation", negation.text, parts.prefix(length, left_out=(negation,)))
    size = longer_window(parts, trials)
    if size is not None:
        query = replace(parts.prefix(length), within=parts.window(size))
        yield Attempt("window", partial(needed_words, parts, size), query)


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
        yield Attempt("limit", "LIMIT", whole)
    if after is not None:
        free = replace(whole, after_match=None)
        yield Attempt("after match", render_after_match(after), free)
    for condition in (c for c in parts.conditions if c.match):
        yield Attempt("condition", condition.text, _all(parts.without(condition)))
    for negation in parts.trailing:
        yield Attempt("negation", negation.text, _all(parts.without_negation(negation)))
    for having in parts.having:
        text = f"HAVING {render_expression(having)}"
        yield Attempt("having", text, _all(parts.without_having(having)))


def _all(query: ast.Query) -> ast.Query:
    """Also the matches that AFTER MATCH and LIMIT leave out."""
    return replace(query, after_match=None, limit=None)


def _causes(
    parts: Anatomy, attempts: Sequence[Attempt], lost: Mapping[int, int], trials: Trials
) -> Iterator[Cause]:
    """Each lost start has the first cause that explains it alone. That there is no event to go on
    with in the window explains less than that there is one after it."""
    left, absent = set(lost), set[int]()
    found: list[tuple[Attempt, set[int], Starts]] = []
    for attempt in attempts:
        late = attempt.kind == "window"
        if not left and not (late and absent):
            continue
        starts, refused = trials.starts(parts.step_variables, attempt.query, shortest=late)
        if refused is not None:
            continue
        if attempt.kind == "candidate":
            absent = mine = left - starts.keys()
        else:
            mine = (left | absent if late else left) & starts.keys()
            absent -= mine
        left -= mine
        found.append((attempt, mine, starts))
    for attempt, mine, starts in found:
        if mine:
            each = {start: lost[start] for start in sorted(mine)}
            needed = {s: starts[s].lasting for s in mine} if attempt.kind == "window" else {}
            yield Cause(attempt.kind, attempt.words, each, needed)
    if left:
        yield Cause("together", TOGETHER, {start: lost[start] for start in sorted(left)})
