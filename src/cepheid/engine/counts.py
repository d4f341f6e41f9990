"""The counters of an engine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Counts:
    """What the engine has seen and made."""

    events: int = 0
    rejected: int = 0
    matches: int = 0
    rounds: int = 0
    idle: int = 0
    shed: int = 0
    undecided: int = 0
    late: int = 0
