"""Loops over arrays: generated per operator and predicate shape, compiled with Numba, cached on
disk. Nothing of ours is imported here; the same source runs as plain Python with the JIT off."""

from cepheid.kernels.compile import load
from cepheid.kernels.records import Records, State
from cepheid.kernels.templates import (
    Pieces,
    accepted,
    conj,
    filter_,
    kseq,
    neg,
    nseq_after,
    nseq_before,
    seq,
)

__all__ = [
    "Pieces",
    "Records",
    "State",
    "accepted",
    "conj",
    "filter_",
    "kseq",
    "load",
    "neg",
    "nseq_after",
    "nseq_before",
    "seq",
]
