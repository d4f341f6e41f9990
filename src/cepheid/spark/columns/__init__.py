"""Columns of DataFrames: their types and names, and conditions on one event as Spark's columns.

schema                       Spark's types as Arrow's, and back
column_names, entrance       safe names inside, the caller's names outside
predicates, class_filters    conditions, and the rows that a query can use
extraction                   paths into nested columns
"""
