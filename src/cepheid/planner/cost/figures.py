"""Statistics as the cost model reads them: how many events, how likely a condition.

What isn't known is assumed, so that any statistics give a plan. Everything is a logarithm: forty
classes of a million events each multiply to more than a float can hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import permutations

from cepheid.algebra.expressions import Attribute, Call, Constant, Every, Expr, Some
from cepheid.algebra.query import BoundQuery, Clock, Variable, Window
from cepheid.algebra.text import expression_text
from cepheid.algebra.types import Schema, Type
from cepheid.errors import PlanError
from cepheid.plan.nodes import LeafNode, Plan
from cepheid.statistics import Statistics

EVENTS_PER_WINDOW = 100.0
"""The assumed rate of each class if no rate is known."""

DISTINCT = 100.0
"""The assumed number of distinct values of a column."""

LEAST = 1e-9
"""Rates per window and selectivities are at least this: zero is never quite zero, so that plans
for a class without events still differ."""

_ORDERED = frozenset(("<", "<=", ">", ">="))
_RARE = {"is_null": 0.1, "like": 0.25, "rlike": 0.25, "contains": 0.25, "array_contains": 0.25}
_OTHER = 1 / 3


@dataclass(frozen=True)
class Figures:
    """Table 1 for one query: `window` is its length in the unit of the rates, `key` the columns
    that hold the partition key, for each of its parts by variable."""

    statistics: Statistics
    window: float
    rate: float
    key: tuple[Mapping[str, str], ...]
    _known: dict[Expr, float] = field(default_factory=dict, repr=False, compare=False)
    _counted: dict[tuple[str, str], float] = field(default_factory=dict, repr=False, compare=False)

    @property
    def scans(self) -> bool:
        """Whether equalities may be tested without hashing: not on a guess, since a chain that is
        too long costs little, and a scan that is too long everything."""
        return bool(self.statistics.distinct)

    def events(self, leaf: LeafNode) -> float:
        """log CARD: rate, window and single-class predicates."""
        rate = self.statistics.rates.get(leaf.variable, self.rate)
        count = math.log(rate) + math.log(self.window) if rate > 0 else -math.inf
        return max(count, math.log(LEAST)) + sum(self.chance(f) for f in leaf.filters)

    def chance(self, expr: Expr) -> float:
        """log of the selectivity."""
        chance = self._known.get(expr)
        if chance is None:
            chance = math.log(max(self._selectivity(expr), LEAST))
            self._known[expr] = chance
        return chance

    def values(self, variable: str, column: str) -> float:
        """log of the number of distinct values. If equalities of the key have given
        selectivities, as many as make these true."""
        place = variable, column
        count = self._counted.get(place)
        if count is None:
            given = list(self._agreeing(variable, column))
            if given:
                count = sum(-math.log(max(share, LEAST)) for share in given) / len(given)
            else:
                count = math.log(self.statistics.distinct.get(f"{variable}.{column}", DISTINCT))
            self._counted[place] = count
        return count

    def _agreeing(self, variable: str, column: str) -> Iterator[float]:
        """Given selectivities of the key's equalities that read this attribute."""
        mine = f"{variable}.{column}"
        for part in self.key:
            if part.get(variable) == column:
                for theirs in (f"{v}.{c}" for v, c in part.items() if v != variable):
                    for text in (f"{mine} = {theirs}", f"{theirs} = {mine}"):
                        if text in self.statistics.selectivities:
                            yield self.statistics.selectivities[text]

    def is_key(self, left: Attribute, right: Attribute) -> bool:
        return any(
            part.get(left.variable) == left.name and part.get(right.variable) == right.name
            for part in self.key
        )

    def _selectivity(self, expr: Expr) -> float:
        for text in _texts(expr) if self.statistics.selectivities else ():
            given = self.statistics.selectivities.get(text)
            if given is not None:
                return given
        match expr:
            case Constant(value):
                return 1.0 if value is True else 0.0
            case Every() | Some():
                return self._selectivity(expr.condition)
            case Call("and", arguments):
                return math.prod(self._selectivity(a) for a in arguments)
            case Call("or", arguments):
                return 1 - math.prod(1 - self._selectivity(a) for a in arguments)
            case Call("not", (condition,)):
                return 1 - self._selectivity(condition)
            case Call("=", arguments):
                return 1 / self._distinct(arguments)
            case Call("<>", arguments):
                return 1 - 1 / self._distinct(arguments)
            case Call("in", (value, *options)):
                return min(1.0, len(options) / self._distinct((value,)))
            case Call(operator) if operator in _ORDERED:
                return 0.5
            case Call(operator):
                return _RARE.get(operator, _OTHER)
            case _:
                return _OTHER

    def _distinct(self, arguments: Iterable[Expr]) -> float:
        """The larger number of values of an equality's sides: the other side's values are assumed
        to be among them."""
        attributes = [a for a in arguments if isinstance(a, Attribute)]
        return max(
            (math.exp(self.values(a.variable, a.name)) for a in attributes), default=DISTINCT
        )


def _texts(expr: Expr) -> Iterator[str]:
    """The texts under which statistics may name the condition; an equality has no direction."""
    yield expression_text(expr)
    match expr:
        case Call("=", (left, right)):
            yield expression_text(Call("=", (right, left), Type.BOOLEAN))


def figures_of(source: Plan | BoundQuery, statistics: Statistics) -> Figures:
    """The figures of a plan or of the query that it comes from."""
    key = source.key if isinstance(source, Plan) else [part.columns for part in source.key]
    length = _length(source.window, source.schema)
    known = [r for v, r in statistics.rates.items() if v in source.variables]
    return Figures(
        statistics,
        length,
        sum(known) / len(known) if known else _rate(source.window, length, source.variables),
        tuple(key),
    )


def _length(window: Window | None, schema: Schema) -> float:
    """In the unit of the rates: events, seconds, or units of an integer time. Without a window
    there is nothing to join, and one unit will do."""
    if window is None:
        return 1.0
    ticks = window.clock is Clock.EVENTS or schema.columns[schema.time] is Type.INTEGER
    return max(window.size if ticks else window.size / 1e6, LEAST)


def _rate(window: Window | None, length: float, variables: Mapping[str, Variable]) -> float:
    if window is not None and window.clock is Clock.EVENTS:
        return 1 / max(len(variables), 1)
    return EVENTS_PER_WINDOW / length


def check(statistics: Statistics, query: BoundQuery, *forms: BoundQuery) -> None:
    """Refuse statistics of conditions or variables that neither the query nor a rewritten form has:
    they would be ignored silently. Equalities that the key implies are accepted."""
    names = set(query.variables)
    columns = {f"{v.name}.{c}" for v in query.variables.values() for c in v.columns}
    where = [c.expression for form in (query, *forms) for c in form.where]
    conditions = {t for e in where for t in _texts(e)}
    conditions |= {expression_text(h) for h in query.having}
    for part in query.key:
        places = [f"{v}.{c}" for v, c in part.columns.items()]
        conditions |= {f"{left} = {right}" for left, right in permutations(places, 2)}
    for what, given, known in (
        ("rates", statistics.rates, names),
        ("selectivities", statistics.selectivities, conditions),
        ("distinct", statistics.distinct, columns),
    ):
        for name in given:
            if name not in known:
                close = get_close_matches(name, sorted(known), n=1)
                hint = f"; did you mean `{close[0]}`?" if close else ""
                raise PlanError(
                    f"the statistics ({what}) name `{name}`, which the query doesn't{hint}"
                )
