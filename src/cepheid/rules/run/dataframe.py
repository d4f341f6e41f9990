"""Rules over Spark DataFrames that are no streams: a scan and a shuffle for all rules of a key.

Beside the merged rules of a key run all queries that have it, too. What has no key is spread as it
can be: each query by itself as when it runs alone, queries over dealt events in slices of time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from cepheid.algebra.query import Clock
from cepheid.engine.attribution.json_rows import RULE, alert_schema
from cepheid.engine.match_schema import MATCH_END
from cepheid.engine.merged.group import RuleGroup
from cepheid.options import Options, refuse_dead_letters
from cepheid.rules.compile.alert_values import rule_columns
from cepheid.rules.compile.compilations import Compile
from cepheid.rules.compile.compiled_rules import CompiledRules, EngineRun, compile_rules
from cepheid.rules.load.validation import columns_of
from cepheid.rules.placement.places import Ground
from cepheid.rules.placement.split import PlacedPass, passes_of
from cepheid.rules.run.alert_columns import require_alert_columns
from cepheid.rules.run.chains.in_frames import chain_over, followed
from cepheid.rules.run.contradictions import warn_of_contradictions
from cepheid.rules.run.passes import needs_of
from cepheid.rules.run.runtimes import Templates, Throttle
from cepheid.rules.run.throttle import check_carried, throttle_ticks
from cepheid.spark import rule_sets as on_spark
from cepheid.spark.batch import match_prepared
from cepheid.spark.partitions.rule_work import PassWork, QueryWork
from cepheid.spark.rule_sets import Frame
from cepheid.spark.shared_passes import is_hashable, match_keyed, match_sliced


@dataclass(frozen=True)
class SetOnSpark:
    """Matches a set of rules over a DataFrame; each pass is one shuffle."""

    def match(
        self,
        templates: Templates,
        data: Any,
        options: Options,
        throttle: Throttle = None,
        compile_: Compile = compile_rules,
    ) -> Any:
        refuse_dead_letters(options)
        frame = on_spark.read(data, options)
        chain = chain_over(templates, data, options)
        first = templates if chain is None else chain.first
        compiled = self.compiled(first, data, options, compile_)
        warn_of_contradictions(compiled, 4)
        frame = on_spark.with_columns(frame, compiled.required)
        schema = alert_schema(compiled.rules, frame.schema.field(options.time).type)
        times = _times(compiled, frame, options)
        placed = _placed(compiled, frame, times, options)
        keyed, apart = _by_key(compiled, placed, frame, _may_share(data, options))
        together = partial(PassWork, rules=compiled.rules, schema=schema, jit=options.jit)
        frames = [
            on_spark.match_group(frame, run.parts, compiled.rules, schema, options, times)
            for run in placed
            if _single_group(run) is None or run.place.key not in keyed
        ]
        for key, queries in keyed.items():
            groups = (_single_group(run) for run in placed if run.place.key == key)
            work = together(next(groups, None), queries)
            frames.append(match_keyed(frame, key, work, options))
        for dealt in _slices([_work(run) for run in apart if run.members[0].variants is not None]):
            frames.append(match_sliced(frame, together(None, dealt), times, options))
        for run in apart:
            if run.members[0].variants is None:
                matches = match_prepared(run.prepared, data, options)
                alerts = on_spark.as_alerts(matches, run.attributions, compiled.rules, schema)
                frames.append(alerts)
        alerts = on_spark.union(frame, frames, schema)
        if chain is not None:
            every = alert_schema(rule_columns(templates), schema.field(MATCH_END).type)
            following = followed(chain, alerts, every, data, options)
            alerts = on_spark.union(
                frame, [on_spark.with_all_columns(alerts, every), *following], every
            )
            schema = every
        if throttle is None:
            return alerts
        check_carried(schema)
        pause = throttle_ticks(throttle, schema.field(MATCH_END).type, options)
        exempt = compiled.choosing if chain is None else chain.choosing(compiled.choosing)
        return on_spark.throttled_alerts(alerts, schema, pause, exempt)

    def compiled(
        self, templates: Templates, data: Any, options: Options, compile_: Compile = compile_rules
    ) -> CompiledRules:
        deals = _may_share(data, options)
        return compile_(templates, columns_of(data), options, by_key=True, deals=deals, ends=True)

    def explain(
        self, templates: Templates, data: Any, options: Options, compile_: Compile = compile_rules
    ) -> tuple[CompiledRules, tuple[PlacedPass, ...] | None]:
        compiled = self.compiled(templates, data, options, compile_)
        frame = on_spark.with_columns(on_spark.read(data, options), compiled.required)
        return compiled, _placed(compiled, frame, _times(compiled, frame, options), options)

    def counts(self, matches: Any) -> dict[str, int]:
        return {row[RULE]: row["count"] for row in matches.groupBy(RULE).count().collect()}

    def read_as_events(
        self, templates: Templates, data: Any, options: Options, alerts: Any
    ) -> dict[str, tuple[Any, Options]]:
        return {}  # they aren't put together for that

    def typed(self, matches: Any, rule: str, schema: pa.Schema) -> Any:
        require_alert_columns(matches.columns)
        return on_spark.typed_of(matches, rule, schema)


def _may_share(data: Any, options: Options) -> bool:
    """Whether queries may share the partitions of others. Limits and until= are about the rows that
    a query reads by itself, and so is a partitioning that the caller has chosen."""
    chosen = (options.limit, options.until, options.start)
    alone = isinstance(data, Mapping) or options.partitioning != "auto"
    return not alone and all(option is None for option in chosen)


def _work(run: EngineRun) -> QueryWork:
    run.prepared.warn()
    return QueryWork(run.prepared, run.attributions, run.members[0].variants)


def _slices(dealt: list[QueryWork]) -> Iterator[tuple[QueryWork, ...]]:
    """Queries over dealt events that share slices of time, and those that need all events in one
    place."""
    for limited in (True, False):
        queries = tuple(query for query in dealt if (query.reach is not None) is limited)
        if queries:
            yield queries


def _single_group(placed: PlacedPass) -> RuleGroup | None:
    """The merged rules of a pass, unless they are divided, or of several keys."""
    whole = len(placed.parts) == 1 and placed.place.key is not None
    return placed.parts[0] if whole else None


def _by_key(
    compiled: CompiledRules, placed: Sequence[PlacedPass], frame: Frame, may_share: bool
) -> tuple[dict[str, tuple[QueryWork, ...]], list[EngineRun]]:
    """The queries that share the shuffle of each key, and all others. A key that merged rules are
    shuffled by comes first, then the one of most queries."""
    left = [(run, _keys(run, frame) if may_share else frozenset()) for run in compiled.runs]
    known = [run.place.key for run in placed if _single_group(run) is not None]
    chosen: dict[str, tuple[QueryWork, ...]] = {}
    while True:
        counts = Counter(key for _, keys in left for key in keys)
        best = max(sorted(counts), key=lambda key: (key in known, counts[key]), default=None)
        if best is None:
            return chosen, [run for run, _ in left]
        chosen[best] = tuple(_work(run) for run, keys in left if best in keys)
        left = [(run, keys) for run, keys in left if best not in keys]


def _keys(run: EngineRun, frame: Frame) -> frozenset[str]:
    """The columns by which rows may be shuffled for all queries of the run. Events are counted
    where all rows of a key are; a query that can match nothing reads none."""
    if run.prepared.query.nothing is not None:
        return frozenset()
    keys: list[frozenset[str]] = []
    for member in run.members:
        window, schema = member.bound.window, member.bound.schema
        counting = window is not None and window.clock is Clock.EVENTS
        if counting or member.bound.answers is not None:
            return frozenset()
        named = needs_of(member.bound).keys
        keys.append(frozenset(key for key in named if is_hashable(frame, schema, key)))
    return frozenset.intersection(*keys)


def _times(compiled: CompiledRules, frame: Frame, options: Options) -> tuple[int, int] | None:
    """The first and last time of the events, if slices may be made; this runs a job."""
    sliced = any(group.key is None and not group.single for group in compiled.groups) or any(
        query.variants is not None and not needs_of(query.bound).keys for query in compiled.alone
    )
    joined = options.placement == "one" and len(compiled.groups) > 1
    return on_spark.span(frame, options) if sliced or joined else None


def _placed(
    compiled: CompiledRules, frame: Frame, times: tuple[int, int] | None, options: Options
) -> tuple[PlacedPass, ...]:
    cores, partitions = on_spark.tasks(frame, options)
    length = None if times is None else times[1] - times[0] + 1
    return passes_of(compiled.groups, Ground(cores, partitions, length), options.placement)
