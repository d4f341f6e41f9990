"""Numbers for people: in plans, messages and reports.

As short as they can be read. Estimates have two digits: more would be a pretense.
"""

from __future__ import annotations

import math

_LARGE = (("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15))
_TIMES = (("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9))
_EXACT = 100_000


def amount(value: float) -> str:
    """
    >>> [amount(v) for v in (0, 0.0371, 0.0001, 3.42, 96.4, 1234, 45_678, 9.99e6, 3e21)]
    ['0', '0.037', '<0.001', '3.4', '96', '1.2 k', '46 k', '10 M', '3.0 × 10^21']
    >>> amount(3)
    '3'
    """
    if not math.isfinite(value):
        return _endless(value)
    if value >= 1e18:
        digits, power = f"{value:.1e}".split("e+")
        return f"{digits} × 10^{int(power)}"
    for sign, unit in reversed(_LARGE):
        if _rounded(value) >= unit:
            return f"{_digits(value / unit)} {sign}"
    return f"{value:.0f}" if value == int(value) else _digits(value)


def count(value: int) -> str:
    """What was counted: exact while that is short.

    >>> count(12_345), count(1_234_567)
    ('12,345', '1.2 M')
    """
    return f"{value:,}" if value < _EXACT else amount(value)


def duration(nanoseconds: float) -> str:
    """
    >>> [duration(v) for v in (0, 0.5, 120, 34_000, 3.14e6, 9.96e8, 7.25e10)]
    ['0 ns', '0.50 ns', '120 ns', '34 µs', '3.1 ms', '1.0 s', '72 s']
    """
    if not math.isfinite(nanoseconds):
        return _endless(nanoseconds)
    if nanoseconds >= 1e12:
        return f"{amount(nanoseconds / 1e9)} s"
    for sign, unit in reversed(_TIMES):
        if _rounded(nanoseconds) >= unit:
            return f"{_digits(nanoseconds / unit)} {sign}"
    return f"{_digits(nanoseconds)} ns"


def share(part: float) -> str:
    """
    >>> share(0.0), share(0.004), share(0.416), share(1.0)
    ('0 %', '<1 %', '42 %', '100 %')
    """
    if not math.isfinite(part):
        return _endless(part)
    return "<1 %" if 0 < part < 0.005 else f"{100 * part:.0f} %"


def ratio(times: float) -> str:
    """How many times as much.

    >>> ratio(1.0), ratio(3.16), ratio(2500.0), ratio(0.84)
    ('×1.0', '×3.2', '×2.5 k', '×0.84')
    """
    return f"×{_digits(times) if 0.001 <= times < 100 else amount(times)}"


def _rounded(value: float) -> float:
    """To two digits, so that 999.6 is 1 k and not 1000."""
    return float(f"{value:.1e}") if value else 0.0


def _digits(value: float) -> str:
    """Two digits, and all of those before the point."""
    if value == 0:
        return "0"
    if value < 0.001:
        return "<0.001"
    if value < 0.995:
        return f"{value:.2g}" if value < 0.095 else f"{value:.2f}"
    return f"{value:.1f}" if value < 9.95 else f"{value:.0f}"


def _endless(value: float) -> str:
    return "?" if math.isnan(value) else "∞"
