"""Rules that read the matches of others, over DataFrames of Spark that are no streams.

As in tables: the rules that read events share their passes, and each of the others is a query over
the events and over what it reads, which are DataFrames, too. Nothing is kept between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cepheid.algebra.schemas import bind_streams
from cepheid.engine.attribution.json_rows import KEY_PARTS, RULE
from cepheid.engine.match_schema import output_schema
from cepheid.options import Options
from cepheid.query.several import bound_step, step_of
from cepheid.rules.compile.alert_values import rule_columns, with_key
from cepheid.rules.load.readers import Provider, in_order, reading
from cepheid.rules.run.chains.in_tables import RuleChain, chain_beside
from cepheid.rules.template import Template
from cepheid.spark import rule_sets as on_spark
from cepheid.spark.batch_runtime import SparkBatch
from cepheid.spark.columns.column_names import named

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def chain_over(templates: tuple[Template, ...], data: Any, options: Options) -> RuleChain | None:
    """None if every rule reads events alone. Only if a pattern names a rule is there a job, which
    finds the types that events have."""
    streams = set(data) if isinstance(data, Mapping) else set()
    typed_events = options.type is not None or bool(streams)
    if not reading(templates, () if typed_events else None, typed_events):
        return None
    types = streams | set(_types(data, options))
    return chain_beside(templates, types, typed_events)


def _types(data: Any, options: Options) -> list[str]:
    if options.type is None:
        return []
    frames = data.values() if isinstance(data, Mapping) else [data]
    found = [
        frame.select(named(options.type)).distinct().toArrow().column(0).drop_null().to_pylist()
        for frame in frames
        if options.type in frame.columns
    ]
    return [str(value) for values in found for value in values]


def followed(
    chain: RuleChain, alerts: DataFrame, schema: pa.Schema, data: Any, options: Options
) -> list[DataFrame]:
    """The alerts of the rules that read others. `alerts` are those of the others, `schema` has the
    columns of all."""
    rules = rule_columns(chain.templates)
    begins = np.cumsum([0, *map(len, chain.templates)])
    of_rules = _OfRules(chain, alerts, data, options)
    frames: list[DataFrame] = []
    for place in in_order(chain.templates, chain.reads):
        template = chain.templates[place]
        for row in range(len(template)):
            matches = _matches(chain, place, row, of_rules, data, options)
            number = int(begins[place]) + row
            frames.append(on_spark.alerts_of_rule(matches, rules, number, schema))
            of_rules.add(place, on_spark.with_rule(_returned(matches), str(template.names[row])))
    return frames


def _matches(
    chain: RuleChain, place: int, row: int, of_rules: _OfRules, data: Any, options: Options
) -> DataFrame:
    """The matches of one rule that reads others."""
    template, names = chain.templates[place], chain.reads[place]
    providers = {name: chain.templates[p.place].query for name, p in names.items()}
    streams = data if isinstance(data, Mapping) else None
    step = step_of(template.query, providers, None if streams is None else streams.keys())
    base = {name: data if streams is None else streams[name] for name in step.base}
    read = {**base, **{name: of_rules.matches(names[name]) for name in step.labels}}
    given = replace(options, params={**options.params, **template.values(row)})
    runtime = SparkBatch()
    columns = {name: runtime.columns(frame) for name, frame in read.items()}
    inputs, merged, bound = bound_step(step, columns, given)
    return runtime.match_inputs(with_key(bound), read, inputs, merged, given)


class _OfRules:
    """The matches of rules in their own columns, by the place of the template."""

    def __init__(self, chain: RuleChain, alerts: DataFrame, data: Any, options: Options) -> None:
        self._chain, self._alerts, self._options = chain, alerts, options
        self._columns = SparkBatch().columns(data)
        self._frames: dict[int, DataFrame] = {}

    def add(self, place: int, matches: DataFrame) -> None:
        before = self._frames.get(place)
        self._frames[place] = matches if before is None else before.unionByName(matches)

    def matches(self, provider: Provider) -> DataFrame:
        template = self._chain.templates[provider.place]
        if provider.place not in self._frames:
            self._frames[provider.place] = self._of(template)
        matches = self._frames[provider.place]
        if provider.row is None:
            return matches
        return matches.filter(named(RULE) == str(template.names[provider.row]))

    def _of(self, template: Template) -> DataFrame:
        params = {**self._options.params, **(template.values(0) if len(template) else {})}
        bound = template.query.bind(self._columns, replace(self._options, params=params))
        merged = self._columns
        if not isinstance(merged, pa.Schema):
            merged = bind_streams(merged, self._options)[0]
        return on_spark.typed_of_template(self._alerts, template.name, output_schema(bound, merged))


def _returned(matches: DataFrame) -> DataFrame:
    return matches.drop(*(n for n in matches.columns if n.startswith(KEY_PARTS)))
