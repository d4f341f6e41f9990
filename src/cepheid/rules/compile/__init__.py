"""Rules bound to the columns of the events: which of them share an automaton, a query or a plan."""
