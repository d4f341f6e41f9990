"""Expressions become typed ones.

expression_binder                 the recursion over an expression
resolution                        names, parameters and durations
calls, group_calls, match_calls   functions, and aggregates over groups and over matches
coercion, casts                   conversions between types
array_conditions                  conditions on arrays
"""
