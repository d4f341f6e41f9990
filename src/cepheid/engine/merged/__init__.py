"""Many queries in one automaton (Cayuga 4): equal prefixes are one, predicates and instances have
indexes.

paths              a query as a path of steps, if it is one
intervals, levels  conditions on one event as intervals of columns; neighboring thresholds
merge, dag         the automaton of all rules, and its graph
index              which predicates an event satisfies: the FR index
machine            the automaton at work
subset             the automaton of some of the rules
group, engine      rules that share a pass; merged rules as an engine that can be saved
"""
