"""Event automata as kernels (Cayuga 3 and 4, NEXT 3, SASE+).

- `code`: lines, names, and what is known at a place in the kernel
- `conditions`: when a conjunct becomes evaluable, and its test
- `searching`: loops over the events of a class; conjunctions, disjunctions
- `groups`: which groups a closure over events can bind
- `rounds`: closures over a pattern
- `blocks`: closures that stand beside each other, those that are choices of their own
- `sequences`: what `;`, `->` and `=>` let stand right of what is bound
- `checks`: exceptions and negations
- `program`: the whole kernel: a complete match, and when it is known
- `layout`: rows key by key
- `operator`: rounds, horizons, what is kept
"""
