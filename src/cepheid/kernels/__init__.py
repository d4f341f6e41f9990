"""Loops over arrays: generated per operator and predicate shape, compiled with Numba, cached on
disk. Nothing of ours is imported here; the same source runs as plain Python with the JIT off."""

from cepheid.kernels.compile import load, warm_up
from cepheid.kernels.records import Records, State
from cepheid.kernels.templates import (
    Level,
    Pieces,
    Run,
    Scan,
    accepted,
    conj,
    filter_,
    kseq,
    neg,
    nseq_after,
    nseq_before,
    scan_and_construct,
    seq,
)

__all__ = [
    "Level",
    "Pieces",
    "Records",
    "Run",
    "Scan",
    "State",
    "accepted",
    "conj",
    "filter_",
    "kseq",
    "load",
    "neg",
    "nseq_after",
    "nseq_before",
    "scan_and_construct",
    "seq",
    "warm_up",
]
