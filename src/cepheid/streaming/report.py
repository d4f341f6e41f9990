"""The figures of a batch of a stream."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Report:
    """The figures of a batch, and of the state after it. `shed` counts events dropped because of
    the limit, `replans` plan changes since the stream began, `refused` rules that can't run, `ties`
    events whose unknown order matters, `suppressed` alerts that were throttled."""

    events: int
    late: int
    shed: int
    matches: int
    rows: int
    size: int
    replans: int
    refused: int = 0
    ties: int = 0
    suppressed: int = 0


NOTHING = Report(0, 0, 0, 0, 0, 0, 0)
