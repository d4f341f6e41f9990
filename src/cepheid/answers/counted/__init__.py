"""Counts the matches of a query from its events, without finding them.

`countable.ways` says how it can be done, if it can, and `counters.counter_of` makes a counter.
"""
