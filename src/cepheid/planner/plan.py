"""From a bound query to the plan that an engine runs."""

from __future__ import annotations

from collections.abc import Sequence as Items

from cepheid.algebra.patterns import Closure, Delay, Leaf, Negation, Pattern, Sequence, Unless, walk
from cepheid.algebra.query import BoundQuery
from cepheid.errors import UnsupportedError
from cepheid.language.ast import Mode, SequenceOperator, Skip
from cepheid.plan.nodes import Plan
from cepheid.planner.alternatives import Alternative, alternatives
from cepheid.planner.build import build
from cepheid.planner.choice import Choice
from cepheid.planner.gaps import core
from cepheid.planner.shapes import LEFT_DEEP, RIGHT_DEEP, parse_shape


def make_plan(query: BoundQuery, shape: str = LEFT_DEEP, push_negation: bool = True) -> Plan:
    """The plan of the given shape: `left-deep`, `right-deep`, or a tree such as `((a b) c)`."""
    require_supported(query)
    found = alternatives(query)
    if shape not in (LEFT_DEEP, RIGHT_DEEP):
        bound = dict.fromkeys(v for alternative in found for v in core(alternative.pattern))
        tree = parse_shape(shape, tuple(bound))
    else:
        tree = shape
    negations = (p.index for p in walk(query.pattern) if isinstance(p, Negation))
    top = frozenset() if push_negation else frozenset(negations)
    return assemble(query, found, [Choice(tree, top)] * len(found))


def assemble(query: BoundQuery, found: Items[Alternative], choices: Items[Choice]) -> Plan:
    """The plan in which each alternative is evaluated as chosen for it."""
    pairs = zip(found, choices, strict=True)
    return Plan(
        alternatives=tuple(build(query, alternative, choice) for alternative, choice in pairs),
        variables=query.variables,
        outputs=query.outputs,
        window=query.window,
        key=tuple(part.columns for part in query.key),
        schema=query.schema,
        required=query.required,
        renamed=query.renamed,
        after_match=query.after_match,
    )


def require_supported(query: BoundQuery) -> None:
    """Refuse, by name, what the language has and the tree operators don't run yet."""
    for part in walk(query.pattern):
        missing = _unsupported(part)
        if missing:
            raise UnsupportedError(
                f"{missing} is part of the language, but running it isn't supported yet"
            )
    if query.after_match is not None and query.after_match.skip is not Skip.NONE:
        raise UnsupportedError(
            f"AFTER MATCH {query.after_match.skip.value} is part of the language, but running it "
            "isn't supported yet"
        )


def _unsupported(part: Pattern) -> str | None:
    match part:
        case Sequence(operators=operators) if SequenceOperator.NEXT in operators:
            return "the next sequence `->` (SKIP TILL NEXT MATCH)"
        case Sequence(operators=operators) if SequenceOperator.STRICT in operators:
            return "the strict sequence `=>` (STRICT CONTIGUITY)"
        case Unless():
            return "the exception `\\` (UNLESS)"
        case Delay():
            return "the delay `@`"
        case Closure(until=until) if until is not None:
            return "UNTIL"
        case Closure(strict=True):
            return "the closure mode STRICT"
        case Closure(mode=mode) if mode is not Mode.MAXIMAL:
            return f"the closure mode {mode.value}"
        case Closure(item=item) if not isinstance(item, Leaf):
            return "a closure over a group `( .. )+`"
        case Negation(item=item) if any(isinstance(p, Closure) for p in walk(item)):
            return "a closure inside a negation"
        case _:
            return None
