"""`timeouts`: partial matches that expired, how far each got and what was missing.

A partial match of `c1 ; … ; cn` that got as far as ck expires if nothing for the next component
follows it in its window: it is a match of `c1 ; … ; ck ; !c(k+1)`, under the conditions that read
no more than that. `->` may stand for any `;`: left of the negation the two are the same. So every
length is a query of its own, made from the bound one, and runs wherever queries run. It isn't made
from the text, since what the complete query is keyed by must stay its key, no more and no less:
whether NULL takes part, and what `n EVENTS` counts, depends on it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, TypeVar, Unpack, assert_never

from cepheid.algebra import patterns
from cepheid.algebra.binding.outputs import required
from cepheid.algebra.binding.shape import normalize
from cepheid.algebra.expressions import (
    Aggregate,
    Constant,
    Every,
    Expr,
    MatchDuration,
    Previous,
    Reduce,
    Some,
    TimeSpan,
    transform,
    variables,
    walk,
)
from cepheid.algebra.query import BoundQuery, Conjunct, KeyPart, Kind, Output, Role
from cepheid.algebra.text import pattern_text
from cepheid.algebra.types import Type
from cepheid.engine.rows.event_types import ABSENT
from cepheid.errors import UnsupportedError
from cepheid.language import ast
from cepheid.options import GivenOptions, Options, takes_options
from cepheid.query.option_arguments import options_of
from cepheid.query.parsed_query import Query, query_of
from cepheid.query.runtimes import runtime_of
from cepheid.rewrites.condition_roles import classify
from cepheid.rewrites.surgery import renamed

Data = TypeVar("Data")

STEP, STEPS, REACHED, MISSING = "step", "steps", "reached", "missing"

DEFINED = (
    "timeouts are defined for a sequence `c1 ; c2 ; …` or `c1 -> c2 -> …` of events and of "
    "closures over one event that may be one event long, which begins with an event"
)


@takes_options
def timeouts(
    data: Data, query: str | Query, options: Options | None = None, **named: Unpack[GivenOptions]
) -> Data:
    """Find the partial matches that expired: those that nothing continued in their window.

    `data` and the options are as for `match`, and so is the result: one row per expired partial
    match. `step` of `steps` components were `reached`, and the next one is `missing`. Then come the
    columns of RETURN, for which what wasn't reached is NULL, `match_start` and `match_end`. What
    only matters to complete matches (HAVING, AFTER MATCH, `plan` and `stats`) has no part in it.

    >>> import cepheid as cep, pyarrow as pa
    >>> events = pa.table({"ts": [1, 2, 3, 9], "name": ["A", "B", "A", "C"]})
    >>> query = "PATTERN A a ; B b ; C c WITHIN 5 RETURN a.ts AS a, b.ts AS b"
    >>> found = cep.timeouts(events, query, time="ts", type="name")
    >>> found.select(["step", "reached", "missing", "a", "b"]).to_pylist()
    [{'step': 2, 'reached': 'a, b', 'missing': 'C c', 'a': 1, 'b': 2},
     {'step': 1, 'reached': 'a', 'missing': 'B b', 'a': 3, 'b': None}]
    """
    parsed = query_of(query, data)
    chosen = replace(
        options_of(options, named),
        plan="auto",
        negation="auto",
        propagation="auto",
        stats=None,
        dead_letters=False,  # each length would hand them out
    )
    partial = [
        PartialMatchQuery(parsed.text, parsed.name, length=step) for step in steps(parsed.syntax)
    ]
    runtime = runtime_of(data, parsed.syntax.streams)
    source = runtime.repeatable(data, "timeouts() reads the events several times")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=ABSENT)  # that is what is looked for
        matches = [prefix.match(source, chosen) for prefix in partial]
    expired_matches: Data = runtime.like(data, runtime.union(matches, (STEP, STEPS)))
    return expired_matches


# ── the components ───────────────────────────────────────────────────────────


def steps(query: ast.Query) -> tuple[int, ...]:
    """The possible lengths of an expired partial match, in components; an optional component is
    never missing."""
    pattern = normalize(query.pattern, query.using)
    match pattern:
        case ast.Sequence(items, operators) if ast.SequenceOperator.STRICT not in operators:
            pass
        case _:
            raise UnsupportedError(f"{DEFINED}; this pattern isn't one")
    if isinstance(items[0], ast.Closure):
        raise UnsupportedError(f"{DEFINED}; this one begins with a closure")
    lengths = tuple(n for n, item in enumerate(items) if _least(item) and n > 0)
    if not lengths:
        raise UnsupportedError(f"{DEFINED}; here nothing can be missing: all but one may be empty")
    return lengths


def _least(item: ast.Pattern) -> int:
    """The least number of events of the component: 0 or 1."""
    match item:
        case ast.Atom() | ast.AnyOf():
            return 1
        case ast.Closure(ast.Atom() | ast.AnyOf(), quantifier, until=None):
            least = _fewest(quantifier)
            if least <= 1:
                return least
            raise UnsupportedError(f"{DEFINED}; here one needs {least}: name them one by one")
        case ast.Closure(ast.Atom() | ast.AnyOf()):
            raise UnsupportedError(f"{DEFINED}; UNTIL looks the same as a missing event")
        case _:
            raise UnsupportedError(f"{DEFINED}; this pattern has another part")


def _fewest(quantifier: ast.Quantifier) -> int:
    match quantifier:
        case ast.Between(low, _):
            return low
        case ast.Exactly(count):
            return count
        case ast.Optional():
            return 0
        case _:
            assert_never(quantifier)


# ── one length ───────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class PartialMatchQuery(Query):
    """The query of the partial matches of one length, in number of components, that expired.
    `steps` says which lengths there are."""

    length: int = 1

    def bind(
        self, schema: Any, options: Options | None = None, **named: Unpack[GivenOptions]
    ) -> BoundQuery:
        return expired(super().bind(schema, options, **named), self.length)


def expired(query: BoundQuery, length: int) -> BoundQuery:
    """`c1 ; … ; ck ; !c(k+1)`. For RETURN, variables that aren't reached are absent, as those of a
    branch not taken are; the negated one has another name there, since it may be a group."""
    assert isinstance(query.pattern, patterns.Sequence)
    if query.window is None:
        raise UnsupportedError("without a window nothing expires: add WITHIN to the query")
    items = query.pattern.items
    (after,) = patterns.leaves(items[length])
    absent = max(query.variables, key=len) + ", absent"  # longer than any other name
    whole = query.variables[after]
    following = replace(whole, kind=Kind.SINGLE, negation=0)
    absence = patterns.Negation(patterns.Leaf(after), 0)
    reached = tuple(v for item in items[:length] for v in patterns.leaves(item))
    returned = (
        replace(o, expression=renamed(o.expression, {after: absent})) for o in query.outputs
    )
    partial = replace(
        query,
        pattern=patterns.Sequence((*items[:length], absence), query.pattern.operators[:length]),
        variables={**query.variables, after: following, absent: replace(whole, name=absent)},
        key=tuple(KeyPart({**k.columns, absent: k.columns[after]}) for k in query.key),
        having=(),
        selection=None,
        into=None,
        outputs=(*_progress_columns(query, reached, items[length]), *returned),
    )
    where = tuple(
        classify(_of_one(c.expression, after), partial)
        for c in query.where
        if _counts(c, query, reached, after)
    )
    columns = required(query.schema, partial.pattern, where, (), partial.key, partial.outputs)
    return replace(partial, where=where, required=columns)


def _progress_columns(
    query: BoundQuery, reached: tuple[str, ...], missing: patterns.Pattern
) -> tuple[Output, ...]:
    """The columns that say how far a partial match got."""
    assert isinstance(query.pattern, patterns.Sequence)
    columns = (
        Output(STEP, Constant(len(reached), Type.INTEGER)),
        Output(STEPS, Constant(len(query.pattern.items), Type.INTEGER)),
        Output(REACHED, Constant(", ".join(reached), Type.STRING)),
        Output(MISSING, Constant(pattern_text(missing, query.variables), Type.STRING)),
    )
    taken = {o.name for o in columns} & {o.name for o in query.outputs}
    if taken:
        raise UnsupportedError(
            f"RETURN has a column called `{min(taken)}`, as timeouts have: give it another name "
            "with AS"
        )
    return columns


# ── conditions ───────────────────────────────────────────────────────────────


def _counts(conjunct: Conjunct, query: BoundQuery, reached: tuple[str, ...], after: str) -> bool:
    """Whether the condition is about a partial match, or about one event that could continue it:
    not if it needs more variables, the complete match, or all of a group that isn't there."""
    read = set(conjunct.variables)
    if not read <= {*reached, after} or _is_of_the_match(conjunct.expression):
        return False
    if after not in read:
        return True
    if conjunct.role is Role.RUNNING and conjunct.target != after:
        raise UnsupportedError(
            f"timeouts can't decide what continues `{conjunct.target}`: a condition that "
            f"compares its events with each other reads `{after}`, too"
        )
    return query.variables[after].kind is Kind.SINGLE or not _is_of_the_group(
        conjunct.expression, after
    )


def _is_of_the_match(expr: Expr) -> bool:
    return any(isinstance(e, MatchDuration) for e in walk(expr))


def _is_of_the_group(expr: Expr, group: str) -> bool:
    return any(
        group in variables(e)
        for e in walk(expr)
        if isinstance(e, Aggregate | Previous | Reduce | Some | TimeSpan)
    )


def _of_one(expr: Expr, group: str) -> Expr:
    """The condition about one event: what holds for every event of a group holds for it."""

    def change(node: Expr) -> Expr | None:
        return node.condition if isinstance(node, Every) and node.variable == group else None

    return transform(expr, change)
