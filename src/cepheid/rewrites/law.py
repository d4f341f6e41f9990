"""What a rewrite rule is, and what applying rules leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cepheid.algebra.query import BoundQuery
from cepheid.statistics import Statistics


@dataclass(frozen=True)
class Facts:
    """What a rule may use beside the query: figures of the data, and the estimated cost of a
    query, if somebody can tell."""

    statistics: Statistics = field(default_factory=Statistics)
    cost: Callable[[BoundQuery], float] | None = None


@dataclass(frozen=True)
class Rewrite:
    """One equivalence. `apply` makes one step and returns a query with the same matches, or None
    if there is nothing to do; the driver repeats it. `law` is the equivalence in one line."""

    name: str
    law: str
    apply: Callable[[BoundQuery, Facts], BoundQuery | None]


@dataclass(frozen=True, slots=True)
class Applied:
    """One step: the rule, and the text of the part that it changed."""

    rule: str
    before: str
    after: str


@dataclass(frozen=True)
class Rewritten:
    """A query with the same matches as the one that was written, and how it came about."""

    query: BoundQuery
    applied: tuple[Applied, ...] = ()
    warnings: tuple[str, ...] = ()
