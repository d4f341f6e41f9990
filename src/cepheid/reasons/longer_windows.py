"""Longer windows: which are tried, and how they are told."""

from __future__ import annotations

from cepheid.algebra.query import Clock
from cepheid.algebra.text import span_text
from cepheid.algebra.values import MICROSECONDS
from cepheid.reasons.anatomy import Anatomy
from cepheid.reasons.trials import Trials

TIMES = 4
"""How many times as long the window is in which events are looked for that come too late. More
would cost more: about as many times as many partial matches are kept."""


def longer_window(parts: Anatomy, trials: Trials) -> int | None:
    """The size of the longer window that is tried; None if all events are in the window already."""
    window = parts.bound.window
    if window is None or window.size >= trials.longest(window):
        return None
    return min(TIMES * window.size, trials.longest(window))


def readable(parts: Anatomy, size: int) -> int:
    """A window that is at least so long, as a person would write it: in whole seconds if it is
    longer than ten, in milliseconds if it is longer than ten of those."""
    if parts.ticks:
        return size
    unit = next((u for u in (1_000_000, 1_000) if size > 10 * u), 1)
    return -(-size // unit) * unit


def window_words(parts: Anatomy, size: int) -> str:
    window = parts.bound.window
    if window is not None and window.clock is Clock.EVENTS:
        return f"WITHIN {size} EVENTS"
    return f"WITHIN {span_text(size, parts.ticks)}"


def needed_words(parts: Anatomy, tried: int, shortest: int, longest: int) -> str:
    """The windows that matches need which last so long. A window of events is known by the one
    that was tried alone."""
    window = parts.bound.window
    if window is not None and window.clock is Clock.EVENTS:
        return f"at most {window_words(parts, tried)}"
    least, most = (span_text(_rounded(parts, s + 1), parts.ticks) for s in (shortest, longest))
    if least == most:
        return f"WITHIN {most}"
    number, unit = least.split(" ", 1)
    return f"WITHIN {number if most.endswith(f' {unit}') else least} to {most}"


def _rounded(parts: Anatomy, size: int) -> int:
    """At least so long, in a unit of which there are more than ten."""
    unit = next((u for u in reversed(MICROSECONDS.values()) if size > 10 * u), 1)
    return size if parts.ticks else -(-size // unit) * unit
