"""Loops over arrays: generated per operator and predicate shape, compiled with Numba, cached on
disk. Nothing of ours is imported here; the same source runs as plain Python with the JIT off."""

from cepheid.kernels.compile import kernel_folder, load, warm_up
from cepheid.kernels.records import KernelState, Records
from cepheid.kernels.templates import (
    AutomatonState,
    Pieces,
    Scan,
    StackLevel,
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
from cepheid.kernels.templates.texts import LENGTH_BITS

__all__ = [
    "LENGTH_BITS",
    "AutomatonState",
    "KernelState",
    "Pieces",
    "Records",
    "Scan",
    "StackLevel",
    "accepted",
    "conj",
    "filter_",
    "kernel_folder",
    "kseq",
    "load",
    "neg",
    "nseq_after",
    "nseq_before",
    "scan_and_construct",
    "seq",
    "warm_up",
]
