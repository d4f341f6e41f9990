"""One query over dealt events for the rules of a template that take different events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from cepheid.algebra.binding.binder import bind_windows
from cepheid.algebra.query import BoundQuery, Output
from cepheid.algebra.schemas import columns_schema
from cepheid.engine.attribution.parameters import RuleParameters
from cepheid.engine.attribution.variants import VARIANT
from cepheid.errors import QueryError
from cepheid.options import Options
from cepheid.planner import prepare
from cepheid.rules.compile.alert_values import with_key
from cepheid.rules.compile.own_windows import WINDOW, with_window_parameter
from cepheid.rules.compile.rule_queries import Alone, Ints, RuleCandidate, RuleTarget
from cepheid.rules.compile.shared_query import agreed, widened, window_parameters
from cepheid.rules.compile.template_rows import alike, lists, shaping, values_of, varying
from cepheid.rules.compile.variant_query import (
    NoVariants,
    decisive,
    is_variant,
    require_variants,
    variant_of,
    with_variants,
)
from cepheid.rules.template import Template

ANSWERS = "it returns answers about its matches"
NO_WINDOW = np.iinfo(np.int64).max


@dataclass(frozen=True)
class RowBinding:
    """Binds rows of a template with some values fixed."""

    template: Template
    target: RuleTarget

    def __call__(self, rows: Ints, fixed: Mapping[str, object]) -> BoundQuery:
        options = replace(self.target.options, params=self.given(rows, fixed))
        return with_key(self.template.query.bind(self.target.columns, options))

    def given(self, rows: Ints, fixed: Mapping[str, object]) -> dict[str, object]:
        """The values of all parameters."""
        return {**self.target.options.params, **fixed, **varying(self.template, rows, fixed)}

    def longest_window(
        self, rows: Ints, windows: list[str], fixed: Mapping[str, object]
    ) -> tuple[BoundQuery, Ints]:
        """The query with the longest of the rows' windows, and the windows by row."""
        groups = list(alike(self.template, rows, windows))
        others = self.given(rows, {**fixed, **groups[0][1]})
        given = [{**others, **lengths} for _, lengths in groups]
        query, options = self.template.query, self.target.options
        schema = columns_schema(self.target.columns, options)
        found = bind_windows(query.syntax, schema, given, query.source)
        lengths = [NO_WINDOW if window is None else window.size for window in found]
        sizes = np.zeros(len(self.template), np.int64)
        for (places, _), length in zip(groups, lengths, strict=True):
            sizes[places] = length
        longest = max(range(len(groups)), key=lambda n: lengths[n])
        return self(rows, {**fixed, **groups[longest][1]}), sizes


def dealt_lists(candidate: RuleCandidate, target: RuleTarget) -> tuple[Alone, ...]:
    """Queries for all rules of a template, whose lists are looked up in an index."""
    template = candidate.unit.template
    shapes = set(shaping(template)).difference(lists(template, candidate.rows))
    bound = RowBinding(template, target)
    return tuple(_of_shapes(candidate, sorted(shapes), bound, target.options))


def dealt(candidate: RuleCandidate, bound: RowBinding) -> list[Alone]:
    """Queries over dealt events for the rules of a template; if its windows differ, that may be a
    condition on events."""
    template, target = candidate.unit.template, bound.target
    windows = window_parameters(template.query.syntax)
    if target.ends and windows:
        others = [name for name in shaping(template) if name not in windows]
        if len(list(alike(template, candidate.rows, others))) == 1:
            values = template.values(int(candidate.rows[0]))
            fixed = {name: values[name] for name in others}
            longest, sizes = bound.longest_window(candidate.rows, windows, fixed)
            own = with_window_parameter(template, windows, longest, sizes)
            if own is not None:
                try:
                    return _with_own_windows(candidate, own, target)
                except (NoVariants, QueryError):
                    pass  # each window by itself
    return _of_shapes(candidate, shaping(template), bound, target.options)


def _with_own_windows(candidate: RuleCandidate, own: Template, target: RuleTarget) -> list[Alone]:
    unit = replace(candidate.unit, template=own)
    whole = replace(candidate, unit=unit)
    shapes = [name for name in shaping(own) if name != WINDOW]
    queries = _of_shapes(whole, shapes, RowBinding(own, target), target.options)
    query = candidate.unit.template.query
    tested = [tuple("the window" if f":{WINDOW}" in t else t for t in q.tested) for q in queries]
    return [
        replace(each, query=query, tested=tuple(dict.fromkeys(texts)))
        for each, texts in zip(queries, tested, strict=True)
    ]


def _of_shapes(
    candidate: RuleCandidate, shapes: list[str], bound: RowBinding, options: Options
) -> list[Alone]:
    """A query over dealt events for all rows that agree in these parameters."""
    template = candidate.unit.template
    queries = list[Alone]()
    for rows, fixed in alike(template, candidate.rows, shapes):
        query = bound(rows, fixed)
        if query.answers is not None:
            raise NoVariants(ANSWERS)
        require_variants(query, options)
        names = decisive(query, agreed(query))
        variants = list(alike(template, rows, [n for n in template.parameters if n in names]))
        firsts = np.array([members[0] for members, _ in variants])
        values = values_of(template, firsts)
        query_dealt, events = with_variants(query, names, values, _windows(values))
        if left := agreed(query_dealt):
            raise NoVariants(f"`:{min(left)}` is read where no column can stand")
        of_rule = np.zeros(len(template), np.int64)
        for number, (members, _) in enumerate(variants):
            of_rule[members] = number
        parameters = values_of(template, rows)
        with_variant = {**parameters.parameters, VARIANT: pa.array(of_rule[rows])}
        wide = widened(
            query_dealt, RuleParameters(len(rows), with_variant), np.zeros(len(rows), np.int64)
        )
        whole = _returning(wide.query, variant_of(query_dealt))
        residual = replace(wide.residual, conditions=(is_variant(), *wide.residual.conditions))
        queries.append(
            Alone(
                template.query,
                query,
                prepare(whole, options),
                candidate.unit.numbers[rows],
                candidate.reason,
                residual,
                wide.tested,
                events,
            )
        )
    return queries


def _windows(values: RuleParameters) -> Ints | None:
    """The variants' windows, where they are a parameter."""
    column = values.parameters.get(WINDOW)
    return None if column is None else np.asarray(column.cast(pa.int64()))


def _returning(query: BoundQuery, output: Output) -> BoundQuery:
    return replace(query, outputs=(*query.outputs, output))
