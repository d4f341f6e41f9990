"""Writing a kernel: lines, names, and what is known where they stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from cepheid.algebra.patterns import Closure, Unless
from cepheid.engine.lowering import Event, Place
from cepheid.language.ast import SequenceOperator

Path = tuple[int, ...]
"""Where a node stands in the pattern: the child's number at each step down."""

BEFORE_ALL, AFTER_ALL = "-FAR", "FAR"


class Code:
    """Lines at a level of indentation, and names that are given once."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.level = 1
        self._names = 0

    def name(self, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def line(self, text: str) -> None:
        self.lines.append("    " * self.level + text)

    def let(self, prefix: str, source: str) -> str:
        name = self.name(prefix)
        self.line(f"{name} = {source}")
        return name

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        before = len(self.lines)
        self.level += 1
        yield
        if len(self.lines) == before:
            self.line("pass")
        self.level -= 1


@dataclass(frozen=True)
class Span:
    """Source of where a part lies: positions, readings of the window's clock, and times, at its
    start and at its end. `first` is where its first member stands in the stream, which is at that
    member's end. `some` says whether it binds anything (None: always)."""

    start: str
    end: str
    clock_start: str
    clock_end: str
    time_start: str
    time_end: str
    first: str
    some: str | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """All but `some`; of each pair, and last, what is the least of its parts'."""
        return (
            self.start,
            self.end,
            self.clock_start,
            self.clock_end,
            self.time_start,
            self.time_end,
            self.first,
        )


FIELDS = 7


def event_span(first: str, last: str | None = None, some: str | None = None) -> Span:
    """Of an event, or of a group from its first to its last."""
    last = last or first
    return Span(
        f"begin[u({first})]",
        f"pos[u({last})]",
        f"clock0[u({first})]",
        f"clock[u({last})]",
        f"time0[u({first})]",
        f"time[u({last})]",
        f"pos[u({first})]",
        some,
    )


def around(spans: list[Span], ordered: bool) -> Span | None:
    """From the earliest start to the latest end. `ordered`: they follow each other."""
    if len(spans) < 2:
        return spans[0] if spans else None
    if ordered and all(s.some is None for s in spans):
        first, last = spans[0].fields, spans[-1].fields
        return Span(first[0], last[1], first[2], last[3], first[4], last[5], first[6])
    sides: list[str] = []
    for n in range(FIELDS):
        which, far = ("min", AFTER_ALL) if n % 2 == 0 else ("max", BEFORE_ALL)
        values = [
            s.fields[n] if s.some is None else f"({s.fields[n]} if {s.some} else {far})"
            for s in spans
        ]
        sides.append(f"{which}({', '.join(values)})")
    certain = any(s.some is None for s in spans)
    some = None if certain else f"({' or '.join(str(s.some) for s in spans)})"
    return replace(Span(*sides), some=some)


@dataclass(frozen=True)
class Limits:
    """Strictly between two positions and, where a neighbor is missing, two readings of the
    clock. None is no limit."""

    lower: str | None = None
    upper: str | None = None
    earliest: str | None = None
    latest: str | None = None

    @property
    def ends(self) -> bool:
        """Whether it is known that no event after it counts."""
        return self.upper is not None or self.latest is not None


@dataclass(frozen=True)
class Edge:
    """A closure without a neighbor on one side: it waits for the whole match's start or end."""

    path: Path
    closure: Closure
    lower: Span | None
    upper: Span | None
    before: SequenceOperator | None
    after: SequenceOperator | None


@dataclass(frozen=True)
class Rounds:
    """The rounds of a closure over a pattern that were chosen: `count` of them, from the
    `first`-th on. `rows[v]` holds the events of variable v, `offsets[v]` where each round's
    begin; `bounds` are where each round lies, as the fields of a span, and `branches` which branch
    of each disjunction it took. Of other than consecutive rounds, `first` is 0 and the arrays hold
    the chosen ones."""

    count: str
    first: str
    rows: Mapping[str, str]
    offsets: Mapping[str, str]
    bounds: tuple[str, ...]
    branches: Mapping[Path, str]

    def span(self, at: str) -> Span:
        return Span(*(f"{array}[u({at})]" for array in self.bounds))


@dataclass(frozen=True)
class Env:
    """What is known at a place in the kernel.

    `scope` says where variables are; of one whose group is being built, `v` is the element at
    hand and `v…` the elements taken before. `decided` are all variables that are bound or absent,
    `hand` those with an element at hand. `applied` are the conjuncts that hold already. `low` and
    `high` are readings of the clock that the match's start and end are not after and not before.
    """

    scope: Mapping[str, Place] = field(default_factory=dict)
    decided: frozenset[str] = frozenset()
    hand: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    spans: Mapping[Path, Span] = field(default_factory=dict)
    choices: Mapping[Path, int] = field(default_factory=dict)
    rounds: Mapping[Path, Rounds] = field(default_factory=dict)
    applied: frozenset[int] = frozenset()
    edges: tuple[Edge, ...] = ()
    exceptions: tuple[tuple[Path, Unless], ...] = ()
    low: str | None = None
    high: str | None = None
    control: Control = field(default_factory=lambda: Control())

    def bind(self, variable: str, row: str, path: Path) -> Env:
        span = event_span(row)
        return replace(
            self,
            scope={**self.scope, variable: Event(row, False)},
            decided=self.decided | {variable},
            spans={**self.spans, path: span},
        )

    def under(self, control: Control) -> Env:
        return replace(self, control=control)


@dataclass(frozen=True)
class Control:
    """How to search. `unordered`: members of a conjunction may come before what is bound. `quiet`:
    running into the horizon says nothing. `negation`: the forbidden pattern that is looked for.
    `upper`: a position that all must end before. `stop`: a flag that ends the search."""

    unordered: bool = False
    quiet: bool = False
    negation: int | None = None
    upper: str | None = None
    stop: str | None = None
