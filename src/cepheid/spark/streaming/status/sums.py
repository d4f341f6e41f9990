"""Sums the figures of a stream's batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cepheid.streaming.rule_figures import FiguresOfRules, RuleFigures, RunFigures

if TYPE_CHECKING:
    from cepheid.spark.streaming.status.reports import Status

_LEFT_OUT = ("rejected", "future", "late", "shed", "suppressed")
COUNTED = ("events", "relevant", "ties", "matches", *_LEFT_OUT)
"""The figures of a batch that add up."""


@dataclass
class Sums:
    """The sums over batches, and the state held after the last one, by bucket."""

    batches: int = 0
    events: int = 0
    rejected: int = 0
    future: int = 0
    relevant: int = 0
    late: int = 0
    shed: int = 0
    ties: int = 0
    matches: int = 0
    suppressed: int = 0
    refused: int = 0
    held: dict[str, tuple[int, int]] = field(default_factory=dict)

    of_rules: FiguresOfRules = field(default_factory=FiguresOfRules)

    def add(self, done: Status) -> None:
        self.batches += 1
        self.of_rules = self.of_rules.plus(FiguresOfRules(done.rules, done.runs))
        for name in COUNTED:
            setattr(self, name, getattr(self, name) + getattr(done, name))
        # A bucket that takes no part in a batch stays as it is.
        self.held |= {b["bucket"]: (b["rows"], b["size"]) for b in done.buckets}
        self.refused = done.refused if done.buckets else self.refused

    @property
    def rules(self) -> Mapping[str, RuleFigures]:
        """Of each rule that had a match."""
        return self.of_rules.rules

    @property
    def runs(self) -> Mapping[str, RunFigures]:
        """Of what several rules share."""
        return self.of_rules.runs

    @property
    def rows(self) -> int:
        """Events held."""
        return sum(rows for rows, _ in self.held.values())

    @property
    def size(self) -> int:
        """Bytes of state."""
        return sum(size for _, size in self.held.values())
