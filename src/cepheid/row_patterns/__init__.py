"""SQL's row pattern recognition: the clause MATCH_RECOGNIZE, from its text to rows.

A match begins at the leftmost row that allows one, and of all matches that begin there the
preferred one is taken: greedy quantifiers take rows and give them back. The closures of
`cepheid.algebra` never give back, so this has a matcher of its own.
"""
