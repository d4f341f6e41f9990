"""Event automata as kernels (Cayuga 3 and 4, NEXT 3, SASE+): pattern → program → source.

A program, as data:

- `program`: the whole, which prints itself (`program_text`)
- `instructions`: what it is made of; `elements`: what these take; `points`: positions, by the parts
  that lie there

From a pattern to its program:

- `compiler`: events, conjunctions, disjunctions, and the recursion
- `knowledge`: what is known at a place, and which conditions can be checked there
- `sequences`: what `;`, `->` and `=>` let stand right of what is bound
- `closures`: groups, and those that stand beside each other
- `forbidden`: exceptions and negations
- `matches`: a complete match

From a program to its kernel: `source`. At run time:

- `rows_by_key`: rows key by key
- `operator`: rounds, horizons, what is kept
"""
