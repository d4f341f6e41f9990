"""Equal parts of different queries get equal names, so that plans can share them.

The queries have one key. Two parts are equal if they have the same operators over the same classes
of events, in the same order, and the same conditions are checked inside them. They are compared in
a form in which variables are numbers, and conjunctions and conditions have an order of their own.
The largest parts come first: what a small one has in common with another must not keep a large one
from being shared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cepheid.algebra.expressions import FLIPPED, Call, Expr, transform, variables
from cepheid.algebra.patterns import Conjunction, Leaf, Pattern, leaves, walk
from cepheid.algebra.patterns import Sequence as SequencePattern
from cepheid.algebra.query import BoundQuery, Role
from cepheid.algebra.text import expression_text, pattern_text
from cepheid.rewrites.renamed_query import pattern_in, query_in
from cepheid.rewrites.surgery import renamed, with_items

Form = tuple[str, ...]


@dataclass(frozen=True)
class NamedForm:
    """Variables of a query, and what they are in it."""

    names: tuple[str, ...]
    form: Form


def canonical(query: BoundQuery) -> BoundQuery:
    """The same query in canonical order: conjunctions and conditions sorted by what they contain,
    not by variable names."""
    same = {v: v for v in query.variables}
    same_returned = {r.name: r.name for r in query.renamed}
    return query_in(replace(query, pattern=_ordered(query.pattern, query)), same, same_returned)


def _ordered(pattern: Pattern, query: BoundQuery) -> Pattern:
    """P & Q = Q & P."""
    below = with_items(pattern, lambda item: _ordered(item, query))
    if not isinstance(below, Conjunction):
        return below
    return replace(below, items=tuple(sorted(below.items, key=lambda i: _form(i, query))))


def parts(query: BoundQuery) -> tuple[NamedForm, ...]:
    """All parts of a canonical query that can be a subtree of a plan, the largest first."""
    every = dict.fromkeys(piece for part in walk(query.pattern) for piece in (part, *_ranges(part)))
    forms = [NamedForm(leaves(part), _form(part, query)) for part in every]
    return tuple(sorted(forms, key=lambda part: -len(part.names)))


def _ranges(pattern: Pattern) -> Iterator[Pattern]:
    if not isinstance(pattern, SequencePattern):
        return
    size = len(pattern.items)
    for begin in range(size):
        for end in range(begin + 2, size + 1 if begin else size):
            operators = pattern.operators[begin : end - 1]
            yield SequencePattern(pattern.items[begin:end], operators)


def _form(pattern: Pattern, query: BoundQuery) -> Form:
    names = leaves(pattern)
    numbers = {v: f"{n}" for n, v in enumerate(names)}
    variables = {n: replace(query.variables[v], name=n) for v, n in numbers.items()}
    conditions = [
        f"{c.role.value} {expression_text(_turned(renamed(c.expression, numbers)))}"
        for c in query.where
        if c.variables and numbers.keys() >= set(c.variables)
        # A condition on a group belongs to its closure.
        if c.role is Role.CLASS or not isinstance(pattern, Leaf)
    ]
    return (
        pattern_text(pattern_in(pattern, numbers), variables),
        *(_kind(v, query) for v in names),
        *sorted(conditions),
    )


def _kind(variable: str, query: BoundQuery) -> str:
    bound = query.variables[variable]
    return repr((bound.types, bound.kind, bound.negation is None, bound.columns))


def classes(forms: Iterable[NamedForm]) -> frozenset[Form]:
    """The parts that are single events."""
    return frozenset(part.form for part in forms if len(part.names) == 1)


def called_alike(
    query: BoundQuery, others: Sequence[NamedForm], taken: frozenset[str]
) -> BoundQuery:
    """The canonical query with variables renamed: parts that are equal to others take their names;
    every other variable gets a name that isn't `taken`."""
    known: dict[Form, list[tuple[str, ...]]] = {}
    for part in others:
        known.setdefault(part.form, []).append(part.names)
    names: dict[str, str] = {}
    for part in parts(query):
        if not names.keys() & set(part.names):
            used = set(names.values())
            free = (given for given in known.get(part.form, ()) if used.isdisjoint(given))
            names.update(zip(part.names, next(free, ()), strict=False))
    returned = {f"{r.name} returned": r.name for r in query.renamed}
    fresh = _fresh((*query.variables, *returned), names, taken)
    return _sorted(
        query_in(
            query,
            {v: fresh[v] for v in query.variables},
            {name: fresh[given] for given, name in returned.items()},
        )
    )


def _fresh(
    wanted: Iterable[str], given: Mapping[str, str], taken: frozenset[str]
) -> Mapping[str, str]:
    names = dict(given)
    used = {*taken, *given.values()}
    for name in wanted:
        if name not in names:
            n, new = 1, name
            while new in used:
                n += 1
                new = f"{name}_{n}"
            names[name] = new
            used.add(new)
    return names


def _sorted(query: BoundQuery) -> BoundQuery:
    """Conditions sorted by their texts, so that trees with the same conditions are equal."""
    where = (replace(c, expression=_turned(c.expression)) for c in query.where)
    return replace(query, where=tuple(sorted(where, key=lambda c: expression_text(c.expression))))


def _turned(condition: Expr) -> Expr:
    """`a.x < b.x` is `b.x > a.x`: the side whose text sorts first is written first."""

    def change(node: Expr) -> Expr | None:
        match node:
            case Call(operator, (left, right)) if operator in FLIPPED:
                constant = not variables(left) or not variables(right)
                if constant or expression_text(left) <= expression_text(right):
                    return None
                return replace(node, operator=FLIPPED[operator], arguments=(right, left))
            case _:
                return None

    return transform(condition, change)
