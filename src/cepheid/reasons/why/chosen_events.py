"""Given events: why they don't match together, and the smallest change with which they would.

Every answer is a run: of the query, or of a part of it, held to these events.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice

import numpy as np

from cepheid.algebra import patterns
from cepheid.algebra.query import Clock
from cepheid.language import ast
from cepheid.language.render import render, render_after_match, render_expression, render_pattern
from cepheid.language.traversal import walk
from cepheid.reasons.anatomy import WrittenCondition, all_of
from cepheid.reasons.longer_windows import window_words
from cepheid.reasons.steps import Component, WrittenNegation
from cepheid.reasons.trials import Binding
from cepheid.reasons.why.changes import changes
from cepheid.reasons.why.investigation import values_seen
from cepheid.reasons.why.pinned_events import PinnedEvents, least, with_part
from cepheid.reasons.why.why_not import CheckedCondition, WhyNot


@dataclass(frozen=True)
class ChosenEvents(PinnedEvents):
    """Events in front of a query: whether they match, and if not, why."""

    def verdict(self, written: ast.Query) -> WhyNot:
        """Whether they match, and if not, why."""
        query = render(written)
        conditions = tuple(map(self._checked, self.parts.conditions))
        matched = self.match_of(self.parts.syntax) is not None
        if matched:
            return WhyNot(query, self.rows, True, conditions, (), None, None, self.trials.sample)
        problems = (*self._types(), *self._numbers(), *self._branches())
        if not problems:  # nothing can be run with events of other types
            problems = (*self._places(), *self._forbidden(), *self._choices())
        outcomes = {c.text: c.outcome for c in conditions}
        change = next(
            (c for c in changes(self, outcomes) if self.match_of(c.query) is not None), None
        )
        return WhyNot(
            query,
            self.rows,
            False,
            conditions,
            problems,
            None if change is None else change.text,
            None if change is None else render(change.query),
            self.trials.sample,
        )

    # ── what is wrong ───────────────────────────────────────────────────────

    def _types(self) -> Iterator[str]:
        for variable, rows in self.rows.items():
            leaf = self.parts.leaves[variable]
            for row in rows:
                query = ast.Query(
                    leaf, streams=self.parts.syntax.streams, where=self.pin(variable, (row,))
                )
                if not self.trials.run(query).matches:
                    column = self.trials.options.type
                    type_ = None if column is None else self.trials.cell(row, column)
                    yield f"row {row} is no event of `{variable}`" + (
                        "" if type_ is None else f": its {column} is {type_}"
                    )

    def _numbers(self) -> Iterator[str]:
        """Several events of a variable that binds one."""
        for variable, rows in self.rows.items():
            if variable in self.parts.singles and len(rows) > 1:
                yield f"`{variable}` binds one event, not {len(rows)}"

    def _places(self) -> Iterator[str]:
        """Order and window."""
        if self.trials.run(self.held(wide=False)).matches:
            return
        wide = self.trials.run(self.held(wide=True)).matches
        small = list(self._small())
        if not wide and small:
            yield from small
        elif not wide:
            yield "they aren't in the order of the pattern"
        elif self.parts.bound.window is not None:
            window = window_words(self.parts, self.parts.bound.window.size)
            yield f"they aren't in the window, {window}: {self._span_words(wide[0])}"

    def _branches(self) -> Iterator[str]:
        """Events of several branches of a disjunction."""
        variables = {leaf: v for v, leaf in self.parts.leaves.items()}
        for node in walk(self.parts.syntax.pattern):
            if isinstance(node, ast.Disjunction):
                branches = [
                    {
                        variables[leaf]
                        for leaf in walk(item)
                        if isinstance(leaf, ast.Atom | ast.AnyOf)
                    }
                    for item in node.items
                ]
                if sum(not branch.isdisjoint(self.rows) for branch in branches) > 1:
                    yield "they are of branches that exclude each other"

    def _small(self) -> Iterator[str]:
        """Groups that need more events than are given."""
        leaves = {leaf: v for v, leaf in self.parts.leaves.items()}
        for node in self.parts.closures:
            match node:
                case ast.Closure(item, ast.Between(least) | ast.Exactly(least)) if item in leaves:
                    rows = self.rows.get(leaves[item], ())
                    if 0 < len(rows) < least:
                        yield f"`{render_pattern(node)}` needs {least} events, not {len(rows)}"
                case _:
                    pass

    def _span_words(self, match: Binding) -> str:
        window = self.parts.bound.window
        if window is not None and window.clock is Clock.EVENTS:
            return "there are too many events between them"
        span = window_words(self.parts, match.end - match.start).removeprefix("WITHIN ")
        return f"from first to last it is {span}"

    def _forbidden(self) -> Iterator[str]:
        wide = not self.trials.run(self.held(wide=False)).matches
        if not self.trials.run(self.held(wide)).matches:
            return
        for negation in self.parts.negations:
            conditions = [c for c in self.parts.conditions if c.variables & negation.variables]
            outcome = self.trials.run(self.held(wide, conditions, negation))
            if outcome.refused is None and not outcome.matches:
                yield f"{negation.text} forbids them" + self._forbidding(negation, conditions, wide)

    def _forbidding(
        self, negation: WrittenNegation, conditions: list[WrittenCondition], wide: bool
    ) -> str:
        """The rows of the events that are forbidden: the first with which these events don't match
        if no other of the negation's events are there."""
        held = self.held(wide, conditions, negation)
        rows = self.suspects(negation.variables)

        def forbidden(low: int, high: int) -> bool:
            pins = [self.pin(v, rows[low:high]) for v in sorted(negation.variables)]
            where = all_of([held.where, *pins] if held.where is not None else pins)
            outcome = self.trials.run(replace(held, where=where))
            return outcome.refused is None and not outcome.matches

        if not rows or not forbidden(0, len(rows)):
            return ""
        high = least(lambda end: forbidden(0, end), 0, len(rows))
        places = least(lambda places: forbidden(high - places, high), 0, high)
        return f": {_rows_words(sorted({rows[high - places], rows[high - 1]}))}"

    def _choices(self) -> Iterator[str]:
        """What was taken instead of these events, and which clause left their match out."""
        base = self.match_of(self.parts.chosen())
        if base is None:
            reasons = chain(self._ended(), self._instead())
            yield from islice(reasons, 1)
            return
        syntax = self.parts.syntax
        for having in self.parts.having:
            query = replace(self.parts.chosen(), having=having)
            if self.match_of(query) is None:
                yield f"HAVING {render_expression(having)} isn't satisfied"
        unlimited = replace(syntax, limit=None)
        if self.match_of(unlimited) is not None:
            yield "LIMIT leaves their match out: earlier ones are enough"
        elif syntax.after_match is not None:
            free = self.match_of(replace(unlimited, after_match=None))
            if free is not None:
                kept = self.trials.run(unlimited, most=None).matches
                yield render_after_match(syntax.after_match) + _won(self._winner(free, kept))

    def _winner(self, match: Binding, kept: tuple[Binding, ...]) -> Binding | None:
        after = self.parts.syntax.after_match
        rivals = [m for m in kept if self._key(m) == self._key(match)]
        if after is not None and after.skip is ast.Skip.TO_NEXT_EVENT:
            first = partial(self.trials.first, steps=self.parts.step_variables)
            return next((m for m in rivals if first(m) == first(match)), None)
        before = [m for m in rivals if (m.end, m.start) <= (match.end, match.start)]
        return before[-1] if before else None

    def _key(self, match: Binding) -> tuple[object, ...]:
        bound = {v: rows[0] for v, rows in match.rows.items() if rows}
        variable = next(iter(bound), None)
        if variable is None:
            return ()
        columns = [part.columns[variable] for part in self.parts.bound.key]
        return tuple(self.trials.cell(bound[variable], column) for column in columns)

    def _ended(self) -> Iterator[str]:
        """Groups that end before their events."""
        syntax = self.parts.syntax
        for node in self.parts.closures:
            if node.until is not None:
                free = with_part(syntax.pattern, node, replace(node, until=None))
                if self.match_of(replace(self.parts.chosen(), pattern=free)) is not None:
                    yield f"UNTIL ({render_expression(node.until)}) ends the group before them"

    def _instead(self) -> Iterator[str]:
        """Steps that take other events although the ones before are these, or for which another
        event is in the way."""
        for length, step in enumerate(self.parts.steps, 1):
            if step.operator in (None, ast.SequenceOperator.ANY):
                continue
            assert step.operator is not None
            names = frozenset(v for s in self.parts.steps[: length - 1] for v in s.variables)
            earlier = replace(self, rows={v: r for v, r in self.rows.items() if v in names})
            mine = {v: r for v, r in self.rows.items() if v in names or v in step.variables}
            prefix = self.parts.prefix(length)
            if replace(self, rows=mine).match_of(prefix) is not None:
                continue
            taken = earlier.match_of(prefix)
            if taken is not None:
                rows = ", ".join(
                    f"{v} {' '.join(map(str, taken.rows[v]))}"
                    for v in step.variables
                    if taken.rows.get(v)
                )
                yield f"`{step.operator.value}` takes {rows} instead"
            elif step.operator is ast.SequenceOperator.STRICT:
                yield from self._between(names, step)

    def _between(self, names: Collection[str], step: Component) -> Iterator[str]:
        """The events of the stream that stand where `=>` allows none."""
        moments, known = self.trials.moments, set(self.trials.rows())
        before = [int(moments[r]) for v in names for r in self.rows.get(v, ())]
        after = [int(moments[r]) for v in step.variables for r in self.rows.get(v, ())]
        if not before or not after:
            return
        start, end = max(before), min(after)
        key = self._key_of(next(r for v in step.variables for r in self.rows.get(v, ())))
        inside = [r for r in np.flatnonzero((moments > start) & (moments < end)) if r in known]
        rows = [int(r) for r in inside if self._key_of(int(r)) == key]
        if rows:
            where = f"`{step.operator.value if step.operator else ''} {step.text}`"
            yield f"{where}: {_rows_words(rows)} {'comes' if len(rows) == 1 else 'come'} before it"

    def _key_of(self, row: int) -> tuple[object, ...]:
        """The values of the columns that are a key of every variable."""
        uniform = [part.uniform for part in self.parts.bound.key]
        return tuple(self.trials.cell(row, c) for c in uniform if c is not None)

    # ── conditions ──────────────────────────────────────────────────────────

    def _checked(self, condition: WrittenCondition) -> CheckedCondition:
        seen = tuple(values_seen(condition.node, self.rows, self.trials))
        return CheckedCondition(condition.text, self._outcome(condition), seen)

    def _outcome(self, condition: WrittenCondition) -> str:
        """true, false, unknown; or `not checked`, of events that aren't given or of a group as a
        whole."""
        positive = [v for v in patterns.positive(self.parts.bound.pattern) if v in self.rows]
        names = [v for v in positive if v in condition.variables]
        if isinstance(condition.node, ast.KeyTest):
            names = positive
        elif set(names) != condition.variables or not names:
            return "not checked"
        outcomes = set()
        groups = [v for v in names if v not in self.parts.singles]
        for row in self.rows[groups[0]] if groups else (None,):
            rows = {**self.rows, **({} if row is None else {groups[0]: (row,)})}
            outcomes.add(replace(self, rows=rows)._of_singles(condition.node, names))
        for outcome in ("false", "unknown", "not checked"):
            if outcome in outcomes:
                return outcome
        return "true"

    def _of_singles(self, node: ast.Expression, names: list[str]) -> str:
        query = self.leaves_held(names)
        pins = query.where
        assert pins is not None
        for outcome, test in (("true", node), ("false", ast.Unary("NOT", node))):
            if isinstance(node, ast.KeyTest) and outcome == "false":
                test = ast.Literal(True)
            ran = self.trials.run(replace(query, where=all_of([pins, test])))
            if ran.refused is not None:
                return "not checked"
            if ran.matches:
                return outcome
        any_ = self.trials.run(replace(query, where=pins))
        return "unknown" if any_.matches else "not checked"


def _rows_words(rows: Sequence[int]) -> str:
    more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
    return f"row{'s' * (len(rows) > 1)} {', '.join(map(str, rows[:3]))}{more}"


def _won(winner: Binding | None) -> str:
    if winner is None:
        return " leaves their match out"
    rows = ", ".join(f"{v} {' '.join(map(str, r))}" for v, r in winner.rows.items() if r)
    return f" keeps another match: {rows}"
