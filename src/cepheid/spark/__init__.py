"""Cepheid on Spark: batches here, streams in `streaming`.

runtime, batch, rule_sets, match_recognize   what runs: queries, sets of rules, MATCH_RECOGNIZE
layout, arrange, salts                       which rows go to which partition, and how
class_filters, expressions, extraction       conditions and paths as Spark columns
schema, column_names, entrance, views        types and names of columns, on the way in and out
worker, batch_sizes                          the engine in a Spark worker
grouped_matches                              answers about matches
analyze                                      statistics of DataFrames
event_files                                  files of events, read as in a local run
session, java, daemon, class_archive, quiet  sessions that start, fast and without noise
"""
