"""How long a kernel that this machine hasn't compiled runs as plain Python.

Plain Python matches tens of thousands of events in the time that compiling takes. So a kernel is
compiled once it has run for as long as that, in all runs of this process together, or before, if
the events at hand would take longer. Nothing then takes more than twice as long as it could have.
"""

from __future__ import annotations

from collections import defaultdict

_plain_seconds: defaultdict[str, float] = defaultdict(float)


def compile_seconds(source: str) -> float:
    """How long compiling takes, roughly: measured on kernels of 2,000 to 43,000 characters."""
    return 0.25 + 1.1e-4 * len(source)


def note_plain(source: str, seconds: float) -> None:
    """The kernel has run as plain Python for so long."""
    _plain_seconds[source] += seconds


def is_patient(source: str) -> bool:
    """Whether the kernel may run as plain Python once more."""
    return _plain_seconds[source] < compile_seconds(source)
