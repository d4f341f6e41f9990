"""Many queries in one automaton (Cayuga 4): equal prefixes are one, predicates and instances have
indexes.

paths      a query as a path of steps, if it is one
intervals  conditions on one event as intervals of columns, for all rules of a template at once
dag        the paths of all rules, merged
index      which predicates an event satisfies: the FR index
machine    the automaton at work
residual   what is left to rules that share another query
"""
