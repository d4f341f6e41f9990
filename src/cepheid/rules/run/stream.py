"""Rules over a streaming DataFrame: which passes there are, and what runs in them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from cepheid.algebra.kinds import is_unreadable
from cepheid.engine.attribution.json_rows import alert_schema
from cepheid.engine.match_schema import MATCH_END
from cepheid.errors import DataError
from cepheid.options import Options
from cepheid.rules.compile.alert_values import rule_columns
from cepheid.rules.compile.compilations import Compile
from cepheid.rules.compile.compiled_rules import CompiledRules, compile_rules
from cepheid.rules.load.readers import first_and_following, reading
from cepheid.rules.load.validation import columns_of
from cepheid.rules.run.chains.followers import following_events
from cepheid.rules.run.contradictions import warn_of_contradictions
from cepheid.rules.run.dataframe import SetOnSpark
from cepheid.rules.run.passes import needs, pass_of, passes, with_rules
from cepheid.rules.run.runtimes import Templates, Throttle
from cepheid.rules.run.stream_compiler import (
    StreamCompiler,
    rules_schema,
    rules_signature,
    rules_version,
)
from cepheid.rules.run.throttle import throttle_ticks
from cepheid.rules.template import Template
from cepheid.spark import rule_sets as on_spark
from cepheid.spark.batch import frames_of
from cepheid.spark.columns.entrance import entered
from cepheid.spark.streaming.clock.time import watermark_of
from cepheid.spark.streaming.rule_passes import StreamPass, match_passes, rows_schema
from cepheid.spark.streaming.stateful import buckets
from cepheid.streaming.buckets.rule_bucket import RulesJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Keys = Sequence[str | None]


@dataclass(frozen=True)
class SetOnStream(SetOnSpark):
    """Matches a set of rules over a streaming DataFrame. State is in buckets, so passes aren't
    placed."""

    def match(
        self,
        templates: Templates,
        data: Any,
        options: Options,
        throttle: Throttle = None,
        compile_: Compile = compile_rules,
    ) -> Any:
        return match_stream(templates, data, options, throttle=throttle)

    def counts(self, matches: Any) -> dict[str, int]:
        raise DataError(
            "a stream has no end at which matches could be counted: pass a DataFrame of events "
            "that are stored"
        )

    def compiled(
        self, templates: Templates, data: Any, options: Options, compile_: Compile = compile_rules
    ) -> CompiledRules:
        first, following = first_and_following(templates)
        compiled = compile_(first, columns_of(data), options, by_key=True, deals=True)
        return replace(compiled, following=following)

    def explain(
        self, templates: Templates, data: Any, options: Options, compile_: Compile = compile_rules
    ) -> tuple[CompiledRules, None]:
        return self.compiled(templates, data, options, compile_), None


def match_stream(
    templates: tuple[Template, ...],
    data: Any,
    options: Options,
    versions: DataFrame | None = None,
    keys: Keys | None = None,
    throttle: Throttle = None,
) -> DataFrame:
    """The matches of the rules. `versions` is the stream of versions if the rules change; the
    templates are then those of the start. `keys` are the passes' keys, if given."""
    templates = with_rules(templates)
    frame = on_spark.read(data, options)
    columns = columns_of(data)
    reads = reading(templates, None, False)
    first = tuple(template for n, template in enumerate(templates) if n not in reads)
    compiled = compile_rules(first, columns, options, deals=True)
    warn_of_contradictions(compiled, 4)
    required = compiled.required | following_events(templates, columns, options).required
    frame = on_spark.with_columns(frame, [*required, *(k for k in keys or () if k)])
    throttled = throttle is not None
    chosen = passes(templates, columns, options, throttled) if keys is None else tuple(keys)
    if not chosen:
        raise DataError("there are no rules yet: the first rules decide the keys of a stream")
    needed = needs(templates, columns, options, throttled)
    places = [pass_of(t, chosen, members) for t, members in zip(templates, needed, strict=True)]
    alert_columns = alert_schema(rule_columns(templates), frame.schema.field(options.time).type)
    pause = None
    if throttle is not None:
        pause = throttle_ticks(throttle, alert_columns.field(MATCH_END).type, options)
    schema = rules_schema(columns, options, frame.schema)
    watermark = watermark_of(frames_of(entered(data)), options.time)
    read = tuple(f.name for f in frame.schema if not is_unreadable(f))
    if versions is None:
        read = tuple(name for name in read if name in required)
    run, made = uuid4().hex, list[StreamPass]()
    for key in chosen:
        count = 1 if key is None else options.buckets or buckets.DEFAULT
        compiler = StreamCompiler(
            run, columns, options, key, chosen, rows_schema(frame, read), schema, alert_columns,
            watermark.delayed, pause,
        )  # fmt: skip
        members = [t for t, place in zip(templates, places, strict=True) if place == key]
        if key is None and members:
            warnings.warn(_one_bucket(members), stacklevel=4)
        rules = None if versions is not None else rules_version(members)
        signature = rules_signature(schema, key)
        made.append(StreamPass(key, RulesJob(compiler, signature, count, rules), read))
    return match_passes(frame, made, schema, alert_columns, watermark, versions, options)


def _one_bucket(templates: Sequence[Template]) -> str:
    reads = reading(templates, None, False)
    for place, names in reads.items():
        name, provider = next(iter(names.items()))
        return (
            f"no key connects `{templates[place].name}` with `{templates[provider.place].name}`, "
            "which it reads, so all events go through one bucket for them, on one core; return "
            f"the key of `{name}`, and connect by it in WHERE, such as [id]"
        )
    shown = ", ".join(f"`{template.name}`" for template in templates[:3])
    more = f" and {len(templates) - 3} more" if len(templates) > 3 else ""
    return (
        f"no key connects the variables of {shown}{more}, so all events go through one bucket for "
        "them, on one core; connect the variables by a key in WHERE, such as [id]"
    )
