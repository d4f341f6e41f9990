"""Cepheid on Spark: batches here, streams in `streaming`.

batch_runtime, batch, rule_sets              what runs: queries, sets of rules
match_recognize, table_function              MATCH_RECOGNIZE; a query that Spark's SQL calls
grouped_matches, analyze                     answers about matches; statistics of DataFrames
kept_events                                  events for many variations of a query
views                                        names under which SQL reads DataFrames
columns                                      types, names and conditions as Spark's columns
partitions                                   which rows go to which partition, and the engine there
start                                        sessions that start, fast and without noise
event_files                                  files of events, read as in a local run
daemon                                       Spark's Python daemon, with the engine loaded
"""
