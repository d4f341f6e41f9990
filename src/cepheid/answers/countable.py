"""Which answers can be counted from the events, without finding the matches."""

from __future__ import annotations

from collections.abc import Iterator

from cepheid.algebra.answer_shape import MatchAggregate
from cepheid.algebra.expressions import Attribute, Expr, transform, variables
from cepheid.algebra.patterns import Leaf, Sequence
from cepheid.algebra.query import BoundQuery, Clock, Role
from cepheid.language.ast import SequenceOperator
from cepheid.language.group_clause import WindowKind

MOST_STEPS = 16


def uncounted(query: BoundQuery) -> str | None:
    """Why the matches have to be found; None if counting them is enough.

    A sequence of single events with `;` and a window of time, whose conditions read one event each
    or make the key: the number of matches that end at an event follows from the events before it.
    What is grouped and aggregated must be known from the last event.
    """
    return next(_reasons(query), None)


def _reasons(query: BoundQuery) -> Iterator[str]:
    shape, pattern = query.answers, query.pattern
    assert shape is not None
    if not isinstance(pattern, Sequence) or not all(isinstance(i, Leaf) for i in pattern.items):
        yield "the pattern is no sequence of single events"
        return
    if any(operator is not SequenceOperator.ANY for operator in pattern.operators):
        yield "only sequences of `;` are counted"
    if len(pattern.items) > MOST_STEPS:
        yield f"the sequence has more than {MOST_STEPS} steps"
    if query.window is None or query.window.clock is not Clock.TIME:
        yield "the window counts events"
    if query.selection is not None:
        yield "AFTER MATCH chooses among the matches"
    if query.having:
        yield "HAVING checks every match"
    across = next((c for c in query.where if c.role is not Role.CLASS), None)
    if across is not None:
        yield "a condition is about several events"
    if query.schema.tie is not None or query.schema.start is not None:
        yield "events have a tie-break or a duration"
    if any(part.uniform is None for part in query.key):
        yield "the key has different names"
    if query.renamed or query.nothing is not None:
        yield "the query was rewritten to another one"
    if shape.window is not None and shape.window.kind is WindowKind.RANGE:
        yield "RANGE has a row for every match"
    if not all(map(_counts, shape.aggregates)):
        yield "an aggregate needs every match"
    for output in query.outputs:
        if not variables(of_last(output.expression, query)) <= {_last(query)}:
            yield "a value is not known from the last event"


def _counts(aggregate: MatchAggregate) -> bool:
    """Whether the aggregate of equal values follows from how many there are."""
    return not aggregate.distinct and aggregate.function in ("count", "approx_count", "min", "max")


def _last(query: BoundQuery) -> str:
    pattern = query.pattern
    assert isinstance(pattern, Sequence)
    leaf = pattern.items[-1]
    assert isinstance(leaf, Leaf)
    return leaf.variable


def of_last(expr: Expr, query: BoundQuery) -> Expr:
    """The same value read from the last event: a part of the key is the same for all."""
    key = {part.uniform for part in query.key}
    last = _last(query)

    def change(node: Expr) -> Expr | None:
        if isinstance(node, Attribute) and node.name in key:
            return Attribute(last, node.name, node.type)
        return None

    return transform(expr, change)
