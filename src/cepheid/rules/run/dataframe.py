"""Rules over Spark DataFrames that are no streams: a shuffle for all rules of a pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cepheid.engine.attribution.json_rows import RULE, alert_schema
from cepheid.options import Options, refuse_dead_letters
from cepheid.rules.compile.compiled_rules import CompiledRules, compile_rules
from cepheid.rules.load.readers import refuse_chains
from cepheid.rules.load.validation import columns_of
from cepheid.rules.placement.places import Ground
from cepheid.rules.placement.split import PlacedPass, passes_of
from cepheid.rules.run.alert_columns import require_alert_columns
from cepheid.rules.run.runtimes import Templates, Throttle, refuse_throttle
from cepheid.spark import rule_sets as on_spark
from cepheid.spark.batch import match_prepared
from cepheid.spark.rule_sets import Frame


@dataclass(frozen=True)
class SetOnSpark:
    """Matches a set of rules over a DataFrame; each pass is one shuffle."""

    def match(
        self, templates: Templates, data: Any, options: Options, throttle: Throttle = None
    ) -> Any:
        refuse_throttle(throttle, "DataFrames")
        refuse_chains(templates, "DataFrames")
        refuse_dead_letters(options)
        frame = on_spark.read(data, options)
        compiled = compile_rules(templates, columns_of(data), options, by_key=True)
        frame = on_spark.with_columns(frame, compiled.required)
        schema = alert_schema(compiled.rules, frame.schema.field(options.time).type)
        times = _times(compiled, frame, options)
        frames = [
            on_spark.match_group(frame, run.parts, compiled.rules, schema, options, times)
            for run in _placed(compiled, frame, times, options)
        ]
        for run in compiled.runs:
            matches = match_prepared(run.prepared, data, options)
            frames.append(on_spark.as_alerts(matches, run.attributions, compiled.rules, schema))
        return on_spark.union(frame, frames, schema)

    def explain(
        self, templates: Templates, data: Any, options: Options
    ) -> tuple[CompiledRules, tuple[PlacedPass, ...] | None]:
        compiled = compile_rules(templates, columns_of(data), options, by_key=True)
        frame = on_spark.with_columns(on_spark.read(data, options), compiled.required)
        return compiled, _placed(compiled, frame, _times(compiled, frame, options), options)

    def counts(self, matches: Any) -> dict[str, int]:
        return {row[RULE]: row["count"] for row in matches.groupBy(RULE).count().collect()}

    def typed(self, matches: Any, rule: str, schema: pa.Schema) -> Any:
        require_alert_columns(matches.columns)
        return on_spark.typed_of(matches, rule, schema)


def _times(compiled: CompiledRules, frame: Frame, options: Options) -> tuple[int, int] | None:
    """The first and last time of the events, if slices may be made; this runs a job."""
    sliced = any(group.key is None and not group.single for group in compiled.groups)
    joined = options.placement == "one" and len(compiled.groups) > 1
    return on_spark.span(frame, options) if sliced or joined else None


def _placed(
    compiled: CompiledRules, frame: Frame, times: tuple[int, int] | None, options: Options
) -> tuple[PlacedPass, ...]:
    cores, partitions = on_spark.tasks(frame, options)
    length = None if times is None else times[1] - times[0] + 1
    return passes_of(compiled.groups, Ground(cores, partitions, length), options.placement)
