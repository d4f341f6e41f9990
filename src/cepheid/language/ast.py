"""The query as written: frozen nodes with source spans. Names are unresolved and nothing is typed;
that is `cepheid.algebra`'s work. Spans never take part in equality, so `parse(render(q)) == q`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cepheid.language.group_clause import GroupBy


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Half-open range of character offsets in the query text."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        return Span(min(self.start, other.start), max(self.end, other.end))


NOWHERE = Span(0, 0)


def _span() -> Span:
    return field(default=NOWHERE, compare=False, repr=False)


class Unit(Enum):
    """The value is the canonical spelling. `UNITS` is the unit of an integer time column,
    whatever that is; a bare number means it."""

    UNITS = "units"
    MICROSECONDS = "microseconds"
    MILLISECONDS = "milliseconds"
    SECONDS = "seconds"
    MINUTES = "minutes"
    HOURS = "hours"
    DAYS = "days"
    WEEKS = "weeks"


@dataclass(frozen=True, slots=True)
class Duration:
    """`10 secs`, `200 units`, `1.5 hours`, `:window minutes`."""

    amount: int | Decimal | Parameter
    unit: Unit
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class EventCount:
    """`WITHIN 100 EVENTS`."""

    count: int | Parameter
    span: Span = _span()


# ── patterns ─────────────────────────────────────────────────────────────────


class SequenceOperator(Enum):
    ANY = ";"
    NEXT = "->"
    STRICT = "=>"


class Mode(Enum):
    """How a closure takes its events (docs/language.md, Closure modes)."""

    MAXIMAL = ""
    PREFIXES = "PREFIXES"
    SUBSETS = "SUBSETS"
    RUNS = "RUNS"

    @property
    def independent(self) -> bool:
        """Whether its groups are choices of their own, whatever stands beside them."""
        return self in (Mode.SUBSETS, Mode.RUNS)


@dataclass(frozen=True, slots=True)
class Between:
    """`+` (1, None), `*` (0, None), `{n,m}`, `{n,}`: a size between low and high."""

    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Exactly:
    """`{n}`: every run of n consecutive qualifying events."""

    count: int


@dataclass(frozen=True, slots=True)
class Optional:
    """`?`: the first qualifying event, or nothing."""


Quantifier = Between | Exactly | Optional


@dataclass(frozen=True, slots=True)
class Atom:
    """A leaf: `Type alias`, `Type` or `alias`; which of the last two is decided by binding."""

    name: str
    alias: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """`ANY(A, B) x`."""

    types: tuple[str, ...]
    alias: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Sequence:
    """`items[0] operators[0] items[1] …`, left to right."""

    items: tuple[Pattern, ...]
    operators: tuple[SequenceOperator, ...]
    span: Span = _span()

    def __post_init__(self) -> None:
        if len(self.items) < 2 or len(self.operators) != len(self.items) - 1:
            raise ValueError("a sequence has at least two items and an operator between each two")


@dataclass(frozen=True, slots=True)
class Conjunction:
    items: tuple[Pattern, ...]
    span: Span = _span()

    def __post_init__(self) -> None:
        if len(self.items) < 2:
            raise ValueError("a conjunction has at least two items")


@dataclass(frozen=True, slots=True)
class Disjunction:
    items: tuple[Pattern, ...]
    span: Span = _span()

    def __post_init__(self) -> None:
        if len(self.items) < 2:
            raise ValueError("a disjunction has at least two items")


@dataclass(frozen=True, slots=True)
class Negation:
    """`!B b`; with a time of its own, `!B b FOR 10 minutes`."""

    item: Pattern
    duration: Duration | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Closure:
    """`B+ b`, `B{2,5} b PREFIXES STRICT UNTIL (condition)`, `(A ; B)+`."""

    item: Pattern
    quantifier: Quantifier
    mode: Mode = Mode.MAXIMAL
    strict: bool = False
    until: Expression | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Unless:
    """`P \\ Q`: a P during which no Q occurs."""

    item: Pattern
    exception: Pattern
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Delay:
    """`P @ duration`."""

    item: Pattern
    duration: Duration
    span: Span = _span()


Pattern = Atom | AnyOf | Sequence | Conjunction | Disjunction | Negation | Closure | Unless | Delay


# ── expressions ──────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, string, boolean or NULL. `20%` is the Decimal 0.20."""

    value: int | Decimal | float | str | bool | None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Parameter:
    """`:name`."""

    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Name:
    """`x`, alone: a variable (`RETURN a`, `count(b)`) or an unqualified attribute."""

    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Attribute:
    """`a.price`."""

    variable: str
    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Star:
    """`*` in `RETURN *`, `count(*)`; `a.*` has a variable."""

    variable: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Unary:
    """`-x`, `+x`, `NOT x`."""

    operator: str
    operand: Expression
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic (`+ - * / % ||`), left-associative."""

    operator: str
    left: Expression
    right: Expression
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Logical:
    """`p AND q AND r`, or OR: one node, so that thousands of conditions don't nest."""

    operator: str
    operands: tuple[Expression, ...]
    span: Span = _span()

    def __post_init__(self) -> None:
        if self.operator not in ("AND", "OR") or len(self.operands) < 2:
            raise ValueError("AND or OR joins at least two conditions")


@dataclass(frozen=True, slots=True)
class Comparison:
    """`a < b`, and chains: `a.x = b.x = c.x` holds if each neighboring pair does."""

    operands: tuple[Expression, ...]
    operators: tuple[str, ...]
    span: Span = _span()

    def __post_init__(self) -> None:
        if len(self.operands) < 2 or len(self.operators) != len(self.operands) - 1:
            raise ValueError("a comparison has at least two operands")


@dataclass(frozen=True, slots=True)
class InRange:
    """`x [NOT] BETWEEN low AND high`."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class InList:
    """`x [NOT] IN (1, 2, 3)`."""

    operand: Expression
    options: tuple[Expression, ...]
    negated: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Like:
    """`x [NOT] LIKE 'a%'`; the operator may also be ILIKE, RLIKE (or `~`) or CONTAINS."""

    operand: Expression
    pattern: Expression
    operator: str = "LIKE"
    negated: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class IsNull:
    """`x IS [NOT] NULL`."""

    operand: Expression
    negated: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class IsDistinct:
    """`x IS [NOT] DISTINCT FROM y`: a comparison in which NULL is a value."""

    left: Expression
    right: Expression
    negated: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Case:
    """`CASE WHEN c THEN v … [ELSE d] END`; with an operand, `CASE x WHEN v …`."""

    operand: Expression | None
    branches: tuple[tuple[Expression, Expression], ...]
    default: Expression | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Call:
    """`name(args)`: scalar functions, aggregates, `PREV FIRST LAST ALL SOME duration`. The name is
    kept in lower case."""

    name: str
    arguments: tuple[Expression, ...]
    distinct: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Step:
    """`acc -> expression`, the last argument of `reduce`."""

    name: str
    expression: Expression
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Cast:
    """`CAST(x AS double)`; the type is kept in lower case."""

    operand: Expression
    type: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class KeyTest:
    """`[id]` and `[id = 'x']`."""

    attribute: str
    value: Expression | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class OccursWithin:
    """`(a, b) OCCURS WITHIN 5 minutes`."""

    variables: tuple[str, ...]
    duration: Duration
    span: Span = _span()


Expression = (
    Literal
    | Parameter
    | Name
    | Attribute
    | Star
    | Duration
    | Unary
    | Binary
    | Logical
    | Comparison
    | InRange
    | InList
    | Like
    | IsNull
    | IsDistinct
    | Case
    | Call
    | Step
    | Cast
    | KeyTest
    | OccursWithin
)


# ── the query ────────────────────────────────────────────────────────────────


class Strategy(Enum):
    """USING: what a plain `;` means."""

    ANY = "SKIP TILL ANY MATCH"
    NEXT = "SKIP TILL NEXT MATCH"
    STRICT = "STRICT CONTIGUITY"


class Skip(Enum):
    """AFTER MATCH."""

    NONE = "NO SKIP"
    TO_NEXT_EVENT = "SKIP TO NEXT EVENT"
    PAST_LAST_EVENT = "SKIP PAST LAST EVENT"
    TO_FIRST = "SKIP TO FIRST"
    TO_LAST = "SKIP TO LAST"
    FOR = "SKIP FOR"


@dataclass(frozen=True, slots=True)
class AfterMatch:
    """`variable` is what is skipped to, `duration` for how long (SKIP FOR)."""

    skip: Skip
    variable: str | None = None
    duration: Duration | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class MatchLimit:
    """`LIMIT n [PER KEY]`."""

    most: EventCount
    per_key: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class ReturnItem:
    expression: Expression
    alias: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Query:
    """`relational`: the pattern was written as `FROM A a, B b`, without PATTERN."""

    pattern: Pattern
    into: str | None = None
    streams: tuple[str, ...] = ()
    where: Expression | None = None
    having: Expression | None = None
    within: Duration | EventCount | None = None
    using: Strategy | None = None
    after_match: AfterMatch | None = None
    group_by: GroupBy | None = None
    returns: tuple[ReturnItem, ...] = ()
    limit: MatchLimit | None = None
    relational: bool = False
    span: Span = _span()
