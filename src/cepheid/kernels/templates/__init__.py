"""Source of the operators' kernels (ZStream 4.4), around generated predicates.

Every kernel has the signature `kernel(outer, inner, heads, cols, params, out, results, state)`
with `Records` for outer, inner and out; see `State`. The root of a plan may write its RETURN
columns, `results`, instead of records. A kernel fills `out` up to its capacity, says in
`state` where it stands, and is resumed with the next call. The outer loop runs in the order of
ends, so the output is in that order too. Candidates of the inner side are found by binary search
on their last position, or, with equalities, by a walk along a hash chain, newest first.

Indexes are written `u(i)`: never negative, so Numba need not look whether they are, which is a
third of the time of a join without predicates.
"""

from cepheid.kernels.templates.automaton import AutomatonState
from cepheid.kernels.templates.closure import ClosureParts, kseq
from cepheid.kernels.templates.frame import Pieces
from cepheid.kernels.templates.joins import accepted, conj, filter_, seq
from cepheid.kernels.templates.negation import neg, nseq_after, nseq_before
from cepheid.kernels.templates.stacks import Scan, StackLevel, scan_and_construct

__all__ = [
    "AutomatonState",
    "ClosureParts",
    "Pieces",
    "Scan",
    "StackLevel",
    "accepted",
    "conj",
    "filter_",
    "kseq",
    "neg",
    "nseq_after",
    "nseq_before",
    "scan_and_construct",
    "seq",
]
