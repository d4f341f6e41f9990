"""From a query as written to a bound one: names, types, roles, key, window, outputs.

binder                      puts a bound query together from its parts
shape, absences, windows    the pattern: which forms are refused, and what needs a window
scope, group_scope          what a name stands for, in matches and in groups of them
conjuncts, keys             what each condition of WHERE does, and the partition key
outputs, group_by           RETURN, GROUP BY and HAVING
expressions                 expressions, from names and calls to types
findings                    where all of them report what is wrong
"""
