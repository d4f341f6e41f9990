"""Queries over streaming DataFrames.

stream_runtime                        the runtime for streaming DataFrames
pipeline, rule_passes, row_pipeline   from events to matches: queries, rules, MATCH_RECOGNIZE
letters                               dead letters: rows that can take part in no match
explain                               how a query is spread over buckets
stateful                              the stateful operator, its buckets and their rows
clock                                 watermarks, events ahead of the clock, heartbeats
status                                figures of a stream, how it ends, how far it got
"""
