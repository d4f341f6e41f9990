"""The rules that are compiled together, and the queries that run for them by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cepheid.algebra.query import BoundQuery
from cepheid.engine.attribution.residual import Residual
from cepheid.engine.attribution.variants import Variants
from cepheid.engine.merged.merge import TemplateRules
from cepheid.options import Options
from cepheid.planner import Prepared
from cepheid.query import Query
from cepheid.rules.template import Template

Ints: TypeAlias = NDArray[np.int64]
Columns: TypeAlias = Any  # a schema, or a dict of them


@dataclass(frozen=True)
class RuleTarget:
    """What rules are compiled for: the columns of the events, and the options of the run. With
    `deals`, the runtime can deal events to variants of a query; with `ends`, the data have an end,
    so that nobody minds if a match is known late; with `gathers`, it takes all matches of a query
    at once."""

    columns: Columns
    options: Options
    deals: bool
    ends: bool
    gathers: bool


@dataclass(frozen=True)
class Alone:
    """A query that runs on its own for the rules with these numbers, and why it does. Without a
    residual, its matches belong to all these rules; with one, to the rules whose conditions they
    satisfy, which `tested` lists as text. `engine.attribution.residual.alerts_of_query` assigns
    them. With `variants`, the query runs over events that are dealt to those; `bound` is the query
    over the events as they come."""

    query: Query
    bound: BoundQuery
    prepared: Prepared
    rules: Ints
    reason: str
    residual: Residual | None = None
    tested: tuple[str, ...] = ()
    variants: Variants | None = None

    @property
    def needs_own_run(self) -> bool:
        """Whether no other query may be joined with this one."""
        chooses = self.residual is not None and self.residual.choice is not None
        return chooses or self.variants is not None

    @property
    def required(self) -> tuple[str, ...]:
        """The columns of the events that are read."""
        if self.variants is not None:
            return self.variants.required
        return self.prepared.plan.required


@dataclass(frozen=True)
class RuleUnit:
    """A template and the global numbers of its rules; `parts` are the templates that it was made
    of."""

    template: Template
    numbers: Ints
    parts: tuple[RuleUnit, ...] = ()


@dataclass(frozen=True)
class RuleCandidate:
    """Rules that may become a branch of the automaton; `rows` are their rows in the template.
    `dealt` are the queries that run for them, if that is known."""

    unit: RuleUnit
    rows: Ints
    branch: TemplateRules | None
    reason: str
    dealt: tuple[Alone, ...] = ()

    @property
    def numbers(self) -> Ints:
        return self.unit.numbers[self.rows]
