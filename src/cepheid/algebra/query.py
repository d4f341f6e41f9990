"""The bound query: everything that planning and running need, and nothing of the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from cepheid.algebra.answer_shape import Answers
from cepheid.algebra.expressions import Expr
from cepheid.algebra.patterns import Pattern
from cepheid.algebra.types import Schema
from cepheid.language.ast import Skip


class Kind(Enum):
    """What a variable binds."""

    SINGLE = "event"
    GROUP = "group"
    OPTIONAL = "optional event"  # `P?`: a group of at most one


@dataclass(frozen=True, slots=True)
class Variable:
    """`types` are the event types (with several streams, the streams) that it matches; none
    means every event of the stream. `negation` is the index of the `Negation` or `Unless` that
    it stands in, if any. `columns` are the attributes that its events have."""

    name: str
    types: tuple[str, ...]
    kind: Kind
    negation: int | None
    columns: tuple[str, ...]


class Role(Enum):
    """What a WHERE conjunct does (docs/language.md, WHERE and HAVING).

    CLASS     reads one variable's event alone (also a negated one, also a closure's element)
    EQUALITY  `a.x = b.y` between two single variables
    MULTI     reads several single variables
    FILTER    decides which events of closure `target` qualify, with other variables
    RUNNING   tested left to right inside the group of `target`
    CHECK     reads complete groups (aggregates, `Every`, `Some`)
    NEGATION  says which events of negation `negation` are forbidden, with other variables
    MATCH     needs the complete match (`duration()`), or reads no event at all

    Of a group closure `(A a ; B b)+`, `target` is the first of its variables that it reads.
    Inside a negated pattern NEGATION has a `target` where it decides which events of a closure
    there qualify, or is tested left to right.
    """

    CLASS = "class"
    EQUALITY = "equality"
    MULTI = "multi-class"
    FILTER = "closure filter"
    RUNNING = "running"
    CHECK = "group check"
    NEGATION = "negation"
    MATCH = "match"


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One conjunct of WHERE. `variables` is all that it reads, in the order of the pattern.

    If the pattern has disjunctions: the conjunct applies to a match only if, for every
    disjunction of which it reads exactly one branch, that branch was taken; variables of other
    branches not taken read as NULL.
    """

    expression: Expr
    role: Role
    variables: tuple[str, ...]
    target: str | None = None
    negation: int | None = None


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One attribute of the partition key: the column that holds it, for every variable."""

    columns: Mapping[str, str]

    @property
    def uniform(self) -> str | None:
        """The column's name if it is the same for every variable."""
        names = set(self.columns.values())
        return names.pop() if len(names) == 1 else None


class Clock(Enum):
    TIME = "time"
    EVENTS = "events"


@dataclass(frozen=True, slots=True)
class Window:
    """`end - start < size`, in microseconds or units, or in events of the stream."""

    size: int
    clock: Clock = Clock.TIME


@dataclass(frozen=True, slots=True)
class Selection:
    """Which matches are kept, where that depends on others: AFTER MATCH, and then LIMIT.

    `variable` is what SKIP TO FIRST and LAST skip to, `pause` the ticks of SKIP FOR. LIMIT keeps
    the first `most` matches: of each key (`per_key`), or of all.
    """

    skip: Skip = Skip.NONE
    variable: str | None = None
    pause: int = 0
    most: int | None = None
    per_key: bool = False

    @property
    def counts_all(self) -> bool:
        """Whether matches of all keys are counted together."""
        return self.most is not None and not self.per_key


@dataclass(frozen=True, slots=True)
class Output:
    """A RETURN column."""

    name: str
    expression: Expr


@dataclass(frozen=True, slots=True)
class Renamed:
    """RETURN's variable `name` is the pattern's `variable` in matches that bind one of `within`,
    and absent from all others. Factoring makes these: in `A a1 ; (B b | C c)`, made of
    `(A a1 ; B b) | (A a2 ; C c)`, a2 is a1 where c is bound, and a1 is itself where b is."""

    name: str
    variable: str
    within: frozenset[str]


@dataclass(frozen=True)
class BoundQuery:
    """A query bound to a schema.

    Equalities that the key implies are not among `where`: every engine keeps keys apart
    (docs/language.md, Key). `having` are conjuncts in which a bare closure variable has
    become `Every`, an optional one `first`. `required` are the columns that predicates, key and
    RETURN read, time, type and tie included. Without a `selection` every match is kept.

    Rewrites leave three things behind. `nothing` is why no events can match, if that is known.
    `warnings` are what the writer should hear of. `renamed` says where RETURN's names and the
    pattern's differ; conditions always use the pattern's. A variable that is not in the pattern
    any more is absent from every match.

    With `answers` the query returns those: `outputs` are then the values that they are made of.
    """

    pattern: Pattern
    variables: Mapping[str, Variable]
    schema: Schema
    where: tuple[Conjunct, ...]
    having: tuple[Expr, ...]
    window: Window | None
    key: tuple[KeyPart, ...]
    outputs: tuple[Output, ...]
    required: tuple[str, ...]
    selection: Selection | None = None
    into: str | None = None
    nothing: str | None = None
    warnings: tuple[str, ...] = ()
    renamed: tuple[Renamed, ...] = ()
    answers: Answers | None = None
