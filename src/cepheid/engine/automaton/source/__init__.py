"""From an automaton's program to the source of its kernel.

- `writer`: lines, conditions, and where parts lie
- `places`: what is known where a line stands
- `sweeps`: loops over the events of a class
- `groups`, `choices`, `rounds`: what closures bind
- `histories`: which composite is the first
- `checks`: what must not be there
- `completion`: a complete match
- `kernel`: the whole
"""
