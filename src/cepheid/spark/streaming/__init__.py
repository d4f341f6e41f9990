"""Queries over streaming DataFrames.

runtime, pipeline, rule_passes      from a stream of events to one of matches: queries, rules
buckets, packed_rows                which bucket a row belongs to, and how rows travel
processor, bucket_work              the stateful operator, and what it does with a bucket
time, ahead, heartbeat              watermarks, events ahead of the clock, time without events
letters                             dead letters
reports, sums, metrics              figures: `cep.status`, their sums, Prometheus
outcome, checkpoint, explain        how a query ends, how far it got, how it is spread
"""
