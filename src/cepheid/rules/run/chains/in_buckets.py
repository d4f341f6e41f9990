"""Rules that read the matches of others on a stream: what runs for them in each bucket.

Where the chain has a key, the matches are read in the bucket where they are found, in the same
step. A chain that has none is in a pass whose events are all in one bucket.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.algebra.nested_columns import read_fields, with_extracted
from cepheid.algebra.types import STREAM_COLUMN
from cepheid.engine.attribution.json_rows import alert_rows
from cepheid.engine.match_schema import output_schema
from cepheid.options import Options
from cepheid.rules.compile.alert_values import rule_columns
from cepheid.rules.run.alert_columns import carrying
from cepheid.rules.run.chains.followers import Follower, Following
from cepheid.streaming.buckets.bucket import Job
from cepheid.streaming.buckets.folded_bucket import FoldedJob
from cepheid.streaming.buckets.rule_chains import ReadingRule, RuleChains, Tables
from cepheid.streaming.chained_query import merge_inputs
from cepheid.streaming.signature import answers_signature, signature


def rule_chains(following: Following, alert_schema: pa.Schema, options: Options) -> RuleChains:
    rules = carrying(rule_columns(following.templates), alert_schema)
    sources = {place: source.matches for place, source in following.sources.items()}
    every = (
        ReadingRule(
            follower.identity,
            follower.name,
            follower.place,
            job := _job(follower, options),
            _rows(following, follower, job.schema),
            follower.returned,
            _to_alerts(rules, follower.number, alert_schema),
        )
        for follower in following.followers
    )
    return RuleChains(tuple(every), sources)


def _job(follower: Follower, options: Options) -> Job:
    """Its rows wait until all that they are matched with is known."""
    query, prepared = follower.query, follower.query.prepared
    schema = read_fields(query.columns, prepared.plan.required)
    schema = pa.schema([field.with_nullable(True) for field in schema])
    shape = prepared.query.answers
    if shape is None:
        return Job(
            prepared, schema, signature(prepared), delayed=True, jit=options.jit,
            results=query.labels, lag=query.lag, accepted=True,
        )  # fmt: skip
    same = answers_signature(prepared, output_schema(prepared.plan, schema))
    return FoldedJob(
        prepared.counted(prompt=True) or prepared, schema, same, delayed=True, jit=options.jit,
        results=query.labels, lag=query.lag, accepted=True, shape=shape, limit=options.limit,
    )  # fmt: skip


def _rows(
    following: Following, follower: Follower, schema: pa.Schema
) -> Callable[[pa.Table, Tables], pa.Table]:
    query = follower.query

    def rows(events: pa.Table, tables: Tables) -> pa.Table:
        named = STREAM_COLUMN in events.column_names
        base = {
            name: events.filter(pc.equal(events[STREAM_COLUMN], name)) if named else events
            for name in query.base
        }
        labels = {n: following.read(provider, tables) for n, provider in follower.reads.items()}
        parts = [schema.empty_table()]
        if base:  # whose paths are columns already
            parts.append(merge_inputs(base, {n: query.inputs[n] for n in base}, schema))
        if labels:
            whole = merge_inputs(labels, {n: query.inputs[n] for n in labels}, query.columns)
            parts.append(with_extracted(whole, schema.names).cast(schema))
        return pa.concat_tables(parts)

    return rows


def _to_alerts(
    rules: pa.Table, number: int, schema: pa.Schema
) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    def to_alerts(matches: pa.RecordBatch) -> pa.RecordBatch:
        return alert_rows(rules, np.full(matches.num_rows, number), matches, schema)

    return to_alerts
